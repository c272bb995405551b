package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// The fixtures are made up, from a fixed seed, in the shape and size of real experiments: every verdict
// occurs.

const (
	warmup  = 8
	seconds = 30
)

func fixtureWorkload(threads int) result.Workload {
	return result.Workload{Name: "oltp_read_write", Tables: 10, TableSize: 1_000_000, Threads: threads, Seconds: seconds,
		Warmup: warmup, RandType: "uniform", Database: "sbtest"}
}

func fixtureExperiment(kind result.Kind, workloads ...result.Workload) result.Experiment {
	return result.Experiment{
		Schema: result.Schema, ID: string(kind) + "-20250102-150405", Kind: kind, Created: time.Date(2025, 1, 2, 15, 4, 5, 0, time.UTC),
		David: "0.1.0", Sysbench: "1.0.20", Argv: []string{"david", string(kind), "--server", "mysql", "--set", "a=b c"}, Target: "sandbox",
		Server: result.Server{Path: "/usr/sbin/mysqld", SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
			Flavour: mycnf.MySQL, Version: "9.7.4", Comment: "MySQL Community Server - GPL"},
		Workloads: workloads,
		Host: host.Facts{OS: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0-28-amd64", Arch: "amd64", Virt: "kvm",
			CPU:    host.CPU{Model: "AMD EPYC 7763 64-Core Processor", Online: 4, Usable: 2, Sockets: 1},
			Memory: host.Memory{Total: 16 << 30, Available: 14 << 30, Limit: 8 << 30},
			Cgroup: host.Cgroup{Version: "v2", Path: "/", MemoryLimit: 8 << 30, CPULimit: 2},
			Disks: []host.Disk{{Name: "nvme0n1", Model: "Cloud Volume", Size: 140 << 30, Scheduler: "none", WriteCache: "write through",
				ReadAhead: 128 << 10, BlockSize: 4096}},
			Data: host.Filesystem{Path: "/var/lib/david", Mount: "/", Device: "/dev/nvme0n1p1", Disk: "nvme0n1", Type: "xfs",
				Options: []string{"rw", "noatime"}, Size: 140 << 30, Free: 98 << 30, Block: 4096, Reflink: true},
			Kernels: map[string]string{"vm.swappiness": "60", "transparent_hugepage": "madvise"}},
		Notes: []string{"the data template was cloned by reflink for every run"},
	}
}

// fixtureTrial makes a run of about that throughput. Its summary follows from its points and histogram.
func fixtureTrial(rng *rand.Rand, arm result.Arm, w result.Workload, block int, tps, scale float64) result.Trial {
	t := result.Trial{Schema: result.Schema, Arm: arm.Name, Block: block, Workload: w,
		Started: time.Date(2025, 1, 2, 15, 6, 0, 0, time.UTC), Seconds: seconds + 0.01,
		Gates:    []result.Gate{{Name: "row counts", OK: true, Detail: "10 x 1000000"}, {Name: "steal", OK: true, Detail: "0.3 % of the CPU"}},
		Counters: map[string]float64{"Com_commit": tps * (warmup + seconds)},
		Overhead: result.Overhead{Reset: 0.4, Start: 1.9, Stop: 0.8, Other: 0.3}}
	t.ID = result.TrialID(arm, w, block, 0, false, result.Server{}, "16384")
	t.Points = fixturePoints(rng, tps, scale)
	t.Histogram = fixtureHistogram(rng, int64(tps*seconds), scale)
	var rates []float64
	for _, p := range t.Points[warmup:] {
		rates = append(rates, p.TPS)
		if p.TPS == 0 {
			t.Stalls++
		}
	}
	h, n := t.Histogram, int64(0)
	for _, b := range h {
		n += b.Count
	}
	t.TPS, t.QPS, t.Transactions, t.Queries, t.Errors = tps, 20*tps, n, 20*n, rng.Int64N(4)
	t.StdDevTPS = stats.StdDev(rates)
	t.Latency = result.Latency{Min: h[0].Ms, Avg: float64(w.Threads) * 1000 / tps, P50: stats.Percentile(h, 50),
		P95: stats.Percentile(h, 95), P99: stats.Percentile(h, 99), Max: h[len(h)-1].Ms}
	return t
}

func fixturePoints(rng *rand.Rand, tps, scale float64) []result.Point {
	var points []result.Point
	for s := 1; s <= warmup+seconds; s++ {
		x := tps * (1 - 0.5*math.Exp(-float64(s)/3)) * (1 + 0.04*rng.NormFloat64())
		p95 := 1.6 * scale * (1 + 0.1*rng.Float64())
		if s == 23 && tps < 550 { // a checkpoint that took all
			x, p95 = 0, 0
		}
		points = append(points, result.Point{Second: s, Warm: s <= warmup, TPS: cents(x), QPS: cents(20 * x), P95: cents(p95)})
	}
	return points
}

