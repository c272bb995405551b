package stats

import (
	"david/internal/result"
)

// Metric names the measure that arms are compared by.
type Metric string

// The metrics.
const (
	ByThroughput Metric = ""    // transactions/s
	ByP99        Metric = "p99" // the 99th percentile of the latency: a ratio says how many times lower it is than the control's
)

// MetricOf tells by which measure a tune's arms are compared; t is nil outside of a tune. The cost of a
// transaction on one machine is lowest where throughput is highest, so that it needs none of its own.
func MetricOf(t *result.TunePlan) Metric {
	if t != nil && t.Objective == result.ForP99 {
		return ByP99
	}
	return ByThroughput
}

// Worth returns the figure of a trial of which more is better: transactions/s, or 1/p99 (1/ms); 0 where it
// has none.
func (m Metric) Worth(t result.Trial) float64 {
	switch {
	case m == ByThroughput:
		return t.TPS
	case t.Latency.P99 <= 0 || t.TPS <= 0:
		return 0
	}
	return 1 / t.Latency.P99
}

// Of names the metric behind a ratio: "" for throughput, which is meant without a word, else ", p99".
func (m Metric) Of() string {
	if m == ByP99 {
		return ", p99"
	}
	return ""
}

// Than says what a ratio means: "2.00x" and then this.
func (m Metric) Than(control string) string {
	if m == ByP99 {
		return " lower p99 latency than " + control + "'s"
	}
	return " " + control + "'s throughput"
}
