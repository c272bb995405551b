package report

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// tuneDocument holds what the charts of a tune's phases show.
type tuneDocument struct {
	// Race compares the arms of the race with the control, the fastest first.
	Race []stats.Comparison `json:"race"`
	// Tried are the short trials after the race, and the arms that could not be run or need not, in their
	// order.
	Tried []attempt `json:"tried"`
	// Lines say what the winner's lines are worth, those without which it is slowest first; Untried were not
	// taken out on trial.
	Lines   []lineWorth `json:"lines"`
	Untried []string    `json:"untried,omitempty"`
	// Promised says what short trials had shown of the arms that were confirmed: their throughput over the
	// control's.
	Promised map[string]float64 `json:"promised,omitempty"`
}

// What became of an attempt.
const (
	incumbentRun = "incumbent" // the best so far, run again for others to be compared with
	tried        = "tried"
	infeasible   = "infeasible"
	noop         = "no-op"
	disturbed    = "invalid"
)

// attempt tells of a trial of screen, search or prune, or an arm of theirs that was not run.
type attempt struct {
	Phase result.Phase `json:"phase"`
	Arm   string       `json:"arm"`
	Title string       `json:"title"` // what it changed
	State string       `json:"state"`
	TPS   float64      `json:"tps"`
	P95   float64      `json:"p95_ms"`
	// Ratio is its throughput over that of the incumbent run beside it; 0 where there is none.
	Ratio float64 `json:"ratio"`
	// Level is Ratio times Best, which is what the incumbent had gained over the first one, by such ratios: a
	// chain of short trials.
	Level float64 `json:"level"`
	Best  float64 `json:"best"`
	Why   string  `json:"why,omitempty"` // it is infeasible, was not run, or does not count
}

// shown returns its ratio as it is read: none where a trial of the two does not count.
func (x attempt) shown() string {
	if x.State == disturbed {
		return none
	}
	return times(x.Ratio)
}

// became says what became of it.
func (x attempt) became() string {
	if x.State == incumbentRun {
		return "best so far, run again"
	}
	return x.State
}

// lineWorth tells what lines of the winner are worth that were taken out together.
type lineWorth struct {
	Lines []string `json:"lines"`
	// Ratio is the throughput without them over that with them, the mean of Ratios; 0 where it could not be
	// run.
	Ratio    float64        `json:"ratio"`
	Ratios   []float64      `json:"ratios"`   // by pair of short trials
	Interval stats.Interval `json:"interval"` // 95 %; zero with fewer than two pairs
	Pairs    int            `json:"pairs"`
	Why      string         `json:"why,omitempty"`
}

// history returns what a tune's charts show.
func history(d Data) *tuneDocument {
	d = honest(d)
	lines, untried := lineWorths(d)
	return &tuneDocument{Race: raceComparisons(d), Tried: attempts(d), Lines: lines, Untried: untried, Promised: promises(d)}
}

// raceComparisons returns the race's arms against the control, the fastest first.
func raceComparisons(d Data) []stats.Comparison {
	arms := slices.DeleteFunc(slices.Clone(d.Arms), func(a result.Arm) bool { return a.Phase != result.Race && a.Name != stats.Control })
	list := stats.Compare(d.Experiment.Design, arms, trialsOf(d, result.Race))
	for _, c := range list {
		slices.SortStableFunc(c.Arms, func(a, b stats.Arm) int { return descending(a.Ratio, b.Ratio) })
	}
	return list
}

// walk goes through the trials after the race with the incumbent in hand.
type walk struct {
	Data
	limit     float64 // of p95, ms; 0: none is known
	incumbent result.Trial
	levels    map[string]float64 // of each arm that ran
	best      float64
	list      []attempt
}

func attempts(d Data) []attempt {
	w := walk{Data: d, limit: limitP95(d), levels: map[string]float64{}, best: 1, list: []attempt{}}
	for _, phase := range []result.Phase{result.Screen, result.Search, result.Prune} {
		w.phase(phase)
	}
	return w.list
}

// phase puts arms that were not run where their turn was: before the first trial of an arm that came after
// them.
func (w *walk) phase(phase result.Phase) {
	next := 0
	idle := func(until int) {
		for ; next < until; next++ {
			if a := w.Arms[next]; a.Phase == phase && (a.Infeasible != "" || a.Noop) {
				w.idle(a)
			}
		}
	}
	for _, t := range trialsOf(w.Data, phase) {
		if at := slices.IndexFunc(w.Arms, func(a result.Arm) bool { return a.Name == t.Arm }); at >= 0 && w.Arms[at].Phase == phase {
			idle(at)
		}
		w.trial(t)
	}
	idle(len(w.Arms))
}

func (w *walk) idle(a result.Arm) {
	x := attempt{Phase: a.Phase, Arm: a.Name, Title: a.Title, State: infeasible, Best: w.best, Why: a.Infeasible}
	if a.Infeasible == "" {
		x.State, x.Why = noop, "its server is the same as "+a.Base+"'s: not run"
	}
	w.list = append(w.list, x)
}

