package move

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"david/internal/host"
	"david/internal/mysqld"
	"david/internal/process"
)

// Outcome tells what a move, or a way back, did. Times are in seconds.
type Outcome struct {
	Passes []Pass  `json:"passes"` // while the server ran
	Last   Pass    `json:"last"`   // while it was away
	Files  int     `json:"files"`
	Bytes  int64   `json:"bytes"` // that were compared, and are the same on both sides
	Away   float64 `json:"away"`  // from the stop command until the server answered again
	Stop   float64 `json:"stop"`
	Check  float64 `json:"check"`
	Start  float64 `json:"start"`
	Proof  *Proof  `json:"proof,omitempty"`
}

// journey is a move or a way back: what is in use, what is to be in use, and what is put on record on the way.
type journey struct {
	q          Request
	r          *Record
	d          daemon
	from, to   string // folders
	target     side
	going      Phase // while the server runs
	away, done Phase
	files      []file    // that were the same on both sides
	left       time.Time // when its stop began
	missing    []string  // files that were the same on both sides, and were gone when the server answered
	looks      looks
}

// Apply carries a plan out, or goes on with one that was interrupted. Where it fails before the switch the
// server runs where it ran. ErrNeeds says that only the copy could be made.
func Apply(ctx context.Context, q Request, p Plan) (r *Record, out Outcome, err error) {
	if len(p.Refused) > 0 {
		return nil, out, fmt.Errorf("%w: %s", ErrInput, strings.Join(p.Refused, "; "))
	}
	if r, err = p.begin(q); err != nil {
		return r, out, err
	}
	r.command(q)
	in, err := r.Route.at()
	if err != nil {
		return r, out, err
	}
	j := &journey{q: q, r: r, d: q.daemon(r), from: r.Route.folder(oldSide, in), to: r.Route.New, target: newSide, going: Copying, away: Stopping, done: Moved}
	if in == newSide {
		out, err = j.arrived(ctx)
		return r, out, err
	}
	out, err = j.travel(ctx, p.Needs)
	return r, out, err
}

// begin begins a record, or takes up the one there is, and makes the new folder.
func (p Plan) begin(q Request) (*Record, error) {
	r := p.record
	if r == nil {
		if len(p.Needs) == 0 && p.Route.Was == "" {
			if err := tryExchange(filepath.Dir(p.Route.Link)); err != nil {
				return nil, fmt.Errorf("%w: the filesystem of %s cannot exchange two names in one step: %w", ErrInput, p.Route.Link, err)
			}
		}
		r = &Record{Route: p.Route, System: p.system, Server: p.Server.UUID, Network: q.Addr.Network, Address: q.Addr.Address, Stop: p.stop, Start: p.start}
		if err := create(q.Home, r); err != nil {
			return nil, err
		}
		if err := r.note(Copying, "the copy of %s to %s begins", p.Route.Link, p.Route.New); err != nil {
			return r, err
		}
	}
	if in, err := r.Route.at(); err == nil && in == oldSide { // it may lie elsewhere since
		r.Beside, r.Log = beside(p.Elsewhere), logged(p.Elsewhere)
	}
	if err := os.Mkdir(r.Route.New, 0o700); !errors.Is(err, fs.ErrExist) {
		return r, err
	}
	return r, nil
}

func (q Request) daemon(r *Record) daemon {
	d := daemon{addr: q.Addr, stop: r.Stop, start: r.Start, server: r.Server, log: filepath.Join(r.dir, logFile), stopWithin: q.StopWithin, startWithin: q.StartWithin}
	if len(q.Stop) > 0 {
		d.stop, d.start = q.Stop, q.Start
	}
	return d
}

// most are the passes while the server runs; the next is worth its while where it is shorter by a quarter.
const (
	mostPasses = 10
	shorter    = 0.75
)

