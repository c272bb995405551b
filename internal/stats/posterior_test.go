package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"

	"david/internal/result"
)

// hostNoise says how slices of a simulated machine scatter, as standard deviations of logarithms.
type hostNoise struct {
	host           float64 // of the host's speed, with a memory of 60 s
	feelsA, feelsC float64 // how much of it the arm and the control feel
	own            float64 // of each slice
	start          float64 // of each incarnation of an arm
	session        float64 // of each session
	tails          bool    // own is a t with 4 degrees of freedom
	noisy          bool    // the arm's own is five times the control's
	dives          float64 // share of rounds in which both arms dive to a third, and scatter five times as much
	bursts         float64 // share of slices in which others take up to 40 % of the CPUs, seen to a hundredth
	leaves         float64 // what the arm leaves to others and the control does not, all the time
	hurtA, hurtC   float64 // by how much that lowers the logarithm of the arm's and the control's throughput, for the whole of them
}

// sessions returns the rounds of so many sessions, hours apart.
func (h hostNoise) sessions(rng *rand.Rand, truth float64, sessions, incarnations, each int) (list []Round) {
	if sessions == 1 {
		return h.rounds(rng, truth, incarnations, each)
	}
	for s := range sessions {
		for _, r := range h.rounds(rng, truth+h.session*rng.NormFloat64(), incarnations, each) {
			r.Session, r.At = s+1, r.At+float64(s)*7200
			list = append(list, r)
		}
	}
	return list
}

// rounds returns those of an arm with that logarithm of its ratio to the control: so many rounds in each of
// some incarnations, of two slices of 6 s each, in random order.
func (h hostNoise) rounds(rng *rand.Rand, truth float64, incarnations, each int) (list []Round) {
	host, at := h.host*rng.NormFloat64(), 0.0
	next := func(dt float64) {
		k := math.Exp(-dt / 60)
		host, at = k*host+math.Sqrt(1-k*k)*h.host*rng.NormFloat64(), at+dt
	}
	for i := range incarnations {
		a, c := h.start*rng.NormFloat64(), h.start*rng.NormFloat64()
		next(30)
		for range each {
			own, down := h.own, 0.0
			if rng.Float64() < h.dives {
				own, down = 5*own, -math.Log(3)
			}
			e := func() float64 {
				if h.tails {
					return own * student4(rng)
				}
				return own * rng.NormFloat64()
			}
			r := Round{Session: 1, Incarnation: i + 1, At: at}
			times := 1.0
			if h.noisy {
				times = 5
			}
			armTaken, controlTaken := h.taken(rng), h.taken(rng)
			r.Disturbed, r.Imbalance = (armTaken+controlTaken)/2, armTaken-controlTaken+h.leaves
			if h.bursts > 0 {
				r.Imbalance += 0.01 * rng.NormFloat64()
			}
			arm := func() { r.Arm = truth + a + down + h.feelsA*host + times*e() - h.hurtA*armTaken; next(6) }
			control := func() { r.Control = c + down + h.feelsC*host + e() - h.hurtC*controlTaken; next(6) }
			if rng.IntN(2) == 0 {
				arm()
				control()
			} else {
				control()
				arm()
			}
			list = append(list, r)
		}
	}
	return list
}

// taken returns what others take of the CPUs in a slice.
func (h hostNoise) taken(rng *rand.Rand) float64 {
	if h.bursts == 0 || rng.Float64() >= h.bursts {
		return 0
	}
	return 0.4 * rng.Float64()
}

// student4 returns a t deviate of 4 degrees of freedom with a variance of 1.
func student4(rng *rand.Rand) float64 {
	chi := 0.0
	for range 4 {
		x := rng.NormFloat64()
		chi += x * x
	}
	return rng.NormFloat64() / math.Sqrt(chi/4) / math.Sqrt2
}

// sliceRow describes one of the table, with what came of it: counts of comparisons.
type sliceRow struct {
	name               string
	noise              hostNoise
	incarnations, each int
	sessions           int     // 0: one
	floor              float64 // the least share in which a gain of 10 % is to be found

	claims int // faster or slower, where there is no difference
	misses int // intervals that do not hold the true ratio
	within int // equivalent, where the arm is slower by exactly the margin
	same   int // equivalent, where there is no difference
	found  map[float64]int
	half   []float64
}

