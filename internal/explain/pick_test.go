package explain

import (
	"testing"

	"david/internal/result"
)

func TestJudgePart(t *testing.T) {
	for ratio, want := range map[float64]Judgement{0.02: Refuted, 0.5: Undecided, 0.9: Confirmed, 1.6: Confirmed} {
		if got := judgePart(Outcome{Ratio: ratio}); got != want {
			t.Errorf("%g of what was found: %s, want %s", ratio, got, want)
		}
	}
}

// TestDefaultArm is never a ceiling where something else was measured.
func TestDefaultArm(t *testing.T) {
	d := Record{Arms: []result.Arm{{Name: "measured"}, {Name: "light-speed", Ceiling: true}}, Trials: []result.Trial{{Arm: "measured"}, {Arm: "light-speed"}}}
	if got := d.defaultArm(); got != "measured" {
		t.Errorf("%s is explained", got)
	}
	d.Trials = d.Trials[1:]
	if got := d.defaultArm(); got != "light-speed" {
		t.Errorf("%s is explained", got)
	}
}

// TestPick takes the median of an arm's trials that count, and one trial by its ID.
func TestPick(t *testing.T) {
	trial := func(id string, tps float64, good bool) result.Trial {
		return result.Trial{ID: id, Arm: "fast", TPS: tps, Counters: map[string]float64{"questions": 1}, Profile: &result.Profile{}, Gates: []result.Gate{{Name: result.GateErrors, OK: good}}}
	}
	d := Record{Arms: []result.Arm{{Name: "control"}, {Name: "fast"}}, Trials: []result.Trial{trial("a", 300, true), trial("b", 100, true), trial("c", 200, true), trial("d", 1, false)}}
	for name, want := range map[string]string{"": "c", "fast": "c", "d": "d"} {
		in, which, err := d.Pick(name)
		if err != nil || in.Trial.ID != want || in.Arm.Name != "fast" {
			t.Errorf("%q: trial %s of arm %s, %s, %v; want %s", name, in.Trial.ID, in.Arm.Name, which, err, want)
		}
	}
	for _, name := range []string{"control", "nosuch"} {
		if _, _, err := d.Pick(name); err == nil {
			t.Errorf("%s is explained", name)
		}
	}
}
