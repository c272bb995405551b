package stats

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// TestRecordedOthers: of six comparisons of the winner of a cell with its control, measured on 2026-11-24 beside compilers (docs/results.md),
// those whose rounds scatter by what others took are narrower with it, the others are as measured, and the two never disagree.
func TestRecordedOthers(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("testdata", "slices", "cells-2026-11-24.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cells map[string][]Round
	if err := json.Unmarshal(b, &cells); err != nil {
		t.Fatal(err)
	}
	most := map[string]float64{"rw-none": 0.9, "rw-memory1g-iops3000": 0.9, "rw-iops5000-mariadb": 0.7, "rw-iops5000-4t": 0.8} // of the width as measured
	for cell, rounds := range cells {
		plain := FromRounds(rounds)
		e, reference := plain.referred(rounds)
		if most[cell] == 0 {
			if reference != nil || e.Interval != plain.Interval {
				t.Errorf("%s: adjusted: %v", cell, reference)
			}
			continue
		}
		if reference == nil || reference.By != ByOthers || reference.Interval != plain.Interval {
			t.Errorf("%s: not adjusted: %+v", cell, reference)
			continue
		}
		if w := e.Interval.width() / plain.Interval.width(); w > most[cell] || !plain.Interval.holds(e.Ratio) {
			t.Errorf("%s: %v %v, as measured %v %v: %.2f of its width", cell, e.Ratio, e.Interval, plain.Ratio, plain.Interval, w)
		}
	}
}

// TestOthersUnfelt: what others take is left out of it where the ratio knows nothing of it, or where rounds are few.
func TestOthersUnfelt(t *testing.T) {
	rng, adjusted := rand.New(rand.NewPCG(8, 15)), 0
	unfelt := hostNoise{host: 0.03, feelsA: 1, feelsC: 1, own: 0.03, start: 0.01, bursts: 0.3}
	for range 40 {
		rounds := unfelt.rounds(rng, 0, 2, 8)
		_, _, ok := balanced(rounds, FromRounds(rounds))
		adjusted += btoi(ok)
	}
	if adjusted > 6 {
		t.Errorf("%d of 40 adjusted", adjusted)
	}
	unfelt.hurtA, unfelt.hurtC = 1.5, 1.5
	rounds := unfelt.rounds(rng, 0, 2, 8)
	if _, _, ok := balanced(rounds, FromRounds(rounds)); !ok {
		t.Error("not adjusted where both feel it")
	}
	if few := rounds[:leastBalanced-1]; len(few) > 0 {
		if _, _, ok := balanced(few, FromRounds(few)); ok {
			t.Error("adjusted by five rounds")
		}
	}
}

// TestImbalances: what arms leave to others all the time counts as nothing where it is steady, and is not known where it is not.
func TestImbalances(t *testing.T) {
	steady := independent(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
	for i := range steady {
		steady[i].Imbalance = 0.03 + 0.001*float64(i%3)
	}
	steady[4].Imbalance = 0.3
	z, doubt := imbalances(steady)
	if z[0] > 0.002 || z[0] < -0.002 || z[4] < 0.25 || doubt > 0.001 {
		t.Errorf("steady: %v, doubt %v", z, doubt)
	}
	rng := rand.New(rand.NewPCG(9, 15))
	for i := range steady {
		steady[i].Imbalance = 0.2 * rng.NormFloat64()
	}
	z, doubt = imbalances(steady)
	if math.Abs(z[0]-steady[0].Imbalance) > 0.01 || doubt < 0.015 || doubt > constant {
		t.Errorf("of no known middle: %v of %v, doubt %v", z[0], steady[0].Imbalance, doubt)
	}
}
