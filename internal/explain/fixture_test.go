package explain

import (
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
)

// scenario describes a trial made by hand, with the numbers such a trial has, and the cause it is made to
// have.
type scenario struct {
	name string
	want Cause
	in   Input
}

// base returns a measured run of 60 s with 16 threads on 2 CPUs in which nothing happened yet.
func base(f mycnf.Flavour) Input {
	effective := map[string]string{"innodb_page_size": "16384", "innodb_buffer_pool_size": "134217728", "log_bin": "ON", "sync_binlog": "1",
		"innodb_flush_log_at_trx_commit": "1", "innodb_redo_log_capacity": "104857600"}
	version := "9.7.4-2"
	if f == mycnf.MariaDB {
		version = "10.11.19-MariaDB"
		delete(effective, "innodb_redo_log_capacity")
		effective["innodb_log_file_size"] = "100663296"
	}
	return Input{Experiment: "bench-1", Arm: result.Arm{Name: "control", Effective: effective},
		Server: result.Server{Flavour: f, Version: version},
		Host:   host.Facts{CPU: host.CPU{Online: 2, Usable: 2}, Memory: host.Memory{Total: 16 << 30, Limit: 16 << 30}},
		Trial: result.Trial{ID: "0123456789abcdef", Arm: "control", Block: 1, Seconds: 60,
			Workload: result.Workload{Name: "oltp_read_write", Tables: 10, TableSize: 1000000, Threads: 16, Seconds: 60, RandType: "uniform"},
			Counters: map[string]float64{"questions": 1}, Profile: &result.Profile{Looks: 240, Connections: 16}}}
}

// did sets what was done: transactions, queries in each, and the CPU seconds and waits of connections and
// client.
func (in *Input) did(transactions, queries int64, ran, queued, clientRan, clientQueued float64) {
	t := &in.Trial
	t.Transactions, t.Queries = transactions, transactions*queries
	t.TPS = float64(transactions) / t.Seconds
	t.Profile.Threads = []result.Threads{{Name: "connection", Count: t.Workload.Threads, CPU: ran, Wait: queued}, {Name: "ib_pg_flush", Count: 1, CPU: 1}}
	t.Profile.Client = result.Threads{Name: "sysbench", Count: t.Workload.Threads + 1, CPU: clientRan, Wait: clientQueued}
	n := float64(transactions)
	t.Costs.ServerCPU, t.Costs.ClientCPU = point((ran+4)*1e6/n), point(clientRan*1e6/n)
}

func point(v float64) *float64 { return &v }

// samples gives every second the same values.
func (in *Input) samples(values map[string]float64) {
	for i := range 60 {
		in.Trial.Samples = append(in.Trial.Samples, result.Sample{At: float64(i + 1), Values: values})
	}
}

func (in *Input) counters(values map[string]float64) {
	for name, v := range values {
		in.Trial.Counters[name] = v
	}
}

// found adds a state: its fields in the order of result.State.
func (in *Input) found(count int64, command, statement, stage, kernel, file string) {
	in.Trial.Profile.States = append(in.Trial.Profile.States, result.State{Command: command, Statement: statement, Stage: stage, Kernel: kernel, File: file, Count: count})
}

// scenarios returns the eight physical causes, and some that are not physical.
func scenarios() []scenario {
	return []scenario{
		{"server-cpu", ServerCPU, serverCPU()}, {"client-cpu", ClientCPU, clientCPU()}, {"read-io", ReadIO, readIO()},
		{"page-flushing", Flushing, pageFlushing()}, {"commit", Commit, commitLatency()}, {"redo", Redo, redoTooSmall()},
		{"hot-row", RowLocks, hotRow()}, {"network", Network, network()}, {"throttled", Throttling, throttled()}, {"bandwidth", Bandwidth, bandwidth()},
		{"latched-pages", Flushing, latchedPages()}, {"neighbour", Neighbour, neighbour()}, {"remote", Commit, remote()},
	}
}

