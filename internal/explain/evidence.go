package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
)

// least sets the share below which a cause is not worth a finding: its time is left unexplained no longer
// than it takes to say so, as all findings are listed whose share rounds to 0.1 % or more; smaller ones go to
// the largest.
const least = 0.0005

// findings returns the causes, most costly first, with what says so and what to do.
func (t dividedTrial) findings(c blame) (list []Finding) {
	small := 0.0
	for _, cause := range Causes() {
		share := c[cause]
		if share < least {
			small += share
			continue
		}
		list = append(list, Finding{Cause: cause, Share: share})
	}
	slices.SortStableFunc(list, func(x, y Finding) int { return cmp.Compare(y.Share, x.Share) })
	if len(list) == 0 && small > 0 {
		list = append(list, Finding{Cause: ServerCPU})
	}
	if len(list) > 0 {
		list[0].Share += small
	}
	for i := range list {
		f := &list[i]
		f.Ms, f.Evidence, f.Advice = t.ms(f.Share), t.evidence(f.Cause), t.advised(f.Cause)
		f.Relief = t.relieved(f.Cause, f.Advice)
		f.Confirm = t.confirm(f.Cause, f.Share)
	}
	return list
}

// notes collects sentences.
type notes []string

func (n *notes) add(format string, args ...any) { *n = append(*n, say(format, args...)) }

// sampled adds a sentence with a sampled value, where there is one.
func (n *notes) sampled(t dividedTrial, name, format string) {
	if v, ok := t.mean(name); ok {
		n.add(format, v)
	}
}

func say(format string, args ...any) string { return fmt.Sprintf(format, args...) }

// evidence returns what says that a cause is one, as numbers with units.
func (t dividedTrial) evidence(c Cause) []string {
	by := map[Cause]func(*notes){
		ServerCPU: t.sayServerCPU, ClientCPU: t.sayClientCPU, Commit: t.sayCommit, Redo: t.sayRedo, ReadIO: t.sayReads,
		Flushing: t.sayFlushing, Doublewr: t.sayDoublewrite, RowLocks: t.sayLocks, Latches: t.sayLatches, Scheduling: t.sayWay,
		Network: t.sayWay, Bandwidth: t.sayBandwidth, Throttling: t.sayThrottling, Neighbour: t.sayNeighbour,
	}
	n := t.sayFrom(c)
	by[c](&n)
	return n
}

// sayFrom says what of the connections' time a cause can be to blame for.
func (t dividedTrial) sayFrom(c Cause) (n notes) {
	of := map[Cause][]Symptom{
		ServerCPU: {ServerRan, ServerQueued}, ClientCPU: {ClientRan, ClientQueued}, Commit: {Committing}, Redo: {RedoRoom},
		ReadIO: {Reading, Looking}, Flushing: {Writing, FreePage}, RowLocks: {RowLock}, Latches: {Changing, Looking}, Scheduling: {Between},
		Network: {Between}, Bandwidth: {Between}, Throttling: {QuotaWait, ServerQueued}, Neighbour: {ServerQueued, ClientQueued},
	}[c]
	if _, ok := t.disk.users[c]; ok {
		of = []Symptom{Committing, Writing, FreePage, RedoRoom, Changing}
		if t.disk.shared {
			of = append(of, Reading)
		}
	}
	if !t.disk.reads {
		of = slices.DeleteFunc(of, func(s Symptom) bool { return c == ReadIO && s == Looking })
	}
	for _, s := range of {
		if share := t.did[s]; share >= least {
			n.add("%s: %.1f %% of the connections' time", s, 100*share)
		}
	}
	return n
}

func (t dividedTrial) sayServerCPU(n *notes) {
	if th, ok := t.connections(); ok {
		n.add("connection threads ran %.1f s and waited %.1f s for a CPU, of %.0f connection-seconds", th.CPU, th.Wait, t.total)
	}
	if v := t.Trial.Costs.ServerCPU; v != nil {
		n.add("%.0f us of server CPU a transaction", *v)
	}
	t.sayMachine(n, "server.cpu_cores", "the server")
}

// usable is how many CPUs the user of a counter has: the machine's, or those that its path gives it.
func (t dividedTrial) usable(counter string) float64 {
	n := 0
	switch counter {
	case "server.cpu_cores":
		n = t.Arm.Path.ServerCPUs.Len()
	case "client.cpu_cores":
		n = t.Arm.Path.ClientCPUs.Len()
	}
	if n == 0 {
		return t.Host.CPU.Usable
	}
	return float64(n)
}

