package stats

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Slice rounds are no independent observations: the host's speed wanders, a start of a server moves a result
// by itself, and rounds in which the machine was disturbed are worth less. The model of the logarithm of an
// arm's ratio to the control in round r of incarnation i of session s is
//
//	y = delta + session(s) + incarnation(i) + host(t) + noise(r)
//
// with normal terms, and where others.go finds that it helps a coefficient times the round's imbalance: host is an
// Ornstein-Uhlenbeck process, whose correlation over dt is exp(-dt/memory), noise is independent with variance v(r). Given the
// shares of the terms in the variance, delta has a t distribution (generalised least squares with the prior 1/variance, Box and
// Tiao, Bayesian Inference in Statistical Analysis, 1973, chapter 2). What the shares are is not known: they are averaged over a
// grid, each point weighed by its restricted likelihood and by what is known beforehand. An interval is one of quantiles of
// that mixture. docs/method.md has how often it misses the truth.

// memory sets how long the host remembers its speed, in seconds: 220 trials in a cluster had 8.1 % with a
// memory of about 60 s, and 3.7 % of their own.
const memory = 60

// resolution sets the least standard deviation of a round's log-ratio: what is counted in whole transactions
// is never known better.
const resolution = 1e-3

// Round tells what one round says of an arm.
type Round struct {
	At                   float64 // seconds, from any moment
	Session, Incarnation int
	Arm, Control         float64 // logarithms of what the slices are worth
	// Disturbed is the share of the machine's CPU time that others took in the arm's slice and in the
	// control's, steal included: the mean of both.
	Disturbed float64
	// Imbalance is how much more of it they took in the arm's slice than in the control's.
	Imbalance float64
	// Speeds are the logarithms of the arm's throughput and the control's in the round: dives are looked for
	// in them, as of a latency or a cost more is worse. nil: Arm and Control are throughput.
	Speeds *[2]float64
	// Referred tells that the load generator's CPU time per transaction is known of both slices, and what
	// server and generator used of the CPUs: logarithms.
	Referred                                       bool
	ArmClient, ControlClient, ArmUsed, ControlUsed float64
}

// grid lists the values that one share of the variance may have, and how likely each is beforehand; most, where
// there is one, bounds each value's standard deviation, as that of a logarithm, and level, where there is one, sets it.
type grid struct{ value, prior, most, level []float64 }

// The grids. host is the share of the wandering host in the variance of a round: nothing where both arms feel
// it alike, four fifths where one of them waits for its disk. The others are in units of that variance:
// restarts move a ratio by 2.3 % at most where rounds scatter by 6 to 9 %, and by no more where rounds scatter
// by more, as a start knows nothing of the host's noise; of rounds in which both arms dive nothing is known.
// Sessions hours apart, of slices on one machine, differ by 2 to 3 % (standard deviation; TestSessionLevels: 11 comparisons);
// one configuration measured in trials had 2.84x one evening and 4.18x the next day, so far more is not ruled out.
func hosts() grid {
	return grid{value: []float64{0, 0.25, 0.5, 0.75, 0.9}, prior: []float64{3, 1, 1, 1, 0.5}}
}
func incarnations() grid {
	return grid{value: []float64{0, 0.03, 0.1, 0.3, 1, 4}, prior: []float64{3, 3, 3, 1.5, 0.3, 0.03}, most: []float64{0, 0.01, 0.023, 0.04, 0.1, 0.3}}
}
func sessions() grid {
	return grid{value: []float64{0, 0.1, 0.5, 2, 10}, prior: []float64{2, 3, 3, 1, 0.1}, level: []float64{0, 0.02, 0.05, 0.12, 0.35}}
}

// terms are the grids of what moves whole starts and whole sessions.
type terms struct{ starts, sessions grid }

func usualTerms() terms { return terms{incarnations(), sessions()} }

func dives() grid { return grid{value: []float64{0, 10, 50, 250}, prior: []float64{1, 1, 1, 1}} }
func none() grid  { return grid{value: []float64{0}, prior: []float64{1}} }

// chance returns how likely a value is beforehand.
func (g grid) chance(i int) float64 {
	sum := 0.0
	for _, p := range g.prior {
		sum += p
	}
	return g.prior[i] / sum
}

// bounded returns the grid for rounds of that variance, within its bounds and at its levels; as it is where the variance is
// not known.
func (g grid) bounded(variance float64) grid {
	if variance == 0 {
		return g
	}
	values := slices.Clone(g.value)
	for i, most := range g.most {
		values[i] = min(values[i], most*most/variance)
	}
	for i, level := range g.level {
		values[i] = level * level / variance
	}
	return grid{value: values, prior: g.prior}
}

