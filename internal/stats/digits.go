package stats

import (
	"fmt"
	"math"
)

// Digits writes a number in so many digits, in more where it has more before its point: never as a power of ten.
func Digits(x float64, n int) string {
	if math.Abs(x) >= math.Pow10(n)-0.5 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.*g", n, x)
}
