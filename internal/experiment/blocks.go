package experiment

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/stats"
	"david/internal/workload"
)

// OneBlock returns what a block of every workload is expected to take, with that many trials each.
func OneBlock(trials int, loads []result.Workload) time.Duration {
	var sum time.Duration
	for _, w := range loads {
		sum += time.Duration(trials) * expected(w)
	}
	return sum
}

// Run measures the arms under each of the workloads, in blocks, as the experiment's design says: a block has
// one trial of each arm, and where it says so a second one of the control, in random order, back to back.
// Every workload has its block before the next round begins, so that a drift of the machine meets them alike.
//
// Blocks that the store holds whole are not run again; one that was cut short is, as its trials must be
// neighbours in time.
func (e *Engine) Run(ctx context.Context, arms []result.Arm, loads []result.Workload) error {
	e.Report = quiet(e.Report)
	b := &blocks{Engine: e, design: e.Store.Experiment().Design, arms: arms, loads: loads}
	e.plan = newPlan(0, 0) // until it is known which trials there are
	if err := b.inspect(ctx); err != nil {
		return err
	}
	if err := b.begin(); err != nil {
		return err
	}
	for n := 1; ; n++ {
		more, err := b.more(n)
		if err != nil || !more {
			return err
		}
		for i := range loads {
			if err := b.run(ctx, n, i); err != nil {
				return err
			}
		}
	}
}

// blocks runs an experiment block by block.
type blocks struct {
	*Engine
	design result.Design
	arms   []result.Arm
	loads  []result.Workload
	done   map[string]result.Trial // by ID
}

// inspect starts each arm's server once before anything is measured: an arm that does not start, or that
// changes nothing, is better known before the first block than after it. A store that is gone on with has
// that already.
func (b *blocks) inspect(ctx context.Context) error {
	if b.design.Control == "" {
		return nil
	}
	known, err := b.Store.Arms()
	if err != nil {
		return err
	}
	if len(known) == len(b.arms) {
		b.arms = known
		return b.feasible()
	}
	control := b.index(b.design.Control)
	order := append([]int{control}, without(len(b.arms), control)...)
	for _, i := range order {
		var base *result.Arm
		if i != control {
			base = &b.arms[control]
			b.arms[i].Base = base.Name
		}
		if err := b.look(ctx, &b.arms[i], base); err != nil {
			return err
		}
	}
	b.merge()
	for _, a := range b.arms {
		if err := b.Store.PutArm(a); err != nil {
			return err
		}
	}
	return b.feasible()
}

// merge finds arms that come to the same on the live server, though they were asked for in other words: where
// no-ops are left out, the first of them runs for all.
func (b *blocks) merge() {
	for i := range b.arms {
		a := &b.arms[i]
		for _, first := range b.arms[:i] {
			if b.design.SkipNoops && first.Name != b.design.Control && b.runs(first) && b.runs(*a) && alike(first, *a) {
				a.Base, a.Noop = first.Name, true
			}
		}
	}
}

func alike(a, b result.Arm) bool {
	return len(mycnf.Diff(a.Effective, b.Effective)) == 0 && a.Ceiling == b.Ceiling && besides(a, b)
}

// besides tells whether all is the same of two arms but what their servers make of their settings.
func besides(a, b result.Arm) bool {
	return a.Caps == b.Caps && a.Server == b.Server && a.ClientCPUs == b.ClientCPUs && a.Tmpfs == b.Tmpfs && a.Pod == b.Pod && a.Path == b.Path &&
		slices.Equal(a.Kernel, b.Kernel) && a.Layout.Named() == b.Layout.Named()
}

func (b *blocks) index(name string) int {
	return slices.IndexFunc(b.arms, func(a result.Arm) bool { return a.Name == name })
}

func without(n, skip int) []int {
	var list []int
	for i := range n {
		if i != skip {
			list = append(list, i)
		}
	}
	return list
}

// look starts an arm's server, reads its configuration, and stops it.
func (b *blocks) look(ctx context.Context, arm, base *result.Arm) (err error) {
	j := trialJob{arm: arm, base: base, load: b.loads[0]}
	b.say(j, "trying its configuration")
	s, err := b.Target.Begin(ctx, *arm, j.load, b.Store.LogPath("inspect-"+arm.Name, "server"))
	if err == nil {
		err = b.readThrough(ctx, j, s)
	}
	b.plan.skipped()
	var start *sandbox.StartError
	switch {
	case ctx.Err() != nil: // interrupted: the server was not given the time to start
		return err
	case base != nil && errors.As(err, &start):
		arm.Infeasible = whyNot(start)
	case base != nil && errors.Is(err, ErrRefused):
		arm.Infeasible = err.Error()
	default:
		return err
	}
	b.emit(Event{Line: fmt.Sprintf("%-12s infeasible: %s", arm.Name, arm.Infeasible)})
	return nil
}

