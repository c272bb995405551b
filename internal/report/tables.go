package report

import (
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"david/internal/result"
)

// trialTable has a row for each run, with the figures of study P1 and what they hide.
func trialTable(d Data) table {
	t := table{"Every run", []column{
		left("run"), right("transactions/s"), right("queries/s"), right("latency min, ms"), right("latency avg, ms"),
		right("latency p50, ms"), right("latency p95, ms"), right("latency p99, ms"), right("latency max, ms"),
		right("stddev over seconds, tps"), right("errors"), right("reconnects"), right("stalls, s"), right("measured, s"),
		left("gates")}, nil}
	open := slices.ContainsFunc(d.Trials, func(x result.Trial) bool { return x.Workload.Rate > 0 })
	if open {
		t.Cols = slices.Insert(t.Cols, len(t.Cols)-1, right("longest queue"))
	}
	labels := trialLabels(d)
	for i, x := range d.Trials {
		l := x.Latency
		row := []string{labels[i], number(x.TPS), number(x.QPS), number(l.Min), number(l.Avg), number(l.P50), number(l.P95), number(l.P99),
			number(l.Max), deviation(x), integer(x.Errors), integer(x.Reconnects), strconv.Itoa(x.Stalls), number(x.Seconds)}
		if open {
			row = append(row, queue(x))
		}
		t = t.add(append(row, gates(x))...)
	}
	return t
}

// deviation returns that of the measured seconds: none of fewer than two.
func deviation(t result.Trial) string {
	seconds := 0
	for _, p := range t.Points {
		if !p.Warm {
			seconds++
		}
	}
	if t.StdDevTPS == 0 && seconds < 2 {
		return none
	}
	return number(t.StdDevTPS)
}

func gates(t result.Trial) string {
	if ok, failed := t.Valid(); !ok {
		return "invalid: " + strings.Join(failed, "; ")
	}
	return "hold"
}

// trialLabels names the runs by what differs between them: the arm, the workload, the threads, the rate, the
// repeat.
func trialLabels(d Data) []string {
	arms, names, threads, blocks, rates := map[string]bool{}, map[string]bool{}, map[int]bool{}, map[int]bool{}, map[float64]bool{}
	for _, t := range d.Trials {
		w := t.Workload
		arms[t.Arm], names[w.Name], threads[w.Threads], blocks[t.Block], rates[w.Rate] = true, true, true, true, true
	}
	labels := make([]string, len(d.Trials))
	for i, t := range d.Trials {
		var parts []string
		if len(arms) > 1 || len(threads) < 2 {
			parts = append(parts, t.Arm)
		}
		if isCeiling(d, t) {
			parts = append(parts, "unsafe")
		}
		if t.Twin {
			parts = append(parts, "twin")
		}
		if len(names) > 1 {
			parts = append(parts, t.Workload.Name)
		}
		if len(threads) > 1 {
			parts = append(parts, plural(t.Workload.Threads, "thread"))
		}
		if len(rates) > 1 {
			parts = append(parts, rate(t.Workload))
		}
		if len(blocks) > 1 {
			parts = append(parts, fmt.Sprintf("run %d", t.Block))
		}
		labels[i] = strings.Join(parts, ", ")
	}
	return labels
}

func rate(w result.Workload) string {
	if w.Rate == 0 {
		return "closed loop"
	}
	return trimmed(w.Rate, 2) + "/s offered"
}

// settingTable shows what an arm asked for.
func settingTable(a result.Arm) table {
	t := table{"What " + a.Name + " asked for", []column{left("setting"), right("value"), left("why"), left("source")}, nil}
	for _, s := range a.Changes {
		t = t.add(s.Name, s.Value, s.Reason, s.Source)
	}
	return t
}

func machineTable(d Data) table {
	h := d.Experiment.Host
	t := pairs("The machine", []string{"operating system", h.OS}, []string{"kernel", h.Kernel + " " + h.Arch})
	if h.Virt != "" {
		t = t.add("virtualisation", h.Virt)
	}
	t = t.add("CPU", cpu(h.CPU)).add("memory", memory(h.Memory)).add("cgroup", cgroup(h.Cgroup)).add("data on", filesystem(h.Data))
	for _, x := range h.Disks {
		t = t.add("disk", disk(x))
	}
	for _, name := range sortedKeys(h.Kernels) {
		t = t.add(name, h.Kernels[name])
	}
	for _, u := range h.Unknown {
		t = t.add("unknown", u)
	}
	return t
}

func sortedKeys(m map[string]string) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

func methodTable(d Data, order string) table {
	e := d.Experiment
	t := pairs("How it was measured", []string{"experiment", e.ID}, []string{"started", e.Created.UTC().Format("2006-01-02 15:04:05 UTC")},
		[]string{"command", command(e.Argv)}, []string{"david", e.David}, []string{"sysbench", e.Sysbench})
	t = t.add("server", strings.Trim(serverName(e.Server)+", "+e.Server.Comment, ", ")).add("target", target(e))
	if e.Server.SHA256 != "" {
		t = t.add("server's binary", e.Server.Path+", sha256 "+e.Server.SHA256)
	}
	for _, line := range describe(e.Workloads) {
		t = t.add("workload", line)
	}
	for _, line := range loop(d) {
		t = t.add("load", line)
	}
	if order != "" {
		t = t.add("order", order)
	}
	return t.add("time", utilisation(d)).add("sampling", sampling(d.Trials))
}

func target(e result.Experiment) string {
	if e.Server.Address != "" {
		return e.Target + " " + e.Server.Address
	}
	return e.Target
}

func utilisation(d Data) string {
	f := d.Finish
	if f == nil {
		return "utilisation: not known before the experiment has ended"
	}
	s := fmt.Sprintf("%s, of which %s (%.0f %%) warming up and measuring", duration(f.WallSeconds), duration(f.MeasureSeconds), 100*f.Utilisation)
	if f.TemplateSeconds > 0 {
		s += "; before it the data template, once: " + duration(f.TemplateSeconds)
	}
	if n := before(d); n > 0 {
		s += fmt.Sprintf("; since it was gone on with: %d of %s had been measured before, and are not in it", n, plural(len(d.Trials), "run"))
	}
	return s
}

// before returns how many trials an earlier session measured, whose time is in no figure of the finish.
func before(d Data) (n int) {
	if d.Finish.Earlier != nil {
		return *d.Finish.Earlier
	}
	began := d.Finish.Ended.Add(-time.Duration(d.Finish.WallSeconds * float64(time.Second)))
	for _, t := range d.Trials {
		if t.Started.Before(began) {
			n++
		}
	}
	return n
}

// gateTable says how often each gate held, and what was seen where it did not.
func gateTable(trials []result.Trial) table {
	t := table{"Gates: what had to hold for a run to count", []column{left("gate"), left("held"), left("seen")}, nil}
	for _, r := range gateRows(trials) {
		t = t.add(string(r.Name), fmt.Sprintf("%d of %s", r.Held, plural(r.Runs, "run")), r.Evidence)
	}
	return t
}