func sliceRows() []sliceRow {
	alike := hostNoise{host: 0.08, feelsA: 1, feelsC: 1, own: 0.04, start: 0.016}
	waits := hostNoise{host: 0.08, feelsA: 1, feelsC: 0.1, own: 0.04, start: 0.016}
	calm := hostNoise{host: 0.01, feelsA: 1, feelsC: 1, own: 0.01, start: 0.005}
	tails, dives, noisy := alike, alike, alike
	noisy.noisy = true
	rough := hostNoise{host: 0.08, feelsA: 1, feelsC: 1, own: 0.09, start: 0.016} // as confirmations of tunes were on a crowded host
	tails.tails = true
	dives.dives = 0.2
	bursts := hostNoise{host: 0.03, feelsA: 1, feelsC: 1, own: 0.03, start: 0.01, bursts: 0.3, hurtA: 1.5, hurtC: 1.5}
	unlike, unfelt, leaves := bursts, bursts, bursts
	leaves.leaves = 0.02
	unlike.hurtA, unlike.hurtC = 2.5, 0.5
	unfelt.hurtA, unfelt.hurtC = 0, 0
	apart := func(sd float64) hostNoise { h := alike; h.session = sd; return h }
	return []sliceRow{
		{name: "both arms feel the host alike", noise: alike, incarnations: 2, each: 8, floor: 0.5},
		{name: "both arms feel the host alike", noise: alike, incarnations: 3, each: 15, floor: 0.8},
		{name: "the control waits for its disk, the arm feels the host", noise: waits, incarnations: 2, each: 8},
		{name: "the control waits for its disk, the arm feels the host", noise: waits, incarnations: 3, each: 15},
		{name: "slices scatter by 9 % of their own", noise: rough, incarnations: 2, each: 12},
		{name: "calm", noise: calm, incarnations: 2, each: 8, floor: 0.95},
		{name: "heavy tails (t, 4 df)", noise: tails, incarnations: 3, each: 15, floor: 0.8},
		{name: "both dive to a third in a fifth of the rounds", noise: dives, incarnations: 3, each: 15},
		{name: "an arm whose slices are five times as noisy as the control's", noise: noisy, incarnations: 2, each: 8},
		{name: "an arm whose slices are five times as noisy as the control's", noise: noisy, incarnations: 3, each: 15},
		{name: "others take up to 40 % of the CPUs in a third of the slices", noise: bursts, incarnations: 2, each: 5},
		{name: "others take up to 40 % of the CPUs in a third of the slices", noise: bursts, incarnations: 2, each: 8},
		{name: "the same, and the arm feels it five times as much as the control", noise: unlike, incarnations: 2, each: 8},
		{name: "the same, and neither feels it", noise: unfelt, incarnations: 2, each: 8},
		{name: "the same as of both, and the arm leaves others 2 % more all the time, which it does not feel", noise: leaves, incarnations: 2, each: 8},
		{name: "two sessions that are 2 % apart, as a standard deviation", noise: apart(0.02), sessions: 2, incarnations: 2, each: 5},
		{name: "two sessions that are 5 % apart", noise: apart(0.05), sessions: 2, incarnations: 2, each: 5},
		{name: "three sessions that are 5 % apart", noise: apart(0.05), sessions: 3, incarnations: 2, each: 5},
	}
}

// run simulates comparisons of two arms that are the same, and looks at each again as if the arm were faster
// or slower: what is known of a ratio moves with it.
func (r *sliceRow) run(seed uint64, experiments int) {
	rng := rand.New(rand.NewPCG(seed, 11))
	r.found = map[float64]int{}
	for range experiments {
		rounds := r.noise.sessions(rng, 0, max(1, r.sessions), r.incarnations, r.each)
		e := FromRounds(rounds)
		e, _ = e.referred(rounds)
		at := func(ratio float64) Verdict { return e.times(ratio).Verdict }
		r.claims += btoi(at(1) == Faster || at(1) == Slower)
		r.same += btoi(at(1) == Equivalent)
		r.within += btoi(at(1-Margin) == Equivalent)
		r.misses += btoi(!e.Interval.holds(1))
		for _, gain := range gains() {
			r.found[gain] += btoi(at(gain) == Faster)
		}
		r.half = append(r.half, math.Log(e.Interval[1]/e.Interval[0])/2)
	}
}

// times returns the arm that an estimate would be of, had the arm been that much faster.
func (e Estimate) times(ratio float64) Arm {
	moved := posterior{weight: e.posterior.weight, t: slices.Clone(e.posterior.t)}
	for i := range moved.t {
		moved.t[i].Mu += math.Log(ratio)
	}
	l := logMean{mean: math.Log(e.Ratio * ratio), posterior: &moved}
	a := Arm{Ratio: e.Ratio * ratio, Interval: Interval{e.Interval[0] * ratio, e.Interval[1] * ratio}, P: l.p(), Adjusted: l.p(), log: l}
	a.judge(0, 1)
	return a
}

