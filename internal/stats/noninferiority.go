package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Standing tells how a control that is somebody's own configuration stands to the arms that it was compared
// with: whether it is worse than one of them by more than Margin (non-inferiority).
type Standing struct {
	Own    string  `json:"own"`    // what the control runs with: "my.cnf"
	Margin float64 `json:"margin"` // 0.03 is 3 %
	// Of says how many arms it was held against, those without a verdict included; NotWorse and Faster say of
	// how many it was shown that the control is not worse, or that it is faster.
	Of       int `json:"of"`
	NotWorse int `json:"not_worse"`
	Faster   int `json:"faster"`
	// Widest names the arm whose ratio is known worst, and Interval is that ratio's; "" where none has an
	// interval.
	Widest   string     `json:"widest,omitempty"`
	Interval Interval   `json:"widest_interval"`
	Against  []Opponent `json:"against"` // in the order of the arms
}

// Opponent tells of an arm that the control is held against. Numbers are 0, and left out of JSON, where there
// are none.
type Opponent struct {
	Arm      string   `json:"arm"`
	Ratio    float64  `json:"ratio,omitempty"`   // its throughput over the control's
	Interval Interval `json:"interval,omitzero"` // of Ratio, 95 %, not corrected
	// AtMost is the upper end of Ratio's interval, corrected for the number of arms.
	AtMost   float64 `json:"at_most,omitempty"`
	NotWorse bool    `json:"not_worse"` // AtMost is below 1 / (1 - Margin)
	Faster   bool    `json:"faster"`    // the arm's verdict is that it is slower
	Verdict  Verdict `json:"verdict"`   // the arm's
}

// noninferiority holds the control against every other arm. Of each the hypothesis that its ratio is 1 / (1 -
// Margin) or more is tested at the level of the upper end of a 95 % interval, step down by Holm: with n arms,
// the one that is refused most surely at an n-th of the level, the next at an (n-1)-th, and none after the
// first that is not refused. Arms that cannot be run, that are the same as another, and those that have not
// run are held against nothing.
func noninferiority(own string, c Comparison) Standing {
	s := Standing{Own: own, Margin: Margin, Against: []Opponent{}}
	var judged []int
	for _, a := range c.Arms {
		if a.Name == c.Control {
			continue
		}
		s.Against = append(s.Against, Opponent{Arm: a.Name, Ratio: a.Ratio, Interval: a.Interval, Faster: a.Verdict == Slower, Verdict: a.Verdict})
		if a.judged() {
			judged = append(judged, len(s.Against)-1)
		}
	}
	s.bound(c, judged)
	for i := range s.Against {
		s.count(s.Against[i])
	}
	return s
}

// judged tells whether an arm has a verdict that its numbers gave.
func (a Arm) judged() bool {
	return a.Verdict == Faster || a.Verdict == Slower || a.Verdict == Equivalent || a.Verdict == Undecided
}

// bound finds the upper ends, step down.
func (s *Standing) bound(c Comparison, judged []int) {
	means := map[string]logMean{}
	for _, a := range c.Arms {
		means[a.Name] = a.log
	}
	limit := -math.Log(1 - Margin)
	slices.SortStableFunc(judged, func(i, j int) int {
		return cmp.Compare(means[s.Against[i].Arm].atLeast(limit), means[s.Against[j].Arm].atLeast(limit))
	})
	open := len(judged) // hypotheses that are not refused yet
	for _, i := range judged {
		o := &s.Against[i]
		o.AtMost = math.Exp(means[o.Arm].upper((1 - confidence) / 2 / float64(open)))
		if o.NotWorse = o.AtMost < math.Exp(limit); o.NotWorse {
			open--
		}
	}
}

// count adds an opponent to the sums.
func (s *Standing) count(o Opponent) {
	if o.Verdict == Infeasible || o.Verdict == Noop || o.Verdict == NotRun {
		return
	}
	s.Of++
	if o.NotWorse {
		s.NotWorse++
	}
	if o.Faster {
		s.Faster++
	}
	if o.Interval != (Interval{}) && (s.Widest == "" || o.Interval.width() > s.Interval.width()) {
		s.Widest, s.Interval = o.Arm, o.Interval
	}
}

// width takes the logarithm of the upper over the lower end.
func (i Interval) width() float64 { return math.Log(i[1] / i[0]) }

// String sums it up in a line.
func (s Standing) String() string {
	line := fmt.Sprintf("%s is non-inferior (margin %.0f %%) to %d of %s, and faster than %d", s.Own, 100*s.Margin, s.NotWorse, count(s.Of, "baseline"), s.Faster)
	if s.Of > 1 {
		line += fmt.Sprintf("; corrected for %d comparisons", s.Of)
	}
	if s.Widest != "" {
		line += fmt.Sprintf("; the widest interval is that of %s, %.3f to %.3f", s.Widest, s.Interval[0], s.Interval[1])
	}
	return line + s.without()
}

// without names those that were held against nothing.
func (s Standing) without() (text string) {
	for _, v := range []Verdict{Infeasible, Noop, Invalid, NotRun} {
		var names []string
		for _, o := range s.Against {
			if o.Verdict == v {
				names = append(names, o.Arm)
			}
		}
		if len(names) > 0 {
			text += fmt.Sprintf("; %s: %s", v, strings.Join(names, ", "))
		}
	}
	return text
}
