package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

func generator(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) }

// lab measures points of a surface as a machine would: each trial has noise, and the machine drifts.
type lab struct {
	surface   surface
	noise     float64 // standard deviation of ln(throughput) from trial to trial
	rng       *rand.Rand
	drift     float64
	incumbent Point
	reference float64 // what the incumbent's last trial showed
	number    int
	since     int
	trials    int // all of them, the incumbent's too
	history   []Observation
}

// drift is the step of the machine's speed from one trial to the next, a random walk.
const drift = 0.005

func (l *lab) run(p Point) (float64, bool) {
	l.trials++
	l.drift += drift * l.rng.NormFloat64()
	v, ok := l.surface.log(p)
	return v + l.drift + l.noise*l.rng.NormFloat64(), ok
}

func (l *lab) observe(p Point) {
	v, ok := l.run(p)
	o := Observation{Point: p, Against: l.incumbent, LogRatio: v - l.reference, SE: l.noise * math.Sqrt2, Reference: l.number}
	if !ok {
		o.Infeasible = "killed"
	}
	l.history = append(l.history, o)
	l.since++
}

// remeasure runs p as the incumbent.
func (l *lab) remeasure(p Point) {
	v, _ := l.run(p)
	if l.incumbent != nil && !slices.Equal(p, l.incumbent) {
		l.history = append(l.history, Observation{Point: p, Against: l.incumbent, LogRatio: v - l.reference, SE: l.noise * math.Sqrt2, Reference: l.number})
	}
	l.incumbent, l.reference, l.since = p, v, 0
	l.number++
}

// regret is ln(the best throughput / that of p), of which nothing is noise.
func (l *lab) regret(p Point) float64 { return l.surface.top - l.surface.value(p) }

// raw returns the point with the best mean of its observations, the start where none is better: what one
// picks without a model.
func (l *lab) raw() Point {
	sums, counts := map[string]float64{}, map[string]float64{}
	best, top := l.surface.space.Start, 0.0
	for _, o := range l.history {
		if o.Infeasible == "" {
			sums[key(o.Point)] += o.LogRatio
			counts[key(o.Point)]++
		}
	}
	for _, o := range l.history {
		if mean := sums[key(o.Point)] / counts[key(o.Point)]; mean > top {
			best, top = o.Point, mean
		}
	}
	return best
}

// method describes a way to search: what it would run after these trials.
type method struct {
	name string
	run  func(l *lab, budget int) Point // goes on to so many trials and says which point is the best
}

func methods() []method {
	return []method{
		{"search", runSearch},
		{"random", func(l *lab, n int) Point { runRandom(l, n); return l.raw() }},
		{"random, picked by the surrogate", func(l *lab, n int) Point { runRandom(l, n); return Best(l.surface.space, l.history).Point }},
		{"grid", runGrid},
	}
}

func runSearch(l *lab, trials int) Point {
	s := l.surface.space
	for l.trials < trials {
		if Remeasure(l.incumbent, l.since) {
			l.remeasure(Best(s, l.history).Point)
			continue
		}
		p, ok := Next(s, l.history, l.rng)
		if !ok {
			break
		}
		l.observe(p)
	}
	return Best(s, l.history).Point
}

func runRandom(l *lab, trials int) {
	for l.trials < trials {
		if l.incumbent == nil || l.since >= stale {
			l.remeasure(l.surface.space.Start)
			continue
		}
		p, _ := newChooser(l.surface.space, l.history, l.rng).random()
		l.observe(p)
	}
}

// runGrid runs the plain grid of the budget: the first two knobs, by which the strongest are meant, in as
// many steps as fit, all others as they were.
func runGrid(l *lab, trials int) Point {
	*l = lab{surface: l.surface, noise: l.noise, rng: l.rng} // a grid of another budget is another one
	var grid []Point
	candidates := trials - (trials+stale)/(stale+1)
	n := int(math.Sqrt(float64(candidates)))
	s := l.surface.space
	for i := range n {
		for j := range candidates / n {
			p := slices.Clone(s.Start)
			p[0] = spread(i, n, len(s.Knobs[0].Levels))
			p[1] = spread(j, candidates/n, len(s.Knobs[1].Levels))
			grid = append(grid, p)
		}
	}
	l.rng.Shuffle(len(grid), func(i, j int) { grid[i], grid[j] = grid[j], grid[i] })
	for _, p := range grid {
		if l.incumbent == nil || l.since >= stale {
			l.remeasure(s.Start)
		}
		l.observe(p)
	}
	return l.raw()
}

// spread returns the i-th of n levels that are spread evenly over so many.
func spread(i, n, levels int) int {
	if n == 1 {
		return levels / 2
	}
	return i * (levels - 1) / (n - 1)
}

// regrets runs a method on a surface with every seed, and sorts how much it left.
func regrets(s surface, noise float64, m method, budgets []int, seeds int) [][]float64 {
	found := make([][]float64, len(budgets))
	for seed := range seeds {
		l := &lab{surface: s, noise: noise, rng: generator(uint64(1000 + seed))} // not the seeds the constants of the search were chosen with
		for i, n := range budgets {
			found[i] = append(found[i], l.regret(m.run(l, n)))
		}
	}
	for i := range found {
		slices.Sort(found[i])
	}
	return found
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*(1-math.Exp(-x))) }

// line is one row of the table.
func line(s surface, noise float64, m method, seeds int) string {
	found := regrets(s, noise, m, []int{15, 30}, seeds)
	after15, after30 := found[0], found[1]
	gain := s.top - s.value(s.space.Start)
	return fmt.Sprintf("| %s | %.0f %% | %s | %s | %s | %s | %s | %.0f %% |", s.name, 100*noise, m.name, percent(median(after15)), percent(after15[seeds*9/10]),
		percent(median(after30)), percent(after30[seeds*9/10]), 100*(gain-median(after15))/(gain-median(after30)))
}

// BenchmarkSearch prints how much throughput each method leaves on the table.
func BenchmarkSearch(b *testing.B) {
	const seeds = 100
	for b.Loop() {
		for _, c := range cells() {
			for _, noise := range []float64{0.03, 0.07} {
				fmt.Println(strings.Join(rows(c.surface(), noise, seeds), "\n"))
			}
		}
		for _, name := range recordings(b) {
			s, noise := realSurface(b, name)
			fmt.Println(strings.Join(rows(s, noise, seeds), "\n"))
		}
	}
}

// rows returns those of one surface, of which the last is the search with another surrogate.
func rows(s surface, noise float64, seeds int) []string {
	all := append(methods(), method{"search with a random forest (25 seeds)", runForest})
	lines := make([]string, len(all))
	var wait sync.WaitGroup
	for i, m := range all {
		n := seeds
		if i == len(methods()) {
			n = seeds / 4
		}
		wait.Go(func() { lines[i] = line(s, noise, m, n) })
	}
	wait.Wait()
	return lines
}
