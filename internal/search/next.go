package search

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// explore makes one in so many proposals a random point: the surrogate cannot know what it never looked
	// at.
	explore = 8
	// special says how often a random point takes one of the special levels of a knob that has a range as
	// well: they are few, and often the default.
	special = 0.25
	// enumerable bounds the points of which all are looked at.
	enumerable = 4096
	// tries bounds the random points that are drawn before none is held to be left.
	tries = 1000
	// distant and around are how many random points, and how many near the incumbent, are judged for each
	// proposal.
	distant, around = 100, 200
)

// Next proposes the point to measure next, never one that was observed or that Feasible forbids. False where
// none is left or none was found. The space has to pass Check.
//
// It returns the point with the greatest expected improvement over the incumbent (Jones, Schonlau, Welch,
// Journal of Global Optimization 13, 1998), with both ends of the difference uncertain, times the probability
// that it is feasible (Gelbart, Snoek, Adams, UAI 2014), among those near the incumbent and some at random;
// now and then a random one.
func Next(s Space, history []Observation, rng *rand.Rand) (Point, bool) {
	c := newChooser(s, history, rng)
	if len(history) == 0 {
		return c.apart()
	}
	if rng.IntN(explore) == 0 {
		return c.random()
	}
	m := fit(s, history)
	base := m.best(s.Start).Point
	gain, safe := m.gains(base), m.safety(history)
	return c.climb(base, func(p Point) float64 {
		mean, sd := gain(p)
		return improvement(mean, sd) * safe(p)
	})
}

// improvement returns the expected value of max(0, x) of a normal x.
func improvement(mean, sd float64) float64 {
	if sd < 1e-12 {
		return max(0, mean)
	}
	z := mean / sd
	return mean*math.Erfc(-z/math.Sqrt2)/2 + sd*math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)
}

// safety returns the probability that a point is feasible. Each knob alone is tried as the explanation of
// what was infeasible so far: a level is as safe as it, and levels near it, were seen to be. These answers
// are averaged, each knob counting by how well it alone predicts every point seen from the others.
func (m *surrogate) safety(history []Observation) func(Point) float64 {
	if len(m.refused) == 0 {
		return func(Point) float64 { return 1 }
	}
	blames, total := m.blames(history), 0.0
	safe := make([][]float64, len(blames)) // of each level of each knob, times its share of the blame
	for knob, blame := range blames {
		total += blame
		for level := range m.kernel.tables[knob] {
			safe[knob] = append(safe[knob], blame*m.safe(history, knob, level, -1))
		}
	}
	return func(p Point) (sum float64) {
		for knob, level := range p {
			sum += safe[knob][level] / total
		}
		return sum
	}
}

// blames are, for each knob, the likelihood of what was feasible and what was not if that knob alone decides,
// each point left out in its turn; that of the likeliest knob is 1.
func (m *surrogate) blames(history []Observation) []float64 {
	blames := make([]float64, len(m.kernel.tables))
	for knob := range blames {
		for i, o := range history {
			safe := m.safe(history, knob, o.Point[knob], i)
			if o.Infeasible != "" {
				safe = 1 - safe
			}
			blames[knob] += math.Log(safe)
		}
	}
	top := slices.Max(blames)
	for knob := range blames {
		blames[knob] = math.Exp(blames[knob] - top)
	}
	return blames
}

// safe returns the share of points with such a level that were feasible, leaving one out. Servers fail at an
// edge, not little by little: the power leaves the next of ten levels half of its weight, and the one after
// it a seventh. To these comes half a point of which four fifths were feasible.
func (m *surrogate) safe(history []Observation, knob, level, without int) float64 {
	yes, all := 0.4, 0.5
	for i, o := range history {
		if i == without {
			continue
		}
		weight := math.Pow(m.kernel.tables[knob][level][o.Point[knob]], 8)
		all += weight
		if o.Infeasible == "" {
			yes += weight
		}
	}
	return yes / all
}

// near returns how alike two points are, 1 where they are the same.
func (k kernel) near(p, q Point) float64 {
	product := 1.0
	for i := range p {
		product *= 0.5 + 0.5*k.tables[i][p[i]][q[i]]
	}
	return product
}