func (r *sliceRow) line() string {
	n := len(r.half)
	share := func(k int) string { return fmt.Sprintf("%.1f %%", 100*float64(k)/float64(n)) }
	exact := func(k int) string {
		lo, hi := clopperPearson(k, n)
		return fmt.Sprintf("%s (%.1f to %.1f)", share(k), 100*lo, 100*hi)
	}
	line := fmt.Sprintf("| %s | %d x %d | %s | %s | ", r.name, r.incarnations, r.each, exact(r.claims), exact(r.misses))
	for _, gain := range gains() {
		line += share(r.found[gain]) + " | "
	}
	return line + fmt.Sprintf("%s | %s | ±%.1f %% |\n", share(r.same), share(r.within), 100*math.Expm1(median(r.half)))
}

// check holds a row against what david promises.
func (r *sliceRow) check(t *testing.T) {
	t.Helper()
	n := len(r.half)
	for what, k := range map[string]int{"false claims": r.claims, "intervals that miss": r.misses, "equivalent at the margin": r.within} {
		if lo, _ := clopperPearson(k, n); lo > 0.05 {
			t.Errorf("%s, %d x %d: %s: %d of %d, nominal 5 %%", r.name, r.incarnations, r.each, what, k, n)
		}
	}
	if got := float64(r.found[1.10]) / float64(n); got < r.floor {
		t.Errorf("%s, %d x %d: a gain of 10 %% is found in %.1f %%, want %.0f %%", r.name, r.incarnations, r.each, 100*got, 100*r.floor)
	}
}

// TestSliceTable guards false claims and power of comparisons in slices. `go test ./internal/stats -run
// SliceTable -update` simulates more of them, and writes the table of docs/method.md.
func TestSliceTable(t *testing.T) {
	experiments, rows := 60, sliceRows()
	if *update {
		experiments = 200
	}
	var wait sync.WaitGroup
	for i := range rows {
		wait.Go(func() { rows[i].run(uint64(i), experiments) })
	}
	wait.Wait()
	text := fmt.Sprintf("%d comparisons a row; in parentheses the exact 95 %% interval of the share (Clopper-Pearson).\n\n", experiments) +
		"| noise | incarnations x rounds | false claims | interval misses the truth | +2 % found | +5 % found | +10 % found | equals called equivalent | -3 % called equivalent | half-width, median |\n" +
		"| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for i := range rows {
		rows[i].check(t)
		text += rows[i].line()
	}
	if *update {
		inDocs(t, "slices", text)
	}
	t.Log("\n" + text)
}

// independent are rounds of one incarnation, so far apart that the host has forgotten its speed, with those
// log-ratios.
func independent(logs ...float64) (list []Round) {
	for i, y := range logs {
		list = append(list, Round{At: 6000 * float64(i), Session: 1, Incarnation: 1, Arm: y})
	}
	return list
}

// TestFromRoundsByHand: without a host that wanders and with one start, the interval is that of Student's t
// about the mean, and wider, as what the start did cannot be told from the arm.
func TestFromRoundsByHand(t *testing.T) {
	logs := []float64{0.08, 0.11, 0.09, 0.12, 0.10, 0.07, 0.13, 0.10}
	e := FromRounds(independent(logs...))
	mean, half, p := tInterval(logs)
	if math.Abs(math.Log(e.Ratio)-mean) > 1e-4 {
		t.Errorf("ratio %v, want %v", e.Ratio, math.Exp(mean))
	}
	own := math.Log(e.Interval[1]/e.Interval[0]) / 2
	if own < half || own > 3*half || e.Interval90.width() >= e.Interval.width() {
		t.Errorf("half-widths %v and of 90 %% %v, of t %v", own, e.Interval90.width()/2, half)
	}
	if e.P < p || e.P > 0.01 || math.Abs(e.Odds-(1-e.P/2)) > 1e-9 || e.Rounds != 8 {
		t.Errorf("p %v, of t %v, odds %v of %d rounds", e.P, p, e.Odds, e.Rounds)
	}
	two := independent(logs...)
	for i := range two {
		two[i].Incarnation = 1 + i/4
	}
	if twice := FromRounds(two); twice.Interval.width() >= e.Interval.width() {
		t.Errorf("two starts tell no more than one: %v, %v", twice.Interval, e.Interval)
	}
}

