package stats

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

// Window sets how many seconds of a warm-up Settled compares with as many before them. A very short warm-up
// may use 2.
const Window = 5

// Settled tells whether a warm-up may end, from its throughput so far, one value a second: the mean of the
// last window seconds lies within 5 % of that of the window before. Where seconds scatter so much that 5 % is
// asked too much, two standard errors of that difference will do, but never more than 20 %. The scatter is
// taken from neighbouring seconds (half the mean square of their differences, von Neumann 1941), which a
// trend does not inflate. Never before two windows have passed, and not after one without a transaction. A
// window below 2 is taken as 2.
func Settled(tps []float64, window int) bool {
	window = max(window, 2)
	if len(tps) < 2*window {
		return false
	}
	last := tps[len(tps)-2*window:]
	before, now := Mean(last[:window]), Mean(last[window:])
	if before <= 0 || now <= 0 {
		return false
	}
	se := scatter(last) * math.Sqrt(2/float64(window)) / before
	return math.Abs(now/before-1) <= max(0.05, min(2*se, 0.2))
}

// scatter returns the standard deviation of xs about whatever slow trend they have.
func scatter(xs []float64) float64 {
	sum := 0.0
	for i := 1; i < len(xs); i++ {
		sum += (xs[i] - xs[i-1]) * (xs[i] - xs[i-1])
	}
	return math.Sqrt(sum / float64(2*(len(xs)-1)))
}

// MaxDrift bounds the change from the first half of a trial to the second, as a logarithm, that counts as a
// steady state where the change is significant.
const MaxDrift = 0.10

// Drift compares the halves of a measured run, one throughput a second: change is ln(second half / first
// half). Seconds are autocorrelated, so the test is made on batch means: each half is cut into five batches
// (fewer where it has fewer seconds) and their means are compared by a two-sided t test with pooled variance,
// at 5 %. The first second of an odd number is left out. A half without a transaction gives an infinite
// change; fewer than four seconds none.
func Drift(tps []float64) (change float64, significant bool) {
	half := len(tps) / 2
	tps = tps[len(tps)-2*half:]
	first, second := tps[:half], tps[half:]
	if half < 2 || Mean(tps) == 0 {
		return 0, false
	}
	change = math.Log(Mean(second) / Mean(first))
	return change, differ(batches(first, min(5, half)), batches(second, min(5, half)))
}

// batches returns the means of n parts of xs, as equal in length as they can be.
func batches(xs []float64, n int) []float64 {
	means := make([]float64, n)
	for i := range means {
		means[i] = Mean(xs[i*len(xs)/n : (i+1)*len(xs)/n])
	}
	return means
}

// differ tells whether two samples of the same size have different means, by a two-sided pooled t test at 5
// %.
func differ(a, b []float64) bool {
	n := float64(len(a))
	gap, se := math.Abs(Mean(a)-Mean(b)), math.Sqrt((StdDev(a)*StdDev(a)+StdDev(b)*StdDev(b))/n)
	if se == 0 {
		return gap > 0
	}
	return distuv.StudentsT{Sigma: 1, Nu: 2*n - 2}.Survival(gap/se) < (1-confidence)/2
}

// Level tells whether a checkpoint age, in bytes, one value a second, has levelled off: its growth over the
// last 30 s is at most 2 % of its value. Growth is twice the step from the mean of the 15 s before to that of
// the last 15 s, so that a saw tooth of page flushing does not decide; value is the latter. An age that
// falls, or is 0, is level; fewer than 30 values are not. A redo log that fills at an even pace for more than
// 25 minutes grows by less than 2 % in 30 s, and passes before it is full.
func Level(values []float64) bool {
	const half = 15
	if len(values) < 2*half {
		return false
	}
	last := values[len(values)-2*half:]
	before, now := Mean(last[:half]), Mean(last[half:])
	return 2*(now-before) <= 0.02*now
}

// Growing tells whether the queue of an open loop grows, and says what was seen. queue is how many
// transactions wait for a thread, once a second; rate how many arrive a second. It grows where the mean of
// the last third exceeds that of the first by more than half a second's arrivals and more than three times
// the deviation of the seconds within these thirds. Fewer than six seconds are not judged.
func Growing(queue []int64, rate float64) (bool, string) {
	third := len(queue) / 3
	if third < 2 {
		return false, fmt.Sprintf("%d s: too short to see a queue grow", len(queue))
	}
	first, last := floats(queue[:third]), floats(queue[len(queue)-third:])
	sd := math.Sqrt((StdDev(first)*StdDev(first) + StdDev(last)*StdDev(last)) / 2)
	limit := max(rate/2, 3*sd)
	grown := Mean(last) - Mean(first)
	return grown > limit, fmt.Sprintf("queue of %.1f transactions in the first third, %.1f in the last (grows above +%.1f)",
		Mean(first), Mean(last), limit)
}

func floats(ns []int64) []float64 {
	xs := make([]float64, len(ns))
	for i, n := range ns {
		xs[i] = float64(n)
	}
	return xs
}