// serverCPU: 16 threads of point selects in memory on 2 CPUs.
func serverCPU() Input {
	in := base(mycnf.MySQL)
	in.did(78000, 14, 88, 690, 18, 120)
	in.samples(map[string]float64{"server.cpu_cores": 1.55, "client.cpu_cores": 0.31, "host.cpu.idle_pct": 3, "disk.write_iops": 5, "disk.read_iops": 0, "disk.busy_pct": 1, "disk.queue": 0.1, "innodb.checkpoint_age_bytes": 1 << 20})
	in.found(3120, "Execute", "SELECT", "executing", "running", "")
	in.found(610, "Sleep", "", "", "poll", "socket")
	in.found(110, "Execute", "SELECT", "statistics", "futex", "")
	return in
}

// clientCPU: the load generator is pinned to a fifth of a CPU.
func clientCPU() Input {
	in := base(mycnf.MariaDB)
	in.did(9000, 20, 12, 6, 12, 860)
	in.Trial.Gates = []result.Gate{{Name: "client CPU", OK: false, Detail: "the load generator used 0.20 of the 0.2 CPUs its threads could use (limit 90 %)"}}
	in.samples(map[string]float64{"server.cpu_cores": 0.25, "client.cpu_cores": 0.2, "host.cpu.idle_pct": 76, "disk.write_iops": 300, "disk.read_iops": 0, "disk.busy_pct": 12, "disk.queue": 0.2, "innodb.checkpoint_age_bytes": 1 << 20})
	in.found(3560, "Sleep", "", "", "poll", "socket")
	in.found(90, "Execute", "SELECT", "Sending data", "running", "")
	in.found(120, "Execute", "COMMIT", "Commit", "fdatasync", "binlog")
	in.found(70, "Execute", "COMMIT", "Waiting for prior transaction to commit", "futex", "")
	return in
}

// readIO: a buffer pool of 128 MiB for 2.2 GiB of data on a volume of 1,000 reads a second.
func readIO() Input {
	in := base(mycnf.MySQL)
	in.Arm.Caps.IOPS = 1000
	in.did(2400, 20, 9, 4, 1.2, 0.6)
	in.counters(map[string]float64{"innodb_buffer_pool_reads": 58800, "innodb_buffer_pool_read_requests": 580000, "innodb_pages_written": 24000,
		"innodb_dblwr_pages_written": 24000, "innodb_dblwr_writes": 240, "innodb_os_log_fsyncs": 2300})
	in.Trial.Costs.HitRate = point(0.899)
	in.samples(map[string]float64{"server.cpu_cores": 0.3, "client.cpu_cores": 0.02, "host.cpu.idle_pct": 80, "disk.read_iops": 982, "disk.write_iops": 540,
		"disk.read_kb_per_s": 15712, "disk.write_kb_per_s": 13000, "disk.read_await_ms": 0.2, "disk.write_await_ms": 0.7, "disk.busy_pct": 30, "disk.queue": 1,
		"innodb.dirty_pages": 2200, "innodb.checkpoint_age_bytes": 12 << 20})
	in.found(3180, "Execute", "SELECT", "executing", "pread64", "data")
	in.found(380, "Execute", "UPDATE", "updating", "pread64", "data")
	in.found(50, "Execute", "SELECT", "executing", "running", "")
	in.found(110, "Execute", "COMMIT", "waiting for handler commit", "futex", "")
	in.found(60, "Execute", "COMMIT", "waiting for handler commit", "fdatasync", "binlog")
	in.found(60, "Execute", "SELECT", "executing", "futex", "")
	return in
}

