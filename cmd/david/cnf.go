package main

import (
	"bytes"
	"fmt"
	"strings"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/tune"
)

// cnfHead is the comment at the top of a tuned my.cnf: for what it was measured, and what it does not say.
func cnfHead(d report.Data) []string {
	e := d.Experiment
	quoted := report.Quoted(d).Trials
	w := quoted[len(quoted)-1].Workload
	head := []string{
		fmt.Sprintf("Tuned by david %s on %s; experiment %s.", e.David, e.Created.UTC().Format("2006-01-02"), e.ID),
		report.Headline(d),
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

// candidateCnf is the file of what was not confirmed, beside my.cnf.
const candidateCnf = "candidate.cnf"

// candidate is a my.cnf of the arm that a tune's confirmation had no verdict on; nil where it has one.
func candidate(d report.Data) ([]byte, error) {
	name, ok := report.Unconfirmed(d)
	if !ok {
		return nil, nil
	}
	plan, ok := tune.Recorded(d.Experiment, d.Arms)
	if !ok {
		return nil, fmt.Errorf("cannot read the plan of the tune in %s", d.Experiment.ID)
	}
	h := tune.History{Trials: d.Trials, Proofs: d.Proofs}
	h.Arms, h.Trials = result.WithoutCeilings(d.Arms, d.Trials)
	var text bytes.Buffer
	head := append([]string{"NOT CONFIRMED, and proved by neither kills nor memory: the best of short trials. On a quieter machine: david compare --arm control --arm candidate=candidate.cnf, with the load and the caps of the tune."}, cnfHead(d)...)
	err := mycnf.Render(&text, head, plan.Winner(h, name))
	return text.Bytes(), err
}
