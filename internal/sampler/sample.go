package sampler

import (
	"maps"
	"slices"

	"github.com/prometheus/procfs"
)

// values makes a sample of two readings: totals become their growth a second, or a share of that second.
func values(before, after snapshot) map[string]float64 {
	seconds := after.at.Sub(before.at).Seconds()
	v := map[string]float64{}
	if seconds <= 0 {
		return v
	}
	statusValues(v, before, after, seconds)
	hostValues(v, before, after, seconds)
	diskValues(v, before, after, seconds)
	processValues(v, "server", before.server, after.server, seconds)
	processValues(v, "client", before.client, after.client, seconds)
	return v
}

// statusValues puts in what the server said.
func statusValues(values map[string]float64, before, after snapshot, seconds float64) {
	for _, s := range statuses() {
		now, ok := after.status[s.variable]
		then, had := before.status[s.variable]
		switch {
		case ok && s.gauge:
			values[s.name] = now * s.scale
		case ok && had:
			values[s.name] = max(0, now-then) * s.scale / seconds
		}
	}
	d := debt(after.status)
	for name, v := range map[string]*float64{
		"innodb.checkpoint_age_bytes": d.CheckpointAge, "innodb.dirty_pages": d.DirtyPages, "innodb.history_list": d.History,
	} {
		if v != nil {
			values[name] = *v
		}
	}
}

// modes returns the ways CPU time is spent, in seconds since the machine's start, by the sample's name. Guest
// time is part of user and nice.
func modes(c procfs.CPUStat) map[string]float64 {
	return map[string]float64{
		"host.cpu.user_pct": c.User, "host.cpu.nice_pct": c.Nice, "host.cpu.system_pct": c.System, "host.cpu.idle_pct": c.Idle,
		"host.cpu.iowait_pct": c.Iowait, "host.cpu.irq_pct": c.IRQ + c.SoftIRQ, "host.cpu.steal_pct": c.Steal,
	}
}

// total returns all CPU time, in seconds.
func total(c procfs.CPUStat) (sum float64) {
	for _, s := range modes(c) {
		sum += s
	}
	return sum
}

// hostValues puts in CPU, run queue, stalls and swapping of the whole machine.
func hostValues(values map[string]float64, before, after snapshot, seconds float64) {
	if all := total(after.cpu) - total(before.cpu); all > 0 {
		old := modes(before.cpu)
		for name, now := range modes(after.cpu) {
			values[name] = max(0, 100*(now-old[name])/all) // iowait can run backwards (proc_stat(5))
		}
		values["host.runnable"] = after.runnable
		values["host.switches_per_s"] = (after.switches - before.switches) / seconds
	}
	for name, now := range after.pressure {
		if then, ok := before.pressure[name]; ok {
			values[name] = 100 * (now - then) / seconds
		}
	}
	for name, field := range map[string]string{"host.swap_in_pages_per_s": "pswpin", "host.swap_out_pages_per_s": "pswpout"} {
		if now, ok := after.vm[field]; ok {
			values[name] = (now - before.vm[field]) / seconds
		}
	}
}

// sectorKiB is the unit of /proc/diskstats, 512 bytes whatever the device's own
// (Documentation/admin-guide/iostats.rst), in KiB.
const sectorKiB = 0.5

// diskValues puts in what the device did. Waiting times are there only in a second with operations.
func diskValues(values map[string]float64, before, after snapshot, seconds float64) {
	if before.disk == nil || after.disk == nil {
		return
	}
	b, a := before.disk.IOStats, after.disk.IOStats
	growth := func(then, now uint64) float64 { return float64(now - then) }
	reads, writes := growth(b.ReadIOs, a.ReadIOs), growth(b.WriteIOs, a.WriteIOs)
	values["disk.read_iops"], values["disk.write_iops"] = reads/seconds, writes/seconds
	values["disk.reads_merged_per_s"] = growth(b.ReadMerges, a.ReadMerges) / seconds
	values["disk.writes_merged_per_s"] = growth(b.WriteMerges, a.WriteMerges) / seconds
	values["disk.read_kb_per_s"] = growth(b.ReadSectors, a.ReadSectors) * sectorKiB / seconds
	values["disk.write_kb_per_s"] = growth(b.WriteSectors, a.WriteSectors) * sectorKiB / seconds
	values["disk.queue"] = growth(b.WeightedIOTicks, a.WeightedIOTicks) / 1000 / seconds
	values["disk.busy_pct"] = min(100, growth(b.IOsTotalTicks, a.IOsTotalTicks)/10/seconds)
	if after.disk.IoStatsCount >= 20 { // Linux 5.5 and later
		values["disk.flushes_per_s"] = growth(b.FlushRequestsCompleted, a.FlushRequestsCompleted) / seconds
	}
	if reads > 0 {
		values["disk.read_await_ms"] = growth(b.ReadTicks, a.ReadTicks) / reads
	}
	if writes > 0 {
		values["disk.write_await_ms"] = growth(b.WriteTicks, a.WriteTicks) / writes
	}
}

// processValues puts in a process's CPU and memory; no CPU in the second in which it appeared.
func processValues(values map[string]float64, who string, before, after *processStat, seconds float64) {
	if after == nil {
		return
	}
	values[who+".rss_mib"] = after.rss
	if before.same(after) {
		values[who+".cpu_cores"] = (after.cpu - before.cpu) / seconds
	}
}

// names returns those of all values a sample can have, sorted.
func names() []string {
	all := []string{
		"innodb.checkpoint_age_bytes", "innodb.dirty_pages", "innodb.history_list",
		"host.runnable", "host.switches_per_s", "host.swap_in_pages_per_s", "host.swap_out_pages_per_s",
		"pressure.cpu_some_pct", "pressure.io_some_pct", "pressure.io_full_pct", "pressure.memory_some_pct", "pressure.memory_full_pct",
		"disk.read_iops", "disk.write_iops", "disk.reads_merged_per_s", "disk.writes_merged_per_s", "disk.read_kb_per_s", "disk.write_kb_per_s", "disk.read_await_ms", "disk.write_await_ms",
		"disk.queue", "disk.busy_pct", "disk.flushes_per_s",
		"server.cpu_cores", "server.rss_mib", "client.cpu_cores", "client.rss_mib",
	}
	for _, s := range statuses() {
		all = append(all, s.name)
	}
	all = slices.AppendSeq(all, maps.Keys(modes(procfs.CPUStat{})))
	slices.Sort(all)
	return all
}