// whyNot returns the most telling of why a server did not start.
func whyNot(start *sandbox.StartError) string {
	if errors.Is(start, sandbox.ErrMemory) {
		return start.Cause.Error()
	}
	return start.Line()
}

func (b *blocks) readThrough(ctx context.Context, j trialJob, s Session) (err error) {
	defer func() { err = errors.Join(err, s.End(context.WithoutCancel(ctx))) }()
	conn, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	l, err := b.Engine.inspect(ctx, j, conn)
	if len(l.differ) > 0 && b.Equal && err == nil {
		return fmt.Errorf("%w: read back from its server, arm %s is not as durable as %s: %s; set it alike in both arms",
			ErrLock, j.arm.Name, j.base.Name, strings.Join(l.differ, "; "))
	}
	if len(l.differ) > 0 {
		b.emit(Event{Line: fmt.Sprintf("%-12s is not as durable as %s: no verdict will be given: %s", j.arm.Name, j.base.Name, l.differ[0])})
	}
	return err
}

// feasible makes sure that there is something to compare.
func (b *blocks) feasible() error {
	for _, a := range b.arms {
		if a.Name != b.design.Control && b.runs(a) {
			return nil
		}
	}
	others := without(len(b.arms), b.index(b.design.Control))
	if len(others) == 0 {
		return fmt.Errorf("nothing to compare: there is no arm besides %s: %w", b.design.Control, ErrRefused)
	}
	a := b.arms[others[0]]
	if a.Infeasible != "" {
		return fmt.Errorf("nothing to compare: the server does not run with arm %s: %s: %w", a.Name, a.Infeasible, ErrRefused)
	}
	return fmt.Errorf("nothing to compare: no effective variable of arm %s differs from %s's: %w", a.Name, b.design.Control, ErrRefused)
}

// runs tells whether an arm takes part in the blocks.
func (b *blocks) runs(a result.Arm) bool {
	return a.Infeasible == "" && !(a.Noop && b.design.SkipNoops)
}

// begin reads what the store holds already and plans the rest.
func (b *blocks) begin() error {
	trials, err := b.Store.Trials()
	if err != nil {
		return err
	}
	b.done = make(map[string]result.Trial, len(trials))
	for _, t := range trials {
		b.done[t.ID] = t
	}
	cells := len(b.cells(1, 0))
	block := cells * len(b.loads)
	n := b.design.Blocks
	if n == 0 {
		n = max(stats.MinBlocks, int(b.design.Budget/OneBlock(cells, b.loads).Seconds()))
	}
	b.plan = newPlan(max(0, n*block-len(trials)), OneBlock(1, b.loads)/time.Duration(len(b.loads)))
	return nil
}

// more tells whether block n is to be run.
func (b *blocks) more(n int) (bool, error) {
	if b.feasible() != nil { // all the others were killed for memory
		return false, nil
	}
	if b.design.Blocks > 0 {
		return n <= b.design.Blocks+b.replacements(n), nil
	}
	if n == 1 || b.whole(n) {
		return true, nil
	}
	arms, err := b.Store.Arms()
	if err != nil {
		return false, err
	}
	var trials []result.Trial
	spent := 0.0
	for _, t := range b.done {
		if t.Block < n { // those of a block that was cut short do not count
			trials = append(trials, t)
			spent += t.Took()
		}
	}
	slices.SortFunc(trials, func(x, y result.Trial) int { return x.Started.Compare(y.Started) })
	if b.design.Precision > 0 && precise(stats.Compare(b.design, arms, trials), b.design.Precision) {
		b.emit(Event{Line: fmt.Sprintf("every ratio is known within ±%.3g %% after %d blocks", 100*b.design.Precision, n-1)})
		return false, nil
	}
	next := spent / float64(n-1)
	if b.design.Budget > 0 && spent+next > b.design.Budget {
		b.emit(Event{Line: fmt.Sprintf("the budget is used up after %d blocks", n-1)})
		return false, nil
	}
	return true, nil
}

