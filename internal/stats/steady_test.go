package stats

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// series returns n values of f(0), f(1), ...
func series(n int, f func(i float64) float64) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		xs[i] = f(float64(i))
	}
	return xs
}

func TestSettled(t *testing.T) {
	flat := func(float64) float64 { return 500 }
	for _, w := range []struct {
		name   string
		tps    []float64
		window int
		want   bool
	}{
		{"flat", series(10, flat), Window, true},
		{"too short", series(9, flat), Window, false},
		{"short window", series(4, flat), 2, true},
		{"no window", series(3, flat), 0, false},
		{"climbing by 2 % a second", series(10, func(i float64) float64 { return 100 + 2*i }), Window, false},
		{"climbing by 0.5 % a second", series(10, func(i float64) float64 { return 100 + 0.5*i }), Window, true},
		{"climbed, then flat", append(series(30, func(i float64) float64 { return 10 * i }), series(10, flat)...), Window, true},
		// Seconds alternate between 100 and 160: the means, 136 and 124, are 9 % apart, two standard errors
		// more than that.
		{"scattered", series(10, func(i float64) float64 { return 160 - 60*math.Mod(i, 2) }), Window, true},
		// The same scatter; 130 and 170 are more than 20 % apart.
		{"scattered and climbing", series(10, func(i float64) float64 { return 160 - 60*math.Mod(i, 2) + 40*math.Floor(i/5) }), Window, false},
		{"stalled", series(10, func(i float64) float64 { return 0 }), Window, false},
		{"stalled at the end", series(10, func(i float64) float64 { return 500 * (1 - math.Floor(i/5)) }), Window, false},
	} {
		if got := Settled(w.tps, w.window); got != w.want {
			t.Errorf("%s: %v, want %v", w.name, got, w.want)
		}
	}
}

// TestSettledSoon guards against a test that noise keeps from ever passing: with seconds that scatter by 30 %
// it must pass in half a minute.
func TestSettledSoon(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		tps := series(30, func(float64) float64 { return max(0, 500*(1+0.3*rng.NormFloat64())) })
		n := 2 * Window
		for n <= len(tps) && !Settled(tps[:n], Window) {
			n++
		}
		if n > len(tps) {
			t.Errorf("seed %d: not settled after %d s", seed, len(tps))
		}
	}
}

func TestDrift(t *testing.T) {
	half := func(a, b float64, n int) []float64 {
		return series(2*n, func(i float64) float64 { return a + (b-a)*math.Floor(i/float64(n)) + math.Mod(i, 2) })
	}
	for _, w := range []struct {
		name        string
		tps         []float64
		change      float64
		significant bool
	}{
		{"level", half(100, 100, 30), 0, false},
		{"falls by half", half(200.5, 100, 30), math.Log(100.5 / 201), true},
		{"three seconds", []float64{1, 2, 3}, math.Log(3.0 / 2), false},
		{"none", nil, 0, false},
		{"stalled throughout", make([]float64, 20), 0, false},
		{"stalled in the second half", series(20, func(i float64) float64 { return 500 * (1 - math.Floor(i/10)) }), math.Inf(-1), true},
		{"odd: the first second is left out", append([]float64{9e9}, half(100, 100, 30)...), 0, false},
		{"linear fall", series(60, func(i float64) float64 { return 159.5 - i }), math.Log(115.0 / 145), true},
	} {
		change, significant := Drift(w.tps)
		if w.name == "three seconds" {
			w.change = 0 // one second a half is no half
		}
		if !(change == w.change || math.Abs(change-w.change) < 1e-9) || significant != w.significant {
			t.Errorf("%s: %v %v, want %v %v", w.name, change, significant, w.change, w.significant)
		}
	}
}

// TestDriftOfSteadyNoise holds the test to its 5 % where seconds depend on each other (0.5 from one to the
// next), which an ordinary t test on seconds would call drift in a quarter of the cases.
func TestDriftOfSteadyNoise(t *testing.T) {
	const runs = 2000
	rng, wrong := rand.New(rand.NewPCG(1, 1)), 0
	for range runs {
		x := 0.0
		_, significant := Drift(series(120, func(float64) float64 { x = 0.5*x + 20*rng.NormFloat64(); return 500 + x }))
		if significant {
			wrong++
		}
	}
	if share := float64(wrong) / runs; share > 0.08 || share < 0.03 {
		t.Errorf("%.1f %% of steady runs drift significantly, nominal 5 %%", 100*share)
	}
}

func TestLevel(t *testing.T) {
	const mib = 1 << 20
	for _, w := range []struct {
		name   string
		values []float64
		want   bool
	}{
		{"too short", make([]float64, 29), false},
		{"nothing owed", make([]float64, 30), true},
		{"filling for a minute", series(60, func(i float64) float64 { return i * mib }), false},
		{"filled", series(90, func(i float64) float64 { return min(i, 50) * mib }), true},
		{"falling", series(60, func(i float64) float64 { return (100 - i) * mib }), true},
		{"a saw tooth of 10 s", series(100, func(i float64) float64 { return (500 + math.Mod(i, 5)) * mib }), true},
		// Linear: in 30 s it grows by 30; the mean of the last 15 s is the value 7 s before the end.
		{"growing by 2.1 %", series(30, func(i float64) float64 { return 30/0.021 - 22 + i }), false},
		{"growing by 1.9 %", series(30, func(i float64) float64 { return 30/0.019 - 22 + i }), true},
	} {
		if got := Level(w.values); got != w.want {
			t.Errorf("%s: %v, want %v", w.name, got, w.want)
		}
	}
}

func TestGrowing(t *testing.T) {
	ints := func(n int, f func(i int) int) []int64 {
		q := make([]int64, n)
		for i := range q {
			q[i] = int64(f(i))
		}
		return q
	}
	for _, w := range []struct {
		name  string
		queue []int64
		rate  float64
		want  bool
		says  string
	}{
		{"empty", ints(30, func(int) int { return 0 }), 100, false, "queue of 0.0 transactions in the first third, 0.0 in the last (grows above +50.0)"},
		{"10 a second left behind", ints(30, func(i int) int { return 10 * i }), 100, true, "queue of 45.0 transactions in the first third, 245.0 in the last"},
		{"1 a second, of 100", ints(30, func(i int) int { return i }), 100, false, "4.5"},
		{"one stall", ints(30, func(i int) int { return i / 25 % 2 * (26 - min(i, 26)) * 900 }), 100, false, "90.0 in the last"},
		{"short", ints(5, func(i int) int { return 1000 * i }), 1, false, "5 s: too short"},
	} {
		got, says := Growing(w.queue, w.rate)
		if got != w.want || !strings.Contains(says, w.says) {
			t.Errorf("%s: %v %q, want %v %q", w.name, got, says, w.want, w.says)
		}
	}
}
