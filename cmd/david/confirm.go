package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"david/internal/explain"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// The arms of a confirming experiment.
const (
	asMeasured = "as-measured"
	changed    = "changed"
)

// confirmation is a finding's confirming experiment and what came of it.
type confirmation struct {
	Cause      explain.Cause       `json:"cause"`
	Share      float64             `json:"share"`
	Supposed   bool                `json:"supposed,omitempty"` // the share is the first cause's: none was found for this one
	Question   string              `json:"question"`
	Expect     explain.Expectation `json:"expect"`
	Expected   float64             `json:"expected_ratio"`
	Outcome    explain.Outcome     `json:"outcome"`
	Judgement  explain.Judgement   `json:"judgement"`
	Why        string              `json:"why"`
	Experiment string              `json:"experiment"` // its ID
}

// telling is the share below which a cause's experiment would move throughput by less than can be seen.
const telling = 0.1

// finding picks the one of that cause, or the first where cause is "". One that has next to no share, or none, is supposed to
// have the first one's: then its experiment can refute it.
func finding(in explain.Input, e explain.Explanation, cause string) (explain.Finding, error) {
	if len(e.Findings) == 0 {
		return explain.Finding{}, usage("trial %s has no finding to confirm", e.Trial)
	}
	first := e.Findings[0]
	if cause == "" {
		return first, nil
	}
	for _, f := range e.Findings {
		if string(f.Cause) == cause && f.Share >= telling {
			return f, nil
		}
	}
	if !slices.Contains(explain.Causes(), explain.Cause(cause)) {
		return explain.Finding{}, usage("there is no cause %q (known: %v)", cause, explain.Causes())
	}
	return explain.Suppose(in, explain.Cause(cause), first.Share), nil
}

// confirmation runs what shows whether a finding is right.
func (a *app) confirmation(ctx context.Context, c choice, found explain.Finding, f explainFlags) (confirmation, error) {
	if c.target == "remote" && found.Cause == explain.Network && (f.dsn != "" || f.defaultsFile != "") {
		return a.pinged(ctx, c, found, f)
	}
	return a.confirm(ctx, c, found, f)
}

// confirm runs a finding's experiment: the trial's own arm and workload, and both with the change, in rounds
// of slices or in blocks.
func (a *app) confirm(ctx context.Context, c choice, f explain.Finding, flags explainFlags) (confirmation, error) {
	out := confirmation{Cause: f.Cause, Share: f.Share, Supposed: f.Supposed, Question: f.Confirm.Question, Expect: f.Confirm.Expect, Expected: f.Confirm.Ratio}
	q, err := confirming(c, f.Confirm, flags)
	if err != nil {
		return out, err
	}
	store, err := a.run(ctx, q)
	if err != nil {
		return out, err
	}
	if out.Outcome, err = outcome(store, waived(f.Cause)); err != nil {
		return out, err
	}
	out.Experiment = store.Experiment().ID
	out.Judgement, out.Why = f.Confirm.Judge(out.Outcome)
	return out, nil
}

// How often both are run unless told otherwise: rounds of slices, and blocks of trials.
const (
	confirmRounds = 12
	confirmBlocks = 5
	// leastWarmup of a server that stays up, in seconds: a slice of a tune was not warmed up by itself.
	leastWarmup = 5
)

