package stats

import (
	"math"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Correlation returns Pearson's coefficient of two lists of the same length: 1 or -1 where one is a line of the
// other, 0 where one tells nothing of the other by a line, and where one of them does not vary. With it comes
// its 95 % interval by Fisher's transformation (Biometrika 10, 1915): -1 to 1 for three values or fewer.
func Correlation(x, y []float64) (r float64, interval [2]float64) {
	if r = stat.Correlation(x, y, nil); math.IsNaN(r) {
		r = 0
	}
	if len(x) <= 3 {
		return r, [2]float64{-1, 1}
	}
	const most = 1 - 1e-12 // the transformation has no value at 1
	z := math.Atanh(min(max(r, -most), most))
	half := distuv.UnitNormal.Quantile(0.5+confidence/2) / math.Sqrt(float64(len(x)-3))
	return r, [2]float64{math.Tanh(z - half), math.Tanh(z + half)}
}
