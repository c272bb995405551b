package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

// referred are rounds of two arms that are bound by the CPUs: the host's speed moves their throughput and,
// the other way, what their clients take for a transaction. The arm's client takes that much more than the
// control's for a reason of its own.
func (h hostNoise) referred(rng *rand.Rand, truth float64, incarnations, each int, other float64) (list []Round) {
	starts := map[int]float64{}
	for _, r := range h.rounds(rng, 0, incarnations, each) {
		noise := func() float64 { return 0.01 * rng.NormFloat64() }
		r.Referred, r.ArmClient, r.ControlClient = true, -r.Arm+noise()+other, -r.Control+noise()
		if starts[r.Incarnation] == 0 {
			starts[r.Incarnation] = 0.01 * math.Sqrt2 * rng.NormFloat64() // what starts do, the client does not see
		}
		r.Arm += truth + starts[r.Incarnation]
		list = append(list, r)
	}
	return list
}

// hostBound is noise that is the host's, in slices and between them.
func hostBound() hostNoise { return hostNoise{host: 0.08, feelsA: 1, feelsC: 1, own: 0.06} }

// TestReferencePower: of two arms that are bound by the CPUs 5 % are found in ten minutes (40 rounds on five
// starts) in most comparisons, and of equals at most a twentieth is called different, also where their
// clients are not quite alike.
func TestReferencePower(t *testing.T) {
	const n = 200
	rng := rand.New(rand.NewPCG(5, 15))
	found, claims, misses, used := 0, 0, 0, 0
	for range n {
		other := referenceSpread * rng.NormFloat64()
		adjusted, left, ok := adjust(hostBound().referred(rng, math.Log(1.05), 5, 8, other))
		if !ok {
			continue
		}
		used++
		if left > 0.4 {
			t.Errorf("%.2f of the scatter is left", left)
		}
		e := fromReferred(adjusted)
		found += btoi(e.times(1).Verdict == Faster)
		misses += btoi(!e.Interval.holds(1.05))
		claims += btoi(e.times(1/1.05).Verdict == Faster || e.times(1/1.05).Verdict == Slower)
	}
	t.Logf("of %d adjusted: found %d, false claims %d, misses %d", used, found, claims, misses)
	if used < n*3/4 || found < used*3/4 {
		t.Errorf("of %d, %d were adjusted and %d found", n, used, found)
	}
	for _, k := range []int{claims, misses} {
		if lo, _ := clopperPearson(k, used); lo > 0.05 {
			t.Errorf("%d of %d: nominal 5 %%", k, used)
		}
	}
}

// TestReferenceRefused: nothing is adjusted where it does not help, where the arms use the CPUs unlike, or
// where the client's time is not known.
func TestReferenceRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 15))
	rounds := func() []Round { return hostBound().referred(rng, 0, 2, 8, 0) }
	if _, _, ok := adjust(rounds()); !ok {
		t.Fatal("not adjusted")
	}
	for name, spoil := range map[string]func([]Round) []Round{
		"the disk decides, the host moves the client alone": func(list []Round) []Round {
			for i := range list {
				list[i].Arm, list[i].Control = 0.01*rng.NormFloat64(), 0.01*rng.NormFloat64()
			}
			return list
		},
		"the arm computes where the control waits": func(list []Round) []Round {
			for i := range list {
				list[i].ArmUsed = 0.7
			}
			return list
		},
		"the control's client wakes up more often": func(list []Round) []Round {
			for i := range list {
				list[i].ControlClient += 0.2
			}
			return list
		},
		"one slice's client is not known": func(list []Round) []Round {
			list[3].Referred = false
			return list
		},
		"one round of each start in each half": func(list []Round) []Round {
			for i := range list {
				list[i].Incarnation = i / 2
			}
			return list
		},
		"it leaves 70 % of the variance": func(list []Round) []Round {
			for i := range list {
				y := list[i].Arm - list[i].Control
				list[i].ArmClient, list[i].ControlClient = -(1-math.Sqrt(0.7))*y, 0
			}
			return list
		},
		"too few": func(list []Round) []Round { return list[:leastReferred-1] },
	} {
		if _, _, ok := adjust(spoil(rounds())); ok {
			t.Errorf("adjusted: %s", name)
		}
	}
}