// posterior tells what is known of a mean: a mixture of t distributions.
type posterior struct {
	weight   []float64
	t        []distuv.StudentsT
	evidence float64 // the logarithm of the data's probability, but for a constant of the data
}

// below returns the probability that the mean is below x.
func (p posterior) below(x float64) (sum float64) {
	for i, t := range p.t {
		sum += p.weight[i] * t.CDF(x)
	}
	return sum
}

// exact bounds the error of a quantile, a logarithm: a thousandth of a per cent.
const exact = 1e-5

// quantile finds the value that the mean is below with that probability. All components have the same degrees of
// freedom, so one quantile of t tells between what values it lies.
func (p posterior) quantile(q float64) float64 {
	standard := distuv.StudentsT{Sigma: 1, Nu: p.t[0].Nu}.Quantile(q)
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, t := range p.t {
		x := t.Mu + t.Sigma*standard
		lo, hi = min(lo, x), max(hi, x)
	}
	for hi-lo > exact {
		if mid := (lo + hi) / 2; p.below(mid) < q {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// infer finds what rounds say of the mean of their values. Two rounds are needed. z, which may be nil, are imbalances to be
// seen in the values and in how much they scatter.
func infer(y []float64, rounds []Round, seen terms, z []float64) posterior {
	x := disturbances(rounds)
	calm, coefficient := undisturbed(rounds, x), none()
	if z != nil {
		calm, coefficient = undisturbed(cleared(rounds, z), x), coefficients()
		for i := range x {
			x[i] += square(perShare * z[i])
		}
	}
	kappa, psi := dives(), seen.sessions
	if slices.Max(x) == 0 {
		kappa = none()
	}
	if !slices.ContainsFunc(rounds, func(r Round) bool { return r.Session != rounds[0].Session }) {
		psi = none()
	}
	variance := within(calm, 0, 1)
	starts, psi := seen.starts.bounded(variance), psi.bounded(variance)
	var p posterior
	var logs []float64
	for i, k := range kappa.value {
		for j, rho := range hosts().value {
			for l, phi := range starts.value {
				for m, s := range psi.value {
					for n, c := range coefficient.value {
						t, likelihood, ok := fitted(y, covariance(rounds, shares{dives: k, host: rho, start: phi, session: s, coefficient: c}, x, z))
						if !ok {
							continue
						}
						p.t = append(p.t, t)
						prior := kappa.chance(i) * hosts().chance(j) * starts.chance(l) * psi.chance(m) * coefficient.chance(n)
						logs = append(logs, likelihood+math.Log(prior))
					}
				}
			}
		}
	}
	p.weight, p.evidence = normalised(logs)
	return p.likely()
}

// likely leaves out the components that no quantile would miss.
func (p posterior) likely() posterior {
	const least = 1e-7
	q := posterior{evidence: p.evidence}
	for i, w := range p.weight {
		if w >= least {
			q.weight, q.t = append(q.weight, w), append(q.t, p.t[i])
		}
	}
	return q
}

// normalised returns weights from their logarithms, and the logarithm of their sum.
func normalised(logs []float64) (w []float64, total float64) {
	top, sum := slices.Max(logs), 0.0
	w = make([]float64, len(logs))
	for i, l := range logs {
		w[i] = math.Exp(l - top)
		sum += w[i]
	}
	for i := range w {
		w[i] /= sum
	}
	return w, top + math.Log(sum)
}

// shares are those of the model's terms in the variance of a round, one point of the grids.
type shares struct{ dives, host, start, session, coefficient float64 }

// covariance returns that of the rounds, but for a factor. x says by how much each was disturbed.
func covariance(rounds []Round, s shares, x, z []float64) *mat.SymDense {
	c := mat.NewSymDense(len(rounds), nil)
	for i, a := range rounds {
		for j := i; j < len(rounds); j++ {
			b, v := rounds[j], 0.0
			if i == j {
				v = (1 - s.host) * (1 + s.dives*x[i])
			}
			if a.Session == b.Session {
				v += s.session + s.host*math.Exp(-math.Abs(a.At-b.At)/memory)
				if a.Incarnation == b.Incarnation {
					v += s.start
				}
			}
			if z != nil {
				v += s.coefficient * z[i] * z[j]
			}
			c.SetSym(i, j, v)
		}
	}
	return c
}

// fitted returns the distribution of the mean given a covariance, and the logarithm of the restricted
// likelihood.
func fitted(y []float64, c *mat.SymDense) (t distuv.StudentsT, likelihood float64, ok bool) {
	var chol mat.Cholesky
	if !chol.Factorize(c) {
		return t, 0, false
	}
	n := len(y)
	ones := mat.NewVecDense(n, nil)
	for i := range n {
		ones.SetVec(i, 1)
	}
	var w mat.VecDense // C^-1 1
	if err := chol.SolveVecTo(&w, ones); err != nil {
		return t, 0, false
	}
	a := mat.Dot(&w, ones)
	mean := mat.Dot(&w, mat.NewVecDense(n, y)) / a
	rest := mat.NewVecDense(n, nil)
	for i, v := range y {
		rest.SetVec(i, v-mean)
	}
	var solved mat.VecDense
	if err := chol.SolveVecTo(&solved, rest); err != nil {
		return t, 0, false
	}
	df := float64(n - 1)
	rss := mat.Dot(&solved, rest) + df*resolution*resolution
	t = distuv.StudentsT{Mu: mean, Sigma: math.Sqrt(rss / df / a), Nu: df}
	return t, -(chol.LogDet() + math.Log(a) + df*math.Log(rss)) / 2, true
}

// What counts as disturbed: a round in which both arms dive below their median by more than this many robust
// standard deviations, or others take more of the CPU than this.
const (
	deep  = 2.5
	usual = 0.10
)

// disturbances returns by how much each round was disturbed, squared, as both arms or the kernel tell. A dive
// of one arm alone is what the arm does, and counts in full: what a round is worth must not depend on which
// arm won.
func disturbances(rounds []Round) []float64 {
	arm, control := dive(rounds, func(r Round) float64 { return r.speeds()[0] }), dive(rounds, func(r Round) float64 { return r.speeds()[1] })
	x := make([]float64, len(rounds))
	for i, r := range rounds {
		shared, taken := min(arm[i], control[i]), max(0, r.Disturbed-usual)
		x[i] = shared*shared + taken*taken
	}
	return x
}

// undisturbed returns the rounds that count in full; where those are fewer than half, the half that was disturbed least.
func undisturbed(rounds []Round, x []float64) (list []Round) {
	most := median(x)
	for i, r := range rounds {
		if x[i] <= most {
			list = append(list, r)
		}
	}
	return list
}

// speeds returns what dives are looked for in.
func (r Round) speeds() [2]float64 {
	if r.Speeds != nil {
		return *r.Speeds
	}
	return [2]float64{r.Arm, r.Control}
}

// dive returns how far below its usual level a value lies in each round.
func dive(rounds []Round, value func(Round) float64) []float64 {
	values := make([]float64, len(rounds))
	for i, r := range rounds {
		values[i] = value(r)
	}
	level := median(values) - deep*apart(values)
	for i, v := range values {
		values[i] = max(0, level-v)
	}
	return values
}

// apart returns a robust standard deviation.
func apart(values []float64) float64 {
	const normal = 1.4826 // of the median absolute deviation
	middle, off := median(values), make([]float64, len(values))
	for i, v := range values {
		off[i] = math.Abs(v - middle)
	}
	return normal * median(off)
}

func median(xs []float64) float64 {
	sorted := slices.Sorted(slices.Values(xs))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Estimate tells what rounds say of an arm's ratio to the control.
type Estimate struct {
	Ratio      float64  `json:"ratio"`
	Interval   Interval `json:"interval"`    // 95 %
	Interval90 Interval `json:"interval_90"` // of the test of equivalence
	P          float64  `json:"p"`           // of a ratio of 1, two-sided
	Odds       float64  `json:"odds"`        // the probability that the ratio is above 1
	Rounds     int      `json:"rounds"`

	posterior *posterior
}

// FromRounds infers the ratio; its interval is of these sessions where there are several, else of this one.
// Of fewer than LeastPairs rounds there is no interval: with two of them it would reach from a hundredth to a
// hundred times.
func FromRounds(rounds []Round) Estimate { return fromRounds(rounds, usualTerms()) }

func fromRounds(rounds []Round, seen terms) Estimate {
	y := logs(rounds)
	switch n := len(y); {
	case n == 0:
		return Estimate{P: 1, Odds: 0.5}
	case n < LeastPairs:
		return Estimate{Ratio: math.Exp(Mean(y)), P: 1, Odds: 0.5, Rounds: n}
	}
	return infer(y, rounds, seen, nil).estimate(len(y))
}

// logs returns the logarithms of the rounds' ratios.
func logs(rounds []Round) []float64 {
	y := make([]float64, len(rounds))
	for i, r := range rounds {
		y[i] = r.Arm - r.Control
	}
	return y
}

// estimate sums up a posterior of so many rounds.
func (p posterior) estimate(rounds int) Estimate {
	at := func(q float64) float64 { return math.Exp(p.quantile(q)) }
	odds := 1 - p.below(0)
	return Estimate{posterior: &p, Ratio: at(0.5), Interval: Interval{at((1 - confidence) / 2), at((1 + confidence) / 2)}, Interval90: Interval{at(equivalenceLevel), at(1 - equivalenceLevel)},
		P: 2 * min(odds, 1-odds), Odds: odds, Rounds: rounds}
}
