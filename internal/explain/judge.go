package explain

import (
	"fmt"
	"math"

	"david/internal/stats"
)

// Judgement tells what the confirming experiment says of a cause.
type Judgement string

// The judgements.
const (
	Confirmed Judgement = "confirmed"
	Refuted   Judgement = "refuted"
	Undecided Judgement = "undecided"
)

// Outcome describes a confirming experiment's result: the throughput with the change over that without it,
// and its 95 % interval.
type Outcome struct {
	Ratio    float64    `json:"ratio"`
	Interval [2]float64 `json:"interval"`
	Pairs    int        `json:"pairs"` // blocks in which both ran
	// Invalid says which gates took runs out of it, and what was seen, each once.
	Invalid []string `json:"invalid,omitempty"`
}

// enough says which part of the expected change (of the logarithm of the throughput) must be seen to confirm
// a cause: the expectation takes the cause to be the only thing in the way, and behind it stands the next
// one.
const enough = 1.0 / 3

// Judge holds the outcome against what was expected, and says why in a sentence.
//
// A cause is confirmed where the whole interval lies on the expected side of 1 and at least a third of the
// expected change was seen, and refuted where the whole interval lies below that third. What lies between is
// undecided.
func (c Confirm) Judge(o Outcome) (Judgement, string) {
	seen := fmt.Sprintf("%.2fx the throughput (95 %% interval %.2f to %.2f, %d blocks)", o.Ratio, o.Interval[0], o.Interval[1], o.Pairs)
	if o.Pairs < 2 || !(o.Interval[0] > 0) {
		return Undecided, "too few valid runs"
	}
	if c.Expect == NotSlower {
		return c.judgeNotSlower(o, seen)
	}
	expected := math.Log(c.Ratio)
	low, high := math.Log(o.Interval[0])/expected, math.Log(o.Interval[1])/expected // parts of the change
	if expected < 0 {
		low, high = high, low
	}
	seen += fmt.Sprintf("; %.2fx if the cause and its share are right", c.Ratio)
	switch {
	case low > 0 && math.Log(o.Ratio)/expected >= enough:
		return Confirmed, seen
	case high < enough:
		return Refuted, seen + ": less than a third of the change"
	}
	return Undecided, seen + ": the interval holds too much"
}

func (c Confirm) judgeNotSlower(o Outcome, seen string) (Judgement, string) {
	switch {
	case o.Interval[0] >= 1-stats.Margin:
		return Confirmed, seen + "; not slower by more than 3 %"
	case o.Interval[1] < 1-stats.Margin:
		return Refuted, seen + "; slower by more than 3 %"
	}
	return Undecided, seen + "; not slower by more than 3 %?"
}

// Suppose returns the finding that the cause has that share of the time, whatever was found: what its
// experiment would have to show.
func Suppose(in Input, c Cause, share float64) Finding {
	t := newTrial(in)
	return Finding{Cause: c, Share: share, Supposed: true, Ms: t.ms(share), Advice: t.advised(c), Relief: t.relieved(c, t.advised(c)), Confirm: t.confirm(c, share)}
}
