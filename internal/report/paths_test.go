package report

import (
	"strings"
	"testing"

	"david/internal/result"
)

// TestPaths: a comparison of network paths tells what each is alone, what it costs, and how far that was
// predicted; a path that could not be measured alone has no prediction, nor has one with another TLS.
func TestPaths(t *testing.T) {
	d := compareFixture()
	d.Experiment.Host.CPU.Usable = 2
	host := result.PathProbe{Runs: 3, Rate: 10e9, RTT50: 20, RTT99: 60, RTTCPU: 20}
	host.Beside = &result.BesideWork{Ping: result.RoundTrip{RTT50: 20, CPU: 20, Taken: 20}, Answer: result.RoundTrip{RTT50: 20, CPU: 20, Taken: 20}}
	far := host
	far.RTT50, far.RTTCPU = 500, 40
	far.Beside = &result.BesideWork{Ping: result.RoundTrip{RTT50: 500, CPU: 40, Taken: 44.5}, Answer: result.RoundTrip{RTT50: 500, CPU: 40, Taken: 50}}
	for i := range d.Arms {
		d.Arms[i].Path = result.Path{Kind: "unix"}
	}
	d.Arms[0].Path, d.Arms[0].PathProbe = result.Path{Kind: "host"}, &host
	d.Arms[2].Path, d.Arms[2].PathProbe = result.Path{Kind: "vxlan"}, &far
	for i := range d.Trials {
		d.Trials[i].Costs.Network, d.Trials[i].Costs.SoftIRQ = some(40_000), some(310)
		d.Trials[i].Queries = 20 * d.Trials[i].Transactions
	}
	for _, other := range d.Trials { // a workload with as many threads, whose transactions are of more queries
		other.Workload.Name, other.Queries = "another", 50*other.Transactions
		d.Trials = append(d.Trials, other)
	}
	c := comparisons(d)[0]
	table, lines := pathTable(d, c)
	rows := map[string][]string{}
	for _, row := range table.Rows {
		rows[row[0]] = row
	}
	// 4 threads at 513 tps take 7.8 ms; 20 round trips of 480 us more make 17.4 ms: 0.45 of it
	if row := rows["memory"]; len(row) < 13 || row[3] != "500" || row[6] != "44.5" || !strings.HasPrefix(row[10], "0.4") || row[12] != "round trips" {
		t.Errorf("%v", row)
	}
	if row := rows["flush"]; len(row) < 13 || row[1] != none || row[10] != none || row[8] == none {
		t.Errorf("%v", row)
	}
	if row := rows["control"]; len(row) < 13 || row[7] != "310" || row[10] != none {
		t.Errorf("%v", row)
	}
	if len(lines) != 1 || !strings.Contains(lines[0], "20 round trips and 39.1 KiB") {
		t.Errorf("%v", lines)
	}
	if head := Build(d).Headline.String(); !strings.HasPrefix(head, "Paths against control: memory 1.5") {
		t.Error(head)
	}
	d.Arms[2].Path.TLS = true
	if table, lines := pathTable(d, c); len(lines) != 0 || len(table.Rows) != 3 {
		t.Errorf("%v, %v", table, lines)
	}
	d.Arms[2].Path.TLS, far.Partly = false, true
	if _, lines := pathTable(d, c); len(lines) != 0 {
		t.Errorf("what a program on the way takes is not seen, and is predicted: %v", lines)
	}
	if table, lines := pathTable(compareFixture(), c); len(table.Rows) != 0 || len(lines) != 0 {
		t.Errorf("%v, %v of no paths", table, lines)
	}
	for i := range d.Trials {
		d.Trials[i].Costs.ServerCPU, d.Trials[i].Costs.HostCPU = some(700), some(5000)
	}
	if m, _ := pathControl(d, comparisons(d)[0]); m.CPU != 5000 {
		t.Errorf("a transaction takes %v us of the CPUs, not the machine's 5000", m.CPU)
	}
}