// pageFlushing: updates all over the data, and a volume of 1,000 writes a second.
func pageFlushing() Input {
	in := base(mycnf.MariaDB)
	in.Arm.Caps.IOPS = 1000
	in.Arm.Effective["innodb_buffer_pool_size"] = "4294967296"
	in.Trial.Workload.Name = "oltp_update_index"
	in.did(11000, 1, 6, 3, 0.9, 0.4)
	in.counters(map[string]float64{"innodb_pages_written": 43000, "innodb_dblwr_pages_written": 43000, "innodb_dblwr_writes": 700, "innodb_data_fsyncs": 9000,
		"binlog_commits": 11000, "binlog_group_commits": 3000})
	in.Trial.Costs.RedoBytes = point(1900)
	in.samples(map[string]float64{"server.cpu_cores": 0.2, "client.cpu_cores": 0.02, "host.cpu.idle_pct": 88, "disk.read_iops": 2, "disk.write_iops": 985,
		"disk.write_kb_per_s": 25000, "disk.write_await_ms": 0.3, "disk.busy_pct": 25, "disk.queue": 1, "innodb.dirty_pages": 14000, "innodb.checkpoint_age_bytes": 64 << 20})
	in.found(2100, "Execute", "UPDATE", "Commit", "futex", "")
	in.found(500, "Execute", "UPDATE", "Commit", "fdatasync", "binlog")
	in.found(300, "Execute", "UPDATE", "Commit", "pwrite64", "redo")
	in.found(850, "Execute", "UPDATE", "Updating", "futex", "")
	in.found(30, "Execute", "UPDATE", "Updating", "running", "")
	in.found(60, "Sleep", "", "", "poll", "socket")
	return in
}

// latchedPages: as seen on MySQL 9.7 with 500 writes a second, whose redo log was not full: who changes rows
// sleeps for pages that are being written.
func latchedPages() Input {
	in := base(mycnf.MySQL)
	in.Arm.Caps.IOPS = 500
	in.Arm.Effective["innodb_buffer_pool_size"], in.Arm.Effective["innodb_redo_log_capacity"] = "536870912", "16777216"
	in.Trial.Workload.Threads, in.Trial.Workload.Tables, in.Trial.Workload.TableSize, in.Trial.Seconds = 8, 2, 200000, 10
	in.Trial.Profile = &result.Profile{Looks: 47, Connections: 8}
	in.did(769, 1, 0.36, 0.72, 0.08, 0.19)
	in.counters(map[string]float64{"innodb_pages_written": 3412, "innodb_dblwr_pages_written": 3316, "innodb_dblwr_writes": 29, "innodb_os_log_fsyncs": 403})
	in.samples(map[string]float64{"server.cpu_cores": 0.1, "client.cpu_cores": 0.01, "host.cpu.idle_pct": 40, "disk.read_iops": 0, "disk.write_iops": 475,
		"disk.write_kb_per_s": 11650, "disk.busy_pct": 10, "disk.queue": 0.9, "innodb.dirty_pages": 759, "innodb.checkpoint_age_bytes": 8038500})
	in.found(166, "Execute", "UPDATE", "waiting for handler commit", "futex", "")
	in.found(140, "Execute", "UPDATE", "updating", "futex", "")
	in.found(22, "Execute", "UPDATE", "waiting for handler commit", "fdatasync", "redo")
	in.found(21, "Execute", "UPDATE", "waiting for handler commit", "fdatasync", "binlog")
	in.found(14, "Execute", "UPDATE", "waiting for handler commit", "running", "")
	in.found(1, "Sleep", "", "", "ppoll", "socket")
	return in
}

// commitLatency: one thread on a volume that takes 10 ms for a sync.
func commitLatency() Input {
	in := base(mycnf.MySQL)
	in.Arm.Caps.IOPS = 300
	in.Trial.Workload.Threads, in.Trial.Workload.Tables, in.Trial.Workload.TableSize = 1, 1, 10000
	in.Trial.Profile = &result.Profile{Looks: 590, Connections: 1}
	in.did(3700, 4, 2.2, 0.1, 0.6, 0.1)
	in.counters(map[string]float64{"innodb_pages_written": 1900, "innodb_dblwr_pages_written": 1900, "innodb_dblwr_writes": 60, "innodb_os_log_fsyncs": 3720})
	in.Trial.Costs.Fsyncs = point(1.1)
	in.samples(map[string]float64{"server.cpu_cores": 0.08, "client.cpu_cores": 0.01, "host.cpu.idle_pct": 95, "disk.read_iops": 0, "disk.write_iops": 288,
		"disk.write_kb_per_s": 2400, "disk.write_await_ms": 0.3, "disk.flushes_per_s": 123, "disk.busy_pct": 6, "disk.queue": 0.1, "innodb.dirty_pages": 120, "innodb.checkpoint_age_bytes": 3 << 20})
	in.Trial.Profile.Waits = []result.Wait{{Name: "wait/io/file/sql/binlog", Count: 7400, Seconds: 27}, {Name: "wait/io/file/innodb/innodb_log_file", Count: 7450, Seconds: 26}}
	in.Trial.Profile.Statements = []result.Statement{{Text: "COMMIT", Count: 3700, Seconds: 54}, {Text: "UPDATE `sbtest1` SET `k` = `k` + ? WHERE `id` = ?", Count: 3700, Seconds: 1.2, Examined: 3700}}
	in.found(270, "Execute", "COMMIT", "waiting for handler commit", "fdatasync", "binlog")
	in.found(260, "Execute", "COMMIT", "waiting for handler commit", "futex", "")
	in.found(22, "Execute", "UPDATE", "updating", "running", "")
	in.found(38, "Sleep", "", "", "poll", "socket")
	return in
}

