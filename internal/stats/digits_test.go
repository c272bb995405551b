package stats

import "testing"

func TestDigits(t *testing.T) {
	for _, c := range []struct {
		x    float64
		n    int
		want string
	}{{0, 3, "0"}, {0.08524, 3, "0.0852"}, {12.345, 3, "12.3"}, {999.4, 3, "999"}, {999.7, 3, "1000"}, {27294.6, 4, "27295"}, {-1234.5, 3, "-1234"}, {1e9, 4, "1000000000"}} {
		if got := Digits(c.x, c.n); got != c.want {
			t.Errorf("%v in %d digits: %s, want %s", c.x, c.n, got, c.want)
		}
	}
}
