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

	"david/internal/home"
	"david/internal/mysqld"
	"david/internal/process"
)

// Places returns the place that the server's path leads to, and the other one.
func (r *Record) Places() (used, idle string, err error) {
	in, err := r.Route.at()
	if err != nil {
		return "", "", err
	}
	return r.Route.folder(in, in), r.Route.folder(1-in, in), nil
}

// Idle returns the place that is not in use.
func (r *Record) Idle() (string, error) {
	_, idle, err := r.Places()
	return idle, err
}

// Alone says what the place that is not in use has alone; "" where that is nothing, as far as david knows.
func (r *Record) Alone() string {
	switch {
	case r.Phase == Back && r.Left:
		return "what was written there after the move, which is nowhere else"
	case r.Phase == Moved && r.Last != nil && r.Last.Proof != nil && len(r.Last.Proof.Lost) > 0:
		return "whole tables that could not be read after the move: " + few(r.Last.Proof.Lost)
	}
	return ""
}

// Return goes back to the old place, with all that was written since. A copy that was never used is removed.
func Return(ctx context.Context, q Request, r *Record) (out Outcome, err error) {
	in, err := r.Route.at()
	if err != nil {
		return out, err
	}
	r.command(q)
	j := &journey{q: q, r: r, d: q.daemon(r), from: r.Route.New, to: r.Route.folder(oldSide, in), target: oldSide, going: Returning, away: Leaving, done: Back}
	_, gone := os.Lstat(j.to)
	switch {
	case in == newSide && errors.Is(gone, fs.ErrNotExist):
		return out, fmt.Errorf("%w: %s, the old place, is not there any more, so there is no way back: --forget ends the move", ErrInput, j.to)
	case r.Phase == Back:
		return out, fmt.Errorf("%w: the server is back in %s already; --forget removes %s", ErrInput, r.Route.Link, r.Route.New)
	case in == newSide && q.AsItWas:
		return j.retreat(ctx)
	case in == newSide:
		r.Left = false // by an --as-it-was that was meant, and did not get as far as the switch
		return j.bring(ctx)
	case r.Phase == Leaving || r.Phase == Returning || r.Phase == Retreating:
		return j.arrived(ctx)
	}
	return out, j.drop(ctx)
}

// bring goes back with all that was written since. The server has to run for it, or to start: data that it does not start
// on may be damaged, and are not copied over those of the old place.
func (j *journey) bring(ctx context.Context) (out Outcome, err error) {
	if _, err := os.Stat(j.from); err != nil {
		return out, fmt.Errorf("%w: the new place cannot be read (%w): mount it, where it is a volume, %s", ErrInput, err, j.wayOut())
	}
	if err := j.standing(ctx); err != nil {
		return out, err
	}
	out, err = j.travel(ctx, nil)
	if in, unknown := j.r.Route.at(); errors.Is(err, ErrStart) && unknown == nil && in == newSide {
		err = fmt.Errorf("%w; what it does not start on may be damaged, and is not copied over the old place: mend it there, %s", err, j.wayOut())
	}
	return out, err
}

// wayOut says what is left where a server does not start on the new place.
func (j *journey) wayOut() string {
	if !j.untouched() {
		return "as the old place is not as it was at the stop any more: --back had begun to bring it up to date"
	}
	return fmt.Sprintf("or go back to the old place as it was when the server was stopped for the move (%s): --back --as-it-was, which leaves %s as it is", j.stopped(), j.r.Route.New)
}

// untouched tells whether the old place is as it was at the stop.
func (j *journey) untouched() bool {
	return j.r.Phase == Stopping || j.r.Phase == Moved || j.r.Phase == Retreating
}

// stopped is when the server was stopped for the move.
func (j *journey) stopped() string {
	for _, s := range slices.Backward(j.r.Steps) {
		if s.Phase == Stopping {
			return s.At.Format(time.DateTime)
		}
	}
	return "no time on record"
}

// retreat leads the server's path back to the old place as it was at the stop. What was written on the new place since stays
// there. It is for a server that does not start there, or that cannot read its tables.
func (j *journey) retreat(ctx context.Context) (out Outcome, err error) {
	if !j.untouched() {
		return out, fmt.Errorf("%w: --back had begun to bring the old place up to date, so it is not as it was at the stop any more: --back goes on with that", ErrInput)
	}
	up, err := j.runs(ctx)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.EIO) { // the volume is gone
		up, err = false, nil
	}
	if err != nil {
		return out, err
	}
	if up {
		return out, fmt.Errorf("%w: the server runs in %s, or somebody works there: --back brings along what was written there; --as-it-was would leave that behind, and is for a server that does not start, or whose tables cannot be read: stop it first", ErrInput, j.from)
	}
	if err := errors.Join(j.besideAsAtStop(), j.asAtStop(ctx)); err != nil {
		return out, err
	}
	j.r.Left = true
	if err := j.r.note(Retreating, "%s is led back to %s, as it was at the stop", j.r.Route.Link, j.to); err != nil {
		return out, err
	}
	if err := j.r.Route.turn(oldSide); err != nil {
		return out, err
	}
	return j.arrived(ctx)
}

