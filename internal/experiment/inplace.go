package experiment

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// settleSeconds sets how long the load is on after SET GLOBAL before a slice is measured.
const settleSeconds = 2

// inPlace runs a slice of a pair on the server of another arm, which SET GLOBAL makes this arm's. That server
// is raised where it is not up. There is no slice, and no error, where the arm turns out to be a no-op.
func (f *fleet) inPlace(ctx context.Context, j trialJob) (*result.Trial, error) {
	if f.up[j.on.Name] == nil {
		host := j
		host.arm, host.base, host.skipNoop, host.others, host.set = j.on, j.onBase, false, nil, nil
		if err := f.raise(ctx, host); err != nil {
			return nil, fmt.Errorf("the server of %s, for %s: %w", j.on.Name, j.arm.Name, err)
		}
	}
	st := f.up[j.on.Name]
	changed, err := f.assume(ctx, st, j.set)
	if err != nil {
		return nil, alive(ctx, st.session, err)
	}
	if j.arm.Effective == nil {
		if _, err := f.inspect(ctx, j, st.conn); err != nil || j.arm.Noop && j.skipNoop {
			return nil, alive(ctx, st.session, err)
		}
	}
	j.incarnation = st.job.incarnation
	if changed {
		j.settle = settleSeconds
	}
	return f.slice(ctx, st, j)
}

// assume gives a server the values of some variables, and takes back what it was given before and is not
// among them. It tells whether anything was changed.
func (f *fleet) assume(ctx context.Context, st *standing, set []mycnf.Setting) (changed bool, err error) {
	if err := f.freezeAll(); err != nil {
		return false, err
	}
	if err := f.thaw(st); err != nil {
		return false, err
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
			st.given[name] = true
			if err := st.conn.Exec(ctx, mycnf.SetStatement("GLOBAL", name, wanted[name])); err != nil {
				return false, refusal(name, wanted[name], err)
			}
		}
	}
	if len(set) == 0 {
		return len(names) > 0, st.asBefore(ctx)
	}
	return true, nil
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
			return fmt.Errorf("%w: %s was to be %s again, the server has %s", ErrRefused, name, own, now[name])
		}
	}
	clear(st.given)
	return nil
}
