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
		if got := Correlation(c.x, c.y); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v, %v: %v, want %v", c.x, c.y, got, c.want)
		}
	}
}
