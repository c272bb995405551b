package stats

import (
	"math"
	"slices"
	"testing"
)

func TestTInterval(t *testing.T) {
	// 1, 2, 3: standard error 1/sqrt 3; t(0.975; 2) = 4.302652729911275; t = 2 sqrt 3 has p = 1 - t/sqrt(2 +
	// t^2).
	mean, half, p := tInterval([]float64{1, 2, 3})
	near(t, "mean", mean, 2)
	near(t, "half-width", half, 4.302652729911275/math.Sqrt(3))
	near(t, "p", p, 1-2*math.Sqrt(3)/math.Sqrt(14))
	for _, w := range []struct {
		xs []float64
		p  float64
	}{{nil, 1}, {[]float64{5}, 1}, {[]float64{0, 0}, 1}, {[]float64{2, 2}, 0}} {
		if _, half, p := tInterval(w.xs); half != 0 || p != w.p {
			t.Errorf("%v: %v, p %v, want p %v", w.xs, half, p, w.p)
		}
	}
}

func TestSignedRankNull(t *testing.T) {
	for i, ways := range []float64{1, 1, 1, 2, 1, 1, 1} { // of the ranks 1, 2, 3
		near(t, "chance", rankNull(3)[i], ways/8)
	}
	sum := 0.0
	for _, p := range rankNull(60) {
		sum += p
	}
	near(t, "all chances", sum, 1)
	// The greatest statistics with a two-sided 5 %, as printed in textbooks' tables.
	for n, critical := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 15: 25, 20: 52} {
		if got := rankCritical(n); got != critical+1 {
			t.Errorf("%d pairs: C is %d, want %d", n, got, critical+1)
		}
	}
}

func TestSignedRankInterval(t *testing.T) {
	if _, _, ok := signedRank([]float64{1, 2, 3, 4, 5}); ok {
		t.Error("five pairs have no 95 % interval")
	}
	lo, hi, ok := signedRank([]float64{6, 1, 5, 2, 4, 30})
	if !ok || lo != 1 || hi != 30 {
		t.Errorf("%v to %v, want 1 to 30: with six pairs the extremes", lo, hi)
	}
	// Seven: the smallest means of two are 1, 1.5 and 2, the greatest 700, 650 and 600.
	lo, hi, _ = signedRank([]float64{1, 2, 3, 4, 500, 600, 700})
	near(t, "lower end", lo, 2)
	near(t, "upper end", hi, 600)
}

func TestRankWarning(t *testing.T) {
	outlier := []float64{0.01, 0.011, 0.012, 0.013, 0.014, 0.3}
	_, half, _ := tInterval(outlier)
	warnings := rankWarning(outlier, around(Mean(outlier), half))
	if want := []string{"the signed-rank interval, 1.010 to 1.350, excludes 1"}; !slices.Equal(warnings, want) {
		t.Errorf("%q, want %q", warnings, want)
	}
	if w := rankWarning(outlier, Interval{1.001, 2}); w != nil {
		t.Errorf("%q, but both exclude 1", w)
	}
	if w := rankWarning([]float64{-0.01, 0.011, 0.012, 0.013, 0.014, 0.3}, Interval{1.001, 2}); len(w) != 1 {
		t.Errorf("%q, but only one includes 1", w)
	}
	if w := rankWarning(outlier[:5], Interval{0.9, 2}); w != nil {
		t.Errorf("%q with five pairs", w)
	}
}

func TestHolm(t *testing.T) {
	for i, want := range []float64{0.03, 0.06, 0.06} { // 3 * 0.01; 1 * 0.04, but not below 2 * 0.03
		near(t, "corrected", holm([]float64{0.01, 0.04, 0.03})[i], want)
	}
	if got := holm([]float64{0.9, 0.8}); got[0] != 1 || got[1] != 1 {
		t.Errorf("%v, want at most 1", got)
	}
	if holm([]float64{0.04})[0] != 0.04 || len(holm(nil)) != 0 {
		t.Error("one p is not corrected")
	}
}

// TestRatioInterval: two ratios that differ little have a wide interval about their geometric mean; one has
// none.
func TestRatioInterval(t *testing.T) {
	if got := RatioInterval([]float64{0.7}); got != (Interval{}) {
		t.Errorf("one ratio has %v", got)
	}
	if got := RatioInterval([]float64{0.7, 0}); got != (Interval{}) {
		t.Errorf("a ratio of 0 has %v", got)
	}
	got := RatioInterval([]float64{0.8, 1.25}) // 12.706 standard errors of ln(1.25) either side of 1
	if want := math.Exp(12.7062 * math.Log(1.25)); math.Abs(got[1]/want-1) > 1e-3 || math.Abs(got[0]*want-1) > 1e-3 {
		t.Errorf("%v, want about %v", got, want)
	}
}
