package stats

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"david/internal/result"
)

// sliced is what results/CELL/slices.json says of a comparison.
type sliced struct {
	Experiment struct{ Design result.Design }
	Arms       []result.Arm
	Trials     []result.Trial
}

// rounds returns those of each arm beside the control.
func (d sliced) rounds() map[string][]Round {
	b, of := blocks{name: d.Experiment.Design.Control, samples: collect(d.Arms, inOrder(d.Trials)), sliced: true}, map[string][]Round{}
	for _, a := range d.Arms {
		if a.Name != b.name {
			of[a.Name] = b.rounds(b.samples[a.Name], ByThroughput.Worth)
		}
	}
	return of
}

// TestSessionLevels holds what is taken to be known of sessions against what real ones say, those of results/: which level is
// the likeliest for all comparisons of several sessions together. Where that is no longer so, sessions() is to be set anew.
func TestSessionLevels(t *testing.T) {
	files, err := filepath.Glob("../../results/*/slices.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no comparisons in results: %v", err)
	}
	levels := []float64{0, 0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.2, 0.35}
	sum, comparisons := make([]float64, len(levels)), 0
	for _, file := range files {
		var d sliced
		raw, err := os.ReadFile(file)
		if err == nil {
			err = json.Unmarshal(raw, &d)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, rounds := range d.rounds() {
			if rounds[0].Session == rounds[len(rounds)-1].Session {
				continue
			}
			comparisons++
			for i, level := range levels {
				sum[i] += evidence(rounds, level)
			}
		}
	}
	for i, level := range levels {
		t.Logf("sessions %2.0f %% apart: log evidence %+.2f, %d comparisons", 100*level, sum[i]-sum[0], comparisons)
	}
	if most := levels[slices.Index(sum, slices.Max(sum))]; comparisons < 6 || most < 0.01 || most > 0.05 {
		t.Errorf("%d comparisons are the likeliest with sessions %.0f %% apart", comparisons, 100*most)
	}
}

// evidence returns the logarithm of how likely rounds are where sessions are that far apart, with the term of others or
// without, whichever is better.
func evidence(rounds []Round, level float64) float64 {
	seen := terms{incarnations(), grid{value: []float64{0}, prior: []float64{1}, level: []float64{level}}}
	z, _ := imbalances(rounds)
	return max(infer(logs(rounds), rounds, seen, nil).evidence, infer(logs(rounds), rounds, seen, z).evidence)
}