// fixtureHistogram spreads n transactions log-normally over sysbench's buckets, 1,023 from 0.001 to 100,000
// ms.
func fixtureHistogram(rng *rand.Rand, n int64, scale float64) []result.Bucket {
	counts := map[int]int64{}
	least, most := math.MaxInt, math.MinInt
	for range n {
		ms := scale * math.Exp(0.32*rng.NormFloat64()+0.9*max(0, rng.NormFloat64()-2.2))
		i := int(math.Floor((math.Log10(ms) + 3) * 1023 / 8))
		counts[i]++
		least, most = min(least, i), max(most, i)
	}
	var h []result.Bucket
	for i := least; i <= most; i++ {
		if counts[i] > 0 {
			h = append(h, result.Bucket{Ms: math.Round(1000*math.Pow(10, float64(i)*8/1023-3)) / 1000, Count: counts[i]})
		}
	}
	return h
}

func cents(x float64) float64 { return math.Round(100*x) / 100 }

// fixtureArms returns the control and one arm for each group of settings, one of them without a difference
// and one that the server does not start with.
func fixtureArms() []result.Arm {
	var arms []result.Arm
	add := func(name, title, base, variable, before, after string) *result.Arm {
		a := result.Arm{Schema: result.Schema, Order: len(arms) + 1, Name: name, Title: title, Base: base}
		if variable != "" {
			s := mycnf.Setting{Name: variable, Value: after, Group: name, Reason: title, Source: "MySQL Reference Manual, InnoDB Startup Options"}
			a.Changes, a.Settings = []mycnf.Setting{s}, []mycnf.Setting{s}
			a.Diff = []result.Difference{{Name: variable, Before: before, After: after}}
		}
		arms = append(arms, a)
		return &arms[len(arms)-1]
	}
	add("control", "the server's defaults, with the durability lock", "", "", "", "")
	page := add("page", "pages of 16 KiB over blocks of 4 KiB", "control", "innodb_page_size", "16384", "16384")
	page.Noop, page.Diff = true, nil
	add("memory", "buffer pool sized to the memory", "control", "innodb_buffer_pool_size", "134217728", "5368709120")
	redo := add("redo", "redo log large enough for an hour's writes", "memory", "innodb_redo_log_capacity", "104857600", "4294967296")
	redo.Settings = append(redo.Settings, arms[2].Settings...)
	add("flush", "flushing sized to the volume's IOPS", "redo", "innodb_io_capacity", "10000", "2000")
	add("concurrency", "as many threads inside InnoDB as CPUs allow", "redo", "innodb_thread_concurrency", "0", "4")
	add("binlog", "group commit waits for company", "redo", "binlog_group_commit_sync_delay", "0", "500")
	large := add("large-pages", "memory in large pages", "redo", "large_pages", "OFF", "ON")
	large.Infeasible, large.Diff = "[ERROR] [MY-010736] [Server] Couldn't open <file> & \"map\" it.", nil
	add("logging", "no general and slow log", "redo", "slow_query_log", "ON", "OFF")
	return arms
}

const fixtureCnf = `# Measured for oltp_read_write, 10 tables x 1,000,000 rows, 4 threads: other workloads may differ.
[mysqld]
# memory: buffer pool sized to the memory
innodb_buffer_pool_size = 5G
# redo: redo log large enough for an hour's writes
innodb_redo_log_capacity = 4G
`

// benchFixture returns a bench of two repeats at several thread counts.
func benchFixture() Data {
	rng, control := rand.New(rand.NewPCG(5, 6)), result.Arm{Schema: result.Schema, Order: 1, Name: "control", Title: "as given"}
	d := Data{Arms: []result.Arm{control}}
	var workloads []result.Workload
	for i, threads := range []int{1, 4, 16} {
		workloads = append(workloads, fixtureWorkload(threads))
		for block := 1; block <= 2; block++ {
			tps := []float64{181, 513, 702}[i] + 9.5*float64(block)
			d.Trials = append(d.Trials, fixtureTrial(rng, control, workloads[i], block, tps, []float64{5, 7, 21}[i]))
		}
	}
	d.Experiment = fixtureExperiment("bench", workloads...)
	d.Finish = &result.Finish{Schema: result.Schema, WallSeconds: 260, MeasureSeconds: 228, Utilisation: 0.877}
	return d
}

// hostile returns a tune whose every text tries to be HTML, Markdown or the end of a script.
func hostile() Data {
	d := phasesFixture()
	evil := `</script><img src=x onerror="alert(1)">|<!--` + "`&"
	d.Experiment.Argv = []string{"david", evil}
	d.Experiment.Notes, d.Cnf, d.Experiment.Host.OS, d.Experiment.Server.Version = []string{evil}, evil, evil, evil
	for i := range d.Arms {
		d.Arms[i].Title = fmt.Sprintf("%s %d", evil, i)
	}
	d.Arms[2].Infeasible, d.Pruned[0].Lines, d.Trials[0].Gates[1].Detail = evil, []string{evil}, evil
	return d
}