// travel copies while the server serves, then stops it, and has it use the copy.
func (j *journey) travel(ctx context.Context, needs []string) (out Outcome, err error) {
	if err := j.running(ctx, j.from); err != nil {
		return out, err
	}
	if len(needs) == 0 {
		if err := j.alone(ctx); err != nil {
			return out, err
		}
	}
	conn, err := mysqld.Open(ctx, j.q.Addr)
	if err != nil {
		return out, err
	}
	defer conn.Close()
	if err := apartFrom(ctx, conn, j.to, j.r.Route.Link); err != nil {
		return out, err
	}
	if err := j.readable(ctx, conn); err != nil {
		return out, err
	}
	c, err := j.open()
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, c.close()) }()
	before, err := j.serving(ctx, conn, c, &out, len(needs) > 0)
	if err == nil && len(needs) > 0 {
		err = fmt.Errorf("%w: the copy is made, and the rest needs more: %s", ErrNeeds, strings.Join(needs, "; "))
	}
	if err == nil {
		j.looks.last, err = lastStates(ctx, conn, j.from)
	}
	if err == nil {
		err = j.cross(ctx, c, &out)
	}
	if err != nil {
		return out, errors.Join(j.full(err), j.quiet())
	}
	return out, j.ended(ctx, c, &out, before)
}

// full adds to an error what to do where the new place has no room.
func (j *journey) full(err error) error {
	if in, unknown := j.r.Route.at(); errors.Is(err, unix.ENOSPC) && j.target == newSide && unknown == nil && in == oldSide {
		return fmt.Errorf("%w; nothing is switched: make room, and the same command goes on, or --back removes the half copy", err)
	}
	return err
}

// alone makes sure that the server works in the place that is to be copied, and nobody in the other one: what is there would be
// copied over, and may be newer.
func (j *journey) alone(ctx context.Context) error {
	err := j.d.answers(ctx, j.from)
	if errors.Is(err, mysqld.ErrUnreachable) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w: nothing was copied: %w: see which place has the newer data", ErrInput, err)
	}
	left, err := writers(j.to)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%w: nothing was copied: somebody works in %s, whose data may be newer than those of %s: %s", ErrInput, j.to, j.from, process.Names(left))
	}
	return err
}

