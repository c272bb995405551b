package search

import (
	"math"
	"slices"
)

const (
	mib = 1 << 20
	gib = 1 << 30
)

// surface says how fast every point of a space is, which the search is not told.
type surface struct {
	name  string
	space Space
	log   func(Point) (float64, bool) // ln(transactions/s); false where the point is infeasible
	top   float64                     // that of the best point
}

// cell describes a machine and a load from which a surface is computed: 10 tables of 1,000,000 rows, 16
// threads. It is a sketch of what is known, not a measurement: the buffer pool saturates at the size of the
// data, redo saturates as pages are written less often, io_capacity has an optimum that matters more with
// little redo, what only costs CPU shows only where I/O is no bottleneck, and several knobs are flat. Default
// and hand-written configuration of the first cell are 2.6 times apart, as was measured.
type cell struct {
	name           string
	iops           float64
	poolLow, pools float64 // range of the buffer pool, in bytes
	killed         float64 // a larger one is killed for memory
}

func cells() []cell {
	return []cell{
		{"5,000 IOPS", 5000, 128 * mib, 16 * gib, math.Inf(1)},
		{"1 GiB, 3,000 IOPS", 3000, 128 * mib, 640 * mib, 420 * mib},
		{"no cap, CPU-bound", 60000, 1 * gib, 16 * gib, math.Inf(1)},
	}
}

func (c cell) space() Space {
	s := Space{Knobs: []Knob{
		Range("buffer_pool_size", Restart, c.poolLow, c.pools, mib),
		Range("redo_log_capacity", Dynamic, 100*mib, 8*gib, mib),
		Range("io_capacity", Dynamic, 200, 20000, 1),
		List("flush_neighbors", Dynamic, "0", "1", "2"),
		List("adaptive_hash_index", Dynamic, "OFF", "ON"),
		List("log_writer_threads", Dynamic, "ON", "OFF"),
		Range("thread_concurrency", Dynamic, 2, 64, 1, "0"),
		Range("lru_scan_depth", Dynamic, 256, 2048, 1),
	}}
	for i, effect := range []float64{0.3, 0.3, 0.1, 0.03, 0.03, 0.03, 0.03, 0.03} { // dominant, large, medium, and small ones
		s.Knobs[i].Effect = effect
	}
	s.Start = Point{0, 0, s.Knobs[2].nearest(10000), 0, 0, 0, 0, s.Knobs[7].nearest(1024)} // the server's defaults
	return s
}

func (k Knob) nearest(number float64) int {
	best := -1
	for i, l := range k.Levels {
		if !l.Special && (best < 0 || math.Abs(math.Log(l.Number/number)) < math.Abs(math.Log(k.Levels[best].Number/number))) {
			best = i
		}
	}
	return best
}

func (c cell) surface() surface {
	s := surface{name: c.name, space: c.space()}
	s.log = func(p Point) (float64, bool) { return c.log(s.space, p) }
	s.top = s.highest()
	return s
}

// log is ln(transactions/s): the harmonic end of what I/O and what the CPU allow.
func (c cell) log(s Space, p Point) (float64, bool) {
	x := func(i int) float64 { return s.Knobs[i].Levels[p[i]].Number }
	pool, redo := x(0), x(1)
	if pool > c.killed {
		return 0, false
	}
	misses := 1 - math.Min(1, math.Pow(pool/(2.4*gib), 0.6))
	writes := (2.5 + 5/(1+redo/(400*mib))) * []float64{1, 1.12, 1.3}[p[3]]
	io := c.iops / (7*misses + writes + 3)
	stalls := 1 / (1 + redo/gib)
	off := math.Log(x(2) / (c.iops / 2))
	io *= math.Exp(-0.04*math.Min(9, off*off)*(0.5+stalls) - 0.03*misses*math.Pow(math.Log(x(7)/1024), 2))
	cpu := 1100 * (1 + 0.05*float64(p[4]) + 0.04*float64(p[5])) * math.Exp(-0.1*stalls+c.concurrency(s, p))
	return -math.Log(math.Pow(io, -3)+math.Pow(cpu, -3)) / 3, true
}

// concurrency returns what a limit of the threads inside InnoDB does to 16 of them: a little good around 12.
func (c cell) concurrency(s Space, p Point) float64 {
	l := s.Knobs[6].Levels[p[6]]
	if l.Special {
		return 0
	}
	return 0.03 - 0.05*math.Pow(math.Min(0.8, math.Max(-3, math.Log(l.Number/12))), 2)
}

// highest climbs from many points, one knob after the other, to the top.
func (s surface) highest() float64 {
	top := math.Inf(-1)
	c := newChooser(s.space, nil, generator(99))
	for range 30 {
		p := c.draw()
		for before := math.Inf(-1); ; {
			at, _ := c.climbFrom(p, s.value)
			if v := s.value(at); v > before {
				before, p = v, at
				continue
			}
			top = math.Max(top, before)
			break
		}
	}
	return top
}

// climbFrom returns the best of p and its neighbours.
func (c *chooser) climbFrom(p Point, score func(Point) float64) (Point, float64) {
	best, top := slices.Clone(p), score(p)
	c.neighbours(p, func(q Point) {
		if x := score(q); x > top {
			best, top = slices.Clone(q), x
		}
	})
	return best, top
}

func (s surface) value(p Point) float64 {
	if v, ok := s.log(p); ok {
		return v
	}
	return math.Inf(-1)
}
