package stats

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"
)

// confidence sets the level of every interval, and 1 - confidence the share of false claims allowed.
const confidence = 0.95

// pairsForRanks counts the pairs from which on a 95 % signed-rank interval exists for: with five, the widest
// one covers 1 - 2/2^5 = 93.75 %.
const pairsForRanks = 6

// tQuantile returns how many standard errors a 95 % interval reaches to either side, with df degrees of
// freedom.
func tQuantile(df float64) float64 {
	return distuv.StudentsT{Sigma: 1, Nu: df}.Quantile(0.5 + confidence/2)
}

// tInterval returns the mean of xs, the half-width of its 95 % t interval, and the two-sided p of a mean of
// 0. Fewer than two have neither: the half-width is 0, p is 1.
func tInterval(xs []float64) (mean, half, p float64) {
	m := meanOf(xs)
	return m.mean, m.half(), m.p()
}

// logMean holds the mean of the logarithms of ratios, with its standard error and the degrees of freedom of
// that; 0 of them where there are fewer than two.
type logMean struct {
	mean, se, df float64
	posterior    *posterior // of slices, in the place of a t distribution
}

func meanOf(logs []float64) logMean {
	if len(logs) < 2 {
		return logMean{mean: Mean(logs)}
	}
	return logMean{mean: Mean(logs), se: StdDev(logs) / math.Sqrt(float64(len(logs))), df: float64(len(logs) - 1)}
}

// half returns the half-width of its 95 % interval, of a t distribution.
func (m logMean) half() float64 {
	if m.df == 0 {
		return 0
	}
	return tQuantile(m.df) * m.se
}

// lower returns the lower end of its 95 % interval.
func (m logMean) lower() float64 {
	if m.posterior != nil {
		return m.posterior.quantile((1 - confidence) / 2)
	}
	return m.mean - m.half()
}

// p returns that of a true mean of 0, two-sided.
func (m logMean) p() float64 {
	switch {
	case m.posterior != nil:
		below := m.posterior.below(0)
		return 2 * min(below, 1-below)
	case m.df == 0, m.se == 0 && m.mean == 0:
		return 1
	case m.se == 0:
		return 0
	}
	return 2 * distuv.StudentsT{Sigma: 1, Nu: m.df}.Survival(math.Abs(m.mean)/m.se)
}

// atLeast returns the p value, one-sided, of a true mean of limit or more.
func (m logMean) atLeast(limit float64) float64 {
	switch {
	case m.posterior != nil:
		return 1 - m.posterior.below(limit)
	case m.df == 0, m.se == 0 && m.mean >= limit:
		return 1
	case m.se == 0:
		return 0
	}
	return distuv.StudentsT{Sigma: 1, Nu: m.df}.CDF((m.mean - limit) / m.se)
}

// below returns the p value, one-sided, of a true mean of limit or less.
func (m logMean) below(limit float64) float64 {
	switch {
	case m.posterior != nil:
		return m.posterior.below(limit)
	case m.df == 0, m.se == 0 && m.mean <= limit:
		return 1
	case m.se == 0:
		return 0
	}
	return distuv.StudentsT{Sigma: 1, Nu: m.df}.Survival((m.mean - limit) / m.se)
}

// odds returns the probability that the true mean is above 0.
func (m logMean) odds() float64 {
	if m.posterior == nil && (m.df == 0 || m.se == 0 && m.mean == 0) {
		return 0.5
	}
	return 1 - m.below(0)
}

// upper bounds the true mean, but for a chance of level.
func (m logMean) upper(level float64) float64 {
	if m.posterior != nil {
		return m.posterior.quantile(1 - level)
	}
	if m.df == 0 {
		return math.Inf(1)
	}
	return m.mean + m.se*distuv.StudentsT{Sigma: 1, Nu: m.df}.Quantile(1-level)
}

// far returns how far from 1 the ratio may lie, at that level to either side: the farther end of the
// interval.
func (m logMean) far(level float64) float64 {
	lower := m.mean - (m.upper(level) - m.mean)
	if m.posterior != nil {
		lower = m.posterior.quantile(level)
	}
	return max(math.Exp(m.upper(level))-1, 1-math.Exp(lower))
}

