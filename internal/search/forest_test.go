package search

import (
	"math"
	"math/rand/v2"
)

// forest describes a random forest of regression trees (Breiman, Machine Learning 45, 2001): the shape of
// recorded points, and the rival of the Gaussian process as a surrogate. Its uncertainty is the scatter of
// its trees (Hutter, Hoos, Leyton-Brown, LION 5, 2011).
type forest []*tree

type tree struct {
	knob, level int  // to the left: levels up to it, or this one alone
	alone       bool // the level is special
	left, right *tree
	mean        float64
}

// sample describes a point and ln(its throughput / the start's).
type sample struct {
	at   Point
	gain float64
}

// chain turns observations against incumbents into gains over the start: an incumbent's gain is the mean of
// those seen of it before.
func chain(s Space, history []Observation) []sample {
	samples := []sample{{at: s.Start}}
	sums, counts := map[string]float64{}, map[string]float64{key(s.Start): 1}
	for _, o := range history {
		if base := key(o.Against); o.Infeasible == "" && counts[base] > 0 {
			gain := o.LogRatio + sums[base]/counts[base]
			samples = append(samples, sample{o.Point, gain})
			if k := key(o.Point); k != key(s.Start) {
				sums[k] += gain
				counts[k]++
			}
		}
	}
	return samples
}

func grow(s Space, samples []sample, rng *rand.Rand) forest {
	var f forest
	for range 30 {
		bag := make([]sample, len(samples))
		for i := range bag {
			bag[i] = samples[rng.IntN(len(samples))]
		}
		f = append(f, growTree(s, bag, rng))
	}
	return f
}

// growTree divides samples, and what comes of that again, by the best of a few random cuts.
func growTree(s Space, samples []sample, rng *rand.Rand) *tree {
	t := &tree{}
	for _, x := range samples {
		t.mean += x.gain / float64(len(samples))
	}
	if len(samples) < 3 {
		return t
	}
	least := math.Inf(1)
	var left, right []sample
	for range 2 * len(s.Knobs) {
		knob := rng.IntN(len(s.Knobs))
		level := samples[rng.IntN(len(samples))].at[knob]
		c := &tree{knob: knob, level: level, alone: s.Knobs[knob].Levels[level].Special}
		l, r := c.divide(samples)
		if len(l) == 0 || len(r) == 0 {
			continue
		}
		if e := scatter(l) + scatter(r); e < least {
			least, left, right = e, l, r
			t.knob, t.level, t.alone = c.knob, c.level, c.alone
		}
	}
	if left != nil {
		t.left, t.right = growTree(s, left, rng), growTree(s, right, rng)
	}
	return t
}

func (t *tree) goesLeft(p Point) bool {
	if t.alone {
		return p[t.knob] == t.level
	}
	return p[t.knob] <= t.level
}

func (t *tree) divide(samples []sample) (left, right []sample) {
	for _, x := range samples {
		if t.goesLeft(x.at) {
			left = append(left, x)
		} else {
			right = append(right, x)
		}
	}
	return left, right
}

// scatter returns the sum of squares about the mean.
func scatter(samples []sample) (sum float64) {
	mean := 0.0
	for _, x := range samples {
		mean += x.gain / float64(len(samples))
	}
	for _, x := range samples {
		sum += (x.gain - mean) * (x.gain - mean)
	}
	return sum
}

func (t *tree) value(p Point) float64 {
	if t.left == nil {
		return t.mean
	}
	if t.goesLeft(p) {
		return t.left.value(p)
	}
	return t.right.value(p)
}

func (f forest) predict(p Point) (mean, sd float64) {
	n := float64(len(f))
	for _, t := range f {
		mean += t.value(p) / n
	}
	for _, t := range f {
		sd += math.Pow(t.value(p)-mean, 2) / n
	}
	return mean, math.Sqrt(sd)
}

// best returns the point seen that the forest holds the best.
func (f forest) best(samples []sample) (Point, float64) {
	at, top := samples[0].at, math.Inf(-1)
	for _, x := range samples {
		if mean, _ := f.predict(x.at); mean > top {
			at, top = x.at, mean
		}
	}
	return at, top
}

// runForest is runSearch with a forest in the place of the Gaussian process.
func runForest(l *lab, trials int) Point {
	s := l.surface.space
	for {
		samples := chain(s, l.history)
		f := grow(s, samples, l.rng)
		best, top := f.best(samples)
		if l.trials >= trials {
			return best
		}
		if Remeasure(l.incumbent, l.since) {
			l.remeasure(best)
			continue
		}
		c := newChooser(s, l.history, l.rng)
		if len(l.history) < 4 || l.rng.IntN(explore) == 0 {
			p, _ := c.random()
			l.observe(p)
			continue
		}
		safe := fit(s, nil).safety(l.history)
		p, _ := c.climb(best, func(p Point) float64 {
			mean, sd := f.predict(p)
			return improvement(mean-top, sd) * safe(p)
		})
		l.observe(p)
	}
}

// recorded returns the surface of a recording: a forest over its points; a point is infeasible where the
// nearest recorded one is.
func recorded(r Recording, name string) surface {
	samples := chain(r.Space, r.Observations)
	f := grow(r.Space, samples, generator(1))
	s := surface{name: name, space: r.Space}
	k := fit(r.Space, nil).kernel
	s.log = func(p Point) (float64, bool) {
		nearest, infeasible := k.near(p, r.Space.Start), false
		for _, o := range r.Observations {
			if near := k.near(p, o.Point); near > nearest {
				nearest, infeasible = near, o.Infeasible != ""
			}
		}
		mean, _ := f.predict(p)
		return mean, !infeasible
	}
	s.top = s.highest()
	return s
}
