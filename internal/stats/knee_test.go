package stats

import "testing"

func TestKnee(t *testing.T) {
	for _, c := range []struct {
		name    string
		threads []int
		tps     []float64
		want    int
	}{
		{"none", nil, nil, 0},
		{"nothing done", []int{1, 2}, []float64{0, 0}, 0},
		{"one", []int{8}, []float64{100}, 8},
		{"flat from 16", []int{1, 4, 16, 64}, []float64{200, 700, 1960, 2000}, 16},
		{"at the limit", []int{1, 2}, []float64{95, 100}, 1},
		{"below the limit", []int{1, 2}, []float64{94.9, 100}, 2},
		{"falls when overdriven", []int{1, 4, 16, 64}, []float64{200, 800, 1500, 900}, 16},
		{"any order", []int{64, 1, 16, 4}, []float64{2000, 200, 1960, 700}, 16},
		{"still rising", []int{1, 2, 4}, []float64{100, 200, 400}, 4},
	} {
		if got := Knee(c.threads, c.tps); got != c.want {
			t.Errorf("%s: %d threads, want %d", c.name, got, c.want)
		}
	}
}
