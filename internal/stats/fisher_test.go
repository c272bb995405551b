package stats

import (
	"math"
	"testing"
)

// TestMoreOften has figures by hand: Fisher's tea (4 of 4 against 0 of 4) is one in choose(8, 4).
func TestMoreOften(t *testing.T) {
	for _, c := range []struct {
		a, n, b, m int
		want       float64
	}{{4, 4, 0, 4, 1.0 / 70}, {3, 4, 1, 4, 17.0 / 70}, {0, 5, 3, 5, 1}, {1, 9, 0, 9, 0.5}, {0, 3, 0, 3, 1}} {
		if got := MoreOften(c.a, c.n, c.b, c.m); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
