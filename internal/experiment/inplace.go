package experiment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// settleSeconds of load precede a slice in place: those of the incumbent as those of the arm, so that both
// are equally warm after standing still.
const settleSeconds = 2

// errStays marks a variable that does not take its former value back.
var errStays = errors.New("a variable does not take its former value back")

// hostError is why another arm's server, on which slices were to run in place, cannot be brought up: no fault
// of the arm that was tried there.
type hostError struct {
	arm string
	error
}

func (e hostError) Unwrap() error { return e.error }

// inPlace runs a slice of a pair on the server of another arm, which SET GLOBAL makes this arm's. That server
// is raised where it is not up, or where it does not go back to what it was. There is no slice, and no error,
// where the arm turns out to be a no-op.
func (f *fleet) inPlace(ctx context.Context, j trialJob) (*result.Trial, error) {
	st, err := f.host(ctx, j)
	if err != nil {
		return nil, err
	}
	err = f.assume(ctx, st, j.set)
	if errors.Is(err, errStays) {
		if err = f.drop(ctx, j.on.Name); err == nil {
			st, err = f.host(ctx, j)
		}
	}
	if err != nil {
		return nil, f.buried(ctx, j.on.Name, err)
	}
	if j.arm.Effective == nil {
		if _, err := f.inspect(ctx, j, st.conn); err != nil || j.arm.Noop && j.skipNoop {
			return nil, f.buried(ctx, j.on.Name, err)
		}
	}
	j.incarnation, j.settle = st.job.incarnation, settleSeconds
	t, err := f.slice(ctx, st, j)
	return t, f.buried(ctx, j.on.Name, err)
}

// host is the server that runs a slice in place. What is on record of its arm stays as it is.
func (f *fleet) host(ctx context.Context, j trialJob) (*standing, error) {
	name := j.on.Name
	if f.up[name] == nil {
		own, raised := *j.on, j
		raised.arm, raised.base, raised.skipNoop, raised.others, raised.set = &own, j.onBase, false, nil, nil
		if err := f.raise(ctx, raised); err != nil {
			return nil, hostError{name, err}
		}
		if j.on.Effective == nil { // it never ran before
			j.on.Effective = own.Effective
		}
	}
	return f.up[name], nil
}

// buried takes a server that ended out of the fleet, and blames the error on its end. Errors of servers that
// live are returned as they are.
func (f *fleet) buried(ctx context.Context, name string, err error) error {
	st := f.up[name]
	if err == nil || st == nil {
		return err
	}
	err = alive(ctx, st.session, err)
	if st.session.Alive() != nil {
		delete(f.up, name)
		err = errors.Join(err, st.end(ctx))
	}
	return err
}

// assume gives a server the values of some variables, and takes back what it was given before and is not
// among them.
func (f *fleet) assume(ctx context.Context, st *standing, set []mycnf.Setting) error {
	if err := f.freezeAll(); err != nil {
		return err
	}
	if err := f.thaw(st); err != nil {
		return err
	}
	wanted := map[string]string{}
	for name := range st.given {
		wanted[name] = st.job.arm.Effective[name]
	}
	for _, s := range set {
		wanted[s.Name] = s.Value
	}
	names := slices.Sorted(maps.Keys(wanted))
	for range 2 { // servers clip one variable to another: innodb_io_capacity to its maximum
		for _, name := range names {
			if err := st.conn.Exec(ctx, mycnf.SetStatement("GLOBAL", name, wanted[name])); err != nil {
				return refusal(name, wanted[name], err)
			}
			st.given[name] = true
		}
	}
	if len(set) > 0 {
		return nil
	}
	return st.asBefore(ctx)
}

// refusal returns the error of a SET GLOBAL: the server's own refusal makes the arm infeasible, nothing else
// does.
func refusal(name, value string, err error) error {
	if mysqld.Number(err) != 0 {
		return fmt.Errorf("%w: %s=%s: %w", ErrRefused, name, value, err)
	}
	return fmt.Errorf("cannot set %s: %w", name, err)
}

// asBefore sees to it that the server has its own values again of all that it was given.
func (st *standing) asBefore(ctx context.Context) error {
	if len(st.given) == 0 {
		return nil
	}
	now, err := st.conn.Variables(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(st.given)) {
		if own := st.job.arm.Effective[name]; mycnf.MatchValues(name, own, now[name]) == mycnf.Different {
			return fmt.Errorf("%w: %s was to be %s again, the server has %s", errStays, name, own, now[name])
		}
	}
	clear(st.given)
	return nil
}