// chooser draws points of a space that may be proposed.
type chooser struct {
	space Space
	seen  map[string]bool
	rng   *rand.Rand
}

func newChooser(s Space, history []Observation, rng *rand.Rand) *chooser {
	c := &chooser{space: s, seen: map[string]bool{key(s.Start): true}, rng: rng}
	for _, o := range history {
		c.seen[key(o.Point)] = true
		c.seen[key(o.Against)] = true
	}
	return c
}

func (c *chooser) may(p Point) bool { return !c.seen[key(p)] && c.space.feasible(p) }

// random returns a random point that may be proposed.
func (c *chooser) random() (Point, bool) {
	if c.space.size(enumerable) < enumerable {
		all := c.all()
		if len(all) == 0 {
			return nil, false
		}
		return all[c.rng.IntN(len(all))], true
	}
	for range tries {
		if p := c.draw(); c.may(p) {
			return p, true
		}
	}
	return nil, false
}

// draw returns any point, special levels more often than their number.
func (c *chooser) draw() Point {
	p := make(Point, len(c.space.Knobs))
	for i := range p {
		p[i] = c.level(i)
	}
	return p
}

func (c *chooser) level(knob int) int {
	var specials, others []int
	for i, l := range c.space.Knobs[knob].Levels {
		if l.Special {
			specials = append(specials, i)
		} else {
			others = append(others, i)
		}
	}
	from := others
	if len(others) == 0 || len(specials) > 0 && c.rng.Float64() < special {
		from = specials
	}
	return from[c.rng.IntN(len(from))]
}

// all returns every point that may be proposed.
func (c *chooser) all() (points []Point) {
	p := make(Point, len(c.space.Knobs))
	for {
		if c.may(p) {
			points = append(points, slices.Clone(p))
		}
		i := 0
		for ; i < len(p); i++ {
			if p[i]++; p[i] < len(c.space.Knobs[i].Levels) {
				break
			}
			p[i] = 0
		}
		if i == len(p) {
			return points
		}
	}
}

// apart returns, of some random points, the one that shares the fewest levels, or near ones, with the start:
// the first step is a wide one, as the surrogate has nothing to say yet.
func (c *chooser) apart() (Point, bool) {
	k := fit(c.space, nil).kernel
	best, ok := c.random()
	for i := 0; ok && i < distant; i++ {
		if p, found := c.random(); found && k.near(p, c.space.Start) < k.near(best, c.space.Start) {
			best = p
		}
	}
	return best, ok
}

// climb returns the point with the greatest score that it finds: the best of a sample, and then of its
// neighbours, until none of them is better.
func (c *chooser) climb(base Point, score func(Point) float64) (Point, bool) {
	var best Point
	top := math.Inf(-1)
	consider := func(p Point) {
		if !c.may(p) {
			return
		}
		if x := score(p); x > top {
			best, top = slices.Clone(p), x
		}
	}
	c.sample(base, consider)
	for before := math.Inf(-1); best != nil && top > before; {
		before = top
		c.neighbours(best, consider)
	}
	return best, best != nil
}

// sample shows all points of a small space; else the neighbours of base, points that differ from it by up to
// three knobs, and random ones.
func (c *chooser) sample(base Point, show func(Point)) {
	if c.space.size(enumerable) < enumerable {
		for _, p := range c.all() {
			show(p)
		}
		return
	}
	c.neighbours(base, show)
	for range around {
		p := slices.Clone(base)
		for range 2 + c.rng.IntN(2) {
			knob := c.rng.IntN(len(p))
			p[knob] = c.level(knob)
		}
		show(p)
	}
	for range distant {
		show(c.draw())
	}
}

// neighbours shows all points that differ from p by one knob.
func (c *chooser) neighbours(p Point, show func(Point)) {
	q := slices.Clone(p)
	for i, k := range c.space.Knobs {
		for level := range k.Levels {
			q[i] = level
			show(q)
		}
		q[i] = p[i]
	}
}
