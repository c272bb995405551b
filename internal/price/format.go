package price

import (
	"fmt"
	"strconv"
	"strings"
)

// Number writes a count, rounded down, with commas: "20,000".
func Number(x float64) string {
	digits := strconv.FormatFloat(float64(int64(x)), 'f', -1, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// GiB writes a size in GiB.
func GiB(x float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", x), ".0") + " GiB"
}

func mib(b Bandwidth) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", b.MiB()), ".0") + " MiB/s"
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