// redoTooSmall: 8 MiB of redo for 16 writers on a fast disk.
func redoTooSmall() Input {
	in := base(mycnf.MySQL)
	in.Arm.Effective["innodb_redo_log_capacity"], in.Arm.Effective["innodb_buffer_pool_size"] = "8388608", "4294967296"
	in.did(21000, 6, 42, 60, 5, 8)
	in.counters(map[string]float64{"innodb_pages_written": 310000, "innodb_dblwr_pages_written": 310000, "innodb_dblwr_writes": 5200, "innodb_os_log_fsyncs": 9000})
	in.Trial.Costs.RedoBytes = point(5200)
	in.samples(map[string]float64{"server.cpu_cores": 1.2, "client.cpu_cores": 0.1, "host.cpu.idle_pct": 30, "disk.read_iops": 10, "disk.write_iops": 6100,
		"disk.write_kb_per_s": 170000, "disk.write_await_ms": 0.5, "disk.busy_pct": 84, "disk.queue": 5, "innodb.dirty_pages": 900, "innodb.checkpoint_age_bytes": 5.6 * (1 << 20)})
	in.found(1480, "Execute", "UPDATE", "updating", "clock_nanosleep", "")
	in.found(420, "Execute", "INSERT", "update", "futex", "")
	in.found(300, "Execute", "DELETE", "updating", "futex", "")
	in.found(420, "Execute", "COMMIT", "waiting for handler commit", "futex", "")
	in.found(200, "Execute", "COMMIT", "waiting for handler commit", "fdatasync", "binlog")
	in.found(420, "Execute", "UPDATE", "updating", "running", "")
	in.found(600, "Sleep", "", "", "poll", "socket")
	return in
}

// hotRow: 16 writers of ten rows.
func hotRow() Input {
	in := base(mycnf.MariaDB)
	in.Trial.Workload.Tables, in.Trial.Workload.TableSize, in.Trial.Workload.RandType = 1, 10, "special"
	in.did(24000, 1, 7, 5, 1.5, 1)
	in.counters(map[string]float64{"innodb_row_lock_waits": 23800, "innodb_row_lock_time": 810000, "innodb_pages_written": 200, "innodb_data_fsyncs": 24000})
	in.samples(map[string]float64{"server.cpu_cores": 0.3, "client.cpu_cores": 0.03, "host.cpu.idle_pct": 82, "disk.read_iops": 0, "disk.write_iops": 900, "disk.write_kb_per_s": 6000,
		"disk.busy_pct": 40, "disk.queue": 0.6, "innodb.dirty_pages": 30, "innodb.checkpoint_age_bytes": 2 << 20, "innodb.row_lock_waiters": 13.4})
	in.found(3260, "Execute", "UPDATE", "Updating", "futex", "")
	in.found(240, "Execute", "UPDATE", "Commit", "fdatasync", "binlog")
	in.found(160, "Execute", "UPDATE", "Commit", "fdatasync", "redo")
	in.found(50, "Execute", "UPDATE", "Updating", "running", "")
	in.found(100, "Sleep", "", "", "poll", "socket")
	return in
}

