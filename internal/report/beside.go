package report

import (
	"cmp"
	"slices"
	"strings"

	"david/internal/result"
	"david/internal/stats"
)

// Style returns the style sheet of a report, for pages that are to look like one.
func Style() string { return pageStyle }

// ChartScript returns the library that draws a report's charts, Chart.js.
func ChartScript() string {
	// Without its last line, which names a map for debuggers that is not here.
	library, _, _ := strings.Cut(chartScript, "//# sourceMappingURL=")
	return library
}

// Comparisons returns what the trials that may be quoted say about the arms, workload by workload; nothing where none
// are compared.
func Comparisons(d Data) []stats.Comparison {
	if d.Experiment.Design.Control == "" {
		return nil
	}
	return comparisons(d)
}

// Pair is what two experiments say of one thing.
type Pair struct{ What, A, B string }

// Beside puts two experiments side by side: what was found, on what, of which arms, and the settings of the best arm
// of each.
func Beside(a, b Data) []Pair {
	x, y := Build(a), Build(b)
	var list []Pair
	for _, sides := range [][2]named{{x.summed(), y.summed()}, {x.armFigures(), y.armFigures()}, {valuesOf(x.best()), valuesOf(y.best())}} {
		list = append(list, abreast(sides[0], sides[1])...)
	}
	return list
}

// abreast puts the values of each name side by side.
func abreast(x, y named) (list []Pair) {
	for _, name := range names(x, y) {
		list = append(list, Pair{name, cmp.Or(x.value(name), none), cmp.Or(y.value(name), none)})
	}
	return list
}

// summed says what every experiment has.
func (r Report) summed() named {
	d := r.data
	e := d.Experiment
	return named{
		{"found", r.Headline.Big + r.Headline.Rest},
		{"how sure", sureLine(d, r.Headline)},
		{"server", serverName(e.Server) + " (" + target(e) + ")"},
		{"workload", strings.Join(describe(e.Workloads), "; ")},
		{"machine", cpu(e.Host.CPU) + "; " + memory(e.Host.Memory)},
		{"data on", filesystem(e.Host.Data)},
		{"command", "david " + command(e.Argv)},
		{"time", utilisation(d)},
	}
}

// named is a list of values with a name each.
type named [][2]string

func (n named) value(name string) string {
	for _, one := range n {
		if one[0] == name {
			return one[1]
		}
	}
	return ""
}

// names returns those of both lists, in their order.
func names(a, b named) (list []string) {
	for _, one := range slices.Concat(a, b) {
		if !slices.Contains(list, one[0]) {
			list = append(list, one[0])
		}
	}
	return list
}

// armFigures says what was measured of each arm that may be quoted.
func (r Report) armFigures() (list named) {
	d := r.data
	several := len(byWorkload(Quoted(d).Trials)) > 1
	for _, c := range r.comparisons {
		for _, a := range c.Arms {
			list = append(list, [2]string{"arm " + onLoad(a.Name, c.Workload, several), between(a.TPS, a.TPSInterval) + " transactions/s, p95 " + between(a.P95, a.P95Interval) +
				" ms, ratio " + ratioCell(a) + ", " + string(a.Verdict)})
		}
	}
	if list != nil {
		return list
	}
	for _, g := range byWorkload(d.Trials) {
		for _, x := range stats.RunsOf(d.Arms, g.trials) {
			list = append(list, [2]string{"arm " + onLoad(x.Arm, g.workload, several), number(x.TPS) + " transactions/s, p95 " + number(x.P95) + " ms"})
		}
	}
	return list
}

func onLoad(arm string, w result.Workload, several bool) string {
	if several {
		return arm + ", " + threadsAndRate(w)
	}
	return arm
}

// best is the arm that was found to be the fastest; the control where none is, and an empty one without any.
func (r Report) best() result.Arm {
	d := r.data
	name := d.Experiment.Design.Control
	if d.Finish != nil && d.armNamed(d.Finish.Best).Name != "" {
		return d.armNamed(d.Finish.Best)
	}
	most := 1.0
	for _, c := range r.comparisons {
		for _, a := range c.Arms {
			if a.Verdict == stats.Faster && a.Ratio > most {
				name, most = a.Name, a.Ratio
			}
		}
	}
	return d.armNamed(name)
}

// valuesOf has the settings of an arm, by name.
func valuesOf(a result.Arm) (list named) {
	for _, s := range a.Settings {
		list = append(list, [2]string{"my.cnf: " + s.Name, s.Value})
	}
	slices.SortFunc(list, func(x, y [2]string) int { return cmp.Compare(x[0], y[0]) })
	return list
}
