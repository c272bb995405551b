package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/experiment"
	"david/internal/host"
	"david/internal/move"
	"david/internal/mycnf"
	"david/internal/mysqld"
)

// moveFlags are those of david storage move.
type moveFlags struct {
	serverFlags
	datadir, to, stop, start, rate             string
	apply, back, forget, reuse, json           bool
	asItWas, anyway                            bool
	mostStop, stopWithin, startWithin, proving time.Duration
}

// moveDocument is what david storage move --json prints.
type moveDocument struct {
	Applied bool          `json:"applied"`
	Plan    *move.Plan    `json:"plan,omitempty"`
	Outcome *move.Outcome `json:"outcome,omitempty"`
	Removed string        `json:"removed,omitempty"`
	Record  string        `json:"record,omitempty"` // the folder that says what was done
	Phase   move.Phase    `json:"phase,omitempty"`
	Idle    string        `json:"idle,omitempty"` // the place that is not in use
	New     string        `json:"new,omitempty"`
	// Left tells that it went back without what was written on the new place.
	Left bool `json:"left,omitempty"`
	// Alone says what the place that is not in use has alone; "" for nothing.
	Alone string `json:"alone,omitempty"`
	// Log is the binary log that did not move, and has more than a place as it was at the stop.
	Log string `json:"log,omitempty"`
}

