package stats

import (
	"math"
	"testing"
)

func TestCorrelation(t *testing.T) {
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{[]float64{1, 2, 3}, []float64{10, 20, 30}, 1},
		{[]float64{1, 2, 3}, []float64{3, 2, 1}, -1},
		{[]float64{1, 2, 3, 4}, []float64{1, 3, 2, 4}, 0.8}, // by hand: 4/5
		{[]float64{1, 1, 1}, []float64{1, 2, 3}, 0},
		{nil, nil, 0},
	} {
		if got, _ := Correlation(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}

// TestCorrelationInterval: by hand, tanh(atanh(0.65) +- 1.96/sqrt(3)) of six values.
func TestCorrelationInterval(t *testing.T) {
	x, y := []float64{1, 2, 3, 4, 5, 6}, []float64{1, 3, 2, 5, 4, 3}
	r, got := Correlation(x, y)
	for i, sign := range []float64{-1, 1} {
		if want := math.Tanh(math.Atanh(r) + sign*1.959964/math.Sqrt(3)); math.Abs(got[i]-want) > 1e-6 {
			t.Errorf("r %v: %v, want %v", r, got, want)
		}
	}
	if _, got := Correlation(x[:3], y[:3]); got != [2]float64{-1, 1} {
		t.Errorf("three values: %v", got)
	}
	if r, got := Correlation(x, x); r != 1 || got[0] != got[0] || got[0] < 0.9 {
		t.Errorf("a line: %v %v", r, got)
	}
}
