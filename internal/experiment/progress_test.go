package experiment

import (
	"testing"
	"time"

	"david/internal/result"
)

// TestSayOfServer: of a server that is not david's nobody is told that it is started or shut down.
func TestSayOfServer(t *testing.T) {
	for name, c := range map[string]struct {
		target Target
		want   int
	}{"david's": {&Sandboxed{}, 1}, "the user's": {Remote{}, 0}} {
		said := 0
		e := &Engine{Target: c.target, Report: func(Event) { said++ }}
		e.sayOfServer(trialJob{arm: &result.Arm{Name: "pod"}}, "starting a fresh server")
		if said != c.want {
			t.Errorf("%s: said %d times, want %d", name, said, c.want)
		}
	}
}

// TestFirstGuess: a quick tune of trials of two seconds, which takes less than a minute, does not begin with many minutes.
func TestFirstGuess(t *testing.T) {
	t.Parallel()
	p := result.TunePlan{Quick: true, Short: result.TuneLoad{Seconds: 1, Warmup: 1}, Cost: 14, Rivals: 2, RaceBlocks: 1, Screens: 1, Searches: 2, Prunes: 1, Blocks: 3, Kills: 3}
	plan := newPlan(quickTrials(p), firstGuess(p))
	if left := plan.left(); left > 2*time.Minute || left < 30*time.Second {
		t.Errorf("%s for %d trials", left, quickTrials(p))
	}
	if p.Quick = false; firstGuess(p) != 14*time.Second {
		t.Errorf("%s where a budget pays", firstGuess(p))
	}
}