// replacements returns how many blocks before block n the arm that was disturbed most has no pair of, as its
// own trial or the control's do not count. Others are run in their place, as equivalence is shown by as many
// pairs as were planned for it, or not at all; half as many as planned at most.
func (b *blocks) replacements(n int) (most int) {
	if b.design.Margin == 0 {
		return 0
	}
	control, lost := map[int]bool{}, map[string]int{} // whether it has a valid trial in each block
	for _, t := range b.done {
		if ok, _ := t.Valid(); t.Arm == b.design.Control && t.Block < n {
			control[t.Block] = control[t.Block] || ok
		}
	}
	for _, t := range b.done {
		if ok, _ := t.Valid(); t.Arm != b.design.Control && t.Block < n && (!ok || !control[t.Block]) {
			lost[t.Arm]++
			most = max(most, lost[t.Arm])
		}
	}
	return min(most, b.design.Blocks/2)
}

func precise(list []stats.Comparison, precision float64) bool {
	return !slices.ContainsFunc(list, func(c stats.Comparison) bool { return !stats.Precise(c, precision) })
}

// blockCell places one trial in its block.
type blockCell struct {
	arm  int
	twin bool
}

// cells returns a block's trials in their random order. The order follows from the seed, the block and the
// workload alone, so that an experiment that is gone on with has the one it began with.
func (b *blocks) cells(n, load int) []blockCell {
	var list []blockCell
	for i, a := range b.arms {
		if !b.runs(a) {
			continue
		}
		list = append(list, blockCell{arm: i})
		if b.design.Twin && a.Name == b.design.Control {
			list = append(list, blockCell{i, true})
		}
	}
	r := rand.New(rand.NewPCG(b.design.Seed, uint64(n)<<32|uint64(load)))
	r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	return list
}

func (b *blocks) job(n, load, place int, c blockCell) trialJob {
	j := trialJob{arm: &b.arms[c.arm], block: n, place: place + 1, twin: c.twin, load: b.loads[load]}
	if b.design.Control != "" && j.arm.Name != b.design.Control {
		j.base = &b.arms[b.index(b.design.Control)]
	}
	return j
}

// whole tells whether the store holds every trial of block n under every workload.
func (b *blocks) whole(n int) bool {
	for i := range b.loads {
		if !b.complete(n, i) {
			return false
		}
	}
	return true
}

func (b *blocks) complete(n, load int) bool {
	for place, c := range b.cells(n, load) {
		if _, ok := b.done[b.id(b.job(n, load, place, c))]; !ok {
			return false
		}
	}
	return true
}

// run runs block n of a workload unless the store has it.
func (b *blocks) run(ctx context.Context, n, load int) error {
	if b.complete(n, load) {
		return nil
	}
	for place, c := range b.cells(n, load) {
		j := b.job(n, load, place, c)
		if !b.runs(*j.arm) { // killed for memory earlier in the block
			continue
		}
		t, err := b.trial(ctx, j)
		if err != nil {
			return err
		}
		if t == nil {
			continue
		}
		b.done[t.ID] = *t
		b.emit(Event{Line: trialLine(j, *t)})
	}
	return nil
}

// trial runs one trial. A server that ended in the middle of it makes it an invalid one, where there are
// others to compare. An arm that is killed for memory cannot be run at all: it has no trial from then on.
func (b *blocks) trial(ctx context.Context, j trialJob) (*result.Trial, error) {
	began := time.Now()
	t, err := b.Engine.run(ctx, j)
	switch {
	case j.base != nil && errors.Is(err, sandbox.ErrMemory):
		return nil, b.exclude(j, err)
	case errors.Is(err, workload.ErrQueueFull):
		return b.failed(j, result.GateQueue, err, began)
	case b.design.Control != "" && errors.Is(err, ErrEnded):
		return b.failed(j, result.GateServer, err, began)
	}
	if err == nil && b.design.Control == "" {
		err = b.Store.PutArm(*j.arm)
	}
	return t, err
}

// exclude puts on record why an arm cannot be run.
func (b *blocks) exclude(j trialJob, why error) error {
	j.arm.Infeasible = why.Error()
	b.emit(Event{Line: fmt.Sprintf("%-12s infeasible: %s", j.arm.Name, j.arm.Infeasible)})
	b.plan.skipped()
	return b.Store.PutArm(*j.arm)
}

// trialLine returns what the screen keeps of a finished trial.
func trialLine(j trialJob, t result.Trial) string {
	line := fmt.Sprintf("%s: %.1f transactions/s, p95 %.2f ms", label(j), t.TPS, t.Latency.P95)
	if ok, failed := t.Valid(); !ok {
		line += ", invalid: " + failed[0]
	}
	return line
}
