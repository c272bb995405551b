package cli

import (
	"testing"

	"david/internal/result"
	"david/internal/stats"
	"david/internal/tune"
)

// TestTuneInconclusive: that nothing was faster is an answer; a winner without a verdict, or a control
// without a valid run, is none.
func TestTuneInconclusive(t *testing.T) {
	trial := func(arm string, phase result.Phase, gates ...result.Gate) result.Trial {
		return result.Trial{Arm: arm, Phase: phase, TPS: 1, Gates: gates}
	}
	raced := []result.Trial{trial(stats.Control, result.Race), trial("moco", result.Race)}
	one := []stats.Comparison{{Arms: []stats.Arm{{Name: "moco", Verdict: stats.Invalid, Why: "1 pair"}}}}
	if err := tuneInconclusive(one, raced); err != nil {
		t.Errorf("nothing was faster: %v", err)
	}
	if err := tuneInconclusive(one, []result.Trial{trial(stats.Control, result.Race, result.Gate{Name: "steal"}), trial("moco", result.Race)}); err == nil {
		t.Error("without a valid control there is a verdict")
	}
	confirmed := []stats.Comparison{{Arms: []stats.Arm{{Name: "moco", Verdict: stats.Invalid}, {Name: tune.WinnerName, Verdict: stats.Faster}}}}
	if err := tuneInconclusive(confirmed, raced); err != nil {
		t.Errorf("the rival alone has no verdict: %v", err)
	}
	confirmed[0].Arms = []stats.Arm{{Name: tune.WinnerName, Verdict: stats.Invalid, Why: "1 pair"}}
	if err := tuneInconclusive(confirmed, raced); err == nil {
		t.Error("the winner has no verdict, and nobody says so")
	}
}
