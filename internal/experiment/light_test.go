package experiment

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
)

// TestLightSpeed: after trials that refuse every loss of durability, the ceiling runs without it, once, and
// neither they nor a second session take notice.
func TestLightSpeed(t *testing.T) {
	each(t, func(t *testing.T, e *Engine, s *Sandboxed) {
		ctx := context.Background()
		tuning := racing(t, s, "innodb_buffer_pool_size=256M")
		best, err := tuned(ctx, e, tuning)
		if err != nil {
			t.Fatal(err)
		}
		g, _, err := s.Prepare(ctx, best, small)
		if err != nil {
			t.Fatal(err)
		}
		room := rules.Room{Data: g.Bytes(), Available: 16 << 30, Threads: small.Threads}
		if os.Geteuid() != 0 {
			room.NoTmpfs = "not root"
		}
		if err := e.LightSpeed(ctx, rules.Ceiling(best, room), best); err != nil {
			t.Fatal(err)
		}
		arms, trials := stored(t, e)
		light := trials[len(trials)-1]
		if ok, failed := light.Valid(); !ok || light.Arm != rules.LightSpeed || len(light.Unsafe) < 4 {
			t.Errorf("%s: %v, unsafe %v", light.Arm, failed, light.Unsafe)
		}
		list := stats.LightSpeeds(arms, trials)
		if len(list) != 1 || list[0].Arm != best.Name || list[0].Share <= 0 {
			t.Errorf("%+v", list)
		}
		if again, err := tuned(ctx, e, tuning); err != nil || again.Name != best.Name {
			t.Errorf("gone on with: best is %s, was %s; %v", again.Name, best.Name, err)
		}
		if err := e.LightSpeed(ctx, rules.Ceiling(best, room), best); err != nil {
			t.Error(err)
		}
		if _, more := stored(t, e); len(more) != len(trials) {
			t.Errorf("%d trials, want %d: what is on record was run again", len(more), len(trials))
		}
	})
}

func stored(t *testing.T, e *Engine) ([]result.Arm, []result.Trial) {
	t.Helper()
	arms, err := e.Store.Arms()
	if err != nil {
		t.Fatal(err)
	}
	trials, err := e.Store.Trials()
	if err != nil {
		t.Fatal(err)
	}
	return arms, trials
}

// TestLightSpeedInfeasible: a ceiling that cannot be measured is put on record, and the tune stands.
func TestLightSpeedInfeasible(t *testing.T) {
	e, s := engine(t, "mariadb")
	ctx := context.Background()
	best, err := tuned(ctx, e, racing(t, s))
	if err != nil {
		t.Fatal(err)
	}
	ceiling := rules.Ceiling(best, rules.Room{Data: 1 << 20, Available: 16 << 30, NoTmpfs: "not wanted"})
	ceiling.Settings = rules.Merge(ceiling.Settings, []mycnf.Setting{{Name: "no_such_variable", Value: "1"}})
	if err := e.LightSpeed(ctx, ceiling, best); err != nil {
		t.Fatal(err)
	}
	arms, trials := stored(t, e)
	i := slices.IndexFunc(arms, func(a result.Arm) bool { return a.Ceiling })
	if i < 0 || !strings.Contains(strings.ReplaceAll(arms[i].Infeasible, "-", "_"), "no_such_variable") {
		t.Errorf("%+v", arms)
	}
	if list := stats.LightSpeeds(arms, trials); len(list) != 1 || !strings.Contains(list[0].Why, "no") {
		t.Errorf("%+v", list)
	}
}

// TestLastQuoted: after a search that found nothing, the ceiling stands beside the control's trial of the
// race, not beside its last.
func TestLastQuoted(t *testing.T) {
	trial := func(id string, phase result.Phase, valid bool) result.Trial {
		return result.Trial{ID: id, Arm: stats.Control, Phase: phase, Gates: []result.Gate{{Name: "steal", OK: valid}}}
	}
	race := []result.Trial{trial("1", result.Race, true), trial("2", result.Race, false), trial("3", result.Search, true)}
	confirmed := append(slices.Clone(race), trial("4", result.Confirm, false))
	for _, test := range []struct {
		trials []result.Trial
		want   string
	}{
		{race, "1"}, {race[1:], "2"}, {confirmed, "4"}, {[]result.Trial{trial("5", "", true), trial("6", "", true)}, "6"}, {nil, ""},
	} {
		if got, ok := lastQuoted(test.trials, stats.Control); got.ID != test.want || ok != (test.want != "") {
			t.Errorf("got %q, want %q", got.ID, test.want)
		}
	}
}
