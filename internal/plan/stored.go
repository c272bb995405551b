package plan

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// CostsOf reads what an experiment says that parts cost in throughput: of david podtax a Guaranteed pod, of david
// network measure its paths, of david storage measure a stripe or an image of a Ceph pool. It is empty where
// nothing of that was measured, or no verdict may rest on it.
func CostsOf(e result.Experiment, arms []result.Arm, trials []result.Trial) []Cost {
	list := stats.Compare(e.Design, arms, trials)
	if len(list) == 0 {
		return nil
	}
	of := stored{e, arms, list[0]}
	var costs []Cost
	for _, read := range []func() (Cost, bool){of.pod, of.paths, of.stripes, of.ceph} {
		if c, ok := read(); ok {
			c.Measured, c.Source, c.Date = true, "measured: experiment "+e.ID, e.Created.Format("2006-01-02")
			costs = append(costs, c)
		}
	}
	return costs
}

// TellsCosts tells whether an arm is one of which CostsOf may say something.
func TellsCosts(a result.Arm) bool { return a.Pod.QoS != "" || a.Path.Kind != "" || a.Layout != nil }

// stored is an experiment of which costs are read.
type stored struct {
	experiment result.Experiment
	arms       []result.Arm
	comparison stats.Comparison
}

// fewestPairs make an interval that says something.
const fewestPairs = 3

// says tells an arm's throughput as a share of its control's; "" where nothing may be said.
func (s stored) says(name string) (text string, a stats.Arm) {
	a = s.comparison.Of(name)
	if a.Verdict == stats.Invalid || a.Verdict == stats.IsControl || a.Pairs < fewestPairs || a.Interval == (stats.Interval{}) {
		return "", a
	}
	return fmt.Sprintf("%.3f [%.3f, %.3f]", a.Ratio, a.Interval[0], a.Interval[1]), a
}

func (s stored) pod() (c Cost, ok bool) {
	if s.experiment.Kind != result.KindPodTax {
		return c, false
	}
	for _, arm := range s.arms {
		text, a := s.says(arm.Name)
		if arm.Pod.QoS == "Guaranteed" && text != "" {
			c = Cost{What: podPart, Ratio: a.Ratio, Low: a.Interval[0], High: a.Interval[1]}
			c.Says = fmt.Sprintf("%s of the process's throughput (%s), Guaranteed, %s, %d pairs; counted in the plan", text, capped(arm.Caps), s.load(), a.Pairs)
			return c, true
		}
	}
	return c, false
}

func capped(c result.Caps) string {
	if c == (result.Caps{}) {
		return "not capped"
	}
	return c.Text()
}

func (s stored) load() string { return s.comparison.Workload.Name }

// of lists what an experiment says of some of its arms, beside its control.
func (s stored) of(wanted func(result.Arm) bool) (list []string, pairs int) {
	for _, arm := range s.arms {
		text, a := s.says(arm.Name)
		if text != "" && wanted(arm) {
			list, pairs = append(list, arm.Name+" "+text), max(pairs, a.Pairs)
		}
	}
	return list, pairs
}

func (s stored) paths() (Cost, bool) {
	list, pairs := s.of(func(a result.Arm) bool { return a.Path.Kind != "" })
	return Cost{What: pathPart, Says: fmt.Sprintf("of the throughput of %s: %s (%s, %d rounds at most, namespaces of this machine)", s.comparison.Control, strings.Join(list, ", "), s.load(), pairs)}, len(list) > 0
}

func (s stored) stripes() (Cost, bool) { return s.layouts(stripePart, "stripe") }

func (s stored) ceph() (Cost, bool) { return s.layouts(cephPart, "ceph-rbd") }

// layouts tells what a kind of layout makes of the control's throughput.
func (s stored) layouts(part, kind string) (Cost, bool) {
	list, pairs := s.of(func(a result.Arm) bool { return a.Layout != nil && a.Layout.Kind == kind })
	return Cost{What: part, Says: fmt.Sprintf("of the transactions of %s (%s): %s (%s, %d rounds at most)", s.comparison.Control, s.each(), strings.Join(list, ", "), s.load(), pairs)}, len(list) > 0
}

// each tells what the control's volume may do.
func (s stored) each() string {
	i := slices.IndexFunc(s.arms, func(a result.Arm) bool { return a.Name == s.comparison.Control })
	if i < 0 || s.arms[i].Caps.IOPS == 0 {
		return "not capped"
	}
	return price.Number(float64(s.arms[i].Caps.IOPS)) + " IOPS"
}

// LayoutDensities lists how many writes a second fio got out of each layout of an experiment, for each GB of the
// data that lay on it.
func LayoutDensities(e result.Experiment, arms []result.Arm) (list []Density) {
	if len(e.Workloads) == 0 {
		return nil
	}
	w := e.Workloads[0]
	gb := float64(w.Tables) * float64(w.TableSize) * BytesPerRow / 1e9
	for _, a := range arms {
		r, ok := a.Layout.Rate(result.RandomWrite, page, false)
		if !ok || len(r.IOPS) == 0 || gb == 0 {
			continue
		}
		writes := stats.GeoMean(r.IOPS)
		d := density("measured: "+a.Name+" of "+e.ID, writes, writes, gb, 1, false, "experiment "+e.ID, e.Created.Format("2006-01-02"))
		d.Note = fmt.Sprintf("fio on it, %d rounds; GB of its data", len(r.IOPS))
		list = append(list, d)
	}
	return list
}