// TestModelled: what a round trip takes from other work is what it uses alone and what the work lost beyond that, by
// one run; where none was seen it is not known.
func TestModelled(t *testing.T) {
	const more = 2 * (result.AnswerBytes - result.PingBytes)
	p := &result.PathProbe{RTT50: 55, RTTCPU: 45, AnswerRTT: 1, AnswerCPU: 1, Beside: &result.BesideWork{
		Ping: result.RoundTrip{RTT50: 40, CPU: 50, Taken: 60}, Answer: result.RoundTrip{RTT50: 40 + more/100, CPU: 50 + more/50, Taken: 60 + more/40}}}
	near := func(a, b float64) bool { return a > 0.999*b && a < 1.001*b }
	if m := modelled(p); m.RTT != 55 || m.RTTCPU != 45 || m.Taken != 55 || !near(m.ByteRTT, 0.01) || !near(m.ByteCPU, 0.02) || !near(m.ByteTaken, 0.025) {
		t.Errorf("%+v", m)
	}
	p.Beside.Answer.Taken = 0
	if m := modelled(p); m.Taken != 0 || m.ByteTaken != 0 || m.ByteCPU == 0 {
		t.Errorf("not seen: %+v", m)
	}
	p.Beside.Ping.Taken, p.Beside.Answer.Taken = 30, 30 // the machine became faster meanwhile
	if m := modelled(p); m.Taken != 45 || !near(m.ByteTaken, 0.02) {
		t.Errorf("less than it uses: %+v", m)
	}
}

// TestOnNodes: in a cluster a transaction of the control takes what the nodes did for it, less what they do without it, of CPUs that are no more than
// the pods' limits; of an older record, what its client's pod saw.
func TestOnNodes(t *testing.T) {
	d := compareFixture()
	d.Arms[0].Path, d.Arms[0].Caps.CPUs = result.Path{Kind: "host"}, 1
	for i := range d.Trials {
		d.Trials[i].Costs.NearCPU, d.Trials[i].Costs.ServerCPU = some(5000), nil
	}
	old, _ := pathControl(d, comparisons(d)[0])
	if !old.Partly || old.CPU >= 5000 {
		t.Errorf("without the nodes' facts: %+v", old)
	}
	d.Experiment.Nodes = &result.Nodes{Near: result.NodeFacts{CPUs: 4, Idle: 0.25}}
	m, _ := pathControl(d, comparisons(d)[0])
	if want := 5000 - 0.25e6/m.TPS; m.Partly || m.CPU < 0.999*want || m.CPU > 1.001*want || m.CPUs != 2 || m.Far.CPUs != 0 {
		t.Errorf("one machine: %+v, want %v us of 2 CPUs", m, want)
	}
	d.Experiment.Nodes.Near.Idle = 1.5
	if _, lines := pathTable(d, comparisons(d)[0]); len(lines) != 1 || !strings.HasPrefix(lines[0], "nothing is predicted: without the load the nodes kept more than 25 % of their CPUs busy") {
		t.Errorf("nodes that are busy without the load: %q", lines)
	}
	d.Experiment.Nodes.Near.Idle = 0.25
	trip := func(cpu, taken float64) result.RoundTrip { return result.RoundTrip{CPU: cpu, RTT50: 60, Taken: taken} }
	probe := &result.PathProbe{RTT50: 55, RTTCPU: 45, Beside: &result.BesideWork{Ping: trip(50, 60), Answer: trip(70, 90)}}
	if p := d.modelled(probe); p.Taken != 0 || p.ByteTaken != 0 || p.RTTCPU != 45 || p.ByteCPU == 0 || modelled(probe).Taken == 0 {
		t.Errorf("between pods predicted from %+v", p)
	}
	if d.predictable(result.Path{Kind: result.PathBalancer}) || !d.predictable(result.Path{Kind: "pod"}) {
		t.Error("of a cluster's ways all are predicted but a balancer's")
	}
	d.Arms[0].Path.Kind = result.PathBalancer
	if m, _ := pathControl(d, comparisons(d)[0]); m.CPUs != 3 {
		t.Errorf("with a balancer %v CPUs", m.CPUs)
	}
	d.Arms[0].Caps.CPUs = 8
	if m, _ := pathControl(d, comparisons(d)[0]); m.CPUs != 3.75 {
		t.Errorf("of 4 CPUs %v are free", m.CPUs)
	}
	d.Arms[0].Caps.CPUs = 1
	d.Experiment.Nodes.Far = &result.NodeFacts{CPUs: 2, Idle: 0.5}
	for i := range d.Trials {
		d.Trials[i].Costs.FarCPU = some(3000)
	}
	if m, _ := pathControl(d, comparisons(d)[0]); m.CPUs != 2 || m.Far.CPUs != 1 || m.Far.CPU < 0.999*(3000-0.5e6/m.TPS) || m.Far.CPU > 3000 {
		t.Errorf("two machines: %+v", m)
	}
}
