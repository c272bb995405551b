package explain

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/advice"
	"david/internal/mycnf"
)

// Facts describes a trial's server to the adviser as it would see one that runs: the variables that were read
// back, what the server counted under the load, and the machine less its caps. Of a server on another machine
// the hardware is not known.
func Facts(in Input) advice.Facts {
	t := dividedTrial{Input: in}
	f := advice.Facts{Flavour: t.Server.Flavour, Live: true, Variables: t.Arm.Effective, Status: map[string]string{}}
	f.Version, _ = mycnf.ParseVersion(t.Server.Version) // one that cannot be read has no variables
	for name, n := range t.Trial.Counters {
		f.Status[name] = fmt.Sprintf("%.0f", n)
	}
	f.Status["uptime"] = fmt.Sprintf("%.0f", t.Trial.Seconds)
	if t.Trial.Workload.Tables > 0 {
		f.Machine.Data, f.Machine.DataSeen = int64(t.dataPages()*t.pageSize()), true
	}
	if a := t.Server.Address; a != "" && a[0] != '/' {
		return f
	}
	f.Machine.Memory, f.Machine.RAM, f.Machine.CPUs = int64(t.memory()), t.Host.Memory.Total, t.Host.CPU.Usable
	if n := t.Arm.Caps.CPUs; n > 0 {
		f.Machine.CPUs = n
	}
	f.Machine.FreeDisk, f.Machine.WriteIOPS = t.Host.Data.Free, t.limits().WriteIOPS
	return f
}

// eases lists the variables that may relieve a cause, the one that may do most first.
func (t dividedTrial) eases(c Cause) []string {
	switch c {
	case ServerCPU, Throttling:
		list := []string{"performance_schema", "general_log", "long_query_time", "slow_query_log", "query_cache_type", "table_open_cache",
			"innodb_sync_spin_loops", "innodb_spin_wait_delay", "innodb_purge_threads"}
		if t.readsMuch() {
			list = append([]string{"innodb_buffer_pool_size"}, list...)
		}
		return list
	case ReadIO:
		return []string{"innodb_buffer_pool_size"}
	case Redo:
		return []string{"innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_buffer_size"}
	case Flushing:
		list := []string{"innodb_io_capacity", "innodb_io_capacity_max", "innodb_flush_neighbors"}
		if t.evicted() > 0.05 {
			list = append([]string{"innodb_buffer_pool_size"}, list...)
		}
		if t.full() && t.spared() > 0.25 {
			list = append(list, "innodb_redo_log_capacity", "innodb_log_file_size")
		}
		return list
	case Doublewr:
		return []string{"innodb_doublewrite_pages"}
	case Commit:
		return []string{"innodb_use_fdatasync", "innodb_log_buffer_size"}
	case Latches:
		return []string{"innodb_adaptive_hash_index", "query_cache_type", "table_open_cache", "innodb_sync_spin_loops"}
	}
	return nil
}

// readsMuch tells whether pages are read so often that it costs CPU to be noticed: one in ten transactions.
func (t dividedTrial) readsMuch() bool { return t.each("innodb_buffer_pool_reads") >= 0.1 }

// advised returns what the adviser proposes that may relieve a cause.
func (t dividedTrial) advised(c Cause) (list []advice.Finding) {
	for _, name := range t.eases(c) {
		i := slices.IndexFunc(t.advice, func(f advice.Finding) bool {
			s, ok := f.Setting()
			return ok && s.Name == name
		})
		if i >= 0 {
			list = append(list, t.advice[i])
		}
	}
	return list
}

// relieved returns what helps, settings first: they cost nothing.
func (t dividedTrial) relieved(c Cause, list []advice.Finding) string {
	var lines []string
	for _, f := range list {
		lines = append(lines, fmt.Sprintf("%s (it is %s)", f.Line, t.now(f.Variable)))
	}
	if c == ServerCPU && len(list) > 0 && list[0].Variable == "innodb_buffer_pool_size" {
		lines[0] += say(": %.1f pages a transaction are read from the disk, and reading costs CPU too", t.each("innodb_buffer_pool_reads"))
	}
	return strings.Join(append(lines, t.relief(c)), "; ")
}

// now returns a variable's value, a size as my.cnf writes it.
func (t dividedTrial) now(name string) string {
	value := t.Arm.Effective[name]
	if n, err := mycnf.ParseSize(value); err == nil && mycnf.Plain(name, "1K") == "1024" {
		return mycnf.FormatSize(n)
	}
	return value
}

// waitsForDisk is the share of the time, in %, from which on idle CPUs that wait for the disk are worth a
// word.
const waitsForDisk = 10

// waiting says so where CPUs are named first though they had nothing to do but wait for the disk.
func (t dividedTrial) waiting(list []Finding) []string {
	v, ok := t.mean("host.cpu.iowait_pct")
	if !ok || v < waitsForDisk || len(list) == 0 || list[0].Cause != ServerCPU && list[0].Cause != ClientCPU {
		return nil
	}
	return []string{say("the CPUs had nothing to do but wait for the disk in %.0f %% of their time (iowait): reading or writing less may give more than faster CPUs", v)}
}
