package sampler

import (
	"math"

	"david/internal/mysqld"
	"david/internal/result"
)

// totals is what the machine spent from Mark to Stop.
type totals struct {
	server, client  *float64 // CPU seconds
	switches        float64
	readKB, writeKB *float64
}

func newRecord(o Options, shots []snapshot, marked int, kernel float64) Record {
	first, last := shots[marked], shots[len(shots)-1]
	seconds := last.at.Sub(first.at).Seconds()
	r := Record{
		Seconds: seconds, Counters: mysqld.Delta(first.status, last.status), Before: first.debt(), After: last.debt(),
		Samples: samples(shots, marked), cost: spent(first, last),
	}
	for _, s := range shots[marked:] {
		r.Sampling.ServerCPU += s.took.Seconds() / seconds
		r.Queries += float64(s.queries)
	}
	r.Queries -= float64(first.queries) - 1 // its status was read before its second query
	r.Sampling.Samples = len(shots) - marked
	r.Sampling.DavidCPU = (last.david - first.david) / seconds
	r.Evidence = evidence(o, first, last, r.cost, kernel)
	return r
}

func spent(first, last snapshot) totals {
	t := totals{switches: float64(last.stat.ContextSwitches - first.stat.ContextSwitches)}
	if first.server != nil && last.server != nil {
		t.server = ref(last.server.cpu - first.server.cpu)
	}
	t.client = ref(last.children - first.children) // sysbench has ended by now, and was waited for
	if first.disk != nil && last.disk != nil {
		t.readKB = ref(float64(last.disk.ReadSectors-first.disk.ReadSectors) / 2) // of 512 bytes, whatever the device's
		t.writeKB = ref(float64(last.disk.WriteSectors-first.disk.WriteSectors) / 2)
	}
	return t
}

func ref(v float64) *float64 { return &v }

// Costs is what one transaction took, of those completed from Mark to Stop.
func (r Record) Costs(transactions int64) (c result.Costs) {
	if transactions <= 0 {
		return c
	}
	n := float64(transactions)
	per := func(v *float64, unit float64) *float64 {
		if v == nil {
			return nil
		}
		return ref(*v * unit / n)
	}
	c.ServerCPU, c.ClientCPU = per(r.cost.server, 1e6), per(r.cost.client, 1e6)
	c.Switches = ref(r.cost.switches / n)
	c.ReadKB, c.WrittenKB = per(r.cost.readKB, 1), per(r.cost.writeKB, 1)
	// InnoDB's two counters overlap in neither server: the first counts data files, the second the redo log.
	data, log := first(r.Counters, "innodb_data_fsyncs"), first(r.Counters, "innodb_os_log_fsyncs")
	if data != nil {
		sum := *data
		if log != nil {
			sum += *log
		}
		c.Fsyncs = per(&sum, 1)
	}
	c.RedoBytes = per(redo(r.Counters), 1)
	asked, read := first(r.Counters, "innodb_buffer_pool_read_requests"), first(r.Counters, "innodb_buffer_pool_reads")
	if asked != nil && read != nil && *asked > 0 {
		c.HitRate = ref(1 - *read / *asked)
	}
	return c
}

// redo is how far the log sequence number went; where it is not told, the bytes written to the log, which padding inflates.
func redo(counters map[string]float64) *float64 {
	for _, name := range []string{"innodb_redo_log_current_lsn", "innodb_lsn_current", "innodb_os_log_written"} {
		if v := first(counters, name); v != nil {
			return v
		}
	}
	return nil
}

func evidence(o Options, first, last snapshot, t totals, kernel float64) Evidence {
	before, after := first.stat.CPUTotal, last.stat.CPUTotal
	seconds := last.at.Sub(first.at).Seconds()
	busy := after.User + after.Nice + after.System - before.User - before.Nice - before.System
	interrupts := after.IRQ + after.SoftIRQ - before.IRQ - before.SoftIRQ
	steal := math.Max(0, after.Steal-before.Steal) // it runs backwards after some migrations of the guest
	total := busy + interrupts + steal + after.Idle + after.Iowait - before.Idle - before.Iowait
	e := Evidence{
		Steal: steal / total, Others: math.NaN(), ClientCPU: *t.client / seconds, Throttled: (last.throttle - first.throttle) / seconds,
		Clock: last.at.Round(0).Sub(first.at.Round(0)) - last.at.Sub(first.at),
	}
	known := kernel + *t.client + last.david - first.david
	if t.server != nil {
		known += *t.server
	}
	if t.server != nil || o.ServerPID == 0 { // a remote server's CPU is another machine's
		e.Others = math.Max(0, busy-known) / total
	}
	if first.server != nil && last.server != nil {
		e.Swapped = int64(math.Max(0, last.server.swap-first.server.swap))
	}
	return e
}