// confirming is the experiment as a question: two arms in slices or in trials, or where the change is one of
// the load, two workloads, in trials.
func confirming(c choice, x explain.Confirm, f explainFlags) (lab.Request, error) {
	switch {
	case c.target != "sandbox":
		return lab.Request{}, usage("cannot confirm this on a server that is not david's, as nothing of it is changed (network round trips can be: give --dsn); the experiment would be: %s", x.Question)
	case x.Socket: // the arms of an experiment are reached in the same way
		return lab.Request{}, usage("cannot compare TCP with a socket in one experiment: run the same david bench without --tcp, and hold the two against each other with david explain A B")
	case c.Arm.Ceiling:
		return lab.Request{}, usage("cannot confirm what was measured at light speed, which no server is to be run at: name the measured arm, as in %s/ARM", c.Experiment)
	case !x.Runs():
		return lab.Request{}, usage("cannot run this experiment: %s", x.Question)
	}
	before := lab.Arm{Name: asMeasured, Title: "as it was measured", Sets: assignments(c.Arm.Settings), Caps: c.Arm.Caps}
	q := lab.Request{Kind: result.KindExplain, Title: x.Question, Server: c.Server.Path, Loads: []result.Workload{c.Trial.Workload}, Design: result.Design{Blocks: cmp.Or(f.blocks, confirmBlocks)},
		CrossFlavour: true, Fresh: true, TCP: c.Arm.Effective["skip_networking"] == "OFF"} // reached as it was measured
	if x.Workload != nil {
		q.Arms, q.Loads = []lab.Arm{before}, append(q.Loads, *x.Workload)
		return q, nil
	}
	after := before
	after.Name, after.Title, after.ClientCPUs, after.Ceiling = changed, x.Question, x.ClientCPUs, x.Unsafe
	after.Sets = append(slices.Clip(after.Sets), assignments(x.Settings)...)
	if x.Caps != nil {
		after.Caps = *x.Caps
	}
	q.Arms, q.Design.Control = []lab.Arm{before, after}, asMeasured
	if !f.trials {
		q.Instead = lab.Trials{Seconds: q.Loads[0].Seconds, Blocks: q.Design.Blocks}
		q.Loads[0].Seconds, q.Loads[0].Warmup = int(sliceTime/time.Second), max(q.Loads[0].Warmup, leastWarmup)
		q.Design.Blocks, q.Design.Slices = cmp.Or(f.blocks, confirmRounds), &result.Slices{Seconds: q.Loads[0].Seconds, Incarnations: leastIncarnations}
	}
	return q, nil
}

// assignments are settings as --set takes them.
func assignments(settings []mycnf.Setting) (list []string) {
	for _, s := range settings {
		if s.Value == "" {
			list = append(list, s.Name)
		} else {
			list = append(list, s.Name+"="+s.Value)
		}
	}
	return list
}

// waived are the gates that the cause itself makes fail: a load generator short of CPU is what its experiment is about.
func waived(c explain.Cause) []result.GateName {
	if c == explain.ClientCPU {
		return []result.GateName{result.GateClientCPU}
	}
	return nil
}

// outcome compares the changed arm, or the one under the changed load, with what was measured.
func outcome(store *result.Store, waived []result.GateName) (explain.Outcome, error) {
	arms, err := store.Arms()
	if err != nil {
		return explain.Outcome{}, err
	}
	trials, err := store.Trials()
	if err != nil {
		return explain.Outcome{}, err
	}
	e := store.Experiment()
	var invalid []string
	for i := range trials {
		t := &trials[i]
		if t.Workload != e.Workloads[0] {
			t.Arm, t.Workload = changed, e.Workloads[0]
		}
		t.Gates = slices.DeleteFunc(t.Gates, func(g result.Gate) bool { return slices.Contains(waived, g.Name) })
		if ok, failed := t.Valid(); !ok {
			invalid = append(invalid, failed...)
		}
	}
	if len(arms) == 1 {
		arms = append(arms, result.Arm{Name: changed, Base: arms[0].Name})
	}
	for i := range arms {
		arms[i].Ceiling = false // nobody claims that it is fast: it is asked what it shows
	}
	list := stats.Compare(result.Design{Control: asMeasured, Slices: e.Design.Slices}, arms, trials)
	if len(list) == 0 {
		return explain.Outcome{}, codedError{exitInvalid, fmt.Errorf("nothing can be concluded from the experiment %s: %s", e.ID, strings.Join(invalid, "; "))}
	}
	got := verdictOn(list[0], changed)
	slices.Sort(invalid)
	return explain.Outcome{Ratio: got.Ratio, Interval: got.Interval, Pairs: got.Pairs, Invalid: slices.Compact(invalid)}, nil
}

// text says what came of it.
func (c confirmation) text() string {
	expected := string(c.Expect)
	if c.Expect == explain.Faster || c.Expect == explain.Slower {
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