// trial takes the first of a block for the incumbent, and holds the others against it. A removal that was
// accepted made no difference: the level stays.
func (w *walk) trial(t result.Trial) {
	x := attempt{Phase: t.Phase, Arm: t.Arm, Title: titleOf(w.Arms, t.Arm), State: tried, TPS: t.TPS, P95: t.Latency.P95}
	if t.Block != w.incumbent.Block {
		w.incumbent = t
		if level, ok := w.levels[t.Arm]; ok {
			w.best = level
		}
		x.State, x.Title = incumbentRun, "the best so far, run again"
	}
	x.Best, x.Ratio = w.best, over(t, w.incumbent, metric(w.Data))
	x.Level = x.Ratio * w.best
	if t.EndedEarly != "" {
		x.Why = "ended early " + t.EndedEarly
	}
	switch {
	case wrong(t) != "":
		x.State, x.Why = disturbed, "invalid: "+wrong(t)
	case wrong(w.incumbent) != "":
		x.State, x.Why = disturbed, "the run of the best so far beside it is invalid"
	case x.State == tried && w.limit > 0 && t.Latency.P95 > w.limit:
		x.State, x.Why = infeasible, fmt.Sprintf("p95 of %.2f ms, at most %.2f are allowed", t.Latency.P95, w.limit)
	}
	w.list = append(w.list, x)
	if x.State == tried {
		w.levels[t.Arm] = x.Level
		if t.Phase == result.Prune {
			w.levels[t.Arm] = w.best
		}
	}
}

// wrong says which gates took a short trial out of the search.
func wrong(t result.Trial) string {
	_, failed := t.Valid()
	return strings.Join(failed, "; ")
}

// limitP95 returns the highest p95, in ms, that a winner may have: so many times the control's median in the
// race.
func limitP95(d Data) float64 {
	var list []float64
	for _, t := range trialsOf(d, result.Race) {
		if t.Arm == stats.Control && wrong(t) == "" {
			list = append(list, t.Latency.P95)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return d.Experiment.Design.Tune.MaxP95 * list[(len(list)-1)/2]
}

// lineWorths returns what the winner's lines are worth, each by the last removal that it was part of, and the
// lines that were never taken out.
func lineWorths(d Data) (list []lineWorth, untried []string) {
	list = []lineWorth{}
	seen := map[int]bool{}
	for _, name := range winnersLines(d) {
		at := lastRemoval(d.Pruned, name)
		if at < 0 {
			untried = append(untried, name)
		} else if !seen[at] {
			seen[at] = true
			w := d.Pruned[at]
			list = append(list, lineWorth{w.Lines, w.Ratio, w.Ratios, stats.RatioInterval(w.Ratios), w.Pairs, w.Why})
		}
	}
	slices.SortStableFunc(list, func(a, b lineWorth) int { return descending(b.Ratio, a.Ratio) })
	return list, untried
}

func lastRemoval(pruned []result.Worth, name string) int {
	for i, w := range slices.Backward(pruned) {
		if !w.Dropped && slices.Contains(w.Lines, name) {
			return i
		}
	}
	return -1
}

// winnersLines returns the variables that the arm to be confirmed sets and the control does not, or not so.
func winnersLines(d Data) (list []string) {
	arm := func(is func(result.Arm) bool) (a result.Arm) {
		if i := slices.IndexFunc(d.Arms, is); i >= 0 {
			a = d.Arms[i]
		}
		return a
	}
	control := values(arm(func(a result.Arm) bool { return a.Name == stats.Control }))
	for _, s := range arm(func(a result.Arm) bool { return a.Phase == result.Confirm }).Settings {
		if old, ok := control[s.Name]; !ok || old != s.Value {
			list = append(list, s.Name)
		}
	}
	return list
}

// values returns an arm's settings by their variables.
func values(a result.Arm) map[string]string {
	m := map[string]string{}
	for _, s := range a.Settings {
		m[s.Name] = s.Value
	}
	return m
}

// promises returns what short trials had shown of the arms that were confirmed: of a rival the race, of the
// winner the fastest trial. None where nothing was confirmed.
func promises(d Data) map[string]float64 {
	list := map[string]float64{}
	for _, t := range trialsOf(d, result.Confirm) {
		if t.Arm != stats.Control {
			list[t.Arm] = 0
		}
	}
	for _, c := range raceComparisons(d) {
		for _, a := range c.Arms {
			if _, ok := list[a.Name]; ok {
				list[a.Name] = a.Ratio
			}
		}
	}
	for name, ratio := range list {
		if ratio == 0 {
			list[name] = promised(d)
		}
		if list[name] == 0 {
			delete(list, name)
		}
	}
	return list
}

// promiseLine says what short trials had shown of those that were confirmed.
func promiseLine(d Data) string {
	list := promises(d)
	var parts []string
	for _, a := range d.Arms {
		if x := list[a.Name]; x > 0 {
			parts = append(parts, a.Name+" "+fixed(x, 2)+"x")
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "the short trials had shown " + strings.Join(parts, ", ") + ": they look for the winner, and prove nothing"
}

// rivalLine says how the best rival stands to what is handed over, where both were confirmed: the control is
// not the only one to beat. Where the rival is handed over, it is david's own find that stands beside it.
func rivalLine(d Data) string {
	if d.Finish == nil || d.Finish.Best == stats.Control {
		return ""
	}
	for _, c := range stats.Compare(result.Design{Control: d.Finish.Best, Tune: d.Experiment.Design.Tune}, d.Arms, trialsOf(d, result.Confirm)) {
		for _, a := range c.Arms {
			if a.Name != stats.Control && a.Name != c.Control && a.Ratio > 0 {
				what := "the best rival"
				if i := slices.IndexFunc(d.Arms, func(x result.Arm) bool { return x.Name == a.Name && x.Phase == result.Confirm }); i >= 0 {
					what = "which david had found itself"
				}
				return fmt.Sprintf("%s, %s, beside %s: %s [95 %%], %s", a.Name, what, c.Control, ratioCell(a), a.Verdict)
			}
		}
	}
	return ""
}