func (a *app) storageMoveCommand() *cobra.Command {
	var f moveFlags
	cmd := &cobra.Command{
		Use:   "move --datadir DIR --to DIR",
		Short: "Move a running server's data to another folder: copied while it serves, one short stop, every byte compared, proof; shows what it would do, --apply does it",
		Long: "Move a running server's data to another folder or volume. Copied while the server serves, in passes; one stop for the last pass, the comparison of every byte,\n" +
			"the switch (a symbolic link takes the old folder's name) and the start. The old place stays until --forget; --back goes back, with what was written since.\n" +
			"A move that was interrupted goes on with the same command. Without --apply nothing is changed (docs/storage.md).",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return moveError(cmd.Context(), a.storageMove(cmd.Context(), f))
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *moveFlags) add(fs *pflag.FlagSet) {
	f.serverFlags.add(fs, "the server: user@unix(/path/socket)/ or user@tcp(127.0.0.1:3306)/ (the one that works in --datadir, or of the move on record)", "an option file whose [client] group names the server")
	fs.StringVar(&f.datadir, "datadir", "", "the data folder, by the path that the server knows (the server's datadir)")
	fs.StringVar(&f.to, "to", "", "the new folder, which is made; what is above it must be there")
	fs.StringVar(&f.stop, "stop", "", "command that stops the server; words are split at spaces, no shell (systemctl stop UNIT, of the server's unit)")
	fs.StringVar(&f.start, "start", "", "command that starts it (systemctl start UNIT)")
	fs.BoolVar(&f.reuse, "reuse", false, "the new folder holds a copy of these data that another david began: go on with it")
	fs.StringVar(&f.rate, "rate", "", "most that is read a second while the server runs, as 100M (no limit); the last pass has none")
	fs.BoolVar(&f.apply, "apply", false, "do it")
	fs.BoolVar(&f.back, "back", false, "go back to the old place, with all that was written since; of a move that has not ended: give it up")
	fs.BoolVar(&f.asItWas, "as-it-was", false, "with --back, of a server that does not start on the new place: go back to the old place as it was at the stop; what was written since stays on the new one")
	fs.BoolVar(&f.anyway, "anyway", false, "with --back: also where tables cannot be read on the new place, so that the old place's are overwritten with what is there")
	fs.BoolVar(&f.forget, "forget", false, "remove the place that is not in use")
	fs.DurationVar(&f.mostStop, "max-stop", 30*time.Second, "do not stop the server where the last pass while it runs took longer: it would be away for about as long")
	fs.DurationVar(&f.stopWithin, "stop-within", 5*time.Minute, "how long the server may take to stop")
	fs.DurationVar(&f.startWithin, "start-within", 5*time.Minute, "how long it may take to answer after its start")
	fs.DurationVar(&f.proving, "proof", time.Minute, "how long CHECKSUM TABLE may take, before the stop and after it each; 0 for none")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
}

// check refuses what does not go together.
func (f moveFlags) check() error {
	switch {
	case f.back && f.forget:
		return usage("--back goes back to the old place, --forget removes it: give one of them")
	case (f.asItWas || f.anyway) && !f.back:
		return usage("--as-it-was and --anyway are for the way back: give --back, too")
	case f.asItWas && f.anyway:
		return usage("--as-it-was brings nothing along, --anyway all there is: give one of them")
	case (f.back || f.forget) && f.to != "":
		return usage("--to is for a move: --back and --forget know from where and where to")
	case !f.back && !f.forget && f.to == "":
		return usage("--to is missing: name the new folder (david storage moves lists what is on record)")
	case (f.stop == "") != (f.start == ""):
		return usage("--stop and --start go together: what stops the server and what starts it")
	case f.stop != "" && (len(strings.Fields(f.stop)) == 0 || len(strings.Fields(f.start)) == 0):
		return usage("--stop and --start: give a command each")
	case f.start != "" && !isProgram(f.start):
		return usage("--start %s: there is no such program here", f.start)
	case f.stop != "" && !isProgram(f.stop):
		return usage("--stop %s: there is no such program here", f.stop)
	case f.mostStop <= 0 || f.stopWithin <= 0 || f.startWithin <= 0 || f.proving < 0:
		return usage("--max-stop, --stop-within and --start-within: give times above 0, as 30s; --proof 0 is none")
	}
	return nil
}

// isProgram tells whether the program of a command is there.
func isProgram(command string) bool {
	_, err := exec.LookPath(strings.Fields(command)[0])
	return err == nil
}

// storageMove shows what it would do, or does it.
func (a *app) storageMove(ctx context.Context, f moveFlags) error {
	if err := a.findServer(&f); err != nil {
		return err
	}
	addr, err := a.remoteAddr(f.serverFlags)
	if err != nil {
		return err
	}
	pace := int64(0)
	if f.rate != "" {
		if pace, err = mycnf.ParseSize(f.rate); err != nil || pace < 1<<20 {
			return usage("--rate %s: give 1M a second at least, as 100M", f.rate)
		}
	}
	q := move.Request{Home: a.home, Addr: addr, Datadir: f.datadir, To: f.to, Reuse: f.reuse, Rate: pace,
		AsItWas: f.asItWas, Anyway: f.anyway, ProofWithin: f.proving,
		Stop: strings.Fields(f.stop), Start: strings.Fields(f.start),
		StopWithin: f.stopWithin, StartWithin: f.startWithin, MostStop: f.mostStop,
		Guard: []string{guardChild}, Say: a.step}
	if f.apply {
		release, err := a.sharing.Lock(a.home, "david storage move", a.env(experiment.BesideVariable))
		if err != nil {
			return err
		}
		defer release()
		if err := a.wake(ctx, f, q); err != nil {
			return err
		}
	}
	if f.back || f.forget {
		return a.moveBack(ctx, f, q)
	}
	p, err := move.Look(ctx, q)
	if err != nil {
		return err
	}
	doc := moveDocument{Plan: &p}
	if !f.apply || len(p.Refused) > 0 {
		return errors.Join(a.printMove(doc, f), refusal(p))
	}
	unstopped()
	r, out, err := move.Apply(ctx, q, p)
	return a.moved(f, doc, r, out, err)
}

// findServer names the server that nobody named: that of the data folder, or of the move that is on record.
func (a *app) findServer(f *moveFlags) error {
	if f.named() {
		return nil
	}
	if f.datadir != "" {
		socket, err := move.Socket(f.datadir)
		if err != nil {
			return err
		}
		if socket != "" {
			f.dsn = "unix(" + socket + ")/"
			return nil
		}
	}
	r, err := move.Find(a.home, f.datadir)
	if errors.Is(err, move.ErrNoRecord) && !f.back && !f.forget {
		return nil
	}
	if err != nil {
		return err
	}
	f.dsn = r.Network + "(" + r.Address + ")/"
	return nil
}

// wake starts the server of a move that was interrupted while it was away.
func (a *app) wake(ctx context.Context, f moveFlags, q move.Request) error {
	if f.back { // which can do without, where it does not start
		return nil
	}
	r, err := f.onRecord(a.home, q.Addr)
	if errors.Is(err, move.ErrNoRecord) {
		return nil
	}
	if err != nil {
		return err
	}
	return move.Wake(ctx, q, r)
}

// onRecord is the move of the data folder that is named, else of the server, else the only one: that its server is the one
// at the address is seen before anything is done.
func (f moveFlags) onRecord(home string, addr mysqld.Addr) (*move.Record, error) {
	if f.datadir == "" {
		if r, err := move.FindServer(home, addr); !errors.Is(err, move.ErrNoRecord) {
			return r, err
		}
	}
	return move.Find(home, f.datadir)
}

// refusal is the error of a move that cannot be done.
func refusal(p move.Plan) error {
	if len(p.Refused) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s", move.ErrInput, strings.Join(p.Refused, "; "))
}

// moved tells of what was done, how far it may have come.
func (a *app) moved(f moveFlags, doc moveDocument, r *move.Record, out move.Outcome, err error) error {
	doc.Applied, doc.Outcome = err == nil, &out
	if r != nil {
		doc.Record, doc.Phase, doc.New, doc.Alone, doc.Left = r.Dir(), r.Phase, r.Route.New, r.Alone(), r.Left
		idle, unknown := r.Idle()
		if unknown == nil {
			doc.Idle = idle
		}
	}
	if err != nil && !f.json {
		return err
	}
	return errors.Join(err, a.printMove(doc, f))
}

// moveBack goes back, or forgets, or shows what that would do.
func (a *app) moveBack(ctx context.Context, f moveFlags, q move.Request) error {
	r, err := f.onRecord(a.home, q.Addr)
	if err != nil {
		return err
	}
	doc := moveDocument{Record: r.Dir(), Phase: r.Phase, New: r.Route.New, Alone: r.Alone()}
	if f.asItWas {
		doc.Log = r.Log
	}
	if doc.Idle, err = r.Idle(); err != nil {
		return err
	}
	switch {
	case !f.apply:
		return a.printMove(doc, f)
	case f.forget:
		doc.Removed, err = move.Forget(ctx, q, r)
		doc.Applied, doc.Phase = err == nil, r.Phase
		if err != nil {
			return err
		}
		return a.printMove(doc, f)
	}
	unstopped()
	out, err := move.Return(ctx, q, r)
	return a.moved(f, doc, r, out, err)
}

func (a *app) printMove(d moveDocument, f moveFlags) error {
	if f.json {
		return a.printJSON(d)
	}
	switch {
	case d.Removed != "":
		fmt.Fprintf(a.out, "%s is removed; the server's data are in the other place alone\n", d.Removed)
	case d.Applied:
		printMoved(a.out, d)
	case d.Plan != nil:
		printMovePlan(a.out, *d.Plan)
	case f.forget:
		alone := ""
		if d.Alone != "" {
			alone = ", with " + d.Alone
		}
		fmt.Fprintf(a.out, "%s would be removed, for good%s\nnothing was changed: --apply does it\n", d.Idle, alone)
	case f.asItWas:
		fmt.Fprintln(a.out, "the server would go back to the old place as it was when it was stopped for the move")
		fmt.Fprintf(a.out, "what was written since then would be in %s alone\n", d.New)
		printLog(a.out, d)
		fmt.Fprintln(a.out, "nothing was changed: --apply does it")
	default:
		fmt.Fprintf(a.out, "the server would go back to the old place (%s), with all that was written since; a copy that was never used would be removed\nnothing was changed: --apply does it\n", d.Phase)
	}
	return nil
}

// printMovePlan begins with what would be done, and for how long the server would be away.
func printMovePlan(out io.Writer, p move.Plan) {
	if len(p.Refused) > 0 {
		fmt.Fprintln(out, "refused, for what is said at the end; this is what would be done without that:")
	}
	fmt.Fprintf(out, "%s: %s in %d files would go to %s (%s on %s, %s free)\n", p.Route.Link, host.Size(p.Bytes), p.Files, p.Route.New, p.To.Type, p.To.Mount, host.Size(p.To.Free))
	if p.Rate > 0 {
		fmt.Fprintf(out, "while it serves: about %s to copy, at the %s/s at which the data can be read; ",
			seconds(float64(p.Bytes)/p.Rate), host.Size(int64(p.Rate)))
		fmt.Fprintln(out, "a slower target takes longer, and data that are written to all the time a minute more")
		fmt.Fprintf(out, "away: its own stop and start, and the time to read what is written to until then, on both sides: %s at most, where that is all of it; --max-stop bounds it\n", seconds(2*float64(p.Bytes)/p.Rate))
	}
	fmt.Fprintf(out, "the old place stays as %s until --forget; --back goes back\n", p.Route.Old)
	for _, e := range p.Elsewhere {
		fmt.Fprintf(out, "stays where it is: %s, %s\n", e.Name, e.Path)
	}
	for _, s := range p.Said {
		fmt.Fprintf(out, "stays as it is written: %s, %s=%s: that path leads to the new place\n", s.Where, s.Name, s.Value)
	}
	for _, n := range p.Needs {
		fmt.Fprintf(out, "needed before the stop: %s\n", n)
	}
	for _, n := range p.Notes {
		fmt.Fprintln(out, n)
	}
	if len(p.Refused) == 0 {
		fmt.Fprintln(out, "nothing was changed: --apply does it")
	}
}

func seconds(s float64) string {
	return time.Duration(s * float64(time.Second)).Round(time.Second).String()
}

// printMoved begins with where the data are, and how long the server was away.
func printMoved(w io.Writer, d moveDocument) {
	o := d.Outcome
	switch d.Phase {
	case move.Dropped:
		fmt.Fprintln(w, "given up: the copy is removed, and the server runs where it ran")
		return
	case move.Back:
		what := "with all that was written since"
		if d.Left {
			what = "as it was at the stop"
		}
		fmt.Fprintln(w, "the server is back in its old place, "+what)
		printLog(w, d)
	default:
		fmt.Fprintln(w, "moved")
	}
	if o.Away > 0 {
		rest := max(0, o.Away-o.Stop-o.Last.Seconds-o.Check-o.Start) // its record on disk, and the switch
		fmt.Fprintf(w, "the server was away for %.1f s: stop %.1f, last pass %.1f (%s written), ",
			o.Away, o.Stop, o.Last.Seconds, host.Size(o.Last.Written))
		fmt.Fprintf(w, "the rest of the comparison %.1f, start %.1f, record and switch %.1f\n", o.Check, o.Start, rest)
		fmt.Fprintf(w, "%d files, %s: each byte compared, and the same on both sides; their SHA-256 as of the stop: %s/files.sha256\n", o.Files, host.Size(o.Bytes), d.Record)
	}
	if p := o.Proof; p != nil {
		fmt.Fprintf(w, "CHECKSUM TABLE: %d tables as before the stop, %d were written to meanwhile, for %d there was no time or checksum\n", p.Same, len(p.Written), p.Left)
	}
	fmt.Fprintf(w, "not in use: %s; david storage move --forget --apply removes it", d.Idle)
	if d.Alone != "" {
		fmt.Fprint(w, ", with ", d.Alone)
	}
	if d.Phase == move.Moved {
		fmt.Fprint(w, ", --back --apply goes back")
	}
	fmt.Fprintln(w)
}

// printLog tells that the binary log has more than the data.
func printLog(w io.Writer, d moveDocument) {
	if d.Log != "" {
		fmt.Fprintf(w, "its binary log lies elsewhere (%s) and still has what was written since the move\n", d.Log)
		fmt.Fprintln(w, "its GTIDs count as applied, here and for replicas, though these data lack them; mysqlbinlog can apply them again")
	}
}

// moveError gives what is the user's to mend its exit code.
func moveError(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, move.ErrLate) && ctx.Err() != nil:
		return codedError{exitInterrupted, fmt.Errorf("interrupted; %w", err)}
	case ctx.Err() != nil && !errors.Is(err, move.ErrStop) && !errors.Is(err, move.ErrStart):
		return codedError{exitInterrupted, fmt.Errorf("interrupted; the server runs where it ran, what is copied is kept, and the same command goes on (%w)", err)}
	case errors.Is(err, move.ErrMismatch), errors.Is(err, move.ErrTables):
		return codedError{exitInvalid, err}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, move.ErrInput), errors.Is(err, move.ErrNeeds), errors.Is(err, move.ErrNoRecord):
		return codedError{exitUsage, err}
	case errors.Is(err, move.ErrStop), errors.Is(err, move.ErrStart):
		return codedError{exitTarget, err}
	}
	return err
}

// guardChild is the command that david starts of itself while a server is away.
const guardChild = "storage-guard"

func (a *app) guardCommand() *cobra.Command {
	return watchCommand(guardChild, "Start a server whose data are being moved where david died: what that starts of itself",
		func(in io.Reader) error { return move.StandGuard(in, a.out, a.err) })
}
