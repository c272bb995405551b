package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"david/internal/netmodel"
	"david/internal/result"
	"david/internal/stats"
)

// pathHeadline tells of every path, over all workloads: none of them is a gain to be taken.
func pathHeadline(d Data, list []stats.Comparison) headline {
	var parts []string
	for _, c := range contenders(list) {
		if c.Ratio == 0 {
			continue
		}
		part := fmt.Sprintf("%s %s (%s)", c.Name, ratio(c.Arm), c.Verdict)
		if len(list) > 1 {
			part += " with " + short(c.on)
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return headline{Big: "No verdict", Rest: noVerdict(d, contenders(list)), Tone: "invalid"}
	}
	return headline{Big: "Paths against " + d.Experiment.Design.Control, Rest: ": " + strings.Join(parts, ", "), Tone: "none"}
}

// pathTable has a row for each arm of a comparison of network paths: what was measured of the path alone, and
// of the database over it, beside what the first predicts of the second. Sentences say what it rests on. Both
// are empty where the arms are no paths.
func pathTable(d Data, c stats.Comparison) (t table, lines []string) {
	t = table{"The paths: " + short(c.Workload), []column{left("path"), right("Gbit/s"), right("retransmits/s"), right("round trip p50, us"), right("p99, us"),
		right("CPU, us"), right("taken from other work, us"), right("softirq of a transaction, us"), right("tps"), right("ratio"), right("predicted"), right("off, %"), left("bound by")}, nil}
	control, ok := pathControl(d, c)
	if !ok {
		return table{}, nil
	}
	worst, n := 0.0, 0
	for _, a := range c.Arms {
		arm := d.armNamed(a.Name)
		if arm.Path == (result.Path{}) || a.Trials == 0 {
			continue
		}
		row := []string{a.Name, none, none, none, none, none, none, cost(a.Costs.SoftIRQ), brief(a.TPS), none, none, none, none}
		if a.Ratio > 0 {
			row[9] = fixed(a.Ratio, 3)
		}
		if p := arm.PathProbe; p != nil {
			copy(row[1:], []string{fixed(p.Rate/1e9, 2), round(p.Retransmits), brief(p.RTT50), brief(p.RTT99), brief(p.RTTCPU)})
			if b := p.Beside; b != nil && b.Ping.Taken > 0 && b.Answer.Taken > 0 { // else it is not predicted from
				row[6] = brief(b.Ping.Taken)
			}
			told := a.Ratio > 0 && a.Name != c.Control && talksAs(arm.Path, d.armNamed(c.Control).Path) && !p.Partly && d.predictable(arm.Path)
			if got := netmodel.Predict(control, d.modelled(p)); got.TPS > 0 && told {
				promised := got.TPS / control.TPS // of one round: the throughputs themselves are of many
				off := 100 * (promised/a.Ratio - 1)
				worst, n = math.Max(worst, math.Abs(off)), n+1
				copy(row[10:], []string{fixed(promised, 3), fmt.Sprintf("%+.1f", off), string(got.Bound)})
			}
		}
		t = t.add(row...)
	}
	if n > 0 {
		lines = append(lines, fmt.Sprintf("a transaction takes %.4g round trips and %.3g KiB both ways (counted); with %s's %s transactions/s and each path's round trip that predicts the others, at most %.1f %% off",
			control.RoundTrips, control.Bytes/1024, c.Control, brief(control.TPS), worst))
		if control.Partly {
			lines = append(lines, "the server's CPU time is not seen from its client's pod: the prediction takes it for waiting, and is the worse the busier the server's CPUs are")
		}
	}
	if nodes := d.Experiment.Nodes; nodes != nil && busyBefore(nodes) {
		lines = append(lines, fmt.Sprintf("nothing is predicted: without the load the nodes kept more than %.0f %% of their CPUs busy, and whether that gives way to the load is not known, nor so what the load takes", 100*mostElse))
	}
	return t, lines
}

// busyBefore tells whether the nodes had so much else to do before the load began that what it took of them cannot be told from that.
func busyBefore(nodes *result.Nodes) bool {
	of := func(n result.NodeFacts) bool { return n.Idle > mostElse*n.CPUs }
	return of(nodes.Near) || nodes.Far != nil && of(*nodes.Far)
}

// mostElse is the share of a node's CPUs that others may have.
const mostElse = 0.25

// talksAs tells whether what is sent over two paths is the same, and is handled by all CPUs.
func talksAs(a, b result.Path) bool {
	return a.TLS == b.TLS && a.Compressed == b.Compressed && a.CPUs == "" && b.CPUs == ""
}

// modelled is a path as it is predicted from. Between the pods of a cluster what a round trip takes from other work is shown, and not predicted
// from: on the test cluster it was more than twice what the load's takes (docs/network.md has the figures of 2026-11-28).
func (d Data) modelled(p *result.PathProbe) netmodel.Path {
	m := modelled(p)
	if d.Experiment.Nodes != nil {
		m.Taken, m.ByteTaken, m.Far.Taken, m.Far.ByteTaken = 0, 0, 0, 0
	}
	return m
}

// predictable tells whether the load over a path takes what a ping-pong does. A balancer's program takes more at work, which only what a round trip
// takes from other work would tell.
func (d Data) predictable(p result.Path) bool {
	return d.Experiment.Nodes == nil || p.Kind != result.PathBalancer
}

func modelled(p *result.PathProbe) netmodel.Path {
	m := netmodel.Path{RTT: p.RTT50, Rate: p.Rate}
	near := handling(p.RTTCPU, p.AnswerCPU, p.Beside)
	m.RTTCPU, m.ByteCPU, m.Taken, m.ByteTaken = near.RTTCPU, near.ByteCPU, near.Taken, near.ByteTaken
	if p.Far != nil {
		m.Far = handling(p.Far.RTTCPU, p.Far.AnswerCPU, p.Far.Beside)
	}
	switch b := p.Beside; {
	case b != nil:
		m.ByteRTT = math.Max(0, b.Answer.RTT50-b.Ping.RTT50) / longer
	case p.AnswerRTT > 0:
		m.ByteRTT = math.Max(0, p.AnswerRTT-p.RTT50) / longer
	}
	return m
}

// longer are the bytes by which a long answer is longer, there and back.
const longer = 2 * (result.AnswerBytes - result.PingBytes)

// handling is what a round trip, and a byte, take at one end.
func handling(trip, answer float64, b *result.BesideWork) (h netmodel.Handling) {
	h.RTTCPU = trip
	switch {
	case b != nil:
		h.ByteCPU = math.Max(0, b.Answer.CPU-b.Ping.CPU) / longer
		if b.Ping.Taken > 0 && b.Answer.Taken > 0 {
			h.Taken, h.ByteTaken = trip+beyond(b.Ping), math.Max(0, h.ByteCPU+(beyond(b.Answer)-beyond(b.Ping))/longer)
		}
	case answer > 0:
		h.ByteCPU = math.Max(0, answer-trip) / longer
	}
	return h
}

// beyond is what a round trip takes from other work beyond the CPU time that it uses itself, both of the runs beside work: from those
// without it the machine's speed may differ. It is no less than nothing.
func beyond(r result.RoundTrip) float64 { return math.Max(0, r.Taken-r.CPU) }

// pathControl returns what the load took over the control's path; false where the arms are no paths.
func pathControl(d Data, c stats.Comparison) (m netmodel.Control, ok bool) {
	arm := d.armNamed(c.Control)
	if arm.Path == (result.Path{}) {
		return m, false
	}
	m = netmodel.Control{Threads: c.Workload.Threads, CPUs: d.Experiment.Host.CPU.Usable}
	if arm.PathProbe != nil {
		m.Path = d.modelled(arm.PathProbe)
	}
	for _, a := range c.Arms {
		if a.Name == c.Control {
			m.TPS = a.TPS
			if a.Costs.Network != nil {
				m.Bytes = *a.Costs.Network
			}
			for i, part := range []*float64{a.Costs.ServerCPU, a.Costs.ClientCPU, a.Costs.SoftIRQ} {
				if part != nil && (i < 2 || arm.PathProbe != nil && arm.PathProbe.IRQApart) {
					m.CPU += *part
				}
			}
			m.Partly = a.Costs.ServerCPU == nil
			if a.Costs.ServerCPU != nil && a.Costs.HostCPU != nil { // on its machine, with the kernel's own threads
				m.CPU = math.Max(m.CPU, *a.Costs.HostCPU)
			}
		}
	}
	d.onNodes(&m, arm, c)
	m.RoundTrips = asked(d, c)
	return m, true
}

// onNodes takes what a transaction of the control takes of the CPUs from the nodes of a cluster, where they were seen. What they do without the load
// is not the load's, and takes its part of the CPUs; and the pods cannot have more than their limits, which are the server's, as many for the client, and for
// a balancer.
func (d Data) onNodes(m *netmodel.Control, arm result.Arm, c stats.Comparison) {
	i := slices.IndexFunc(c.Arms, func(a stats.Arm) bool { return a.Name == c.Control })
	nodes := d.Experiment.Nodes
	if nodes != nil && busyBefore(nodes) {
		m.CPU = 0 // from which nothing is predicted
		return
	}
	if i < 0 || nodes == nil || c.Arms[i].Costs.NearCPU == nil || !(m.TPS > 0) {
		return
	}
	one := 1.0
	if arm.Path.Kind == result.PathBalancer {
		one = 2
	}
	if nodes.Far == nil {
		one++
	}
	costs := c.Arms[i].Costs
	near := station(*costs.NearCPU, nodes.Near, one*arm.Caps.CPUs, m.TPS)
	m.CPU, m.CPUs, m.Partly = near.CPU, near.CPUs, false
	if nodes.Far != nil && costs.FarCPU != nil {
		m.Far = station(*costs.FarCPU, *nodes.Far, arm.Caps.CPUs, m.TPS)
	}
}

// station is what a transaction takes of a node whose pods may have so many CPUs.
func station(cpu float64, node result.NodeFacts, limit, tps float64) netmodel.Station {
	s := netmodel.Station{CPU: math.Max(0.1*cpu, cpu-1e6*node.Idle/tps), CPUs: math.Max(0.1*node.CPUs, node.CPUs-node.Idle)}
	if limit > 0 {
		s.CPUs = math.Min(s.CPUs, limit)
	}
	return s
}

// asked returns the round trips of one of the control's transactions: a query is one.
func asked(d Data, c stats.Comparison) float64 {
	transactions, queries := 0.0, 0.0
	for _, t := range d.Trials {
		if ok, _ := t.Valid(); !ok || t.Arm != c.Control || t.Workload != c.Workload {
			continue
		}
		transactions += float64(t.Transactions)
		queries += float64(t.Queries)
	}
	if transactions == 0 {
		return 0
	}
	return queries / transactions
}

// armNamed returns an arm of the record; the zero one where there is none of that name.
func (d Data) armNamed(name string) result.Arm {
	i := slices.IndexFunc(d.Arms, func(a result.Arm) bool { return a.Name == name })
	if i < 0 {
		return result.Arm{}
	}
	return d.Arms[i]
}
