package tune

import (
	"bytes"
	"math"
	"testing"

	"david/internal/result"
	"david/internal/search"
)

// TestRecording records the search of a whole tune: what is written holds every comparison of it, and its
// best point is that which the tune had found; how soon it was tried stands beside it.
func TestRecording(t *testing.T) {
	w := &world{log: machine5000, noise: 0.01, rng: generator(3)}
	p, rivals := plan(t, 7200, 3)
	h, _ := w.tune(t, p, rivals, nil)
	r, ok := p.Recording(h, "a machine of 5,000 IOPS")
	if !ok || len(r.Observations) < 8 {
		t.Fatalf("%v, %d observations", ok, len(r.Observations))
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte("\n")); n != 1+len(r.Observations) || !bytes.Contains(b.Bytes(), []byte(r.About)) {
		t.Fatalf("%d lines of %d observations: %.200s", n, len(r.Observations), b.Bytes())
	}
	trials := 0
	for _, x := range h.Trials {
		if x.Phase == result.Search {
			trials++
		}
	}
	s := p.Searched(h)
	if s == nil || s.Trials != trials || s.Enough > trials || s.Best < s.Start || s.Start <= 1 {
		t.Fatalf("%d trials: %+v", trials, s)
	}
	if best := search.Best(r.Space, r.Observations); math.Abs(math.Log(s.Best/s.Start)-best.Gain) > 1e-9 {
		t.Errorf("the best is %.3f above the start, by the recording %.3f", math.Log(s.Best/s.Start), best.Gain)
	}
	// Before the trial that counts nothing had the gain, and with it something has.
	gain := search.Gains(r.Space, r.Observations)
	_, f, _ := p.searched(h)
	n, most := 0, 0.0
	for _, x := range h.Trials {
		if x.Phase != result.Search || s.Enough == 0 {
			continue
		}
		if at, ok := f.point(armNamed(h.Arms, x.Arm)); ok {
			most = max(most, gain(at))
		}
		if n++; (s.Start*math.Exp(most)-1 >= enough*(s.Best-1)) != (n >= s.Enough) {
			t.Errorf("after %d trials %.3f of %.3f, and it is said to be enough after %d", n, s.Start*math.Exp(most), s.Best, s.Enough)
		}
	}
}

// TestNoRecording: a tune that never came to its search has none.
func TestNoRecording(t *testing.T) {
	p, rivals := plan(t, 2400, 3)
	h := History{Arms: p.Lineup(rivals)}
	if _, ok := p.Recording(h, ""); ok || p.Searched(h) != nil {
		t.Error("a recording of nothing")
	}
}