// open opens both places, and keeps everybody else out of the one whose data are not whole from here on.
func (j *journey) open() (*copier, error) {
	c, err := newCopier(j.from, j.to, min(runtime.NumCPU(), 4))
	if err != nil {
		return nil, err
	}
	if err = c.seal(); err == nil && j.target == newSide {
		err = c.mark(j.r.Route.Link)
	}
	if err == nil {
		err = removed(filepath.Join(j.r.dir, sumsFile)) // of an earlier way, whose stop is not this one's
	}
	if err == nil {
		err = j.r.note(j.going, "passes from %s to %s", j.from, j.to)
	}
	if err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// quiet sets back what calm set where the server still runs.
func (j *journey) quiet() error {
	if j.r.Pages == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := mysqld.Open(ctx, j.q.Addr)
	if err != nil {
		return fmt.Errorf("%s is still 0, and is set back by the next david storage move or a restart: %w", dirtyPages, err)
	}
	defer conn.Close()
	return uncalm(ctx, conn, j.r)
}

// serving copies in passes until one is short, and has the server write what its shutdown would have to.
func (j *journey) serving(ctx context.Context, conn *mysqld.Conn, c *copier, out *Outcome, only bool) (sums map[string]table, err error) {
	c.limit.SetLimit(j.q.pace())
	defer c.limit.SetLimit(rate.Inf)
	for len(out.Passes) < mostPasses {
		if err := j.pass(ctx, c, out, only); err != nil || only {
			return sums, err
		}
		n := len(out.Passes)
		p := out.Passes[n-1]
		if n > 2 && p.Seconds > shorter*out.Passes[n-2].Seconds {
			break
		}
		if n == 1 {
			if sums, err = j.prepared(ctx, conn); err != nil {
				return sums, err
			}
		}
	}
	if err := j.ripen(ctx, c, out); err != nil {
		return sums, err
	}
	if last := out.Passes[len(out.Passes)-1]; last.Seconds > j.q.MostStop.Seconds() {
		return sums, fmt.Errorf("%w: the last pass took %.0f s, and the server would be away for as long, and for its own stop and start: more than --max-stop %s; allow more, or move when less is written", ErrNeeds, last.Seconds, j.q.MostStop)
	}
	return sums, nil
}

// pass is one while the server runs, and the comparison of what nobody has written to for a while.
func (j *journey) pass(ctx context.Context, c *copier, out *Outcome, only bool) error {
	p, err := c.pass(ctx, true)
	if err != nil {
		return err
	}
	out.Passes = append(out.Passes, p)
	j.q.Say(fmt.Sprintf("pass %d, while the server runs: %s read, %s written in %.1f s", len(out.Passes), host.Size(p.Read), host.Size(p.Written), p.Seconds))
	if only {
		return nil
	}
	return c.checkSettled(ctx)
}

// worthwhile is how many seconds less of reading, while the server is away, are worth a wait of a minute before.
const worthwhile = 1

// ripen waits, and makes another pass, where the files that were written to in the last minute would take long to read while
// the server is away, as after its dirty pages were written.
func (j *journey) ripen(ctx context.Context, c *copier, out *Outcome) error {
	size, until := c.unripe()
	if first := out.Passes[0]; float64(size)*first.Seconds <= worthwhile*float64(first.Read) {
		return nil
	}
	wait := max(0, time.Until(until))
	j.q.Say(fmt.Sprintf("%s were written to in the last minute: waiting for %.0f s, so that they need not be read while the server is away", host.Size(size), wait.Seconds()))
	select {
	case <-time.After(wait):
		return j.pass(ctx, c, out, false)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// pace is the limit of what is read while the server runs.
func (q Request) pace() rate.Limit {
	if q.Rate == 0 {
		return rate.Inf
	}
	return rate.Limit(q.Rate)
}

// prepared does what takes long after the first pass: tables are summed up, dirty pages are written.
func (j *journey) prepared(ctx context.Context, conn *mysqld.Conn) (sums map[string]table, err error) {
	if j.q.ProofWithin > 0 {
		var all []string
		if sums, all, err = checksums(ctx, conn, j.from, j.q.ProofWithin); err != nil {
			return sums, err
		}
		j.q.Say(fmt.Sprintf("CHECKSUM TABLE of %d of %d tables", len(sums), len(all)))
	}
	err = calm(ctx, conn, j.r)
	if errors.Is(err, mysqld.ErrPrivilege) {
		j.q.Say(fmt.Sprintf("the user may not set %s: the server writes its dirty pages when it stops, which may take longer", dirtyPages))
		j.r.Pages = nil
		return sums, j.r.save()
	}
	return sums, err
}

// cross is the time without the server. Until the switch whatever fails has it run where it ran.
func (j *journey) cross(ctx context.Context, c *copier, out *Outcome) (err error) {
	g, err := j.station()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.dismiss()) }()
	if err := j.led(c); err != nil {
		return err
	}
	if err := j.r.note(j.away, "the server is stopped: %s", strings.Join(j.d.stop, " ")); err != nil {
		return err
	}
	began := time.Now()
	j.left = began
	defer func() { out.Away = time.Since(began).Seconds() }()
	if err := j.d.halt(j.from); err != nil && j.down() {
		return j.again(err)
	} else if err != nil {
		return errors.Join(fmt.Errorf("%w; nothing was switched, its data are in %s. Should it stop later, start it with: %s", err, j.from, strings.Join(j.d.start, " ")),
			j.r.note(j.going, "the server did not stop"))
	}
	out.Stop = time.Since(began).Seconds()
	release, err := claim(c.from, j.r.System)
	if err != nil {
		return j.again(err)
	}
	turned, err := j.still(ctx, c, out)
	if !turned {
		return j.again(errors.Join(err, release()))
	}
	return errors.Join(err, j.land(c, out, release))
}

// led makes sure that the server's path leads to the folder that is copied: somebody may have put another in its place since, as a
// restore does, and what is written there would be left behind.
func (j *journey) led(c *copier) error {
	in, err := j.r.Route.at()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	copied, err := c.from.Stat(".")
	if err != nil {
		return err
	}
	there, err := os.Stat(j.r.Route.Link)
	if err == nil && (in == j.target || !os.SameFile(copied, there)) {
		err = fmt.Errorf("%w: %s leads to another folder than when the copy of %s began: somebody has changed that meanwhile: see which has the newer data, then begin again", ErrInput, j.r.Route.Link, j.from)
	}
	return err
}

// down tells whether no server works in the place that was to be left, nor answers.
func (j *journey) down() bool {
	left, err := servers(j.from)
	return err == nil && len(left) == 0 && j.d.answers(context.Background(), j.from) != nil
}

// again starts the server where it was.
func (j *journey) again(why error) error {
	j.q.Say("nothing is switched: the server is started where it was")
	if err := j.d.raise(j.from); err != nil {
		return errors.Join(why, fmt.Errorf("%w: it is down, and its data are whole in %s: start it with %s", err, j.from, strings.Join(j.d.start, " ")))
	}
	return errors.Join(why, j.r.note(j.going, "nothing was switched, and the server was started where it was"))
}

// hurried is how many files are worked on at a time while clients wait: a volume gives more to several readers.
const hurried = 4

// most times that the last pass is made where somebody wrote to the data after it: a server that something starts again at once, and
// that ends as david has its locks, or a script that keeps a file of its own there.
const mostLast = 3

// still does what is to be done while no server runs: the last pass, the check, the switch.
func (j *journey) still(ctx context.Context, c *copier, out *Outcome) (turned bool, err error) {
	c.workers = max(c.workers, hurried)
	for n := 1; ; n++ {
		if err = j.level(ctx, c, out); err == nil {
			turned, err = j.turn(c)
		}
		wrote := errors.Is(err, ErrMismatch) || errors.Is(err, errVanished) || errors.Is(err, fs.ErrNotExist)
		if !wrote || n == mostLast {
			return turned, err
		}
		j.q.Say("somebody wrote to the data while the server was away, the last pass is made once more: " + err.Error())
	}
}

// turn switches, and back where somebody wrote to the place that is left after it was compared: no server has started yet.
func (j *journey) turn(c *copier) (turned bool, err error) {
	if err := errors.Join(j.led(c), c.unlike()); err != nil { // the comparison may have taken long
		return false, err
	}
	j.looks.left = prints(c.from.Name())
	err = j.r.Route.turn(j.target)
	in, unknown := j.r.Route.at()
	if err = errors.Join(err, unknown); err != nil || in != j.target {
		return unknown == nil && in == j.target, err
	}
	late := c.unlike()
	if late == nil {
		j.looks.copied = prints(c.to.Name())
		return true, nil
	}
	if err := j.r.Route.turn(1 - j.target); err != nil {
		return true, errors.Join(late, err)
	}
	if err := stranded(c); err != nil {
		return false, fmt.Errorf("somebody wrote to both places while they were switched (%v), keep that from it: %w", late, err)
	}
	return false, late
}

// stranded is an error where somebody wrote to the copy, by the path, while that led there, or is about to. It is asked after the path
// has left: one look before would miss what comes between the two.
func stranded(c *copier) error {
	left, err := writers(c.to.Name())
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%s writes to %s", process.Names(left), c.to.Name())
	}
	if err == nil {
		err = c.touched()
	}
	if err != nil {
		err = fmt.Errorf("%w while the path led there: that is nowhere else, and the next david storage move writes over it: keep a copy of it", err)
	}
	return err
}

