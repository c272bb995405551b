package plan

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/price"
)

// Sourced is a figure that a choice rests on, and where it is from: a source and its date, a flag, or an experiment.
type Sourced struct {
	What   string `json:"what"`
	Value  string `json:"value"` // with its unit
	Source string `json:"source"`
	Date   string `json:"date,omitempty"` // "" of what a flag gave or an experiment measured
	// shared: it is no choice's own, and told once.
	shared bool
}

// From says where a figure is from.
func (s Sourced) From() string { return dated(s.Source, s.Date) }

func dated(source, date string) string { return strings.TrimSuffix(source+", "+date, ", ") }

// byFlag is the source of what the user gave.
func byFlag(names ...string) string { return "a flag, --" + strings.Join(names, " and --") }

// from says where a figure's value is from.
func (r Request) from(name string) (source, date string) {
	_, given := r.Figures[name]
	switch {
	case r.Sources[name] != "":
		return r.Sources[name], ""
	case given:
		return byFlag(name), ""
	}
	f := figureNamed(name)
	return f.Source, f.Date
}

// Constant is a figure that no flag changes.
type Constant struct {
	Name, Value, What, Source, Date string
	kinds                           []Kind // none: all
	own                             bool   // of own hardware alone
}

// Constants lists them.
func Constants() []Constant {
	const (
		hardwareOf = "Ceph documentation, hardware recommendations"
		witnesses  = "counted by david: three, so that one may be lost and a majority is left"
	)
	replicated := []Kind{Async, Semisync, Group, Galera, DRBD, NDB, Vitess}
	return []Constant{
		{Name: "page", Value: "16 KiB", What: "of an operation: InnoDB's page", Source: "MySQL 9.5 Reference Manual, innodb_page_size", Date: looked},
		{Name: "hours", Value: "730", What: "of a month: 8,760 of a year by 12", Source: "arithmetic", Date: looked},
		{Name: "restore", Value: "125 MiB/s", What: "at which a backup comes back", Source: "Amazon EBS User Guide: the throughput that comes with a gp3 volume; of other volumes that is assumed", Date: looked},
		{Name: "RDS logs", Value: "5 min", What: "that RDS's transaction logs are behind at most", Source: "Amazon RDS User Guide, Restoring a DB instance to a specified time", Date: looked, kinds: []Kind{Managed, ManagedHA}},
		{Name: "volumes of a stripe", Value: fmt.Sprintf("1 to %d", price.MostVolumes), What: "that are tried", Source: "an assumption of david's: few machines take more", Date: looked, kinds: []Kind{Single, Async, Semisync, Group, Galera, DRBD, NDB, Vitess}},
		{Name: "members", Value: fmt.Sprint(mostServers), What: "servers of a group at most; of other replication as many are tried", Source: manual + "Group Replication, Limitations", Date: looked, kinds: replicated},
		{Name: "manager's machines", Value: "3", What: "that a fail-over manager runs on", Source: witnesses, Date: looked, kinds: []Kind{Async, Semisync}},
		{Name: "RAID 10", Value: "2", What: "disks that a write of own hardware goes to", Source: "md(4)", Date: looked, kinds: []Kind{Local, Async, Semisync, Group, Galera, DRBD, Vitess}, own: true},
		{Name: "copies in a pool", Value: fmt.Sprint(replicas), What: "of each object, on as many nodes", Source: "Ceph documentation, pools", Date: looked, kinds: []Kind{Ceph}},
		{Name: "nodes", Value: fmt.Sprint(fewestNodes), What: "of the pool at least: four at 70 % would fill to 93 % without one of them", Source: "docs/storage.md; Ceph documentation, storage capacity", Date: looked, kinds: []Kind{Ceph}},
		{Name: "cores of an NVMe disk", Value: fmt.Sprint(coresPerDisk), What: "of a node", Source: "study P4", Date: "2016", kinds: []Kind{Ceph}},
		{Name: "OSD", Value: "4 GiB", What: "at least (osd_memory_target), besides 16 GiB of the node for monitor, manager and the system", Source: hardwareOf, Date: looked, kinds: []Kind{Ceph}},
		{Name: "data nodes", Value: "2 to 144", What: "of NDB, with two copies of all data in their memory, and two SQL nodes", Source: manual + "NDB Cluster, Defining NDB Cluster Data Nodes" + recall, Date: looked, kinds: []Kind{NDB}},
	}
}

// Row writes the constant as docs/plan.md has it.
func (c Constant) Row() string {
	return "| " + c.Name + " | " + c.Value + " | " + c.What + " | " + dated(c.Source, c.Date) + " |"
}

// asked lists what was asked for, each a flag.
func (r Request) asked() (list []Sourced) {
	add := func(name, value string) {
		list = append(list, Sourced{What: name, Value: value, Source: byFlag(name), shared: true})
	}
	add("data", price.GiB(r.Data.GiB()))
	add("tps", price.Number(r.TPS))
	add("queries", fmt.Sprintf("%g", r.Queries))
	add("writes", fmt.Sprintf("%g", r.Writes))
	for _, goal := range []struct {
		name    string
		seconds *float64
	}{{"rpo", r.RPO}, {"rto", r.RTO}} {
		if goal.seconds != nil {
			add(goal.name, span(*goal.seconds))
		}
	}
	if r.P99 > 0 {
		add("p99", fmt.Sprintf("%g ms", r.P99))
	}
	if r.Budget > 0 {
		add("budget", "US$"+Money(r.Budget))
	}
	if r.RTT > 0 {
		add("region-rtt", fmt.Sprintf("%g ms", r.RTT))
	}
	return list
}

