package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"david/internal/result"
)

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

func TestMeans(t *testing.T) {
	near(t, "mean", Mean([]float64{2, 4, 9}), 5)
	near(t, "mean of none", Mean(nil), 0)
	near(t, "deviation", StdDev([]float64{2, 4, 4, 4, 5, 5, 7, 9}), math.Sqrt(32.0/7))
	near(t, "deviation of one", StdDev([]float64{2}), 0)
	near(t, "geometric mean", GeoMean([]float64{2, 8}), 4)
	near(t, "geometric mean with a zero", GeoMean([]float64{2, 0}), 0)
	near(t, "geometric mean of none", GeoMean(nil), 0)
}

func TestPercentile(t *testing.T) {
	h := []result.Bucket{{Ms: 1, Count: 50}, {Ms: 2, Count: 45}, {Ms: 3, Count: 4}, {Ms: 9, Count: 1}}
	for p, want := range map[float64]float64{0: 1, 50: 1, 51: 2, 95: 2, 96: 3, 99: 3, 99.9: 9, 100: 9} {
		near(t, "percentile", Percentile(h, p), want)
	}
	near(t, "percentile of nothing", Percentile(nil, 95), 0)
	slices.Reverse(h)
	near(t, "percentile of an unsorted histogram", Percentile(h, 95), 2)
	if h[0].Ms != 9 {
		t.Error("the caller's histogram was sorted")
	}
}

func TestMergeIsTheHistogramOfAllTransactions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var parts [][]result.Bucket
	total, all := map[float64]int64{}, int64(0)
	for range 5 {
		var h []result.Bucket
		for ms := range 40 {
			if n := rng.Int64N(20); n > 0 {
				h = append(h, result.Bucket{Ms: float64(ms), Count: n})
				total[float64(ms)] += n
				all += n
			}
		}
		parts = append(parts, h)
	}
	merged := Merge(parts...)
	for _, b := range merged {
		if total[b.Ms] != b.Count {
			t.Errorf("%v ms: %d, want %d", b.Ms, b.Count, total[b.Ms])
		}
		all -= b.Count
	}
	if all != 0 || len(merged) != len(total) {
		t.Errorf("%d transactions lost, %d buckets of %d", all, len(merged), len(total))
	}
}

func trial(arm string, tps, p95 float64) result.Trial {
	return result.Trial{Arm: arm, TPS: tps, Latency: result.Latency{P95: p95}, Gates: []result.Gate{{Name: "rows", OK: true}}}
}

func TestAllStalledTrialIsInvalid(t *testing.T) {
	if runs := RunsOf([]result.Arm{{Name: "control"}}, []result.Trial{trial("control", 0, 0)}); runs[0].Trials != 0 || runs[0].TPS != 0 {
		t.Errorf("%+v", runs[0])
	}
}

func TestSeveralRuns(t *testing.T) {
	a, b, bad := trial("control", 400, 8), trial("control", 900, 10), trial("control", 5, 1)
	bad.Gates[0] = result.Gate{Name: "rows", Detail: "999 of 1000"}
	runs := RunsOf([]result.Arm{{Name: "control"}}, []result.Trial{a, bad, b})
	near(t, "tps", runs[0].TPS, 600)
	near(t, "p95 without histograms", runs[0].P95, 10)
	want := []string{"2 runs, 400.00 to 900.00 transactions/s, no interval", "left out 1 invalid of 3 runs: rows: 999 of 1000"}
	if runs[0].Trials != 2 || !reflect.DeepEqual(runs[0].Warnings, want) {
		t.Errorf("%+v", runs[0])
	}
	a.Histogram, b.Histogram = []result.Bucket{{Ms: 8, Count: 94}}, []result.Bucket{{Ms: 9, Count: 1}, {Ms: 30, Count: 5}}
	runs = RunsOf([]result.Arm{{Name: "control"}}, []result.Trial{a, b})
	near(t, "p95 of all transactions", runs[0].P95, 9)
}

func TestUnsafeRunsAreSaid(t *testing.T) {
	unsafe := trial("memory", 900, 9)
	unsafe.Unsafe = []string{"sync_binlog=0"}
	if runs := RunsOf([]result.Arm{{Name: "memory"}}, []result.Trial{unsafe}); !slices.Contains(runs[0].Warnings, "unsafe, ran without sync_binlog=0") {
		t.Errorf("%+v", runs)
	}
}

func BenchmarkRuns1000Trials(b *testing.B) {
	arms := []result.Arm{{Name: "control"}, {Name: "memory", Base: "control"}}
	var trials []result.Trial
	for i := range 1000 {
		t := trial(arms[i%2].Name, 500+float64(i%7), 9)
		for j := range 200 {
			t.Histogram = append(t.Histogram, result.Bucket{Ms: 1.5 + float64(j), Count: int64(1000 - j)})
		}
		trials = append(trials, t)
	}
	for b.Loop() {
		RunsOf(arms, trials)
	}
}

// TestGeoInterval computes by hand: ln 1, ln e^2 have the mean 1, the deviation sqrt 2, and t(1) is 12.706.
func TestGeoInterval(t *testing.T) {
	got := GeoInterval([]float64{1, math.Exp(2)})
	want := Interval{math.Exp(1 - 12.7062), math.Exp(1 + 12.7062)}
	if math.Abs(got[0]/want[0]-1) > 1e-3 || math.Abs(got[1]/want[1]-1) > 1e-3 {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, none := range [][]float64{nil, {3}, {3, 0}} {
		if got := GeoInterval(none); got != (Interval{}) {
			t.Errorf("of %v: %v", none, got)
		}
	}
}
