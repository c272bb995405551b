package stats

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
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

func TestLadder(t *testing.T) {
	arms := []result.Arm{
		{Name: "control"},
		{Name: "page", Base: "control", Noop: true},
		{Name: "memory", Base: "control"},
		{Name: "redo", Base: "memory"},
		{Name: "flush", Base: "memory"},
		{Name: "threads", Base: "memory"},
		{Name: "log", Base: "memory", Infeasible: "[ERROR] unknown variable 'x=1'"},
		{Name: "cold", Base: "memory"},
		{Name: "late", Base: "memory"},
		{Name: "orphan", Base: "cold"},
	}
	cold := trial("cold", 900, 10)
	cold.Gates = append(cold.Gates, result.Gate{Name: "steal", Detail: "12 % of the CPU stolen"})
	rows := Ladder(arms, []result.Trial{
		trial("control", 500, 10), trial("memory", 600, 10.9), trial("redo", 700, 11.2), trial("flush", 571, 9),
		trial("threads", 569, 9), cold, trial("orphan", 700, 9),
	})
	want := []struct {
		verdict Verdict
		base    float64
		control float64
		kept    bool
		why     string
	}{
		{IsControl, 0, 1, false, ""},
		{Noop, 0, 0, false, "no effective variable differs from control's: not run"},
		{Faster, 1.2, 1.2, true, ""},
		{Faster, 7.0 / 6, 1.4, false, "not kept: p95 of 11.20 ms is 1.12x the control's 10.00 ms (at most 1.1x)"},
		{Undecided, 571.0 / 600, 571.0 / 500, false, "within 5 %, what restarts alone do"},
		{Slower, 569.0 / 600, 569.0 / 500, false, ""},
		{Infeasible, 0, 0, false, "[ERROR] unknown variable 'x=1'"},
		{Invalid, 0, 0, false, "steal: 12 % of the CPU stolen"},
		{NotRun, 0, 0, false, "no trial was stored: interrupted, or out of time"},
		{Invalid, 0, 1.4, false, "nothing to compare with: cold has no valid run of this workload"},
	}
	for i, w := range want {
		r := rows[i]
		if r.Arm != arms[i].Name || r.Verdict != w.verdict || r.Kept != w.kept || r.Why != w.why {
			t.Errorf("row %d: %+v, want %+v", i, r, w)
		}
		near(t, r.Arm+" to base", r.RatioBase, w.base)
		near(t, r.Arm+" to control", r.RatioControl, w.control)
		if (r.TPS > 0) != (r.Trials > 0) || (r.Trials == 1) != slices.Contains(r.Warnings, "1 run, no interval") {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	if best, ok := Best(rows); !ok || best.Arm != "memory" {
		t.Errorf("best is %+v, %v", best, ok)
	}
}

func TestInvalidControlGivesNoRatio(t *testing.T) {
	bad := trial("control", 500, 10)
	bad.Gates[0] = result.Gate{Name: "rows", Detail: "999 of 1000"}
	rows := Ladder([]result.Arm{{Name: "control"}, {Name: "memory", Base: "control"}}, []result.Trial{bad, trial("memory", 900, 9)})
	if rows[0].Verdict != Invalid || rows[1].Verdict != Invalid || rows[1].RatioBase != 0 || rows[1].RatioControl != 0 || rows[1].Kept {
		t.Errorf("%+v", rows)
	}
	if _, ok := Best(rows); ok {
		t.Error("there is no best without a control")
	}
}

func TestAllStalledTrialIsInvalid(t *testing.T) {
	rows := Ladder([]result.Arm{{Name: "control"}}, []result.Trial{trial("control", 0, 0)})
	if rows[0].Verdict != Invalid || rows[0].Why != "throughput: not one transaction" {
		t.Errorf("%+v", rows[0])
	}
}

func TestSeveralRuns(t *testing.T) {
	a, b, bad := trial("control", 400, 8), trial("control", 900, 10), trial("control", 5, 1)
	bad.Gates[0] = result.Gate{Name: "rows", Detail: "999 of 1000"}
	rows := Ladder([]result.Arm{{Name: "control"}}, []result.Trial{a, bad, b})
	near(t, "tps", rows[0].TPS, 600)
	near(t, "p95 without histograms", rows[0].P95, 10)
	want := []string{"2 runs, 400.00 to 900.00 transactions/s, no interval", "left out 1 invalid of 3 runs: rows: 999 of 1000"}
	if rows[0].MinTPS != 400 || rows[0].MaxTPS != 900 || rows[0].Trials != 2 || !reflect.DeepEqual(rows[0].Warnings, want) {
		t.Errorf("%+v", rows[0])
	}
	a.Histogram, b.Histogram = []result.Bucket{{Ms: 8, Count: 94}}, []result.Bucket{{Ms: 9, Count: 1}, {Ms: 30, Count: 5}}
	rows = Ladder([]result.Arm{{Name: "control"}}, []result.Trial{a, b})
	near(t, "p95 of all transactions", rows[0].P95, 9)
}

func TestOnlyTheSameWorkloadsAreCompared(t *testing.T) {
	with := func(t result.Trial, threads int) result.Trial { t.Workload.Threads = threads; return t }
	rows := Ladder([]result.Arm{{Name: "control"}, {Name: "memory", Base: "control"}}, []result.Trial{
		with(trial("control", 100, 9), 1), with(trial("control", 200, 9), 4),
		with(trial("memory", 200, 9), 1), with(trial("memory", 1600, 9), 4), with(trial("memory", 9000, 9), 16),
	})
	near(t, "ratio", rows[1].RatioBase, 4)
}

func TestUnsafeRunsAreSaidAndNotComparedWithSafeOnes(t *testing.T) {
	unsafe := trial("memory", 900, 9)
	unsafe.Unsafe = []string{"sync_binlog=0"}
	rows := Ladder([]result.Arm{{Name: "control"}, {Name: "memory", Base: "control"}}, []result.Trial{trial("control", 500, 10), unsafe})
	if rows[1].Verdict != Invalid || !strings.Contains(rows[1].Why, "durability") ||
		!slices.Contains(rows[1].Warnings, "unsafe, ran without sync_binlog=0") {
		t.Errorf("%+v", rows[1])
	}
}

func BenchmarkLadder1000Trials(b *testing.B) {
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
		Ladder(arms, trials)
	}
}
