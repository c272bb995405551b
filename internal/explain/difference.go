package explain

import (
	"cmp"
	"math"
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
)

// Comparison says what a transaction of one trial took that one of another did not. In a closed loop the
// symptoms' differences add up to the difference of the mean latencies, and so say why one is faster.
type Comparison struct {
	A Explanation `json:"a"`
	B Explanation `json:"b"`
	// Latency is the time of a transaction's connection, in ms; the symptoms' rows add up to it.
	Latency  Change              `json:"latency"`
	Symptoms []Change            `json:"symptoms"` // ms a transaction, the largest difference first
	Costs    []Change            `json:"costs"`
	Settings []result.Difference `json:"settings,omitempty"` // effective variables that differ
	Warnings []string            `json:"warnings,omitempty"`
}

// Change describes one figure in both trials. A pointer is nil where the figure could not be read.
type Change struct {
	Name string   `json:"name"`
	Unit string   `json:"unit"`
	A    *float64 `json:"a"`
	B    *float64 `json:"b"`
	Diff *float64 `json:"difference"` // B less A
}

func change(name, unit string, a, b *float64) Change {
	c := Change{Name: name, Unit: unit, A: a, B: b}
	if a != nil && b != nil {
		d := *b - *a
		c.Diff = &d
	}
	return c
}

// Difference compares two trials.
func Difference(a, b Input) Comparison {
	c := Comparison{A: Explain(a), B: Explain(b), Costs: costChanges(a.Trial, b.Trial)}
	c.Latency = change("a transaction", "ms", &c.A.Ms, &c.B.Ms)
	for _, s := range symptoms() {
		x, y := c.A.took(s), c.B.took(s)
		if x != 0 || y != 0 {
			c.Symptoms = append(c.Symptoms, change(string(s), "ms", &x, &y))
		}
	}
	slices.SortStableFunc(c.Symptoms, func(x, y Change) int { return cmp.Compare(math.Abs(*y.Diff), math.Abs(*x.Diff)) })
	for _, d := range mycnf.Diff(a.Arm.Effective, b.Arm.Effective) {
		c.Settings = append(c.Settings, result.Difference{Name: d.Name, Before: d.Before, After: d.After})
	}
	if a.Trial.Workload != b.Trial.Workload {
		c.Warnings = append(c.Warnings, "the workloads differ: what changed may be theirs")
	}
	if a.Server.Version != b.Server.Version {
		c.Warnings = append(c.Warnings, say("the servers differ: %s %s and %s %s", a.Server.Flavour, a.Server.Version, b.Server.Flavour, b.Server.Version))
	}
	return c
}

// took returns a symptom's time in ms a transaction.
func (e Explanation) took(s Symptom) float64 {
	for _, one := range e.Symptoms {
		if one.Symptom == s {
			return one.Ms
		}
	}
	return 0
}

// inKiB is a number of bytes in the unit of what stands beside it.
func inKiB(x *float64) *float64 {
	if x == nil {
		return nil
	}
	kib := *x / 1024
	return &kib
}

// costChanges returns what a transaction took of the machine.
func costChanges(a, b result.Trial) []Change {
	x, y := a.Costs, b.Costs
	list := []Change{
		change("server CPU", "us", x.ServerCPU, y.ServerCPU), change("client CPU", "us", x.ClientCPU, y.ClientCPU),
		change("read", "KiB", x.ReadKB, y.ReadKB), change("written", "KiB", x.WrittenKB, y.WrittenKB),
		change("InnoDB's syncs", "", x.Fsyncs, y.Fsyncs), change("redo", "KiB", inKiB(x.RedoBytes), inKiB(y.RedoBytes)),
		change("context switches", "", x.Switches, y.Switches), change("buffer pool hit rate", "", x.HitRate, y.HitRate),
	}
	return slices.DeleteFunc(list, func(c Change) bool { return c.A == nil && c.B == nil })
}