// asAtStop makes sure that the old place's files have the sizes, times, owners and modes that they had at the stop, and the
// same sums, which there are where the move had ended.
func (j *journey) asAtStop(ctx context.Context) error {
	c, err := newCopier(j.to, j.to, min(runtime.NumCPU(), 4)) // which reads alone
	if err != nil {
		return err
	}
	defer c.close()
	files, err := list(c.from, false)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f file) bool { return !f.mode.IsRegular() })
	if err := j.asNoted(statsFile, func() (string, error) { return stats(files), nil }); err != nil {
		return err
	}
	return j.asNoted(sumsFile, func() (string, error) {
		j.q.Say("the old place is read, to see that it is as it was")
		return c.sums(ctx, files)
	})
}

// besideAsAtStop makes sure that what lies elsewhere has not gone on since the stop: InnoDB's log of changes, its undo log, or
// tables, which then tell of changes that the old place has not. A server would start on that, and have damaged tables.
func (j *journey) besideAsAtStop() error {
	err := j.asNoted(besideFile, func() (string, error) { return besides(j.r.Beside), nil })
	if !errors.Is(err, ErrInput) {
		return err
	}
	var all []string
	for _, e := range j.r.Beside {
		all = append(all, fmt.Sprintf("%s (%s)", e.Path, e.Name))
	}
	return fmt.Errorf("%w: what of the server's data lies elsewhere did not move, and has gone on since the stop: %s; with that the old place as it was would make damaged tables. Mend what keeps the server from starting on the new place, or restore a backup", ErrInput, strings.Join(all, ", "))
}

// asNoted holds what is there against a file of the record, where there is one.
func (j *journey) asNoted(name string, now func() (string, error)) error {
	path := filepath.Join(j.r.dir, name)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	want, err := home.ReadOwn(path, mostSums)
	if err != nil {
		return err
	}
	got, err := now()
	if err == nil && got != string(want) {
		err = fmt.Errorf("%w: the files of %s are not as they were at the stop (%s)", ErrInput, j.to, path)
	}
	return err
}

// stats are the modes, owners, sizes and times of files, a line each.
func stats(files []file) string {
	var text strings.Builder
	for _, f := range files {
		fmt.Fprintf(&text, "%o %d %d %d %d.%09d %s\n", f.stat.Mode, f.stat.Uid, f.stat.Gid, f.stat.Size, f.stat.Mtim.Sec, f.stat.Mtim.Nsec, f.name)
	}
	return text.String()
}