// samples turns looks into what happened between them.
func samples(shots []snapshot, marked int) []result.Sample {
	var list []result.Sample
	for i := 1; i < len(shots); i++ {
		if i == marked && shots[i].at.Sub(shots[i-1].at).Seconds() < 0.2 {
			continue // too short for a rate
		}
		list = append(list, result.Sample{At: round(shots[i].at.Sub(shots[marked].at).Seconds()), Values: values(shots[i-1], shots[i])})
	}
	return list
}

// round keeps what a sample is worth: its file is read by people.
func round(v float64) float64 { return math.Round(v*1000) / 1000 }

// rates are the status variables shown as change per second, gauges those shown as they are.
func rates() []string {
	return []string{"questions", "com_commit", "innodb_data_reads", "innodb_data_writes", "innodb_data_fsyncs", "innodb_os_log_written",
		"innodb_os_log_fsyncs", "innodb_buffer_pool_read_requests", "innodb_buffer_pool_reads", "innodb_buffer_pool_wait_free",
		"innodb_pages_written", "innodb_rows_read", "innodb_row_lock_waits", "innodb_log_waits", "handler_commit", "bytes_sent"}
}

func gauges() []string {
	return []string{"threads_running", "innodb_buffer_pool_pages_dirty", "innodb_buffer_pool_pages_free", "innodb_row_lock_current_waits"}
}

func values(a, b snapshot) map[string]float64 {
	m := map[string]float64{}
	seconds := b.at.Sub(a.at).Seconds()
	rate := func(name string, before, after float64) { m[name] = round((after - before) / seconds) }
	for _, name := range rates() {
		if before, after := first(a.status, name), first(b.status, name); before != nil && after != nil {
			rate("server."+name+"_per_s", *before, *after)
		}
	}
	for _, name := range gauges() {
		if v := first(b.status, name); v != nil {
			m["server."+name] = *v
		}
	}
	debt := b.debt()
	for name, v := range map[string]*float64{"server.checkpoint_age_bytes": debt.CheckpointAge, "server.history_list": debt.History} {
		if v != nil {
			m[name] = *v
		}
	}
	hostValues(m, rate, a, b)
	diskValues(m, rate, a, b)
	processValues(m, "server", rate, a.server, b.server)
	processValues(m, "client", rate, a.client, b.client)
	return m
}

func hostValues(m map[string]float64, rate func(string, float64, float64), a, b snapshot) {
	x, y := a.stat.CPUTotal, b.stat.CPUTotal
	for name, v := range map[string][2]float64{"user": {x.User, y.User}, "nice": {x.Nice, y.Nice}, "system": {x.System, y.System}, "iowait": {x.Iowait, y.Iowait},
		"irq": {x.IRQ + x.SoftIRQ, y.IRQ + y.SoftIRQ}, "steal": {x.Steal, y.Steal}, "idle": {x.Idle, y.Idle}} {
		rate("host.cpu_"+name+"_cores", v[0], v[1])
	}
	rate("host.context_switches_per_s", float64(a.stat.ContextSwitches), float64(b.stat.ContextSwitches))
	m["host.run_queue"] = float64(b.stat.ProcessesRunning)
	for name, v := range b.stalled {
		rate("host.pressure_"+name+"_us_per_s", a.stalled[name], v)
	}
	rate("host.throttled_s_per_s", a.throttle, b.throttle)
}

func diskValues(m map[string]float64, rate func(string, float64, float64), a, b snapshot) {
	if a.disk == nil || b.disk == nil {
		return
	}
	x, y := a.disk, b.disk
	rate("disk.reads_per_s", float64(x.ReadIOs), float64(y.ReadIOs))
	rate("disk.writes_per_s", float64(x.WriteIOs), float64(y.WriteIOs))
	rate("disk.flushes_per_s", float64(x.FlushRequestsCompleted), float64(y.FlushRequestsCompleted))
	rate("disk.read_kb_per_s", float64(x.ReadSectors)/2, float64(y.ReadSectors)/2)
	rate("disk.write_kb_per_s", float64(x.WriteSectors)/2, float64(y.WriteSectors)/2)
	rate("disk.queue_depth", float64(x.WeightedIOTicks)/1000, float64(y.WeightedIOTicks)/1000) // mean over the second, as iostat's aqu-sz
	await := func(name string, ticks, ios uint64) {
		if ios > 0 {
			m[name] = round(float64(ticks) / float64(ios))
		}
	}
	await("disk.read_ms", y.ReadTicks-x.ReadTicks, y.ReadIOs-x.ReadIOs)
	await("disk.write_ms", y.WriteTicks-x.WriteTicks, y.WriteIOs-x.WriteIOs)
}

func processValues(m map[string]float64, who string, rate func(string, float64, float64), a, b *process) {
	if b == nil {
		return
	}
	m[who+".memory_mib"] = round(b.rss / (1 << 20))
	if a != nil && b.cpu >= a.cpu { // another process, of the warm-up, before it
		rate(who+".cpu_cores", a.cpu, b.cpu)
	}
}
