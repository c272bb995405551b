package search

import (
	"math/rand/v2"
	"slices"
)

// Batch proposes up to n points that are to be measured one after the other before their results are looked at, in the order of
// Order from the incumbent. Each is chosen as if those before it had shown what the surrogate expects of them ("kriging
// believer": Ginsbourger, Le Riche, Carraro, Kriging Is Well-Suited to Parallelize Optimization, 2010). Fewer where fewer
// are left.
func Batch(s Space, history []Observation, incumbent Point, n int, rng *rand.Rand) []Point {
	believed := slices.Clone(history)
	var points []Point
	for i := range n {
		p, ok := Next(s, believed, rng)
		if !ok {
			break
		}
		points = append(points, p)
		mean, sd := predict(s, believed, p)
		believed = append(believed, Observation{Point: p, Against: s.Start, LogRatio: mean, SE: max(sd, 1e-3), Reference: -1 - i})
	}
	return Order(s, incumbent, points)
}

// predict is the gain over the start that is expected of p.
func predict(s Space, history []Observation, p Point) (mean, sd float64) {
	return fit(s, history).gains(s.Start)(p)
}

// Change is what it takes to go from one point to another: the dearest of the knobs that differ. False where none does.
func Change(s Space, from, to Point) (Cost, bool) {
	dearest, differ := Dynamic, false
	for i, k := range s.Knobs {
		if from[i] != to[i] {
			dearest, differ = max(dearest, k.Cost), true
		}
	}
	return dearest, differ
}

// Order returns the points so that dear changes are few: always the one that is cheapest to go to from the one before,
// the first of them from the incumbent. All points of one data directory are thus run before the next is made, and in it all
// that share what only a restart changes.
func Order(s Space, incumbent Point, points []Point) []Point {
	left, at := slices.Clone(points), incumbent
	ordered := make([]Point, 0, len(points))
	for len(left) > 0 {
		next := 0
		for i := range left {
			if dearer(s, at, left[next], left[i]) {
				next = i
			}
		}
		at = left[next]
		ordered = append(ordered, at)
		left = slices.Delete(left, next, next+1)
	}
	return ordered
}

// dearer tells whether going to p costs more than going to q.
func dearer(s Space, from, p, q Point) bool {
	a, differs := Change(s, from, p)
	b, also := Change(s, from, q)
	return differs && (!also || a > b)
}