// sayMachine says how much of the machine's CPU was used.
func (t dividedTrial) sayMachine(n *notes, cores, who string) {
	if used, ok := t.mean(cores); ok && t.Host.CPU.Usable > 0 {
		n.add("%s used %.2f of %.4g CPUs", who, used, t.usable(cores))
	}
	if p := t.Arm.Path; p.CPUs != "" {
		n.add("its path has the client on CPU %s and the server on CPU %s", p.ClientCPUs, p.ServerCPUs)
	}
	n.sampled(t, "host.cpu.idle_pct", "the CPUs were idle %.0f %% of the time")
	t.sayWaiting(n)
}

// sayWaiting says how long CPUs had nothing to do but wait for the disk.
func (t dividedTrial) sayWaiting(n *notes) {
	if v, ok := t.mean("host.cpu.iowait_pct"); ok && v >= 1 {
		n.add("the CPUs waited for the disk %.0f %% of the time (iowait)", v)
	}
}

func (t dividedTrial) sayClientCPU(n *notes) {
	if c := t.Trial.Profile.Client; c.CPU > 0 {
		n.add("the load generator ran %.1f s and waited %.1f s for a CPU, of %.0f connection-seconds", c.CPU, c.Wait, t.total)
	}
	if v := t.Trial.Costs.ClientCPU; v != nil {
		n.add("%.0f us of client CPU a transaction", *v)
	}
	if t.failed(result.GateClientCPU) {
		n.add("%s", t.detail(result.GateClientCPU))
	}
	t.sayMachine(n, "client.cpu_cores", "the load generator")
}

func (t dividedTrial) sayCommit(n *notes) {
	if v := t.Trial.Costs.Fsyncs; v != nil {
		n.add("%.2f syncs of InnoDB's a transaction, those of the binary log not counted", *v)
	}
	if commits, groups := t.Trial.Counters["binlog_commits"], t.Trial.Counters["binlog_group_commits"]; groups > 0 {
		n.add("%.2f transactions share a sync of the binary log", commits/groups)
	}
	n.sampled(t, "disk.flushes_per_s", "%.0f flushes of the device's cache a second")
	n.sampled(t, "disk.write_await_ms", "a write took the device %.2f ms")
	for _, w := range t.Trial.Profile.Waits {
		if w.Count > 0 && (strings.Contains(w.Name, "innodb_log_file") || strings.HasSuffix(w.Name, "/binlog")) {
			n.add("performance_schema: %d operations of %s took %.2f ms each", w.Count, w.Name, 1000*w.Seconds/float64(w.Count))
		}
	}
	t.sayDevice(n, Commit, "logs and the filesystem's journal")
}

// sayDevice says how full the device is and what part of that a cause has.
func (t dividedTrial) sayDevice(n *notes, c Cause, what string) {
	*n = append(*n, t.disk.seen...)
	if share, ok := t.disk.users[c]; ok {
		n.add("%.0f %% of what it does are %s", 100*share, what)
	}
}

func (t dividedTrial) sayRedo(n *notes) {
	age, ok := t.age()
	limit := t.redoLimit()
	if ok && limit > 0 {
		n.add("the checkpoint age was %.1f MiB on average, %.0f %% of the %.1f MiB at which writers must wait (the log has %.0f MiB)",
			mib(age), 100*age/limit, mib(limit), mib(t.redoSize()))
		n.add("it was above %.0f %% of that in %.0f %% of the seconds", 100*fullSecond, 100*t.high)
	}
	if v := t.Trial.Costs.RedoBytes; v != nil && t.Trial.TPS > 0 {
		n.add("%.1f MiB of redo a second: the log is filled in %.0f s", mib(*v*t.Trial.TPS), ratio(limit, *v*t.Trial.TPS))
	}
	if t.writingCause() == Redo {
		t.sayPages(n)
		t.sayDevice(n, Redo, "pages written to empty the log")
	}
}

// sayPages says what writing pages costs and what a larger redo log would save.
func (t dividedTrial) sayPages(n *notes) {
	if written := t.Trial.Counters["innodb_pages_written"]; written > 0 && t.Trial.Costs.RedoBytes != nil {
		n.add("%.1f KiB of redo for each page written", *t.Trial.Costs.RedoBytes*float64(t.Trial.Transactions)/written/1024)
	}
	if s := t.spared(); s > 0 {
		n.add("four times the redo log would save about %.0f %% of the page writes", 100*s)
	}
}

func mib(bytes float64) float64 { return bytes / (1 << 20) }

func (t dividedTrial) sayReads(n *notes) {
	if v := t.Trial.Costs.HitRate; v != nil {
		n.add("%.2f %% of the page requests were met by the buffer pool", 100**v)
	}
	n.add("%.1f pages read a transaction", t.each("innodb_buffer_pool_reads"))
	if pool := t.poolPages(); pool > 0 {
		n.add("the buffer pool has %.0f MiB for about %.0f MiB of data", mib(pool*t.pageSize()), mib(t.dataPages()*t.pageSize()))
	}
	n.sampled(t, "disk.read_await_ms", "a read took the device %.2f ms")
	t.sayWaiting(n)
	if reads, ok := t.mean("disk.read_iops"); ok {
		if limit := t.limits().ReadIOPS; limit > 0 {
			n.add("%.0f of %.0f reads/s", reads, limit)
		} else {
			n.add("%.0f reads/s", reads)
		}
	}
}

