package experiment

import (
	"context"
	"errors"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
)

// TestInPlace runs pairs on one server of either flavour: SET GLOBAL makes it the arm's, takes that back for
// the incumbent's slices, and what the server refuses or what changes nothing is told as of any arm.
func TestInPlace(t *testing.T) {
	each(t, func(t *testing.T, e *Engine, s *Sandboxed) {
		ctx := context.Background()
		e.Report = quiet(e.Report)
		e.plan = newPlan(1, trialOverhead)
		starts := &pids{Target: e.Target}
		e.Target = starts
		control := rules.Control(s.Binary.Flavour)
		f := newFleet(e)
		defer func() {
			if err := f.close(ctx); err != nil {
				t.Error(err)
			}
		}()
		load := small
		load.Seconds, load.Warmup = 1, 2
		arm := settingsArm(control, "depth", "innodb_lru_scan_depth", "512")
		try := func(a *result.Arm, set ...mycnf.Setting) (*result.Trial, error) {
			j := trialJob{arm: a, on: &control, set: set, block: 2, phase: result.Screen, load: load, session: 1, incarnation: 2, skipNoop: true}
			if a != &control {
				j.base = &control
			}
			return f.tried(ctx, j)
		}
		for n, c := range []struct {
			arm  *result.Arm
			want string
		}{{&arm, "512"}, {&control, ""}, {&control, ""}, {&arm, "512"}} {
			var set []mycnf.Setting
			if c.arm == &arm {
				set = []mycnf.Setting{{Name: "innodb_lru_scan_depth", Value: "512"}}
			}
			x, err := try(c.arm, set...)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				c.want = control.Effective["innodb_lru_scan_depth"]
			}
			now, err := read(ctx, f, "innodb_lru_scan_depth")
			if ok, failed := x.Valid(); err != nil || !ok || now["innodb_lru_scan_depth"] != c.want || x.On != "control" || x.Arm != c.arm.Name || x.Incarnation != 2 || x.TPS <= 0 {
				t.Errorf("slice %d: %s on %q, incarnation %d, %.0f tps with %s, %v, %v", n, x.Arm, x.On, x.Incarnation, x.TPS, now["innodb_lru_scan_depth"], failed, err)
			}
			if switched := n != 2; x.Warmed > 0 != switched {
				t.Errorf("slice %d: %v s of load before it", n, x.Warmed)
			}
		}
		if len(starts.all) != 1 || len(arm.Diff) != 1 || arm.Diff[0].After != "512" || arm.Noop {
			t.Errorf("%d servers were started; the arm differs in %v", len(starts.all), arm.Diff)
		}
		low := settingsArm(control, "low", "innodb_lru_scan_depth", "1")
		if x, err := try(&low, low.Settings[len(low.Settings)-1]); !errors.Is(err, ErrRefused) {
			t.Errorf("a value that the server clips: %v, a slice %v", err, x != nil)
		}
		wrong := settingsArm(control, "wrong", "innodb_lru_scan_depth", "much")
		if x, err := try(&wrong, wrong.Settings[len(wrong.Settings)-1]); !errors.Is(err, ErrRefused) || infeasible(err) == "" {
			t.Errorf("a value that it does not take: %v, a slice %v", err, x != nil)
		}
		same := settingsArm(control, "same", "innodb_lru_scan_depth", control.Effective["innodb_lru_scan_depth"])
		if x, err := try(&same, same.Settings[len(same.Settings)-1]); x != nil || err != nil || !same.Noop {
			t.Errorf("its own value: %v, a slice %v, a no-op %v", err, x != nil, same.Noop)
		}
	})
}

// read asks the control's server, awake for it, for a variable.
func read(ctx context.Context, f *fleet, name string) (map[string]string, error) {
	st := f.up["control"]
	if err := f.thaw(st); err != nil {
		return nil, err
	}
	now, err := st.conn.Pairs(ctx, "SHOW GLOBAL VARIABLES LIKE '"+name+"'")
	return now, errors.Join(err, f.freeze(st))
}
