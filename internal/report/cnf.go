package report

import (
	"fmt"
	"strings"

	"david/internal/host"
)

// CnfHead is the comment at the top of a tuned my.cnf: for what it was measured, and what it does not say.
func CnfHead(d Data) []string {
	e := d.Experiment
	quoted := Quoted(d).Trials
	w := quoted[len(quoted)-1].Workload
	head := []string{
		fmt.Sprintf("Tuned by david %s on %s; experiment %s.", e.David, e.Created.UTC().Format("2006-01-02"), e.ID),
		Headline(d),
		fmt.Sprintf("Server: %s %s. Machine: %s CPU, %.4g usable, %s of memory; %s.",
			e.Server.Flavour.Product(), e.Server.Version, e.Host.CPU.Model, e.Host.CPU.Usable, host.Size(e.Host.Memory.Limit), strings.Join(e.Notes, "; ")),
		fmt.Sprintf("Workload: %s, %d tables of %d rows, %d threads, %d s after up to %d s of warming up.",
			w.Name, w.Tables, w.TableSize, w.Threads, w.Seconds, w.Warmup),
		"Other workloads, data and machines may differ: measure yours.",
	}
	if e.Design.Tune != nil && len(e.Design.Tune.Unlocked) > 0 {
		return append(head, "UNLOCKED, not as durable as it could be: "+strings.Join(e.Design.Tune.Unlocked, ", ")+".")
	}
	return append(head, "Durability is that of the control: every commit is synced, the doublewrite buffer and checksums are on.")
}
