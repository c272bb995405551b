package explain

import (
	"strings"
	"testing"

	"david/internal/mycnf"
)

// smallPool is a server whose threads mostly run, and read pages that a larger pool would hold; the CPUs wait
// for the disk for much of their time.
func smallPool() Input {
	in := base(mycnf.MySQL)
	in.did(30000, 20, 60, 500, 12, 60)
	in.counters(map[string]float64{"innodb_buffer_pool_reads": 90000, "innodb_buffer_pool_read_requests": 3000000})
	in.samples(map[string]float64{"server.cpu_cores": 1.1, "client.cpu_cores": 0.2, "host.cpu.idle_pct": 4, "host.cpu.iowait_pct": 29, "disk.read_iops": 1500, "disk.write_iops": 300,
		"disk.busy_pct": 60, "disk.queue": 2, "innodb.checkpoint_age_bytes": 1 << 20})
	in.found(2700, "Execute", "SELECT", "executing", "running", "")
	in.found(700, "Execute", "SELECT", "executing", "pread64", "data")
	in.found(440, "Sleep", "", "", "poll", "socket")
	return in
}

// TestPoolBeforeCPUs: where pages are read that a larger pool would hold, it is named before faster CPUs, and
// that the CPUs wait for the disk is not passed over.
func TestPoolBeforeCPUs(t *testing.T) {
	e := Explain(smallPool())
	first := e.Findings[0]
	if first.Cause != ServerCPU {
		t.Fatalf("the scenario is to have the server's CPU first: %+v", e.Findings)
	}
	if !strings.HasPrefix(first.Relief, "innodb_buffer_pool_size=2816M (it is 128M): 3.0 pages a transaction are read") {
		t.Errorf("relief: %s", first.Relief)
	}
	if len(first.Advice) == 0 || first.Advice[0].Name != "buffer-pool-small" {
		t.Errorf("advice: %+v", first.Advice)
	}
	if all := strings.Join(append(first.Evidence, e.Warnings...), "\n"); strings.Count(all, "iowait") != 2 || !strings.Contains(all, "29 %") {
		t.Errorf("no word of iowait in\n%s", all)
	}
	whole := smallPool()
	whole.Arm.Effective["innodb_buffer_pool_size"] = "4294967296"
	if r := Explain(whole).Findings[0].Relief; strings.Contains(r, "innodb_buffer_pool_size=") {
		t.Errorf("with all data in the pool: %s", r)
	}
}
