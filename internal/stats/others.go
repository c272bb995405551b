package stats

import (
	"math"
	"slices"
)

// What others take of the CPUs in an arm's slice and not in the control's next to it, or the other way round, moves the ratio
// of that round, and it is known, by the kernel's counts: of twelve ratios measured beside compilers the logarithm fell by 1.2
// to 2.7 for each whole CPU share that others took more of in the arm's slice (correlations of -0.6 to -0.9 in eight of them).
// So it is a term of the model (posterior.go), coefficient x imbalance, whose coefficient is not known beforehand, and rounds
// out of balance are worth less. Only where the rounds are so much more likely with it is the ratio one with that term; the
// ratio as measured stands beside it.
//
// An imbalance counts from the median of its session's rounds, so that what arms leave to others all the time, as one does that
// waits for its disk, changes nothing.

const (
	// perShare is what a whole share of the CPUs moves the logarithm of a ratio by, about: so much the scatter of rounds out of
	// balance is compared by.
	perShare = 2
	// substantial is how many times as likely the rounds must be: "substantial evidence" (Jeffreys, Theory of Probability, 1961,
	// appendix B).
	substantial = 3
	// constant is how far apart two arms are in what they leave to others all the time, as a standard deviation: medians of
	// -0.03 to 0.03 were seen.
	constant = 0.02
	// leastBalanced sets the fewest rounds that can show it.
	leastBalanced = 6
)

// coefficients are what the square of the term's coefficient may be, in units of the variance of a round: nothing, or as good
// as anything.
func coefficients() grid { return grid{value: []float64{0, 1000}, prior: []float64{1, 1}} }

// imbalances returns those of rounds about what is usual in their session, and how well that is known: a standard deviation.
func imbalances(rounds []Round) (z []float64, doubt float64) {
	of, middle, variance := map[int][]float64{}, map[int]float64{}, 0.0
	for _, r := range rounds {
		of[r.Session] = append(of[r.Session], r.Imbalance)
	}
	for session, list := range of {
		v := square(apart(list)) * math.Pi / 2 / float64(len(list)) // of a median of normal values
		known := square(constant) / (square(constant) + v)
		middle[session] = known * median(list)
		variance += known * v / square(float64(len(of)))
	}
	z = make([]float64, len(rounds))
	for i, r := range rounds {
		z[i] = r.Imbalance - middle[r.Session]
	}
	return z, math.Sqrt(variance)
}

// slope returns what an imbalance does to the logarithm of the ratio, by least squares about the means of incarnations.
func slope(rounds []Round, z []float64) float64 {
	sum, of := map[[2]int][3]float64{}, func(r Round) [2]int { return [2]int{r.Session, r.Incarnation} }
	for i, r := range rounds {
		m := sum[of(r)]
		sum[of(r)] = [3]float64{m[0] + r.Arm - r.Control, m[1] + z[i], m[2] + 1}
	}
	var zy, zz float64
	for i, r := range rounds {
		m := sum[of(r)]
		dz := z[i] - m[1]/m[2]
		zy, zz = zy+dz*(r.Arm-r.Control-m[0]/m[2]), zz+dz*dz
	}
	return zy / max(zz, 1e-12)
}

// cleared returns the rounds without what imbalances explain.
func cleared(rounds []Round, z []float64) []Round {
	list, each := slices.Clone(rounds), slope(rounds, z)
	for i := range list {
		list[i].Arm -= each * z[i]
	}
	return list
}

// balanced infers the ratio with the term of others, given what was inferred without, and tells how much of the scatter is
// left; false where that is no better.
func balanced(rounds []Round, plain Estimate) (e Estimate, left float64, ok bool) {
	if len(rounds) < leastBalanced || within(rounds, 0, 1) == 0 {
		return e, 0, false
	}
	z, doubt := imbalances(rounds)
	p := infer(logs(rounds), rounds, usualTerms(), z)
	if p.evidence-plain.posterior.evidence < math.Log(substantial) {
		return e, 0, false
	}
	return p.estimate(len(rounds)).widened(doubt * slope(rounds, z)), math.Sqrt(within(cleared(rounds, z), 0, 1) / within(rounds, 0, 1)), true
}

func square(x float64) float64 { return x * x }
