package tune

import (
	"fmt"
	"math"
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/stats"
)

// Pruned returns what the prune phase found, in the order in which it was tried.
func (p Plan) Pruned(h History) (list []result.Worth) {
	h.Arms, h.Trials = result.WithoutCeilings(h.Arms, h.Trials)
	st := newState(p, h)
	st.race()
	st.screen()
	for _, a := range h.Arms {
		if a.Phase != result.Prune {
			continue
		}
		logs := st.logs(result.Prune, a.Name, a.Base)
		w := result.Worth{Lines: missing(st.arms[a.Base], a), Pairs: len(logs), Why: a.Infeasible}
		if len(logs) > 0 {
			w.Ratio = math.Exp(stats.Mean(logs))
		}
		for _, x := range logs {
			w.Ratios = append(w.Ratios, math.Exp(x))
		}
		w.Dropped = st.removed(a.Name, true) == dropped
		list = append(list, w)
	}
	return list
}

// missing returns the variables that one arm sets and the other does not, or not so.
func missing(from, in result.Arm) (list []string) {
	for _, s := range from.Settings {
		if !slices.ContainsFunc(in.Settings, func(x mycnf.Setting) bool { return x.Name == s.Name && x.Value == s.Value }) {
			list = append(list, s.Name)
		}
	}
	return list
}

// Changed returns the lines of Winner that the control's own settings do not have, or not so.
func (p Plan) Changed(h History, best string) []mycnf.Setting {
	return slices.DeleteFunc(p.Winner(h, best), func(s mycnf.Setting) bool {
		return slices.ContainsFunc(p.Control.Settings, func(own mycnf.Setting) bool { return own.Name == s.Name && own.Value == s.Value })
	})
}

// Winner returns the settings of an arm that matter: the control's own, and those whose effective value
// differs from what the control's server did without them, each with what its removal was measured to cost.
func (p Plan) Winner(h History, best string) []mycnf.Setting {
	st := newState(p, h)
	lines := slices.Clone(p.Control.Settings)
	if best == stats.Control {
		return lines
	}
	pruned := p.Pruned(h)
	for _, s := range st.lean(st.arms[best]) {
		switch {
		case st.bears(st.arms[best], s.Name):
			s.Effect = "not taken out on trial: without it the memory would not hold all connections"
		case best != WinnerName:
			s.Effect = "not taken out on trial: the pruning was of another configuration"
		default:
			s.Effect = effectOf(s.Name, pruned, stats.MetricOf(&p.TunePlan))
		}
		lines = rules.Merge(lines, []mycnf.Setting{s})
	}
	return lines
}

// effectOf says what a line is worth, by the last removal that it was part of.
func effectOf(name string, pruned []result.Worth, metric stats.Metric) string {
	for _, w := range slices.Backward(pruned) {
		if !slices.Contains(w.Lines, name) || w.Dropped {
			continue
		}
		together := ""
		if n := len(w.Lines); n > 1 {
			together = fmt.Sprintf(" and %d other lines", n-1)
		}
		switch {
		case w.Ratio == 0 && w.Why == "":
			return "without it" + together + " every trial was disturbed: it stays unjudged"
		case w.Ratio == 0:
			return "without it" + together + " the server could not be run: " + w.Why
		}
		if metric == stats.ByP99 {
			return fmt.Sprintf("without it%s %.2fx the p99 latency (%d short pairs, no interval)", together, 1/w.Ratio, w.Pairs)
		}
		return fmt.Sprintf("without it%s %.2fx the throughput (%d short pairs, no interval)", together, w.Ratio, w.Pairs)
	}
	return "not taken out on trial: there was no time for it"
}

// Recorded returns the plan of a tune on record; false for anything else.
func Recorded(e result.Experiment, arms []result.Arm) (p Plan, ok bool) {
	i := slices.IndexFunc(arms, func(a result.Arm) bool { return a.Name == stats.Control })
	if e.Design.Tune == nil || i < 0 || len(e.Workloads) == 0 {
		return p, false
	}
	v, err := mycnf.ParseVersion(e.Server.Version)
	if err != nil {
		return p, false
	}
	w := e.Workloads[0]
	p = Plan{TunePlan: *e.Design.Tune, Control: arms[i]}
	p.Problem = rules.Problem{Flavour: e.Server.Flavour, Version: v, PageSize: 16 << 10, Threads: w.Threads, Tables: w.Tables, Seed: p.Seed, Sandbox: true}.On(p.Machine)
	return p, true
}