// network: 16 threads through a proxy that adds 2 ms to each round trip.
func network() Input {
	in := base(mycnf.MySQL)
	in.Server.Address = "127.0.0.1:3310"
	in.did(20600, 20, 24, 11, 6, 5)
	in.samples(map[string]float64{"server.cpu_cores": 0.5, "client.cpu_cores": 0.12, "host.cpu.idle_pct": 62, "disk.read_iops": 0, "disk.write_iops": 700, "disk.write_kb_per_s": 9000, "disk.busy_pct": 30, "disk.queue": 0.6, "innodb.checkpoint_age_bytes": 5 << 20})
	in.found(3420, "Sleep", "", "", "poll", "socket")
	in.found(150, "Execute", "SELECT", "executing", "running", "")
	in.found(270, "Execute", "COMMIT", "waiting for handler commit", "futex", "")
	return in
}

// bandwidth: reads over a path that is held to 20 Mbit/s, of which the answers take most.
func bandwidth() Input {
	in := base(mycnf.MariaDB)
	in.Arm.Name, in.Arm.Path = "host-20Mbit", result.Path{Kind: "host", Rate: 20_000_000}
	in.Arm.PathProbe = &result.PathProbe{Runs: 3, Rate: 19.1e6, RTT50: 31, RTT99: 80, RTTCPU: 22}
	in.Trial.Workload.Threads, in.Trial.Profile.Connections = 4, 4
	in.did(3350, 16, 7, 1, 4, 1)
	in.Trial.Costs.Network = point(42.9 * 1024)
	in.Trial.Wire = &result.Wire{Link: "path2", In: 18.9e6, Out: 1.1e6}
	in.samples(map[string]float64{"server.cpu_cores": 0.13, "client.cpu_cores": 0.07, "host.cpu.idle_pct": 88, "disk.read_iops": 0, "disk.write_iops": 1})
	in.found(40, "Execute", "SELECT", "Sending data", "running", "")
	in.found(920, "Sleep", "", "", "recvfrom", "socket")
	return in
}

// throttled: the server is capped to half a CPU; the kernel does not count being held back as waiting.
func throttled() Input {
	in := base(mycnf.MySQL)
	in.Arm.Caps.CPUs = 0.5
	in.did(24000, 14, 28, 60, 6, 4)
	in.Trial.Gates = []result.Gate{{Name: "CPU throttling", OK: true, Detail: "a CPU quota held the server back for 61.2 % of the time, the client for 0.0 % (limit 1 %); the server's is a cap that was asked for"}}
	held := 0.612
	in.Trial.ServerThrottled = &held
	in.samples(map[string]float64{"server.cpu_cores": 0.49, "client.cpu_cores": 0.1, "host.cpu.idle_pct": 70, "disk.read_iops": 0, "disk.write_iops": 3, "innodb.checkpoint_age_bytes": 1 << 20})
	in.found(3500, "Execute", "SELECT", "executing", "running", "")
	in.found(340, "Sleep", "", "", "poll", "socket")
	return in
}

// neighbour: another process takes one of two CPUs.
func neighbour() Input {
	in := base(mycnf.MySQL)
	in.did(30000, 14, 34, 700, 9, 140)
	in.Trial.Gates = []result.Gate{{Name: "other processes", OK: false, Detail: "60.0 % of the machine's CPU time was used by processes that are neither the server, the client nor david (limit 15 %): stress (process 4711): 1.20 cores"}}
	in.Trial.Disturbance = &result.Disturbance{Others: 0.6}
	in.samples(map[string]float64{"server.cpu_cores": 0.62, "client.cpu_cores": 0.16, "host.cpu.idle_pct": 0.5, "disk.read_iops": 0, "disk.write_iops": 3, "innodb.checkpoint_age_bytes": 1 << 20})
	in.found(3130, "Execute", "SELECT", "executing", "running", "")
	in.found(710, "Sleep", "", "", "poll", "socket")
	return in
}

// remote: of a server on another machine there is the process list alone.
func remote() Input {
	in := base(mycnf.MySQL)
	in.Server.Address = "db.example:3306"
	in.did(9000, 4, 0, 0, 2, 1)
	in.Trial.Profile.Threads = nil
	in.Trial.Profile.Missing = []string{"threads: the server is not a process david knows on this machine"}
	in.found(2500, "Execute", "COMMIT", "waiting for handler commit", "", "")
	in.found(700, "Sleep", "", "", "", "")
	in.found(640, "Execute", "UPDATE", "updating", "", "")
	return in
}