// sourced lists the figures that a choice rests on: what was asked, the figures of plans and what no flag changes as far as it
// uses them, then its own: its machine, its volumes, each price, each wait.
func (r Request) sourced(a Architecture, x Choice) []Sourced {
	list := r.asked()
	for _, name := range r.uses(a, x) {
		f := figureNamed(name)
		source, date := r.from(name)
		list = append(list, Sourced{name, f.write(r.figure(name)), source, date, true})
	}
	for _, c := range Constants() {
		if (len(c.kinds) == 0 || slices.Contains(c.kinds, a.Kind)) && (!c.own || x.Provider == Own) {
			list = append(list, Sourced{c.Name + " (" + c.What + ")", c.Value, c.Source, c.Date, true})
		}
	}
	return slices.Concat(list, x.server.sourced(), billed(x.Bill), x.waits(), x.throughput())
}

// uses names the figures that a choice is computed with.
func (r Request) uses(a Architecture, x Choice) []string {
	names := []string{"growth", "years", "fill", "pool-of-memory", "cpu-per-transaction", "cpu-in-memory", "reads-per-transaction", "writes-per-transaction", "writes-in-memory", "measured-pool",
		"measured-queries", "measured-writes", "network-per-transaction", "backup-every", "respond", "by-hand"}
	if a.replicated() {
		names = append(names, "binlog-per-transaction")
		for _, name := range []string{"zone-traffic", "region-traffic"} {
			if _, given := r.Figures[name]; given {
				names = append(names, name)
			}
		}
	}
	if r.Kubernetes {
		names = append(names, podFigure)
	}
	if x.Provider == Own {
		names = append(names, "server-network", "helper-cpus", "helper-memory")
		for _, f := range Figures() {
			if _, given := r.Figures[f.Name]; f.Given && given && strings.HasPrefix(f.What, "own hardware") {
				names = append(names, f.Name)
			}
		}
		if !r.runs() {
			names = append(names, "running")
		}
	}
	for _, name := range []string{"reserved-discount", "spot-discount"} {
		if _, given := r.Figures[name]; given && strings.HasPrefix(name, r.Commitment) {
			names = append(names, name)
		}
	}
	return names
}

// sourced lists what a rented server is published to have.
func (s server) sourced() (list []Sourced) {
	m, o := s.machine, s.option
	add := func(has bool, what, value, source, date string) {
		if has {
			list = append(list, Sourced{What: what, Value: value, Source: source, Date: date})
		}
	}
	add(m.Name != "", m.Name, fmt.Sprintf("%g CPUs, %s of memory", m.CPUs, price.GiB(m.Memory.GiB())), m.Source, m.Date)
	add(m.IOPS > 0, m.Name+", on its volumes", price.Number(m.IOPS)+" IOPS", m.Source, m.Date)
	add(m.Network > 0, m.Name+", network", fmt.Sprintf("%.2f Gbit/s", float64(m.Network)/1e9), m.Source, m.Date)
	add(o.Volumes > 0, o.Volume, fmt.Sprintf("%s IOPS on %s, in %d", price.Number(o.EachIOPS), price.GiB(o.EachGiB), o.Volumes), o.Source, o.Date)
	add(o.Volumes == 0 && m.IncludedIOPS > 0, m.Name+", the volume in its price", price.Number(m.IncludedIOPS)+" IOPS on "+price.GiB(m.IncludedSize.GiB()), m.Source, m.Date)
	return list
}

// billed lists the prices of a bill.
func billed(b Bill) (list []Sourced) {
	for _, l := range b.Lines {
		list = append(list, Sourced{What: "price of " + l.What, Value: fmt.Sprintf("US$%.6g", l.USDEach), Source: l.Source, Date: l.Date})
	}
	return list
}

// waits lists what failures take, each by its rule.
func (x Choice) waits() (list []Sourced) {
	for _, o := range x.Outcomes {
		rule := ruleNamed(o.Rule)
		source, date := rule.Source, rule.Date
		if o.managed {
			m := ruleNamed(managerRule)
			source, date = m.Source, m.Date
		}
		list = append(list, Sourced{What: string(o.Failure) + " lost [" + o.Rule + "]", Value: "RPO " + o.Data + "; RTO " + o.Wait, Source: source, Date: date})
	}
	return list
}

// ruleNamed finds a rule; a name that is none is a mistake of the code, which the tests meet.
func ruleNamed(name string) Rule {
	list := Rules()
	return list[slices.IndexFunc(list, func(x Rule) bool { return x.Name == name })]
}

func (x Choice) throughput() (list []Sourced) {
	for _, c := range x.Costs {
		list = append(list, Sourced{What: "throughput, " + c.What, Value: c.Says, Source: c.Source, Date: c.Date})
	}
	return list
}

// Own lists the figures that are this choice's alone.
func (x Choice) Own() []Sourced {
	return slices.DeleteFunc(slices.Clone(x.Figures), func(s Sourced) bool { return s.shared })
}

// Shared lists the figures that any of Each rests on and that are no choice's own, each once.
func (p Plan) Shared() (list []Sourced) {
	seen := map[string]bool{}
	for _, c := range p.Each() {
		for _, s := range c.Figures {
			if s.shared && !seen[s.What] {
				seen[s.What] = true
				list = append(list, s)
			}
		}
	}
	return list
}
