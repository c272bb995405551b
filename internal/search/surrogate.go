package search

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// surrogate predicts by a Gaussian process over the observations: ln(throughput) of a point is the sum of one
// smooth function of each knob and of one of each pair of knobs (Duvenaud, Nickisch, Rasmussen, Additive
// Gaussian Processes, NeurIPS 24, 2011). What is observed are differences of it, with a noise that is known.
type surrogate struct {
	kernel  kernel
	points  []Point // all that the rows speak of
	rows    []observationRow
	inverse *mat.SymDense // of the covariance of the rows
	weights []float64     // inverse times what was observed
	refused map[string]bool
}

// observationRow holds an observation, its points by their places.
type observationRow struct {
	at, against int
	y, se       float64
	reference   int
}

// kernel returns the covariance of two points.
type kernel struct {
	tables [][][]float64 // correlation by knob, level and level
	scale  []float64     // variance of ln(throughput) that each knob makes
	joint  float64       // how much of it pairs of knobs make together
}

func (k kernel) cov(p, q Point) float64 {
	sum, squares, total := 0.0, 0.0, 0.0
	for i := range p {
		c := k.scale[i] * k.tables[i][p[i]][q[i]]
		sum += c
		squares += c * c
		total += k.scale[i]
	}
	return sum + k.joint*(sum*sum-squares)/total
}

// smooth says how far apart two values of a knob are, in shares of its whole range, where they begin to tell
// little about each other.
const smooth = 0.3

// correlation returns that of two levels of a knob: Matérn's with nu = 5/2 over the distance of their
// logarithms, so that a curve bends but does not jump; none between a special level and any other.
func (k Knob) correlation() [][]float64 {
	width := k.width()
	table := make([][]float64, len(k.Levels))
	for i, a := range k.Levels {
		table[i] = make([]float64, len(k.Levels))
		for j, b := range k.Levels {
			switch {
			case i == j:
				table[i][j] = 1
			case !a.Special && !b.Special:
				table[i][j] = matern(math.Abs(math.Log(a.Number/b.Number)) / width / smooth)
			}
		}
	}
	return table
}

// width returns the logarithm of a knob's range; 0 where it has none.
func (k Knob) width() float64 {
	i := slices.IndexFunc(k.Levels, func(l Level) bool { return !l.Special })
	if i < 0 {
		return 0
	}
	low, high := k.Levels[i].Number, 0.0
	for _, l := range k.Levels {
		if !l.Special {
			high = l.Number
		}
	}
	return math.Log(high / low)
}

func matern(distance float64) float64 {
	d := math.Sqrt(5) * distance
	return (1 + d + d*d/3) * math.Exp(-d)
}

// scales returns the variances of ln(throughput) a knob is tried with: standard deviations of 1, 4, 12, 30
// and 70 %.
func scales() []float64 { return []float64{0.0001, 0.0016, 0.0144, 0.09, 0.5} }

// joints returns the shares that pairs of knobs are tried with.
func joints() []float64 { return []float64{0.1, 0.5, 1} }

const (
	// flat says by how much less likely, in logarithms, a knob of which nothing is known is held to be of the
	// next larger scale: most knobs do nothing.
	flat = 0.2
	// known is the same for each step away from the scale that is expected.
	known = 0.5
)

// belief returns the logarithm of how likely these scales are before anything was seen, up to a constant.
func belief(s Space, choice []int) (sum float64) {
	for i, k := range s.Knobs {
		if k.Effect > 0 {
			sum -= known * math.Abs(float64(choice[i]-k.expected()))
		} else {
			sum -= flat * float64(choice[i])
		}
	}
	return sum
}

// expected returns the place of the scale nearest to what the knob is expected to do; the middle one where
// nothing is.
func (k Knob) expected() int {
	all := scales()
	best := len(all) / 2
	for i, scale := range all {
		if k.Effect > 0 && math.Abs(math.Log(scale/k.Effect/k.Effect)) < math.Abs(math.Log(all[best]/k.Effect/k.Effect)) {
			best = i
		}
	}
	return best
}

// fit returns the surrogate of what was seen. Its scales are those that make the observations most likely,
// found knob by knob.
func fit(s Space, history []Observation) *surrogate {
	m := collect(s, history)
	choice := make([]int, len(s.Knobs))
	for i, k := range s.Knobs {
		choice[i] = k.expected()
		m.kernel.tables = append(m.kernel.tables, k.correlation())
		m.kernel.scale = append(m.kernel.scale, scales()[choice[i]])
	}
	m.kernel.joint = joints()[1]
	if len(m.rows) > 0 {
		m.learn(s, choice)
		m.solve()
	}
	return m
}

// collect takes the observations that can be used.
func collect(s Space, history []Observation) *surrogate {
	m := &surrogate{refused: map[string]bool{}}
	places := map[string]int{}
	place := func(p Point) int {
		at, ok := places[key(p)]
		if !ok {
			at = len(m.points)
			places[key(p)] = at
			m.points = append(m.points, p)
		}
		return at
	}
	place(s.Start)
	for _, o := range history {
		if o.Infeasible != "" {
			m.refused[key(o.Point)] = true
		} else {
			m.rows = append(m.rows, observationRow{place(o.Point), place(o.Against), o.LogRatio, o.SE, o.Reference})
		}
	}
	return m
}

