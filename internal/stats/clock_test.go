package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"david/internal/result"
)

// setBack is a comparison in slices, on a machine whose clock is set back by an hour after a number of
// rounds; 0 for one whose clock is not.
func setBack(after int) []result.Trial {
	rng := rand.New(rand.NewPCG(1, 2))
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	var trials []result.Trial
	for round := 1; round <= 12; round++ {
		if round == after+1 && after > 0 {
			now = now.Add(-time.Hour)
		}
		drift := math.Sin(float64(round) / 3)
		for i, arm := range []string{"control", "a"} {
			tps := 1000 * math.Exp(0.03*drift+0.01*rng.NormFloat64()+0.1*float64(i))
			trials = append(trials, result.Trial{ID: arm + string(rune('a'+round)), Arm: arm, Block: round, Session: 1, Incarnation: 1 + (round-1)/6,
				Started: now, Seconds: 5, TPS: tps, Transactions: int64(5 * tps), Latency: result.Latency{P95: 5}})
			now = now.Add(7 * time.Second)
		}
	}
	return trials
}

// TestClockSetBack: dates that go backwards in the midst of a session change nothing of what is found.
func TestClockSetBack(t *testing.T) {
	design := result.Design{Control: "control", Slices: &result.Slices{}}
	arms := []result.Arm{{Name: "control"}, {Name: "a"}}
	want := Compare(design, arms, setBack(0))[0].Arms[1]
	if want.Pairs != 12 || !(want.Interval[0] > 1) {
		t.Fatalf("%+v", want)
	}
	for _, after := range []int{3, 6, 11} {
		got := Compare(design, arms, setBack(after))[0].Arms[1]
		for name, d := range map[string]float64{"ratio": got.Ratio / want.Ratio, "low": got.Interval[0] / want.Interval[0], "high": got.Interval[1] / want.Interval[1]} {
			if math.Abs(d-1) > 2e-4 { // the seconds between the two rounds are not known
				t.Errorf("set back after round %d: the %s is %.5f of what it was", after, name, d)
			}
		}
	}
}

// TestDebtsClockSetBack: the first slice of an incarnation is the one of its first round, whatever its date.
func TestDebtsClockSetBack(t *testing.T) {
	age := func(mib float64) *float64 { b := mib * (1 << 20); return &b }
	redo := 1e6
	slice := func(round int, at time.Time, before, after float64) result.Trial {
		tr := result.Trial{Arm: "a", Block: round, Session: 1, Incarnation: 1, Started: at, Transactions: 1000, Costs: result.Costs{RedoBytes: &redo}}
		tr.Before.CheckpointAge, tr.After.CheckpointAge = age(before), age(after)
		return tr
	}
	now := time.Now()
	for name, later := range map[string]time.Time{"on": now.Add(time.Minute), "back": now.Add(-time.Hour)} {
		_, borrowed, _ := Debts([]result.Trial{slice(1, now, 10, 500), slice(2, later, 500, 900)})
		if borrowed != 1 {
			t.Errorf("the clock goes %s: %d borrowed", name, borrowed)
		}
	}
}