func TestFromFewRounds(t *testing.T) {
	if e := FromRounds(nil); e.Ratio != 0 || e.P != 1 || e.Odds != 0.5 {
		t.Errorf("none: %+v", e)
	}
	if e := FromRounds(independent(math.Log(2))); math.Abs(e.Ratio-2) > 1e-9 || e.Interval != (Interval{}) || e.P != 1 {
		t.Errorf("one: %+v", e)
	}
	if e := FromRounds(independent(math.Log(2), math.Log(2.1))); e.Interval != (Interval{}) || e.P != 1 {
		t.Errorf("two: %+v", e)
	}
	// Three equal rounds scatter by the resolution, not by nothing.
	e := FromRounds(independent(0.1, 0.1, 0.1))
	if math.Abs(math.Log(e.Ratio)-0.1) > 1e-6 || e.Interval[0] >= e.Ratio || e.Interval.width() > 0.1 || math.IsNaN(e.P) || e.P > 0.05 {
		t.Errorf("three alike: %+v", e)
	}
}

// TestSharedDivesCountLess: a round in which both arms dive says little, one in which only one does says what
// that arm does.
func TestSharedDivesCountLess(t *testing.T) {
	rounds := func(arm, control float64) []Round {
		list := independent(0.10, 0.12, 0.09, 0.11, 0.08, 0.10, 0.12, 0.09, 0.11, 0.10)
		for i := range list {
			list[i].Control = 0.01 * float64(i%3)
			list[i].Arm += list[i].Control
		}
		list[4].Arm, list[4].Control = list[4].Arm+arm, list[4].Control+control
		return list
	}
	shared, alone, other := rounds(-1.5, -1.1), rounds(-0.4, 0), rounds(0, -0.4) // log-ratios of the fifth: -0.32, -0.32, 0.48
	for i, x := range disturbances(shared) {
		if (x > 0.5) != (i == 4) {
			t.Errorf("round %d: disturbed by %v", i, x)
		}
	}
	for _, list := range [][]Round{alone, other} {
		if x := slices.Max(disturbances(list)); x > 0 {
			t.Errorf("one arm's dive alone is no disturbance: %v", x)
		}
	}
	off := func(list []Round) float64 { return math.Abs(math.Log(FromRounds(list).Ratio) - 0.10) }
	if s, a := off(shared), off(alone); s > a/2 || a < 0.03 {
		t.Errorf("a shared dive moves the ratio by %v, that of the arm alone by %v", s, a)
	}
}

// TestDisturbedByOthers: what others take of the machine counts beyond the usual.
func TestDisturbedByOthers(t *testing.T) {
	list := independent(0.1, 0.1, 0.1, 0.1)
	list[1].Disturbed, list[2].Disturbed = 0.09, 0.6
	x := disturbances(list)
	near(t, "the usual", x[1], 0)
	near(t, "much", x[2], 0.25)
}

// TestSlicedComparison: slices of three rounds in each of two incarnations, by way of Compare.
func TestSlicedComparison(t *testing.T) {
	var trials []result.Trial
	slice := func(block int, arm string, tps float64) {
		x := in(block, arm, tps)
		x.Incarnation, x.Session = 1+(block-1)/3, 1
		x.Started = time.Unix(int64(3600*block), 0)
		trials = append(trials, x)
	}
	for b := 1; b <= 6; b++ {
		slice(b, Control, 100+float64(b%2))
		slice(b, "a", 150+float64(b%3))
		slice(b, "b", 100+float64(b%2)+0.2*float64(b%3))
		if b < 3 {
			slice(b, "few", 300)
		}
	}
	c := only(t, armed("a", "b", "few"), trials...)
	if !c.Sliced || c.Blocks != 6 || c.NoiseFloor.Floor != 0 {
		t.Errorf("%+v", c)
	}
	a, b, few := c.Arms[1], c.Arms[2], c.Arms[3]
	if a.Verdict != Faster || !a.NotSlower || a.Odds < 0.999 || a.Sessions != 1 || a.Incarnations != 2 || a.Method != "slices: 6 rounds, 2 starts, 1 session" {
		t.Errorf("%+v", a)
	}
	if b.Verdict != Equivalent || !b.NotSlower {
		t.Errorf("%+v", b)
	}
	if few.Verdict != Invalid || !strings.HasPrefix(few.Why, "2 rounds: a verdict needs 3") || few.Pairs != 2 {
		t.Errorf("%+v", few)
	}
}

// TestFittedByHand: of independent rounds alike in variance the mean has Student's t with one degree of
// freedom less than there are rounds.
func TestFittedByHand(t *testing.T) {
	y, c := []float64{0.1, 0.2, 0.3, 0.4}, mat.NewSymDense(4, nil)
	for i := range y {
		c.SetSym(i, i, 1)
	}
	got, _, ok := fitted(y, c)
	if !ok || got.Nu != 3 {
		t.Fatalf("%v degrees of freedom", got.Nu)
	}
	near(t, "mean", got.Mu, 0.25)
	near(t, "standard error", math.Sqrt(got.Sigma*got.Sigma-resolution*resolution/4), StdDev(y)/2)
}