// level makes both sides the same, and puts that on record.
func (j *journey) level(ctx context.Context, c *copier, out *Outcome) error {
	p, err := c.pass(ctx, false)
	out.Last.Files, out.Last.Read, out.Last.Written, out.Last.Seconds = p.Files, out.Last.Read+p.Read, out.Last.Written+p.Written, out.Last.Seconds+p.Seconds
	if err != nil {
		return err
	}
	began := time.Now()
	if j.files, out.Bytes, err = c.check(ctx); err != nil {
		return err
	}
	out.Files, out.Check = len(j.files), time.Since(began).Seconds()
	if err := c.finish(); err != nil {
		return err
	}
	if j.target == newSide {
		err = errors.Join(j.noted(c), c.unmark(), j.r.Route.prepare())
	}
	if err == nil {
		err = j.r.note(j.away, "both sides are the same, and %s is switched", j.r.Route.Link)
	}
	if err != nil {
		return err
	}
	return errors.Join(j.unvisited(), ctx.Err())
}

// unvisited is an error where somebody has come to the place that is being left since its server was stopped.
func (j *journey) unvisited() error {
	left, err := writers(j.from)
	if err != nil {
		return err
	}
	coming, err := comers(j.from, j.left)
	if err != nil || len(left)+len(coming) == 0 {
		return err
	}
	who := process.Names(left)
	if who == "" {
		who = fmt.Sprintf("process %d", coming[0].PID)
	}
	return fmt.Errorf("somebody started meanwhile: %s; keep that from it while the data are moved", who)
}

