package lab

import (
	"cmp"
	"slices"
	"time"

	"david/internal/explain"
	"david/internal/mycnf"
	"david/internal/result"
)

// How often both are run unless told otherwise: rounds of slices, and blocks of trials.
const (
	confirmRounds = 12
	confirmBlocks = 5
	// leastWarmup of a server that stays up, in seconds: a slice of a tune was not warmed up by itself.
	leastWarmup = 5
	// confirmProbes are how often each path is measured alone.
	confirmProbes = 1
)

// Confirm asks for the experiment that shows whether a finding is right.
type Confirm struct {
	Of     explain.Input // in which it was found
	Target string        // where that ran
	Change explain.Confirm
	Blocks int  // rounds of slices, or blocks of trials; 0: as many as is usual
	Trials bool // each on a fresh server, instead of slices
}

// Request asks for the trial's own arm and workload, and both with the change: two arms in slices or in
// trials, or where the load is changed two workloads, in trials.
func (c Confirm) Request() (Request, error) {
	x := c.Change
	switch {
	case c.Target != result.TargetSandbox:
		return Request{}, refuse("cannot confirm this on a server that is not david's, as nothing of it is changed (network round trips and bandwidth can be: give --dsn); the experiment would be: %s", x.Question)
	case c.Of.Arm.Path != (result.Path{}) && x.Path == nil && x.Workload == nil: // all paths lead to one server
		return Request{}, refuse("cannot compare two servers over one network path: measure the workload with david bench, and confirm it there; the experiment would be: %s", x.Question)
	case x.Socket: // the arms of an experiment are reached in the same way
		return Request{}, refuse("cannot compare TCP with a socket in one experiment: run the same david bench without --tcp, and hold the two against each other with david explain A B")
	case c.Of.Arm.Ceiling:
		return Request{}, refuse("cannot confirm what was measured with durability off, as no server is to be run: name the measured arm, as in %s/ARM", c.Of.Experiment)
	case !x.Runs():
		return Request{}, refuse("cannot run this experiment: %s", x.Question)
	}
	before := Arm{Name: explain.AsMeasured, Title: "as it was measured", Sets: assignments(c.Of.Arm.Settings), Caps: c.Of.Arm.Caps, Path: c.Of.Arm.Path}
	q := Request{Kind: result.KindExplain, Title: x.Question, Server: c.Of.Server.Path, Loads: []result.Workload{c.Of.Trial.Workload}, Design: result.Design{Blocks: cmp.Or(c.Blocks, confirmBlocks)},
		CrossFlavour: true, Fresh: true, TCP: c.Of.Arm.Effective["skip_networking"] == "OFF"} // reached as it was measured
	if x.Workload != nil {
		q.Arms, q.Loads = []Arm{before}, append(q.Loads, *x.Workload)
		return q, nil
	}
	after := before
	after.Name, after.Title, after.ClientCPUs, after.Ceiling = explain.Changed, x.Question, x.ClientCPUs, x.Unsafe
	after.Sets = append(slices.Clip(after.Sets), assignments(x.Settings)...)
	if x.Caps != nil {
		after.Caps = *x.Caps
	}
	if x.Path != nil {
		after.Path, q.Probes = *x.Path, confirmProbes
	}
	q.Arms, q.Design.Control = []Arm{before, after}, explain.AsMeasured
	if !c.Trials {
		q.Instead = Trials{Seconds: q.Loads[0].Seconds, Blocks: q.Design.Blocks}
		q.Loads[0].Seconds, q.Loads[0].Warmup = int(SliceTime/time.Second), max(q.Loads[0].Warmup, leastWarmup)
		q.Design.Blocks, q.Design.Slices = cmp.Or(c.Blocks, confirmRounds), &result.Slices{Seconds: q.Loads[0].Seconds, Incarnations: LeastIncarnations}
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
