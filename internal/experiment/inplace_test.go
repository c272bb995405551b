package experiment

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/tune"
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
			if x.Warmed < 1 {
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

// TestPairOnRecord: all four slices of a pair are on record, though two of them are of the same arm in one block.
func TestPairOnRecord(t *testing.T) {
	s, err := result.Create(filepath.Join(t.TempDir(), "x"), result.Experiment{Kind: result.KindTune, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	e, a, b := &Engine{Store: s}, result.Arm{Name: "incumbent"}, result.Arm{Name: "screen-x"}
	for n, arm := range []*result.Arm{&b, &a, &a, &b} {
		j := trialJob{arm: arm, on: &a, block: 7, place: n + 1, phase: result.Screen, load: small, incarnation: 7, session: 1}
		x := result.Trial{Schema: result.Schema, ID: e.id(j), Arm: arm.Name, Block: 7, Place: n + 1, Phase: result.Screen, TPS: 100, Workload: small, Started: time.Now()}
		if err := s.AppendTrial(x); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := s.Trials(); err != nil || len(got) != 4 {
		t.Errorf("%d of 4 slices are on record, %v", len(got), err)
	}
	if _, n, err := s.Figures(); err != nil || n != 0 {
		t.Errorf("%d are said to be replaced, %v", n, err)
	}
}

// ended is a session whose server has ended.
type ended struct{ remoteSession }

func (ended) Alive() error              { return errors.New("killed by signal 9") }
func (ended) Freeze(bool) error         { return errors.New("cannot make the server frozen: no such process") }
func (ended) End(context.Context) error { return nil }

// TestHostEnds: a server that ended during a slice in place is no longer up, so that the next pair gets another
// one, and nobody waits for it to stand still.
func TestHostEnds(t *testing.T) {
	f := newFleet(&Engine{Report: func(Event) {}})
	control, arm := result.Arm{Name: "control"}, result.Arm{Name: "x"}
	f.up["control"] = &standing{session: ended{}, awake: true, given: map[string]bool{}, job: trialJob{arm: &control}}
	conn, err := mysqld.Open(t.Context(), mysqld.Addr{Network: "unix", Address: filepath.Join(t.TempDir(), "none")})
	if err == nil {
		t.Fatal("there is a server")
	}
	f.up["control"].conn = conn
	_, err = f.tried(t.Context(), trialJob{arm: &arm, on: &control, base: &control})
	if !errors.Is(err, ErrEnded) || f.up["control"] != nil {
		t.Errorf("%v; it is up: %v", err, f.up["control"] != nil)
	}
	if err := f.freezeAll(); err != nil {
		t.Error(err)
	}
}

// TestHostDoesNotStart: where the incumbent's server cannot be brought up, the incumbent is to blame.
func TestHostDoesNotStart(t *testing.T) {
	s, err := result.Create(filepath.Join(t.TempDir(), "x"), result.Experiment{Kind: result.KindTune, Created: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	h := &tune.History{Arms: []result.Arm{{Name: "control"}, {Name: "big"}}}
	e := &Engine{Store: s}
	if err := e.blameHost(hostError{"big", fmt.Errorf("%w: it was killed", sandbox.ErrMemory)}, h); err != nil || h.Arms[1].Infeasible == "" || h.Arms[0].Infeasible != "" {
		t.Errorf("%v, %+v", err, h.Arms)
	}
	if err := e.blameHost(hostError{"big", errors.New("the disk is full")}, h); err == nil {
		t.Error("an error of the machine's is nobody's fault")
	}
}