// noted puts on record what the old place is at the stop, and with it what lies elsewhere: tables may be there since the plan.
func (j *journey) noted(c *copier) error {
	files, err := list(c.from, false)
	if err != nil {
		return err
	}
	var now Plan
	now.Route = j.r.Route
	now.Elsewhere, now.Refused = now.Route.linked(files, c.from.Name())
	if err := now.tablespaces(c.from, files, c.from.Name()); err != nil {
		return err
	}
	if len(now.Refused) > 0 {
		return fmt.Errorf("%w: %s", ErrInput, strings.Join(now.Refused, "; "))
	}
	for _, e := range now.Elsewhere {
		if !slices.Contains(j.r.Beside, e) {
			j.r.Beside = append(j.r.Beside, e)
		}
	}
	return errors.Join(j.r.write(statsFile, []byte(stats(j.files))), j.r.write(besideFile, []byte(besides(j.r.Beside))))
}

// land starts the server on the new place. Where it does not start, and has not touched anything there, it is
// started where it was. Until then nobody else can start there.
func (j *journey) land(c *copier, out *Outcome, release func() error) error {
	began := time.Now()
	folder := j.r.Route.folder(j.target, j.target)
	err := j.d.raise(folder)
	if err != nil && j.comes(folder, began) {
		err = nil
	}
	out.Start = time.Since(began).Seconds()
	if err == nil {
		j.missing = absent(c.to, j.files)
		return errors.Join(j.outlasted(), j.deserted(), release())
	}
	hold, met, came := j.vacant(c, began)
	if came == nil {
		j.q.Say("the server does not start there, and has touched nothing: it goes back to where it was")
		return errors.Join(j.retrace(c, began, release, err), hold())
	}
	if j.comes(folder, began) || met && (j.d.raise(folder) == nil || j.comes(folder, began)) {
		return errors.Join(j.outlasted(), j.deserted(), release())
	}
	return errors.Join(fmt.Errorf("%w; %w, so david does not go back by itself: see the server's log and %s, then start it there, %s", err, came, j.d.log, j.wayOut()), release())
}

// vacant holds the place that the server did not start on, where none has been, so that none that comes late can have it. met tells
// of one that came in that very moment, and may have died of the lock.
func (j *journey) vacant(c *copier, began time.Time) (hold func() error, met bool, err error) {
	if err := j.visited(c, began); err != nil {
		return nil, false, err
	}
	if hold, err = claim(c.to, j.r.System); err != nil {
		return nil, true, err
	}
	if err := j.visited(c, began); err != nil {
		return nil, true, errors.Join(err, hold())
	}
	return hold, false, nil
}

// visited is an error where a server has written to the place that it was to start on, or is there.
func (j *journey) visited(c *copier, began time.Time) error {
	return errors.Join(c.touched(), j.starting(began))
}

// retrace leads the path back after a start that failed, and has the server run where it was. Until then nobody else can start there,
// nor in the place that is left.
func (j *journey) retrace(c *copier, began time.Time, release func() error, why error) error {
	err := j.r.Route.turn(1 - j.target)
	if err == nil {
		err = j.late(began)
	}
	if err = errors.Join(err, release()); err != nil {
		return errors.Join(why, err)
	}
	why = errors.Join(why, stranded(c))
	if j.comes(j.from, began) { // and finds the place that the path leads to now
		return errors.Join(why, j.r.note(j.going, "it was led back, and the server came up there by itself"))
	}
	return j.again(why)
}

