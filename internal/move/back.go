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
)

// Idle returns the place that is not in use.
func (r *Record) Idle() (string, error) {
	in, err := r.Route.at()
	if err != nil {
		return "", err
	}
	return r.Route.folder(1-in, in), nil
}

// Return goes back to the old place, with all that was written since. A copy that was never used is removed.
func Return(ctx context.Context, q Request, r *Record) (out Outcome, err error) {
	in, err := r.Route.at()
	if err != nil {
		return out, err
	}
	j := &journey{q: q, r: r, d: q.daemon(r), from: r.Route.New, to: r.Route.folder(oldSide, in), target: oldSide, going: Returning, away: Leaving, done: Back}
	switch {
	case r.Phase == Back:
		return out, fmt.Errorf("%w: the server is back in %s already; --forget removes %s", ErrInput, r.Route.Link, r.Route.New)
	case in == newSide && (q.AsItWas || r.Phase == Retreating):
		return j.retreat(ctx)
	case in == newSide:
		return j.bring(ctx)
	case r.Phase == Leaving || r.Phase == Returning || r.Phase == Retreating:
		return j.arrived(ctx)
	}
	return out, j.drop(ctx)
}

// bring goes back with all that was written since. The server has to run for it, or to start: data that it does not start
// on may be damaged, and are not copied over those of the old place.
func (j *journey) bring(ctx context.Context) (out Outcome, err error) {
	if err := j.standing(ctx); err != nil {
		return out, err
	}
	out, err = j.travel(ctx, nil)
	if in, unknown := j.r.Route.at(); errors.Is(err, ErrStart) && unknown == nil && in == newSide {
		err = fmt.Errorf("%w; what it does not start on may be damaged, and is not copied over the old place; %s", err, j.wayOut())
	}
	return out, err
}

// wayOut says what is left where a server does not start on the new place.
func (j *journey) wayOut() string {
	if !j.untouched() {
		return "the old place is not as it was at the stop any more: --back had begun to bring it up to date"
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
// there. It is for a server that does not start there: no other can want that.
func (j *journey) retreat(ctx context.Context) (out Outcome, err error) {
	if !j.untouched() {
		return out, fmt.Errorf("%w: %s", ErrInput, j.wayOut())
	}
	if up, err := j.runs(ctx); err != nil || up {
		return out, errors.Join(err, fmt.Errorf("%w: the server runs in %s, or somebody works there: --back brings along what was written there; --as-it-was would leave that behind, and is for a server that does not start: stop it first", ErrInput, j.from))
	}
	if err := j.asAtStop(ctx); err != nil {
		return out, err
	}
	if err := j.r.note(Retreating, "%s is led back to %s, as it was at the stop", j.r.Route.Link, j.to); err != nil {
		return out, err
	}
	if err := j.r.Route.turn(oldSide); err != nil {
		return out, err
	}
	return j.arrived(ctx)
}

// asAtStop makes sure that the old place's files have the sums that they had at the stop. A move whose server never answered
// on the new place has none: each byte had been compared, and nobody has been there since.
func (j *journey) asAtStop(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(j.r.dir, sumsFile)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	want, err := home.ReadOwn(filepath.Join(j.r.dir, sumsFile), mostSums)
	if err != nil {
		return err
	}
	c, err := newCopier(j.to, j.from, min(runtime.NumCPU(), 4)) // which reads the old place alone
	if err != nil {
		return err
	}
	defer c.close()
	j.q.Say("the old place is read, to see that it is as it was")
	files, err := list(c.from, false)
	if err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(f file) bool { return !f.mode.IsRegular() })
	got, err := c.sums(ctx, files)
	if err == nil && got != string(want) {
		err = fmt.Errorf("%w: the files of %s are not as they were at the stop (%s): sha256sum --check says which", ErrInput, j.to, filepath.Join(j.r.dir, sumsFile))
	}
	return err
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
	if _, refused, _ := options(server.id.PID, v, j.r.Route, j.from); len(refused) > 0 {
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
	return idle, j.remove(idle, phase)
}

// remove removes a place that nobody uses.
func (j *journey) remove(folder string, phase Phase) error {
	left, err := writers(folder)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("nothing was removed: %s is in use: %s", folder, names(left))
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
