package tune

import (
	"math"
	"math/rand/v2"
	"testing"

	"david/internal/result"
)

// seconds returns a trial's, about a mean of its own: neighbouring seconds resemble each other, and 10 % is
// how far they lie apart.
func seconds(rng *rand.Rand, mean float64, n int) []result.Point {
	const alike, scatter = 0.5, 0.10
	points, x := make([]result.Point, n), scatter*rng.NormFloat64()
	for i := range points {
		x = alike*x + math.Sqrt(1-alike*alike)*scatter*rng.NormFloat64()
		points[i] = result.Point{Second: i + 1, TPS: math.Exp(mean + x)}
	}
	return points
}

// had returns how many seconds a trial had under a bound.
func had(b *Bound, points []result.Point) int {
	enough := b.Enough()
	if enough == nil {
		return len(points)
	}
	for n := 1; n < len(points); n++ {
		if enough(points[:n]) != "" {
			return n
		}
	}
	return len(points)
}

// race returns how often a trial is ended whose arm is better by gain (a logarithm) than each of its rivals,
// of which the best one's trial is its bound, and what share of the seconds it had.
func race(gain float64, n, rivals int) (ended, share float64) {
	const races, noise = 4000, 0.05
	rng := generator(5)
	for range races {
		best := math.Inf(-1)
		for range rivals {
			best = max(best, noise*rng.NormFloat64())
		}
		b := &Bound{Arm: "best", TPS: perSecond(seconds(rng, best, n)), Noise: priorNoise, Of: rivals}
		s := had(b, seconds(rng, gain+noise*rng.NormFloat64(), n))
		if share += float64(s) / float64(n) / races; s < n {
			ended += 1.0 / races
		}
	}
	return ended, share
}

// TestEndedEarly simulates trials of 5 % noise each, 7 % between two, where the tune takes 5 % for that of a
// pair: it knows too little of its noise. A better arm is hardly ever ended, beside the luckiest of twelve as
// well; where half of all arms are 30 % slower much time is saved.
func TestEndedEarly(t *testing.T) {
	for n, least := range map[int]float64{10: 0.10, 20: 0.25, 30: 0.25} { // by the length of a trial: the time to be saved
		better, _ := race(math.Log(1.05), n, 1)
		raced, _ := race(math.Log(1.05), n, 12)
		same, _ := race(0, n, 1)
		worse, share := race(math.Log(0.7), n, 1)
		t.Logf("%d s: ended of 5 %% better %.2f %%, of 5 %% better than each of twelve %.2f %%, of alike %.2f %%, of 30 %% worse %.0f %%; these had %.0f %% of their time, and where they are half of all %.0f %% is saved",
			n, 100*better, 100*raced, 100*same, 100*worse, 100*share, 50*(1-share))
		if better > 0.01 || raced > 0.01 || same > 0.02 {
			t.Errorf("trials of %d s: %.2f %% of better arms are ended, %.2f %% beside the best of twelve, %.2f %% of those alike", n, 100*better, 100*raced, 100*same)
		}
		if saved := (1 - share) / 2; saved < least {
			t.Errorf("trials of %d s: %.0f %% of the time is saved", n, 100*saved)
		}
	}
}

// TestBoundWaits asks at the looks only, and says nothing of stalls, of short trials or without a bound.
func TestBoundWaits(t *testing.T) {
	rng := generator(2)
	b := &Bound{Arm: "best", TPS: perSecond(seconds(rng, 6, 30)), Noise: priorNoise}
	slow := seconds(rng, 4, 30)
	for n := range 30 {
		if ends := b.Enough()(slow[:n]) != ""; ends != (n == 9 || n == 18) {
			t.Errorf("after %d s: ends %v", n, ends)
		}
	}
	for i := range 3 {
		slow[i].TPS = 0
	}
	if why := b.Enough()(slow[:9]); why != "" {
		t.Errorf("a stall: %s", why)
	}
	if had(&Bound{TPS: b.TPS[:8], Noise: priorNoise}, slow) != 30 || (*Bound)(nil).Enough() != nil {
		t.Error("nothing to hold a trial against ends it")
	}
}