// straggle is how long a server may take to show itself that a start command has left behind when it failed.
const straggle = 2 * time.Second

// comes tells whether a server comes up in a folder by a start command that was told to have failed, and waits until it answers.
func (j *journey) comes(folder string, began time.Time) bool {
	for end := time.Now().Add(straggle); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if coming, err := inhabitants(folder, began); err != nil || len(coming) == 0 {
			continue
		}
		for end := time.Now().Add(j.d.startWithin); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
			if j.d.answers(context.Background(), folder) == nil {
				return true
			}
			if coming, err := inhabitants(folder, began); err != nil || len(coming) == 0 {
				return false
			}
		}
	}
	return false
}

// starting is an error where the server is still busy in the place that it was to start on, or just comes there.
func (j *journey) starting(began time.Time) error {
	folder := j.r.Route.folder(j.target, j.target)
	left, err := writers(folder)
	if err == nil && len(left) > 0 {
		return fmt.Errorf("%s is at work there", process.Names(left))
	}
	if err != nil {
		return err
	}
	coming, err := inhabitants(folder, began)
	if err == nil && len(coming) > 0 {
		err = fmt.Errorf("process %d is just starting there", coming[0].PID)
	}
	return err
}

// latest is how long MySQL tries to lock its first file: 100 times, a second apart (os_file_create in
// storage/innobase/os/os0file.cc). MariaDB gives up at once.
const latest = 110 * time.Second

// late waits for the end of a server that came to the place after its files were looked at, and before the switch led it elsewhere:
// it cannot have the file that david holds there.
func (j *journey) late(began time.Time) error {
	return j.outlast(j.r.Route.folder(j.target, 1-j.target), began)
}

// outlasted waits for the end of a server that something started in the place that is left, right before the switch: david still
// holds that, and once it did not there would be two.
func (j *journey) outlasted() error {
	return j.outlast(j.r.Route.folder(1-j.target, j.target), j.left)
}

// outlast waits until no server that was started since waits to work in a folder.
func (j *journey) outlast(folder string, since time.Time) error {
	told := false
	for end := time.Now().Add(latest); ; time.Sleep(100 * time.Millisecond) {
		coming, err := comers(folder, since)
		if err != nil || len(coming) == 0 {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("process %d waits to work in %s, where the data are not any more: end it", coming[0].PID, folder)
		}
		if !told {
			told = true
			j.q.Say(fmt.Sprintf("process %d was started meanwhile and waits for what david holds in %s: waiting until it gives up", coming[0].PID, folder))
		}
	}
}

// runs tells whether the server answers, or works in its place without answering yet.
func (j *journey) runs(ctx context.Context) (bool, error) {
	if conn, err := mysqld.Open(ctx, j.q.Addr); err == nil {
		return true, conn.Close()
	}
	left, err := writers(j.from)
	return len(left) > 0, err
}

// running makes sure that the server runs, or is being started, as a david that was killed may have left it stopped.
func (j *journey) running(ctx context.Context, folder string) error {
	conn, err := mysqld.Open(ctx, j.q.Addr)
	if err == nil {
		return errors.Join(j.known(ctx, conn), conn.Close())
	}
	if left, err := servers(folder); err != nil || len(left) > 0 {
		return err
	}
	if err := j.r.save(); err != nil { // a guard sees that, and leaves the start to this david
		return err
	}
	for end := time.Now().Add(deserted); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if left, err := servers(folder); err != nil || len(left) > 0 {
			return err // what a david that died just now, or its guard, has begun to start
		}
	}
	j.q.Say("the server does not run, and is started: " + strings.Join(j.d.start, " "))
	j.r.Pages = nil
	return errors.Join(j.r.save(), j.d.raise(folder))
}