func (t dividedTrial) sayFlushing(n *notes) {
	n.add("%.1f pages written a transaction", t.each("innodb_pages_written"))
	if waits := t.Trial.Counters["innodb_buffer_pool_wait_free"]; waits > 0 {
		n.add("%.0f waits for a free page", waits)
	}
	if dirty, ok := t.mean("innodb.dirty_pages"); ok && t.poolPages() > 0 {
		n.add("%.0f %% of the buffer pool's pages were dirty", 100*dirty/t.poolPages())
	}
	if share := t.evicted(); share > 0.05 {
		n.add("about %.0f %% of the writes made room in the buffer pool", 100*share)
	}
	t.sayPages(n)
	t.sayDevice(n, Flushing, "pages")
}

func (t dividedTrial) sayDoublewrite(n *notes) {
	n.add("%.1f pages a transaction written twice, in batches of %.0f", t.each("innodb_dblwr_pages_written"),
		ratio(t.Trial.Counters["innodb_dblwr_pages_written"], t.Trial.Counters["innodb_dblwr_writes"]))
	t.sayDevice(n, Doublewr, "the doublewrite buffer's")
}

func (t dividedTrial) sayLocks(n *notes) {
	waits, ms := t.Trial.Counters["innodb_row_lock_waits"], t.Trial.Counters["innodb_row_lock_time"]
	n.add("%.0f waits for a row lock, %.2f a transaction, of %.2f ms each", waits, t.each("innodb_row_lock_waits"), ratio(ms, waits))
	n.sampled(t, "innodb.row_lock_waiters", "%.1f connections were waiting on average")
	if t.Trial.Errors > 0 {
		n.add("%d deadlocks and lock timeouts", t.Trial.Errors)
	}
	for i, s := range t.statements() {
		if i < 3 && s.Lock > 0.1 {
			n.add("%s: %.2f ms each", s.Text, s.Ms)
		}
	}
}

func (t dividedTrial) sayLatches(n *notes) {
	states := slices.Clone(t.Trial.Profile.States)
	states = slices.DeleteFunc(states, func(s result.State) bool {
		k := kindOf(s)
		return k != writerWaits && k != readerWaits && k != writerNaps && k != naps
	})
	slices.SortStableFunc(states, func(x, y result.State) int { return cmp.Compare(y.Count, x.Count) })
	for _, s := range states[:min(3, len(states))] {
		n.add("%d looks found a connection in: %s", s.Count, describe(s))
	}
	n.add("row locks and waits for room in the redo log are taken out of these")
}

func (t dividedTrial) sayWay(n *notes) {
	if t.Trial.Queries > 0 && t.Trial.Transactions > 0 {
		each := float64(t.Trial.Queries) / float64(t.Trial.Transactions)
		n.add("%.1f queries a transaction, %.3f ms between server and client each", each, t.ms(t.did[Between])/each)
	}
	if t.wire.seen != "" && !t.wire.full {
		n.add("%s: it is not what is waited for", t.wire.seen)
	}
	switch {
	case t.Server.Address != "":
		n.add("the server is at %s", t.Server.Address)
	case t.Arm.Path.Kind != "" && t.networked():
		n.add("the load goes over the network path %s", t.Arm.Path.Kind)
	case t.networked():
		n.add("the load goes over TCP within the machine")
	default:
		n.add("server and client share the machine and talk over a unix socket: what is left is waking up threads")
	}
	if v := t.Trial.Costs.Switches; v != nil {
		n.add("%.0f context switches a transaction, of the whole machine", *v)
	}
	if t.each("connections") > 0.1 {
		n.add("%.2f connects a transaction", t.each("connections"))
	}
}

func (t dividedTrial) sayThrottling(n *notes) {
	if limit := t.Arm.Caps.CPUs; limit > 0 {
		n.add("the server's CPUs are capped to %.4g", limit)
	}
	if d := t.detail(result.GateThrottling); d != "" {
		n.add("%s", d)
	}
	t.sayMachine(n, "server.cpu_cores", "the server")
}

func (t dividedTrial) sayNeighbour(n *notes) {
	for _, name := range []result.GateName{result.GateOthers, result.GateSteal} {
		if d := t.detail(name); d != "" {
			n.add("%s", d)
		}
	}
	n.sampled(t, "host.runnable", "%.1f threads ran or waited for a CPU at any time, on the whole machine")
}
