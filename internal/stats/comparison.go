package stats

import (
	"encoding/json"

	"david/internal/result"
)

// Comparison tells what the blocks of one workload say about its arms.
type Comparison struct {
	Workload   result.Workload `json:"workload"`
	Control    string          `json:"control"`
	Metric     Metric          `json:"metric,omitempty"` // that ratios, verdicts and the noise floor are of; throughput where it is empty
	Blocks     int             `json:"blocks"`           // complete ones in which the control is valid; of slices, rounds in which it is
	Sliced     bool            `json:"sliced,omitempty"` // measured in slices
	NoiseFloor NoiseFloor      `json:"noise_floor"`
	Arms       []Arm           `json:"arms"` // in the order of the experiment's
	Warnings   []string        `json:"warnings,omitempty"`
	// Standing tells how the control stands to the others, where it is somebody's own configuration; else
	// nil.
	Standing *Standing `json:"standing,omitempty"`
}

// Of returns what is said of an arm; an empty Arm where nothing is.
func (c Comparison) Of(arm string) Arm {
	for _, a := range c.Arms {
		if a.Name == arm {
			return a
		}
	}
	return Arm{}
}

// NoiseFloor tells what the A/A pairs of a comparison say: the control against itself.
type NoiseFloor struct {
	Pairs int `json:"pairs"`
	// SD is the standard deviation of one pair's log-ratio, about its known mean of 0.
	SD float64 `json:"sd"`
	// Floor is the smallest change of throughput that could be told from noise: 0.02 is 2 %. No gain below it
	// is claimed. Without an A/A pair RestartNoise stands in, and a warning says so.
	Floor    float64   `json:"floor"`
	Ratios   []float64 `json:"ratios"` // of the pairs, in the order of the blocks
	Warnings []string  `json:"warnings,omitempty"`
}

// Interval bounds a figure with 95 % confidence: its lower and its upper end. The zero Interval is none, and
// null in JSON: 0 to 0 would read as something that was found.
type Interval [2]float64

// MarshalJSON writes both ends, or null. Reading needs no counterpart: null leaves an array as it is.
func (i Interval) MarshalJSON() ([]byte, error) {
	if i == (Interval{}) {
		return []byte("null"), nil
	}
	return json.Marshal([2]float64(i))
}

// Arm tells what a comparison says about one arm. Numbers are 0 where there are none.
type Arm struct {
	Name    string `json:"name"`
	Title   string `json:"title"`
	Trials  int    `json:"trials"`  // valid ones
	Invalid int    `json:"invalid"` // those of which a gate failed, left out
	// TPS is in transactions/s, the geometric mean of the trials (of the blocks, where the control ran twice
	// in some); the latencies are of all their transactions together, in ms.
	TPS         float64  `json:"tps"`
	TPSInterval Interval `json:"tps_interval"`
	P95         float64  `json:"p95_ms"`
	P95Interval Interval `json:"p95_interval"`
	P99         float64  `json:"p99_ms"`
	P99Interval Interval `json:"p99_interval"`

	Pairs    int       `json:"pairs"`            // blocks in which both it and the control are valid
	Ratio    float64   `json:"ratio"`            // of its throughput to the control's, or what Metric says; 1 for the control
	Interval Interval  `json:"interval"`         // of Ratio
	Ratios   []float64 `json:"ratios,omitempty"` // by block
	// Throughput is the ratio of the throughputs where Ratio is of another metric; 0 where it is not.
	Throughput float64 `json:"throughput_ratio,omitempty"`
	// Odds is the probability that the ratio is above 1; 0 where there is no interval.
	Odds float64 `json:"odds,omitempty"`
	// Incarnations and Sessions are how many the rounds come from, of slices.
	Incarnations int `json:"incarnations,omitempty"`
	Sessions     int `json:"sessions,omitempty"`
	// Reference tells how Ratio was adjusted for the host's speed; nil where it is as measured.
	Reference *Reference `json:"reference,omitempty"`
	P         float64    `json:"p"`      // of a ratio of 1, two-sided
	Adjusted  float64    `json:"p_holm"` // the same, corrected for the number of arms
	Method    string     `json:"method,omitempty"`
	Verdict   Verdict    `json:"verdict"`
	Why       string     `json:"why,omitempty"`
	// NotSlower tells whether its throughput is at least 1 - Margin of the control's (non-inferiority).
	NotSlower bool `json:"not_slower"`
	// Tax tells what it costs beside the control, where the design asks whether the two are equivalent; else
	// nil.
	Tax      *Tax         `json:"tax,omitempty"`
	Costs    result.Costs `json:"per_transaction,omitzero"` // means of the trials
	Warnings []string     `json:"warnings,omitempty"`

	log logMean // of Ratio
}

// Margin sets by how much a throughput may be below the control's and still be called not slower.
const Margin = 0.03
