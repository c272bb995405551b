package stats

import (
	"math"

	"gonum.org/v1/gonum/mathext"
)

// leastShrunk arms have to be compared before their noise tells which noise is typical.
const leastShrunk = 5

// mostPrior bounds how much the typical noise counts, in degrees of freedom: a dozen arms in three blocks
// seldom show that they are unlike in it, and some always are.
const mostPrior = 8

// shrinkage pulls the noise of an arm's pairs towards that which the arms of a comparison have in common. In
// three blocks an arm's own deviation is mostly luck, and a t of 2 degrees of freedom pays for that with
// intervals four times as wide as with many; with a dozen arms beside each other the noise is known far
// better. Variances are taken as drawn from a scaled inverse chi-squared distribution, whose variance and
// degrees of freedom follow from how much they differ beyond what chance makes of so few blocks (Smyth,
// Linear models and empirical Bayes methods for assessing differential expression in microarray experiments,
// Statistical Applications in Genetics and Molecular Biology 3, 2004). The zero value changes nothing.
type shrinkage struct {
	variance float64
	df       float64 // how many degrees of freedom it counts for
	most     float64 // degrees of freedom of all of the arms together
}

// shared tells the correlation of two arms' pairs of one block, which have the control's noise in common:
// half of each pair's variance, a third where the control ran twice.
func shared(twins bool) float64 {
	if twins {
		return 1.0 / 3
	}
	return 1.0 / 2
}

// newShrinkage finds the typical noise in the logarithms of the arms' ratios. Arms with fewer than two pairs
// tell nothing.
func newShrinkage(arms [][]float64, twins bool) shrinkage {
	var variances, dfs []float64
	sum, all := 0.0, 0.0
	for _, logs := range arms {
		if len(logs) < 2 {
			continue
		}
		s, df := StdDev(logs), float64(len(logs)-1)
		variances, dfs = append(variances, s*s), append(dfs, df)
		sum, all = sum+df*s*s, all+df
	}
	n := float64(len(variances))
	if n < leastShrunk {
		return shrinkage{}
	}
	// A variance of 0 is one of rounded numbers, and its logarithm would decide alone.
	least := 1e-5 * sum / all
	if least == 0 {
		return shrinkage{}
	}
	logs, chance := make([]float64, len(variances)), 0.0
	for i, v := range variances {
		half := dfs[i] / 2
		logs[i] = math.Log(max(v, least)) - mathext.Digamma(half) + math.Log(half)
		chance += trigamma(half) / n
	}
	rho := shared(twins)
	t := shrinkage{variance: sum / all, df: mostPrior, most: all / (1 + (n-1)*rho*rho)}
	sd := StdDev(logs)
	if beyond := sd*sd - chance; beyond > 0 {
		half := trigammaInverse(beyond)
		t.df, t.variance = min(mostPrior, 2*half), math.Exp(Mean(logs)+mathext.Digamma(half)-math.Log(half))
	}
	return t
}

// shrunk takes the mean of an arm's logarithms, with the standard error that its own noise and the typical
// one make together.
func (t shrinkage) shrunk(logs []float64) logMean {
	m := meanOf(logs)
	if m.df == 0 || t.most == 0 {
		return m
	}
	n := float64(len(logs))
	own := m.se * m.se * n
	return logMean{mean: m.mean, se: math.Sqrt((t.df*t.variance + m.df*own) / (t.df + m.df) / n), df: max(m.df, min(m.df+t.df, t.most))}
}

// twins finds the variance of pairs of the control with itself that their own and the typical one make
// together, and its degrees of freedom. Such a pair has the noise of two runs, 4/3 of that of an arm's pair,
// which is with the mean of both.
func (t shrinkage) twins(own, pairs float64) (variance, df float64) {
	if t.most == 0 {
		return own, pairs
	}
	return (t.df*t.variance*4/3 + pairs*own) / (t.df + pairs), max(pairs, min(pairs+t.df, t.most))
}

// trigamma derives the digamma function (NIST Digital Library of Mathematical Functions, 25.11.12).
func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// trigammaInverse solves trigamma(y) = x for positive x, by Newton's method on 1/trigamma, which is nearly
// linear (Smyth 2004, appendix).
func trigammaInverse(x float64) float64 {
	switch {
	case x > 1e7:
		return 1 / math.Sqrt(x)
	case x < 1e-6:
		return 1 / x
	}
	y := 0.5 + 1/x
	for range 50 {
		tri := trigamma(y)
		step := tri * (1 - tri/x) / (-2 * mathext.Zeta(3, y))
		if y += step; math.Abs(step) < 1e-10*y {
			break
		}
	}
	return y
}
