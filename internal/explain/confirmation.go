package explain

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"david/internal/result"
	"david/internal/stats"
)

// The arms of a confirming experiment.
const (
	AsMeasured = "as-measured"
	Changed    = "changed"
)

// Confirmation is a finding's confirming experiment and what came of it.
type Confirmation struct {
	Cause      Cause       `json:"cause"`
	Share      float64     `json:"share"`
	Supposed   bool        `json:"supposed,omitempty"` // the share is the first cause's: none was found for this one
	Question   string      `json:"question"`
	Expect     Expectation `json:"expect"`
	Expected   float64     `json:"expected_ratio"`
	Outcome    Outcome     `json:"outcome"`
	Judgement  Judgement   `json:"judgement"`
	Why        string      `json:"why"`
	Experiment string      `json:"experiment"` // its ID
}

// Conclude says what came of a finding's confirming experiment.
func Conclude(f Finding, e result.Experiment, arms []result.Arm, trials []result.Trial) (c Confirmation, err error) {
	c = Confirmation{Cause: f.Cause, Share: f.Share, Supposed: f.Supposed, Question: f.Confirm.Question, Expect: f.Confirm.Expect, Expected: f.Confirm.Ratio, Experiment: e.ID}
	if c.Outcome, err = outcome(e, arms, trials, waived(f.Cause)); err != nil {
		return c, err
	}
	c.Judgement, c.Why = f.Confirm.Judge(c.Outcome)
	return c, nil
}

// RoundTrip is the time of a statement that does nothing: of so many the median, between its quartiles.
type RoundTrip struct {
	Low, Median, High time.Duration
	Statements        int
}

// Ping confirms or refutes network round trips on a server of which nothing may be changed: the time of a
// statement that does nothing times the statements of a transaction is what the round trips of one take.
func Ping(f Finding, t result.Trial, r RoundTrip) Confirmation {
	c := Confirmation{Cause: f.Cause, Share: f.Share, Expect: "as long as found", Expected: 1,
		Question: "do statements that do nothing take as long as the round trips found?"}
	trips := t.QPS / t.TPS
	ms := func(d time.Duration) float64 { return 1000 * d.Seconds() }
	part := func(d time.Duration) float64 { return ms(d) * trips / f.Ms }
	c.Outcome = Outcome{Ratio: part(r.Median), Interval: [2]float64{part(r.Low), part(r.High)}, Pairs: r.Statements}
	c.Why = fmt.Sprintf("a statement that does nothing takes %.3f ms (half of %d: %.3f to %.3f), %.3g of them %.3f ms; %.3f ms were found", ms(r.Median), r.Statements,
		ms(r.Low), ms(r.High), trips, ms(r.Median)*trips, f.Ms)
	c.Judgement = judgePart(c.Outcome)
	return c
}

// judgePart: two thirds of what was found or more confirm a cause, less than a third refutes it.
func judgePart(o Outcome) Judgement {
	switch {
	case o.Ratio >= 2.0/3:
		return Confirmed
	case o.Ratio < 1.0/3:
		return Refuted
	}
	return Undecided
}

// telling is the share below which a cause's experiment would move throughput by less than can be seen.
const telling = 0.1

// Finding picks the one of that cause, or the first where cause is "". One that has next to no share, or
// none, is supposed to have the first one's: then its experiment can refute it.
func (e Explanation) Finding(in Input, cause Cause) (Finding, error) {
	if len(e.Findings) == 0 {
		return Finding{}, fmt.Errorf("trial %s has no finding to confirm", e.Trial)
	}
	first := e.Findings[0]
	if cause == "" {
		return first, nil
	}
	for _, f := range e.Findings {
		if f.Cause == cause && f.Share >= telling {
			return f, nil
		}
	}
	if !slices.Contains(Causes(), cause) {
		return Finding{}, fmt.Errorf("there is no cause %q (known: %v)", cause, Causes())
	}
	return Suppose(in, cause, first.Share), nil
}

// waived are the gates that the cause itself makes fail: a load generator short of CPU is what its experiment
// is about.
func waived(c Cause) []result.GateName {
	if c == ClientCPU {
		return []result.GateName{result.GateClientCPU}
	}
	return nil
}

// ErrNothing says that an experiment has no valid runs to conclude from.
var ErrNothing = errors.New("nothing can be concluded")

// outcome compares the changed arm, or the one under the changed load, with what was measured.
func outcome(e result.Experiment, arms []result.Arm, trials []result.Trial, waived []result.GateName) (Outcome, error) {
	arms, trials = slices.Clone(arms), slices.Clone(trials)
	var invalid []string
	for i := range trials {
		t := &trials[i]
		if t.Workload != e.Workloads[0] {
			t.Arm, t.Workload = Changed, e.Workloads[0]
		}
		t.Gates = slices.DeleteFunc(slices.Clone(t.Gates), func(g result.Gate) bool { return slices.Contains(waived, g.Name) })
		if ok, failed := t.Valid(); !ok {
			invalid = append(invalid, failed...)
		}
	}
	if len(arms) == 1 {
		arms = append(arms, result.Arm{Name: Changed, Base: arms[0].Name})
	}
	for i := range arms {
		arms[i].Ceiling = false // nobody claims that it is fast: it is asked what it shows
	}
	list := stats.Compare(result.Design{Control: AsMeasured, Slices: e.Design.Slices}, arms, trials)
	if len(list) == 0 {
		return Outcome{}, fmt.Errorf("%w from the experiment %s: %s", ErrNothing, e.ID, strings.Join(invalid, "; "))
	}
	got := list[0].Of(Changed)
	slices.Sort(invalid)
	return Outcome{Ratio: got.Ratio, Interval: got.Interval, Pairs: got.Pairs, Invalid: slices.Compact(invalid)}, nil
}

// Text says what came of it.
func (c Confirmation) Text() string {
	expected := string(c.Expect)
	if c.Expect == Faster || c.Expect == Slower {
		expected += fmt.Sprintf(", up to %.2fx", c.Expected)
	}
	share := fmt.Sprintf("%.0f %% of the time", math.Round(100*c.Share))
	if c.Supposed {
		share = "none found; supposed to be the " + share + " that the first cause has"
	}
	invalid := ""
	if len(c.Outcome.Invalid) > 0 {
		invalid = "Runs were left out: " + strings.Join(c.Outcome.Invalid, "; ") + "\n"
	}
	return fmt.Sprintf("%s (%s): %s Expected: %s. Seen: %s\n%s%s is %s.\n", c.Cause, share, c.Question, expected, c.Why,
		invalid, c.Cause, c.Judgement)
}