// readable makes sure that the server reads its tables on the new place before anything is copied over the old one, which
// may have the only whole ones: those that the move's proof missed, and as many others as there is time for.
func (j *journey) readable(ctx context.Context, conn *mysqld.Conn) error {
	if j.target != oldSide || j.q.Anyway || !j.untouched() {
		return nil
	}
	var bad []string
	if l := j.r.Last; l != nil && l.Proof != nil {
		bad = slices.Concat(l.Proof.Lost, l.Proof.Differ)
	}
	if j.q.ProofWithin > 0 {
		seen, all, err := checksums(ctx, conn, j.from, j.q.ProofWithin)
		if err != nil {
			return err
		}
		j.q.Say(fmt.Sprintf("CHECKSUM TABLE of %d of %d tables, before anything is copied over the old place", len(seen), len(all)))
		for name, t := range seen {
			if t.sum == "" && !slices.Contains(bad, name) {
				bad = append(bad, name)
			}
		}
		bad = slices.DeleteFunc(bad, func(name string) bool { // of those that the move's proof missed
			back, ok := seen[name]
			schema, file, _ := strings.Cut(fileNames(name), "/")
			return !slices.Contains(all, name) && schema != "" && file != "" && dropped(j.from, schema+"/"+file, nil) || ok && back.sum != "" && slices.Contains(j.r.Last.Proof.Lost, name)
		})
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return fmt.Errorf("%w: %s cannot be read on the new place, or were not the same after the move, and would be copied over the old place, which may have the only whole ones: look at them; "+
		"then --back --anyway, or stop the server and --back --as-it-was, which brings along nothing that was written since %s", ErrInput, few(bad), j.stopped())
}

// mostSums bounds the file of sums that is read, in bytes: some hundred for a file.
const mostSums = 1 << 28

// standing refuses the way back of a server that would be started elsewhere, as its folder was changed since. One that
// is just being stopped or started, by whom a david that was killed has left, is not judged: travel waits for it.
func (j *journey) standing(ctx context.Context) error {
	conn, err := mysqld.Open(ctx, j.q.Addr)
	if err != nil {
		return nil
	}
	defer conn.Close()
	v, err := conn.Variables(ctx)
	if err != nil {
		return nil
	}
	if !leadsBy(filepath.Clean(v["datadir"]), j.r.Route.Link) {
		return fmt.Errorf("%w: the server runs with datadir=%s, which is not %s: it would stay there", ErrInput, v["datadir"], j.r.Route.Link)
	}
	server, ok, err := serverOf(j.from)
	if err != nil || !ok {
		return nil
	}
	if _, refused, _ := options(server.PID, v, j.r.Route, j.from); len(refused) > 0 {
		return fmt.Errorf("%w: %s", ErrInput, strings.Join(refused, "; "))
	}
	return nil
}

// drop gives up a move before its switch.
func (j *journey) drop(ctx context.Context) error {
	if err := j.running(ctx, j.to); err != nil {
		return err
	}
	if err := j.r.Route.tidy(); err != nil {
		return err
	}
	return j.remove(j.r.Route.New, Dropped)
}

// Forget removes the place that is not in use. The server has to run on the other.
func Forget(ctx context.Context, q Request, r *Record) (removed string, err error) {
	in, err := r.Route.at()
	if err != nil {
		return "", err
	}
	want, phase := newSide, Forgotten
	if r.Phase == Back {
		want = oldSide
	} else if r.Phase != Moved {
		return "", fmt.Errorf("%w: the move from %s has not ended (%s): end it first, or go back with --back", ErrInput, r.Route.Link, r.Phase)
	}
	if in != want {
		return "", fmt.Errorf("%w: %s leads elsewhere than david left it: see where the data are", ErrInput, r.Route.Link)
	}
	j := &journey{q: q, r: r, d: q.daemon(r)}
	if err := j.d.answers(ctx, r.Route.folder(in, in)); err != nil {
		return "", fmt.Errorf("nothing was removed: the server has to run on the place that stays: %w", err)
	}
	idle := r.Route.folder(1-in, in)
	if err := apart(r.Route.folder(in, in), idle); err != nil {
		return "", err
	}
	conn, err := mysqld.Open(ctx, q.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if err := apartFrom(ctx, conn, idle, r.Route.Link); err != nil {
		return "", err
	}
	return idle, j.remove(idle, phase)
}

// apartFrom makes sure that the server uses nothing in the place where its data are not, as a keyring: to remove that, or to copy
// over it, would be its end.
func apartFrom(ctx context.Context, conn *mysqld.Conn, idle, link string) error {
	v, err := variables(ctx, conn)
	if err != nil {
		return err
	}
	real, err := filepath.EvalSymlinks(idle)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if list := strays(v, real, link); len(list) > 0 {
		return fmt.Errorf("%w: the server uses something in %s, by that place's own name: %s: give it as a path in %s, restart the server, and see that it has what it needs there", ErrInput, idle, strings.Join(list, ", "), link)
	}
	return nil
}

// apart makes sure that no link in the data leads to the place that is to be removed.
func apart(live, idle string) error {
	idle, err := resolved(idle)
	if err != nil {
		return err
	}
	root, err := openFolder(live)
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := list(root, false)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.link == "" {
			continue
		}
		to, err := resolved(filepath.Join(live, f.name))
		if err == nil && within(to, idle) {
			err = fmt.Errorf("%w: nothing was removed: %s leads to %s: move that into the data first", ErrInput, filepath.Join(live, f.name), to)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// remove removes a place that nobody uses.
func (j *journey) remove(folder string, phase Phase) error {
	left, err := writers(folder)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("nothing was removed: %s is in use: %s", folder, process.Names(left))
	}
	if err == nil {
		var below []string
		if below, err = mounted(folder); len(below) > 0 {
			err = fmt.Errorf("%w: something is mounted in %s, on %s: umount it", ErrInput, folder, strings.Join(below, ", "))
		}
	}
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	err = os.RemoveAll(folder)
	if errors.Is(err, unix.EBUSY) { // a whole filesystem, to which a link led: its mount stays
		if all, unread := os.ReadDir(folder); unread == nil && len(all) == 0 {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("cannot remove all of %s: %w", folder, err)
	}
	return j.r.note(phase, "%s is removed", folder)
}
