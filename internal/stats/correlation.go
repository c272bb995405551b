package stats

import "gonum.org/v1/gonum/stat"

// Correlation returns Pearson's coefficient of two lists of the same length: 1 or -1 where one is a line of the
// other, 0 where one tells nothing of the other by a line, and where one of them does not vary.
func Correlation(x, y []float64) float64 {
	if r := stat.Correlation(x, y, nil); r == r {
		return r
	}
	return 0
}
