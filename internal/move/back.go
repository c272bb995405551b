package move

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

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
	case in == newSide:
		up, err := j.runs(ctx)
		if err != nil {
			return out, err
		}
		if !up {
			return j.limp(ctx)
		}
		if err := j.standing(ctx); err != nil {
			return out, err
		}
		return j.travel(ctx, nil)
	case r.Phase == Leaving || r.Phase == Returning:
		return j.arrived(ctx)
	}
	return out, j.drop(ctx)
}

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