func key(p Point) string {
	b := make([]byte, len(p))
	for i, level := range p {
		b[i] = byte(level)
	}
	return string(b)
}

// learn sets the scales, by going through the knobs until none changes, three times at most.
func (m *surrogate) learn(s Space, choice []int) {
	best := m.likelihood() + belief(s, choice)
	for range 3 {
		before := best
		for i := range choice {
			best = m.improve(best, s, choice, i)
		}
		old := m.kernel.joint
		for _, joint := range joints() {
			m.kernel.joint = joint
			if l := m.likelihood() + belief(s, choice); l > best {
				best, old = l, joint
			}
		}
		m.kernel.joint = old
		if best-before < 1e-6 {
			return
		}
	}
}

// improve tries the next smaller and the next larger scale of one knob, keeps the better one, and returns
// what that makes of the likelihood.
func (m *surrogate) improve(best float64, s Space, choice []int, i int) float64 {
	from := choice[i]
	kept := from
	for _, c := range []int{from - 1, from + 1} {
		if c < 0 || c >= len(scales()) {
			continue
		}
		choice[i], m.kernel.scale[i] = c, scales()[c]
		if l := m.likelihood() + belief(s, choice); l > best {
			best, kept = l, c
		}
	}
	choice[i], m.kernel.scale[i] = kept, scales()[kept]
	return best
}

// covariance returns that of the rows: of the differences between their points, and of their noise, half of
// which is that of the reference.
func (m *surrogate) covariance() *mat.SymDense {
	k := make([][]float64, len(m.points))
	for i, p := range m.points {
		k[i] = make([]float64, len(m.points))
		for j := range i + 1 {
			k[i][j] = m.kernel.cov(p, m.points[j])
			k[j][i] = k[i][j]
		}
	}
	c := mat.NewSymDense(len(m.rows), nil)
	for i, a := range m.rows {
		for j, b := range m.rows[:i+1] {
			x := k[a.at][b.at] - k[a.at][b.against] - k[a.against][b.at] + k[a.against][b.against]
			switch {
			case i == j:
				x += a.se * a.se
			case a.reference == b.reference:
				x += a.se * b.se / 2
			}
			c.SetSym(i, j, x)
		}
	}
	return c
}

// likelihood returns the logarithm of how likely the observations are with these scales, up to a constant.
func (m *surrogate) likelihood() float64 {
	var chol mat.Cholesky
	if !chol.Factorize(m.covariance()) {
		return math.Inf(-1)
	}
	y := m.observed()
	var x mat.VecDense
	if chol.SolveVecTo(&x, y) != nil {
		return math.Inf(-1)
	}
	return -mat.Dot(y, &x)/2 - chol.LogDet()/2
}

func (m *surrogate) observed() *mat.VecDense {
	y := mat.NewVecDense(len(m.rows), nil)
	for i, r := range m.rows {
		y.SetVec(i, r.y)
	}
	return y
}

// solve prepares predictions. The noise on the diagonal keeps the matrix far from singular.
func (m *surrogate) solve() {
	var chol mat.Cholesky
	m.inverse = mat.NewSymDense(len(m.rows), nil)
	if !chol.Factorize(m.covariance()) || chol.InverseTo(m.inverse) != nil {
		m.rows = nil // as if nothing had been seen
		return
	}
	var x mat.VecDense
	x.MulVec(m.inverse, m.observed())
	m.weights = x.RawVector().Data
}

// beside returns how the rows vary with a point.
func (m *surrogate) beside(p Point) []float64 {
	k := make([]float64, len(m.points))
	for i, q := range m.points {
		k[i] = m.kernel.cov(p, q)
	}
	c := make([]float64, len(m.rows))
	for i, r := range m.rows {
		c[i] = k[r.at] - k[r.against]
	}
	return c
}

// gains returns a function that predicts ln(throughput of a point / that of base) and the standard deviation
// of that.
func (m *surrogate) gains(base Point) func(Point) (mean, sd float64) {
	origin, own := m.beside(base), m.kernel.cov(base, base)
	return func(p Point) (mean, sd float64) {
		c := m.beside(p)
		for i := range c {
			c[i] -= origin[i]
			mean += c[i] * m.weights[i]
		}
		variance := m.kernel.cov(p, p) + own - 2*m.kernel.cov(p, base) - m.quadratic(c)
		return mean, math.Sqrt(max(0, variance))
	}
}

func (m *surrogate) quadratic(c []float64) (sum float64) {
	if len(c) == 0 {
		return 0
	}
	raw := m.inverse.RawSymmetric()
	for i, x := range c {
		line := raw.Data[i*raw.Stride : i*raw.Stride+len(c)]
		sum += x * x * line[i]
		for j := i + 1; j < len(c); j++ {
			sum += 2 * x * line[j] * c[j]
		}
	}
	return sum
}

// best returns the point seen that is held the best.
func (m *surrogate) best(start Point) Estimate {
	gain := m.gains(start)
	best := Estimate{Point: start}
	for _, p := range m.points {
		mean, sd := gain(p)
		if mean > best.Gain && !m.refused[key(p)] {
			best = Estimate{Point: p, Gain: mean, SE: sd}
		}
	}
	return best
}