// known makes sure that it is the record's server that answers, and sets back what an earlier david left.
func (j *journey) known(ctx context.Context, conn *mysqld.Conn) error {
	same, err := sameServer(ctx, conn, j.r.Server, j.r.Route.Link)
	if err == nil && !same {
		err = fmt.Errorf("%w: the server at %s is not the one of the move from %s, neither by its UUID nor by its datadir: name another with --dsn, or another move with --datadir", ErrInput, conn.Addr(), j.r.Route.Link)
	}
	if err != nil {
		return err
	}
	return uncalm(ctx, conn, j.r)
}

// Wake starts the server where a david that was killed has left it stopped, on the place that it was to run on
// at that moment. It does nothing where the server answers, or where somebody else has stopped it.
func Wake(ctx context.Context, q Request, r *Record) error {
	in, err := r.Route.at()
	if err != nil || r.Phase != Stopping && r.Phase != Leaving && !(r.Phase == Retreating && in == oldSide) {
		return err
	}
	j := &journey{q: q, r: r, d: q.daemon(r)}
	return j.running(ctx, r.Route.folder(in, in))
}

// arrived ends a journey whose switch was made before david was killed.
func (j *journey) arrived(ctx context.Context) (out Outcome, err error) {
	if err := j.running(ctx, j.r.Route.folder(j.target, j.target)); err != nil {
		return out, err
	}
	if err := j.deserted(); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EIO) { // the volume is gone
		return out, err
	}
	return out, j.ended(ctx, nil, &out, nil)
}

// deserted makes sure that nobody works in the place that the server has left.
func (j *journey) deserted() error {
	return Deserted(j.r.Route.folder(1-j.target, j.target))
}

// Deserted is an error where somebody works in a place that is not in use. One that is not there has nobody.
func Deserted(folder string) error {
	left, err := writers(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("somebody works in the place that is no longer in use (%s), end it: %s", folder, process.Names(left))
	}
	return err
}

// ended puts the end of a journey on record.
func (j *journey) ended(ctx context.Context, c *copier, out *Outcome, before map[string]table) error {
	if j.target == oldSide {
		if err := j.r.Route.tidy(); err != nil {
			return err
		}
	}
	j.r.Pages, j.r.Last = nil, out
	if err := j.r.note(j.done, "the server runs on %s", j.r.Route.folder(j.target, j.target)); err != nil {
		return err
	}
	if c != nil {
		c.limit.SetLimit(j.q.pace())
		text, err := c.sums(ctx, j.files)
		if err == nil {
			err = j.r.write(sumsFile, []byte(text))
		}
		if err != nil {
			return fmt.Errorf("%w, but the sums of the place that it has left cannot be kept: %w", ErrLate, err)
		}
	}
	if len(before) == 0 {
		return nil
	}
	return j.proved(ctx, out, before)
}

// proved asks the server on the new place for the checksums that it gave on the old one.
func (j *journey) proved(ctx context.Context, out *Outcome, before map[string]table) error {
	var after map[string]table
	var all []string
	folder := j.r.Route.folder(j.target, j.target)
	conn, err := mysqld.Open(ctx, j.q.Addr)
	if err == nil {
		defer conn.Close()
		after, all, err = checksums(ctx, conn, folder, j.q.ProofWithin)
	}
	if err != nil {
		return fmt.Errorf("%w, but cannot be asked for CHECKSUM TABLE: %w", ErrLate, err)
	}
	for name := range before {
		if !slices.Contains(all, name) && dropped(folder, before[name].files, j.missing) {
			delete(before, name)
		}
	}
	proof := compare(before, after, j.looks, all)
	out.Proof = &proof
	if err := j.r.save(); err != nil || len(proof.Differ)+len(proof.Lost) == 0 {
		return err
	}
	if len(proof.Lost) > 0 {
		return fmt.Errorf("%w: each byte was the same on both sides, but %s could be read before the stop and cannot be read any more: the move is done, and the server runs there; look at them before --forget; a DROP in the last moment can look the same", ErrTables, few(proof.Lost))
	}
	return fmt.Errorf("%w: each byte was the same on both sides, but CHECKSUM TABLE of %s says something else than before the stop, and no write was seen: the move is done, and the server runs there; look at them before --forget; a write in the last moment looks the same", ErrTables, strings.Join(proof.Differ, ", "))
}
