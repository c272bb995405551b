package stats

import "math"

// MoreOften returns the probability that of n tries a or more come out as they did, and of m tries b or
// fewer, where both do so equally often: Fisher's exact test, one-sided. A small one says that the first do
// so more often.
func MoreOften(a, n, b, m int) float64 {
	hits, all := a+b, n+m
	p := 0.0
	for k := a; k <= min(n, hits); k++ {
		if hits-k <= m {
			p += math.Exp(choose(n, k) + choose(m, hits-k) - choose(all, hits))
		}
	}
	return min(p, 1)
}

// choose returns the logarithm of the binomial coefficient.
func choose(n, k int) float64 {
	f := func(x int) float64 {
		l, _ := math.Lgamma(float64(x) + 1)
		return l
	}
	return f(n) - f(k) - f(n-k)
}
