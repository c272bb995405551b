package result

import (
	"strconv"
	"strings"
)

// RateOutcome says how a search for the highest rate that keeps a goal ended.
type RateOutcome string

// The outcomes of a search for a rate. A search that did not end has none: "".
const (
	RateFound    RateOutcome = "found"
	RateNone     RateOutcome = "none"     // no rate that was tried keeps the goal
	RateUnjudged RateOutcome = "unjudged" // the server is too slow for any rate to be judged in trials of that length
)

// RateSearch keeps how a search for a rate ended, so that nobody has to read it out of a sentence.
type RateSearch struct {
	Outcome RateOutcome `json:"outcome"`
	TPS     float64     `json:"tps,omitempty"` // the rate found, transactions/s
}

// SearchEnd returns how the search for a rate ended. Records from before it was a field of its own have it in
// the words of Best only, which begins with the rate, or with "No rate".
func (f *Finish) SearchEnd() RateSearch {
	switch {
	case f == nil || f.RateSearch == nil && f.Best == "":
		return RateSearch{}
	case f.RateSearch != nil:
		return *f.RateSearch
	case strings.HasPrefix(f.Best, "No rate can be judged"):
		return RateSearch{Outcome: RateUnjudged}
	}
	number, _, _ := strings.Cut(f.Best, " ")
	tps, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if err != nil {
		return RateSearch{Outcome: RateNone}
	}
	return RateSearch{RateFound, tps}
}