// around turns an interval of a logarithm into one of the value.
func around(mean, half float64) Interval {
	return Interval{math.Exp(mean - half), math.Exp(mean + half)}
}

// RatioInterval returns the 95 % t interval of the geometric mean of ratios; the zero Interval where there
// are fewer than two, or one is not positive.
func RatioInterval(ratios []float64) Interval {
	var logs []float64
	for _, r := range ratios {
		if r <= 0 {
			return Interval{}
		}
		logs = append(logs, math.Log(r))
	}
	if len(logs) < 2 {
		return Interval{}
	}
	mean, half, _ := tInterval(logs)
	return around(mean, half)
}

// signedRank returns the interval of the pseudo-median of xs, of at least 95 %, that goes with Wilcoxon's
// signed-rank test: from the C-th smallest to the C-th greatest of the n(n+1)/2 means of two (Walsh
// averages), C the largest for which the statistic is below C with a chance of at most 2.5 % (Hollander,
// Wolfe, Chicken, Nonparametric Statistical Methods, 3rd ed., chapter 3: Tukey's interval). It assumes
// symmetry about the centre, not a normal distribution. False with fewer than six pairs.
func signedRank(xs []float64) (lo, hi float64, ok bool) {
	if len(xs) < pairsForRanks {
		return 0, 0, false
	}
	var means []float64
	for i, x := range xs {
		for _, y := range xs[i:] {
			means = append(means, (x+y)/2)
		}
	}
	slices.Sort(means)
	c := rankCritical(len(xs))
	return means[c-1], means[len(means)-c], true
}

// rankCritical returns the largest C with P(T+ < C) <= 2.5 % for n pairs.
func rankCritical(n int) int {
	below := 0.0
	for t, p := range rankNull(n) {
		if below += p; below > (1-confidence)/2 {
			return t
		}
	}
	return 0
}

// rankNull returns the chance of each value 0, 1, ... n(n+1)/2 of the signed-rank statistic T+ when there is
// no difference: each of the 2^n ways to give the ranks 1 to n their signs is as likely, and they are
// counted.
func rankNull(n int) []float64 {
	p := make([]float64, n*(n+1)/2+1)
	p[0] = 1
	for rank := 1; rank <= n; rank++ {
		for t := len(p) - 1; t >= 0; t-- {
			p[t] /= 2
			if t >= rank {
				p[t] += p[t-rank] / 2
			}
		}
	}
	return p
}

// holm corrects p values for their number, step down (Holm, A simple sequentially rejective multiple test
// procedure, Scandinavian Journal of Statistics 6, 1979): the chance of any false claim among them stays
// below the confidence each is held against, however they depend on each other.
func holm(ps []float64) []float64 {
	order := make([]int, len(ps))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(ps[a], ps[b]) })
	adjusted, least := make([]float64, len(ps)), 0.0
	for rank, i := range order {
		least = max(least, min(1, float64(len(ps)-rank)*ps[i]))
		adjusted[i] = least
	}
	return adjusted
}

// RatioWithin returns the 95 % interval (Welch, of the logarithms) of the ratio of what two samples are,
// geometric mean over geometric mean; from 0 to infinity where either has fewer than three values, or one
// that is not positive.
func RatioWithin(before, now []float64) (low, high float64) {
	m, v := logMoments(before)
	n, w := logMoments(now)
	a, b := v/float64(len(before)), w/float64(len(now))
	if min(len(before), len(now)) < 3 || math.IsNaN(m+n+v+w) || math.IsInf(m+n, 0) {
		return 0, math.Inf(1)
	}
	half := 0.0
	if a+b > 0 {
		df := (a + b) * (a + b) / (a*a/float64(len(before)-1) + b*b/float64(len(now)-1))
		half = tQuantile(df) * math.Sqrt(a+b)
	}
	return math.Exp(n - m - half), math.Exp(n - m + half)
}

// logMoments returns mean and variance of the values' logarithms.
func logMoments(values []float64) (mean, variance float64) {
	for _, x := range values {
		mean += math.Log(x) / float64(len(values))
	}
	for _, x := range values {
		variance += math.Pow(math.Log(x)-mean, 2) / float64(len(values)-1)
	}
	return mean, variance
}
