package search

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

const (
	// worse sets how far below the incumbent, in logarithms, a point has to be so that its trial may stop:
	// one that is about as good is worth its full trial, since it teaches the surrogate where the top is
	// flat.
	worse = 0.05
	// risk bounds how often a trial of a point exactly that much worse may be stopped, over all looks at it.
	risk = 0.05
	// pairsToStop sets the fewest ratios that can stop a trial: fewer do not tell their own scatter.
	pairsToStop = 3
)

// Hopeless tells whether a point is so surely worse than the incumbent that measuring it may stop. ratios are
// ln(its throughput / the incumbent's), either of the same stretches of both trials so far, each long enough
// to be independent of the next (5 s; seconds are not), or of the pairs of trials so far. noise is the
// standard deviation that all of them share and that watching on does not lessen: of one pair of trials for
// stretches of them, 0 for pairs. looks is how often the question will be asked in all.
//
// It is a race against one rival (Maron and Moore, Hoeffding Races, NeurIPS 6, 1993; with Student's t, as in
// Birattari and others, A Racing Algorithm for Configuring Metaheuristics, GECCO 2002): it ends where the
// one-sided upper bound of the mean ratio is below -5 %. The risk of 5 % is divided among the looks
// (Bonferroni). A point that was stopped is an observation as well: its mean so far, with the standard error
// of that.
func Hopeless(ratios []float64, noise float64, looks int) bool {
	n := float64(len(ratios))
	if n < pairsToStop {
		return false
	}
	mean, squares := 0.0, 0.0
	for _, x := range ratios {
		mean += x / n
	}
	for _, x := range ratios {
		squares += (x - mean) * (x - mean)
	}
	level := 1 - risk/float64(max(1, looks))
	own := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(level) * math.Sqrt(squares/(n-1)/n)
	shared := distuv.UnitNormal.Quantile(level) * noise
	return mean+math.Hypot(own, shared) < -worse
}
