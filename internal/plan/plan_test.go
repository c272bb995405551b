package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/price"
)

func catalogue(t *testing.T) price.Catalogue {
	t.Helper()
	c, err := price.Default()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func today() time.Time { return time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC) }

const gib = 1 << 30

// ask is a request of sysbench's mix.
func ask(data, tps float64, on ...string) Request {
	return Request{Data: price.Size(data), TPS: tps, Queries: 20, Writes: 0.2, People: 1, On: on, Figures: map[string]float64{}, Today: today()}
}

func seconds(x float64) *float64 { return &x }

// goals adds RPO, RTO and the failure they are for.
func (r Request) goals(rpo, rto float64, f Failure) Request {
	r.RPO, r.RTO, r.Survive = seconds(rpo), seconds(rto), f
	return r
}

// figures adds figures: name, value, name, value.
func (r Request) figures(pairs ...any) Request {
	for i := 0; i < len(pairs); i += 2 {
		switch x := pairs[i+1].(type) {
		case int:
			r.Figures[pairs[i].(string)] = float64(x)
		case float64:
			r.Figures[pairs[i].(string)] = x
		}
	}
	return r
}

// own is 9,000 US$ for 32 cores, 256 GiB, four disks of 3.84 TB and 40,000 writes/s.
func (r Request) own() Request {
	return r.figures("server-price", 9000, "server-cpus", 32, "server-memory", 256*gib, "server-disks", 4, "server-disk", 3.84e12, "server-iops", 40000)
}

func choiceOf(t *testing.T, p Plan, k Kind) Choice {
	t.Helper()
	i := slices.IndexFunc(p.Choices, func(c Choice) bool { return c.Kind == k })
	if i < 0 {
		t.Fatalf("no %s among %d choices", k, len(p.Choices))
	}
	return p.Choices[i]
}

// TestBillsByHand holds bills against figures worked out from the catalogue with pencil and paper.
func TestBillsByHand(t *testing.T) {
	reads := ask(200*gib, 400, "EC2").figures("spot-discount", 0.6)
	reads.ReadScaling, reads.Commitment = true, "spot"
	reserved := ask(200*gib, 100, "EC2").goals(0, 600, Zone).figures("reserved-discount", 0.4)
	reserved.Commitment = "reserved"
	sharded := ask(2048*gib, 1000, "EC2")
	sharded.ChangeApplication = true
	apart := ask(200*gib, 100, "EC2").goals(0, 30, Region).figures("region-traffic", 0.02)
	three, four := ask(100*gib, 50, "EC2").figures("region-traffic", 0.02), ask(200*gib, 100, "EC2").goals(0, 30, Zone).figures("region-traffic", 0.02)
	three.Regions, four.Regions = 3, 4
	power := []any{"server-watts", 400, "kwh-price", 0.15, "cooling", 1.5, "server-units", 1, "unit-price", 20, "admin-hours", 2, "hour-price", 60}
	ceph := ask(40e12, 500, Own).goals(0, 1800, Disk).figures("server-price", 12000, "server-cpus", 40, "server-memory", 256*gib, "server-disks", 4, "server-disk", 7.68e12, "server-iops", 40000, "server-network", 25)
	slow := ask(40e12, 500, Own).goals(0, 1800, Disk).figures("server-price", 12000, "server-cpus", 40, "server-memory", 256*gib, "server-disks", 4, "server-disk", 7.68e12, "server-iops", 1000, "server-network", 25)
	for _, c := range []struct {
		name         string
		ask          Request
		kind         Kind
		month, years float64
	}{
		{"the machine with its volume", ask(80*gib, 30, "E2E"), Single, 66, 2376},
		{"three of it", ask(80*gib, 30, "E2E"), Semisync, 198, 7128},
		{"66 + 2 x 8", ask(300*gib, 100, "E2E"), Single, 82, 2952},
		{"2 x 82 + a tiebreaker at 66", ask(300*gib, 100, "E2E"), DRBD, 230, 8280},
		{".0816 x 730 = 59.57; 144 x .08 = 11.52", ask(100*gib, 50, "EC2"), Single, 71.09, 2559.24},
		{"2 x 59.568 = 119.14; 288 x .08 = 23.04", ask(100*gib, 50, "EC2"), Async, 142.18, 5118.48},
		{"119.14 + 23.04 + 59.57", ask(100*gib, 50, "EC2"), DRBD, 201.75, 7263},
		{".4284 x 730 = 312.73; 144 x .08 = 11.52", ask(100*gib, 200, "EC2"), Single, 324.25, 11673},
		{"500 x 1.2^3 / .7 = 1,234.3, in four: 1,236 x .08 = 98.88; .3264 x 730 = 238.27", ask(500*gib, 100, "EC2").figures("growth", 0.2), Single, 337.15, 12137.4},
		{".152 x 730 = 110.96; 715 x .115 = 82.23", ask(500*gib, 40, "RDS"), Managed, 193.19, 6954.84},
		{".304 x 730 = 221.92; 715 x .23 = 164.45", ask(500*gib, 40, "RDS"), ManagedHA, 386.37, 13909.32},
		{"below 400 GiB at 3,000 IOPS: 221.92; 143 x .23 = 32.89", ask(100*gib, 10, "RDS"), ManagedHA, 254.81, 9173.16},
		{"7,416 IOPS go through a 2xlarge: 1.216 x 730 = 887.68; 164.45", ask(500*gib, 100, "RDS"), ManagedHA, 1052.13, 37876.68},
		{".1386 x 730 = 101.18; 143 x .17 = 24.31", ask(100*gib, 50, "CloudSQL"), Managed, 125.49, 4517.64},
		{".2772 x 730 = 202.36; 143 x .34 = 48.62", ask(100*gib, 50, "CloudSQL"), ManagedHA, 250.98, 9035.28},
		{"3 x 113.46 = 340.38; 3 x 288 x .08 = 69.12", ask(200*gib, 100, "Google").goals(0, 60, Machine), Group, 409.5, 14742},
		{"3 x 238.272 = 714.82; 69.12; 2 x 100 x 1,710 x 2,628,000 = 899 GB x .02 = 17.98", ask(200*gib, 100, "EC2").goals(0, 30, Zone), Group, 801.92, 28869.12},
		{"801.92 + a manager at 3 x 59.568 = 178.70", ask(200*gib, 100, "EC2").goals(0, 30, Zone), Semisync, 980.62, 35302.32},
		{"3 x 59.568 = 178.70; 432 x .08 = 34.56; 225 GB x .02 between zones, and to the other region", ask(100*gib, 50, "EC2").goals(60, 3600, Region).figures("region-traffic", 0.02), Async, 222.26, 8001.36},
		{"714.82; 69.12; 17.98 to two regions instead of two zones", apart, Group, 801.92, 28869.12},
		{"2 + 2 x 59.568 = 238.27; 4 x 144 x .08 = 46.08; 2 x 224.7 = 450 GB x .02", three, Async, 293.35, 10560.6},
		{"3 + 1 x 238.272 = 953.09; 4 x 288 x .08 = 92.16; 3 x 449.4 = 1,349 GB x .02, over regions instead of zones", four, Group, 1072.23, 38600.28},
		{"119.14 + 23.04 + 59.57; 23.9 pages a transaction, not its binary log: 50 x 23.9 x 16,384 x 2,628,000 = 51,454 GB x .02", ask(100*gib, 50, "EC2").goals(0, 3600, Zone), DRBD, 1230.83, 44309.88},
		{".6 x 714.816 = 428.89; 69.12; 17.98", reserved, Group, 515.99, 18575.64},
		{"2 x 48; 2 x 143 x .10 x 2^30 / 10^9 = 30.71; 3 x 48", ask(100*gib, 50, "DigitalOcean").goals(60, 60, Machine), Async, 270.71, 9745.56},
		{".192 x 730 = 140.16; 144 x .08 = 11.52", ask(100*gib, 50, "Azure"), Single, 151.68, 5460.48},
		{"18 x 238.272 = 4,288.90; 18 x 488 x .08 = 702.72; 5 x 59.568 = 297.84", sharded, Vitess, 5289.46, 190420.56},
		{"27,000 / 36 = 750; twice that for power, cooling, people", ask(2048*gib, 1000, Own).own(), Group, 2250, 81000},
		{"750; 876 kWh x .15 = 131.40; 438 x .15 = 65.70; 3 x 20; 6 x 60", ask(2048*gib, 1000, Own).own().figures(power...), Group, 1367.1, 49215.6},
		{"servers of 2 cores are as small as that: 3 x 250, and twice that", ask(100*gib, 10, Own).own().figures("server-cpus", 2), DRBD, 2250, 81000},
		{"18,000 / 36 = 500, and twice that; a tiebreaker of 2 of 32 cores: 562.50 / 36 = 15.63, and 31.25", ask(2048*gib, 500, Own).own(), DRBD, 1546.88, 55687.5},
		{"the same on a machine of its own for 500: 13.89 and 27.78", ask(2048*gib, 500, Own).own().figures("helper-price", 500), DRBD, 1541.67, 55500},
		{"750, 1,500; a manager on three: 3 x 562.50 / 36 = 46.88, and 93.75", ask(2048*gib, 500, Own).own().goals(0, 30, Machine), Semisync, 2390.63, 86062.5},
		{"3 x 40 TB / .7 / 30.72 TB = 5.6: 6 nodes and 2 servers at 12,000, x 3 / 36", ceph, Ceph, 8000, 288000},
		{"19,612 reads/s and 3 x 17,071 writes/s on 4 x 1,000 a node: 18 of them and 2 servers", slow, Ceph, 20000, 720000},
		{"2 x .6528 x 730 = 953.09; 2 x .4 x 476.544 = 381.24; 4 x 288 x .08 = 92.16", reads, Async, 1426.49, 51353.64},
	} {
		p, err := New(catalogue(t), c.ask)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := choiceOf(t, p, c.kind)
		if got.Bill.USDMonth != c.month || got.Bill.USDYears != c.years {
			t.Errorf("%s: %s: US$%.2f a month, %.2f over the years, want %.2f, %.2f: %+v", c.name, got.Name(), got.Bill.USDMonth, got.Bill.USDYears, c.month, c.years, got.Bill.Lines)
		}
		sum := 0.0
		for _, l := range got.Bill.Lines {
			sum += l.USDMonth
		}
		if math.Abs(sum-got.Bill.USDMonth) > 1e-6 {
			t.Errorf("%s: the lines add up to %v", c.name, sum)
		}
	}
}

// TestUnitPrices: 66 US$ a month for 30 transactions/s, 80 GiB, and the IOPS that its server carries.
func TestUnitPrices(t *testing.T) {
	p, err := New(catalogue(t), ask(80*gib, 30, "E2E"))
	if err != nil {
		t.Fatal(err)
	}
	c := choiceOf(t, p, Single)
	_, reads, writes := byHand(p.Asked, c)
	if b := c.Bill; math.Abs(b.Per1000-2200) > 1e-9 || math.Abs(b.PerGB-66/(80*gib/1e9)) > 1e-9 || math.Abs(b.PerIOPS-66/(reads+writes)) > 1e-9 {
		t.Errorf("%+v, want 2,200 per 1,000 transactions/s, %v per GB, %v per IOPS", b, 66/(80*gib/1e9), 66/(reads+writes))
	}
}

// TestFileStore: every setting that study P4 lists has an answer, and none is told to be set as it was then but what still
// does the same.
func TestFileStore(t *testing.T) {
	all := ""
	for _, b := range FileStore() {
		all += b.Then + "\n"
		if b.Today == "" || b.Source == "" {
			t.Errorf("%+v", b)
		}
	}
	for _, then := range []string{"FileStore on XFS", "osd_op_threads = 32", "osd_op_num_shards = 5", "filestore_queue_max_ops, filestore_queue_max_bytes", "osd_journal_size of 1 GB", "rmem_max and wmem_max = 125829120", "netdev_max_backlog = 10000",
		"vm.swappiness = 1", "throughput-performance", "tcmalloc with a larger cache", "XFS with barriers", "O_DIRECT", "buffer pool of 20 %", "innodb_flush_log_at_trx_commit = 0", "several doublewrite buffers"} {
		if !strings.Contains(all, then) {
			t.Errorf("nothing is said of %s", then)
		}
	}
	for _, given := range [][]any{{}, {"server-cpus", 40, "server-memory", 256 * gib, "server-disks", 4}} {
		lines, err := ask(gib, 1).figures(given...).CephSettings()
		text := strings.Join(lines, "\n")
		if err != nil || strings.Contains(text, "filestore") || strings.Contains(text, "57982058496") != (len(given) > 0) {
			t.Errorf("%v: %v\n%s", given, err, text)
		}
		for _, want := range []string{"osd_memory_target", "osd_mclock_profile high_client_ops", "osd_mclock_max_capacity_iops_ssd", "size 3", "min_size 2"} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: no %s in\n%s", given, want, text)
			}
		}
	}
	if _, err := ask(gib, 1).figures("server-cpus", 40).CephSettings(); err == nil || !strings.Contains(err.Error(), "--server-disks is not known") {
		t.Errorf("%v", err)
	}
}

// A plan on Ceph has the pool's settings among its commands.
func TestCephCommands(t *testing.T) {
	p, err := New(catalogue(t), ask(2048*gib, 100, Own).own())
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(choiceOf(t, p, Ceph).Commands, "\n"); !strings.Contains(text, "osd_memory_target ") || !strings.Contains(text, "min_size 2") {
		t.Errorf("%s", text)
	}
}

// verdicts lists which rules a choice fails.
func failed(c Choice) (list []string) {
	for _, v := range c.Broken {
		list = append(list, v.Rule+" "+v.For)
	}
	return list
}

func TestWhatFits(t *testing.T) {
	zone := ask(100*gib, 50, "EC2").goals(0, 60, Zone)
	region := ask(100*gib, 50, "EC2").goals(0, 60, Region).figures("region-traffic", 0.02)
	lagging := ask(100*gib, 50, "EC2").goals(60, 3600, Region).figures("region-traffic", 0.02)
	masters := ask(100*gib, 50, "EC2")
	masters.MultiMaster = true
	consistent := ask(100*gib, 50, "EC2")
	consistent.ReadScaling, consistent.ConsistentReads = true, true
	alone := ask(100*gib, 50, "EC2").goals(0, 86400, Machine)
	alone.People = 0
	mariadb := ask(100*gib, 50, "EC2", "RDS")
	mariadb.Flavour = mycnf.MariaDB
	perconaRDS := ask(100*gib, 50, "EC2", "RDS")
	perconaRDS.Flavour = mycnf.Percona
	spread := ask(100*gib, 50, "EC2", "RDS").figures("region-traffic", 0.02)
	spread.Regions = 2
	percona := ask(100*gib, 50, "EC2")
	percona.Flavour, percona.ChangeApplication = mycnf.Percona, true
	fast := ask(100*gib, 50, "EC2", Own).own()
	fast.P99 = 0.5
	for _, c := range []struct {
		name   string
		ask    Request
		kind   Kind
		failed string // "" where it fits
	}{
		{"a lost machine leaves the volume", ask(100*gib, 50, "EC2").goals(0, 3600, Machine), Single, ""},
		{"but takes people and time", ask(100*gib, 50, "EC2").goals(0, 60, Machine), Single, "single-machine --rto 60 s"},
		{"a volume is in one zone", zone, Single, "single-machine --rto 60 s, single-disk --rpo 0 s, single-disk --rto 60 s, single-zone --rpo 0 s, single-zone --rto 60 s"},
		{"a replica lags", zone, Async, "async-machine --rpo 0 s, replica-disk --rpo 0 s, async-zone --rpo 0 s"},
		{"lag is within any RPO but none", ask(100*gib, 50, "EC2").goals(1, 3600, Zone), Async, ""},
		{"semi-synchronous loses nothing", zone, Semisync, ""},
		{"DRBD fences first", zone, DRBD, "drbd-machine --rto 60 s, drbd-zone --rto 60 s"},
		{"a standby takes two minutes", ask(500*gib, 50, "RDS").goals(0, 120, Zone), ManagedHA, ""},
		{"not one", ask(500*gib, 50, "RDS").goals(0, 60, Zone), ManagedHA, "managed-ha-machine --rto 60 s, managed-ha-disk --rto 60 s, managed-ha-zone --rto 60 s"},
		{"Cloud SQL says of no end", ask(500*gib, 50, "CloudSQL").goals(0, 86400, Zone), ManagedHA, "managed-ha-machine --rto 24 h, managed-ha-disk --rto 24 h, managed-ha-zone --rto 24 h"},
		{"RDS keeps logs of all but five minutes", ask(500*gib, 50, "RDS").goals(300, 86400, Disk), Managed, "managed-machine --rto 24 h"},
		{"backups do not", ask(500*gib, 50, "CloudSQL").goals(300, 86400, Disk), Managed, "managed-machine --rto 24 h, single-disk --rpo 5 min"},
		{"a mirror survives a disk, not the machine", ask(100*gib, 50, Own).own().goals(0, 86400, Disk), Local, "local-machine --rpo 0 s"},
		{"nobody says how long a managed machine takes", ask(500*gib, 50, "RDS").goals(0, 86400, Machine), Managed, "managed-machine --rto 24 h"},
		{"DigitalOcean has no zones that david knows", ask(100*gib, 50, "DigitalOcean").goals(0, 60, Zone), Group, "zones --survive zone, price-unknown the bill"},
		{"commits over regions", region, Group, ""},
		{"not of DRBD", region, DRBD, "drbd-machine --rto 60 s, drbd-zone --rto 60 s, region-backup --rpo 0 s, region-backup --rto 60 s, region-zero --rpo 0s --survive region"},
		{"a copy in another region lags", lagging, Semisync, ""},
		{"one writer", masters, Semisync, "one-writer --multi-master"},
		{"many writers", masters, Galera, ""},
		{"stale reads", consistent, Semisync, "reads-stale --consistent-reads"},
		{"reads that wait", consistent, Group, ""},
		{"nobody there", alone, Single, "single-machine --rto 24 h"},
		{"a manager is", alone, Semisync, ""},
		{"Group Replication is MySQL's", mariadb, Group, "flavour --flavour mariadb"},
		{"a managed database is MySQL", mariadb, Managed, "managed-flavour --flavour mariadb"},
		{"and no Percona Server", perconaRDS, ManagedHA, "managed-flavour --flavour percona"},
		{"one server is in one region", spread, Single, "region-reads --regions"},
		{"a pair of disks is", spread, DRBD, "region-reads --regions"},
		{"no managed database has copies elsewhere", spread, ManagedHA, "region-reads --regions"},
		{"replicas are where they are read", spread, Async, ""},
		{"own hardware is in one site", ask(100*gib, 50, Own).own().goals(0, 60, Zone), Group, "zones --survive zone"},
		{"NDB is not Percona's", percona, NDB, "flavour --flavour percona"},
		{"Galera is MariaDB's too", mariadb, Galera, ""},
		{"half a millisecond from no network volume", fast, Single, "volume-latency --p99"},
		{"but from one's own disks", fast, Local, ""},
		{"sharding changes the application", ask(100*gib, 50, "EC2"), Vitess, "sharding-key the application as it is"},
		{"traffic between Google's zones has no price here", ask(100*gib, 50, "RDS", "Google").goals(0, 120, Zone), Group, "price-unknown the bill"},
	} {
		p, err := New(catalogue(t), c.ask)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := strings.Join(failed(choiceOf(t, p, c.kind)), ", "); got != c.failed {
			t.Errorf("%s: %q, want %q", c.name, got, c.failed)
		}
	}
}

func TestContradictions(t *testing.T) {
	base := func(change func(*Request)) Request {
		r := ask(100*gib, 50)
		change(&r)
		return r
	}
	for want, r := range map[string]Request{
		"no commit is as fast as --p99 5ms":                   base(func(r *Request) { *r = r.goals(0, 60, Region); r.P99, r.RTT = 5, 30 }),
		"give --region-rtt, which --p99 2ms":                  base(func(r *Request) { *r = r.goals(0, 60, Region); r.P99 = 2 }),
		"--people 0 with --survive region makes every commit": base(func(r *Request) { *r = r.goals(60, 3600, Region); r.People, r.P99 = 0, 2 }),
		"--rto 60 s with --survive region makes every":        base(func(r *Request) { *r = r.goals(60, 60, Region); r.P99, r.RTT = 2, 30 }),
		"--consistent-reads in 3 regions makes every":         base(func(r *Request) { r.ReadScaling, r.ConsistentReads, r.Regions, r.P99 = true, true, 3, 2 }),
		"--regions -3: give 1 to 100":                         base(func(r *Request) { r.Regions = -3 }),
		"--regions 1000000: give 1 to 100":                    base(func(r *Request) { r.Regions = 1000000 }),
		"--cooling 0.5: what servers take":                    base(func(r *Request) { *r = r.figures("cooling", 0.5) }),
		"--today 2026-10-31 is before the catalogue's own":    base(func(r *Request) { r.Today = time.Date(2026, 10, 31, 0, 0, 0, 0, time.UTC) }),
		"every fail-over takes time":                          base(func(r *Request) { *r = r.goals(0, 0, Machine) }),
		"nobody would be there":                               base(func(r *Request) { r.People, r.On = 0, []string{Own} }),
		"give --read-scaling as well":                         base(func(r *Request) { r.ConsistentReads = true }),
		"nothing is written":                                  base(func(r *Request) { r.MultiMaster, r.Writes = true, 0 }),
		"spot machines back at any time":                      base(func(r *Request) { r.Commitment = "spot" }),
		"the catalogue has EC2, RDS":                          base(func(r *Request) { r.On = []string{"Nimbus"} }),
		"data that shrink":                                    base(func(r *Request) { *r = r.figures("growth", -0.1) }),
		"--data: give the size":                               base(func(r *Request) { r.Data = 0 }),
		"--tps NaN":                                           base(func(r *Request) { r.TPS = math.NaN() }),
		"--writes 1.5":                                        base(func(r *Request) { r.Writes = 1.5 }),
		"--fill 0: give more than 0":                          base(func(r *Request) { *r = r.figures("fill", 0) }),
		"--fill 2: at most 1":                                 base(func(r *Request) { *r = r.figures("fill", 2) }),
		"--p99, --budget":                                     base(func(r *Request) { r.Budget = math.Inf(1) }),
		"--survive flood":                                     base(func(r *Request) { r.Survive = "flood" }),
		"--server-price is not known":                         base(func(r *Request) { r.On = []string{Own}; *r = r.own(); delete(r.Figures, "server-price") }),
		"--unit-price is not known": base(func(r *Request) {
			r.On = []string{Own}
			*r = r.own().figures("server-watts", 400, "kwh-price", 0.1, "cooling", 1.5, "server-units", 1)
		}),
	} {
		if _, err := New(catalogue(t), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// A price that is not known is never 0: it is told beside what has one, and is an error with its name where nothing that has one
// meets everything.
func TestUnknownPrices(t *testing.T) {
	reserved := func(on ...string) Request {
		r := ask(500*gib, 200, on...).goals(0, 120, Zone)
		r.Commitment = "reserved"
		return r
	}
	for want, r := range map[string]Request{
		"--zone-traffic is not known":        ask(100*gib, 50, "Google").goals(0, 60, Zone),
		"--region-traffic is not known":      ask(100*gib, 50, "EC2").goals(60, 3600, Region),
		"--reserved-discount is not known":   reserved("EC2"),
		"RDS: --reserved-discount is":        reserved("RDS"),
		"or without --commitment reserved: ": reserved("RDS"),
		"Hetzner: priced in another currency, and the catalogue states no exchange rate: --catalogue FILE": ask(100*gib, 50, "Hetzner"),
	} {
		if _, err := New(catalogue(t), r); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q: %v", want, err)
		}
	}
	p, err := New(catalogue(t), ask(80*gib, 30)) // wherever it may be
	if err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.Notes, "\n")
	for _, provider := range []string{"Hetzner", "OVH", "Scaleway"} {
		if !strings.Contains(notes, provider) {
			t.Errorf("%s is left out unsaid: %s", provider, notes)
		}
	}
	for _, c := range p.Choices {
		if c.Provider == "Hetzner" && (c.Priced || c.Bill.USDMonth != 0) {
			t.Errorf("%s: %v", c.Name(), c.Bill)
		}
	}
}

// What makes nothing fit is given up, one at a time.
func TestGivings(t *testing.T) {
	r := ask(100*gib, 50, "RDS")
	r.Flavour, r.Commitment, r.ReadScaling = mycnf.MariaDB, "reserved", true
	got := ""
	for _, g := range r.withDefaults().givings() {
		got += g.name + "; "
	}
	for _, want := range []string{"--flavour mariadb; ", "--commitment reserved; ", "--read-scaling; ", "--on; "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	p, err := New(catalogue(t), func() Request { r := ask(100*gib, 10, "RDS"); r.Flavour = mycnf.MariaDB; return r }())
	if err != nil || len(p.Nearest) == 0 || p.Nearest[0].Give != "--flavour mariadb" && p.Nearest[0].Give != "--on" {
		t.Errorf("%v: %+v", err, p.Nearest)
	}
	if c := choiceOf(t, p, Managed); !strings.Contains(c.Fails(), "the managed databases of the catalogue are MySQL") {
		t.Errorf("%s", c.Fails())
	}
}

func TestNearest(t *testing.T) {
	r := ask(100*gib, 50, "EC2").goals(0, 3, Machine)
	p, err := New(catalogue(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := p.Decision(); ok || len(p.Nearest) == 0 || p.Nearest[0].Give != "--rto" {
		t.Errorf("%v: %+v", ok, p.Nearest)
	}
	if head := p.Head(); head[0] != "decision: nothing meets all of it" || !strings.Contains(head[1], "without --rto: single server on a cloud volume at EC2") {
		t.Errorf("%q", head)
	}
}

func TestStale(t *testing.T) {
	c := catalogue(t)
	if days(c.Date, today()) > StaleDays || c.Date > today().Format("2006-01") {
		t.Errorf("the catalogue is of %s", c.Date)
	}
	for _, m := range c.Machines { // an entry is no younger than the catalogue it stands in
		if m.Date == "" || m.Date > c.Date {
			t.Errorf("%s is of %q, the catalogue of %s", m.Name, m.Date, c.Date)
		}
	}
	for _, v := range c.Volumes {
		if v.Date == "" || v.Date > c.Date {
			t.Errorf("%s is of %q, the catalogue of %s", v.Name, v.Date, c.Date)
		}
	}
	for day, want := range map[string]string{"2026-11-24": "", "2027-05-29": "", "2027-05-30": "the catalogue is of 2026-11, 181 days ago"} {
		r := ask(100*gib, 50, "Azure")
		r.Today, _ = time.Parse(time.DateOnly, day)
		p, err := New(c, r)
		if err != nil {
			t.Fatal(err)
		}
		old := strings.Contains(p.Stale, "the catalogue is of")
		if old != (want != "") || old && (p.Stale != want || !strings.Contains(p.Head()[0], "OLD PRICES, over 180 days: "+want)) {
			t.Errorf("%s: %q, %q", day, p.Stale, p.Head()[0])
		}
	}
	p, err := New(c, ask(100*gib, 50, "DigitalOcean"))
	if err != nil || !strings.Contains(p.Stale, "do-volume") || !strings.Contains(p.Stale, "2018") {
		t.Errorf("a price of 2018: %q, %v", p.Stale, err)
	}
}

// random makes a request of the kinds that users have.
func random(rng *rand.Rand) Request {
	r := ask(math.Exp(rng.Float64()*8+2)*gib, math.Exp(rng.Float64()*6+1)).own()
	r.Queries, r.Writes = []float64{2, 20, 90}[rng.IntN(3)], rng.Float64()*0.8
	if rng.IntN(2) == 0 {
		r = r.goals([]float64{0, 60, 86400}[rng.IntN(3)], []float64{15, 120, 3600}[rng.IntN(3)], Failures()[rng.IntN(4)])
	}
	if rng.IntN(2) == 0 {
		r.Regions = 1 + rng.IntN(5)
	}
	r.RTT = []float64{0, 1, 30}[rng.IntN(3)]
	r.ReadScaling = rng.IntN(3) == 0
	r.ChangeApplication = rng.IntN(3) == 0
	r.Kubernetes = rng.IntN(4) == 0
	if rng.IntN(3) == 0 { // results of kilobytes: the network binds
		r = r.figures("network-per-transaction", 46300*math.Exp(rng.Float64()*4))
	}
	return r.figures("zone-traffic", 0.02, "region-traffic", 0.02)
}

// stronger lists ways to ask for more.
func stronger() map[string]func(*Request) {
	return map[string]func(*Request){
		"data":    func(r *Request) { r.Data *= 1.7 },
		"tps":     func(r *Request) { r.TPS *= 1.7 },
		"queries": func(r *Request) { r.Queries *= 1.7 },
		"writes":  func(r *Request) { r.Writes = min(1, r.Writes+0.1) },
		"growth":  func(r *Request) { *r = r.with("growth", 0.25) },
		"fill":    func(r *Request) { *r = r.with("fill", 0.5) },
		"p99":     func(r *Request) { r.P99 = 5 },
		"rpo": func(r *Request) {
			if r.RPO = seconds(0); r.Survive == "" {
				r.Survive = Machine
			}
		},
		"rto": func(r *Request) { r.RTO = seconds(min(10, deref(r.RTO))) },
		"survive": func(r *Request) {
			if r.Survive != Region {
				r.Survive = Zone
			}
		},
		"region":     func(r *Request) { r.Survive = Region },
		"regions":    func(r *Request) { r.Regions = max(r.Regions, 1) + 2 },
		"one region": func(r *Request) { r.Regions = max(r.Regions, 1) + 1 },
		"lossless":   func(r *Request) { *r = r.goals(0, min(3600, deref(r.RTO)), Region) },
		"people":     func(r *Request) { r.People = 0 },
		"masters":    func(r *Request) { r.MultiMaster = true },
		"consistent": func(r *Request) { r.ConsistentReads = true },
		"pods":       func(r *Request) { r.Kubernetes = true },
		"fewer":      func(r *Request) { r.On = []string{"EC2", "RDS"} },
		"budget":     func(r *Request) { r.Budget = 900 },
	}
}

func deref(x *float64) float64 {
	if x == nil {
		return math.Inf(1)
	}
	return *x
}

// TestMoreNeverCostsLess asks for more of one thing at a time: each architecture, and what is decided, then costs as much or more,
// or there is nothing.
func TestMoreNeverCostsLess(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(20, 1))
	c := catalogue(t)
	decided := 0
	for range 5 {
		r := random(rng)
		before, err := New(c, r)
		if err != nil && strings.Contains(err.Error(), "cannot be told") {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		was, ok := before.Decision()
		for name, change := range stronger() {
			more := r
			change(&more)
			after, err := New(c, more)
			if err != nil { // it contradicts itself now
				continue
			}
			for _, why := range cheaper(before, after) {
				t.Errorf("more %s: %s\n%+v", name, why, r)
			}
			is, still := after.Decision()
			switch {
			case still && !ok:
				t.Errorf("more %s: nothing met %+v, and now %s does", name, r, is.Name())
			case still && is.Bill.USDMonth < was.Bill.USDMonth:
				t.Errorf("more %s: %s at US$%.2f, before %s at %.2f\n%+v", name, is.Name(), is.Bill.USDMonth, was.Name(), was.Bill.USDMonth, r)
			case still:
				decided++
			}
		}
	}
	if decided < 25 {
		t.Errorf("%d comparisons only", decided)
	}
}

// cheaper names what of a plan's architectures costs less in another one, at the same provider.
func cheaper(before, after Plan) (list []string) {
	for _, was := range before.Choices {
		i := slices.IndexFunc(after.Choices, func(c Choice) bool { return c.Kind == was.Kind && c.Provider == was.Provider })
		if i < 0 || !was.Priced || !after.Choices[i].Priced {
			continue
		}
		if is := after.Choices[i].Bill.USDMonth; is < was.Bill.USDMonth {
			list = append(list, fmt.Sprintf("%s at US$%.2f, before at %.2f", was.Name(), is, was.Bill.USDMonth))
		}
	}
	return list
}

// TestNoPlanExceedsALimit holds what every priced choice carries against what its machine and volumes are
// known to give, by the catalogue, and against a load worked out here from the figures alone.
func TestNoPlanExceedsALimit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(20, 2))
	c := catalogue(t)
	seen := 0
	for range 15 {
		r := random(rng).withDefaults()
		p, err := New(c, r)
		if err != nil && !strings.Contains(err.Error(), "cannot be told") {
			t.Fatal(err)
		}
		for _, x := range p.Choices {
			if !x.Priced {
				continue
			}
			seen++
			for _, over := range exceeded(c, r, x) {
				t.Errorf("%s: %s: %+v", x.Name(), over, x.Load)
			}
		}
	}
	if seen < 300 {
		t.Errorf("%d choices only", seen)
	}
}

// exceeded names the limits that a choice's busiest server, or all of its disks, would have to pass.
func exceeded(c price.Catalogue, r Request, x Choice) (list []string) {
	l, fill := x.Load, r.figure("fill")+1e-9
	limits := map[string]bool{"cores": l.Cores > fill*l.OfCores, "IOPS": l.IOPS > fill*l.OfIOPS, "room": float64(l.Room) > fill*float64(l.OfRoom), "network": l.OfNetwork > 0 && l.Network > fill*l.OfNetwork,
		"the bill": x.Bill.USDMonth <= 0 || x.Bill.USDYears <= 0}
	if x.Kind != NDB {
		cores, reads, writes := byHand(r, x)
		limits["cores by hand"] = math.Abs(l.Cores-cores) > 1e-6*cores
		limits["IOPS by hand"] = math.Abs(l.IOPS-reads-writes) > 1e-6*(reads+writes)
	}
	if i := slices.IndexFunc(c.Machines, func(m price.Machine) bool { return m.Name == x.Machine }); i >= 0 {
		m := c.Machines[i]
		limits["the machine's CPUs"] = l.OfCores != m.CPUs
		limits["the machine's IOPS"] = m.IOPS > 0 && l.IOPS > fill*m.IOPS && x.Volumes != "included"
		limits["the machine's network"] = m.Network > 0 && l.Network > fill*float64(m.Network)
		limits["the machine's memory"] = l.Pool > r.figure("pool-of-memory")*float64(m.Memory)/float64(l.Room)+1e-9
	} else { // four disks of 40,000 writes/s and 3.84 TB
		_, reads, writes := byHand(r, x)
		disks, copies := 4.0, 2.0
		if x.Kind == Ceph { // a node has the three disks that its 32 cores serve, less the two servers for the database
			disks, copies = 3*(x.Bill.USDOnce/9000-2), 3
		}
		limits["its own disks' writes"] = reads+copies*writes > fill*disks*40_000
		limits["its own disks' room"] = float64(l.Room)*copies > fill*disks*3.84e12
		limits["its own cores"] = l.OfCores != 32
	}
	for name, over := range limits {
		if over {
			list = append(list, name)
		}
	}
	return list
}

// byHand works out what the busiest server of a choice carries: 1,912 us of CPU and 23.9 pages written for 20 queries of
// which a fifth write, and up to 4,331 us and 23.1 pages read as the pool holds 16.3 % of the data instead of all.
func byHand(r Request, x Choice) (cores, reads, writes float64) {
	cold := (1 - x.Load.Pool) / (1 - 0.163)
	readers := 1.0
	if r.ReadScaling {
		readers = max(1, float64(x.Copies-1))
	}
	tps := r.TPS / float64(x.Shards) * r.Queries / 20
	carried := r.Writes + (1-r.Writes)/readers
	cores = tps * carried * (1912 + (4331-1912)*cold) / 1e6
	if r.Kubernetes {
		cores /= 0.952
	}
	return cores, tps * carried * 23.1 * cold, tps * 23.9 * r.Writes / 0.2
}

// TestThird is study P4's rule with its own arithmetic: hardware at a third leaves two for power, cooling
// and people.
func TestThird(t *testing.T) {
	for share, holds := range map[float64]bool{0.3: true, 1.0 / 3: true, 0.34: false} {
		if got := ThirdOf(share*90000, 1000, 90000, 1000); got.Holds != holds || math.Abs(got.Share-share) > 1e-12 {
			t.Errorf("%v: %+v", share, got)
		}
	}
	p, err := New(catalogue(t), ask(2048*gib, 250, "EC2", Own).own())
	if err != nil || p.Third == nil || p.Third.Delivered == nil {
		t.Fatalf("%v, %+v", err, p.Third)
	}
	// Both deliver more than is needed, and not by as much.
	own, rented := p.fitting()[slices.IndexFunc(p.fitting(), func(c Choice) bool { return c.Provider == Own })], p.fitting()[slices.IndexFunc(p.fitting(), func(c Choice) bool { return c.Provider == "EC2" })]
	want := own.Bill.USDOnce / own.Load.OfIOPS / (rented.Bill.USDYears / rented.Load.OfIOPS)
	if d := p.Third.Delivered; math.Abs(d.Share-want) > 1e-12 || d.OwnIOPS <= own.Load.IOPS || d.Holds != (want <= 1.0/3) || math.Abs(want-p.Third.Share) < 1e-3 {
		t.Errorf("%+v, want %v", d, want)
	}
	if text := p.Third.String(); !strings.Contains(text, "for the IOPS that are needed") || !strings.Contains(text, "for those that each delivers") {
		t.Errorf("%s", text)
	}
}

func TestTornado(t *testing.T) {
	c := catalogue(t)
	p, err := New(c, ask(100*gib, 50, "EC2", "E2E"))
	if err != nil {
		t.Fatal(err)
	}
	d, _ := p.Decision()
	turns := p.Tornado(c)
	if len(turns) == 0 || !slices.IsSortedFunc(turns, func(a, b Turn) int { return int(math.Copysign(1, b.Swing()-a.Swing())) }) {
		t.Fatalf("%+v", turns)
	}
	seen := 0
	for _, turn := range turns {
		if turn.TurnsAt == 0 {
			continue
		}
		for _, k := range p.Asked.knobs() {
			if k.name != turn.Name {
				continue
			}
			if p.Asked.end(c, k, turn.TurnsAt, d).same {
				t.Errorf("%s: at %v the decision is still %s", turn.Name, turn.TurnsAt, d.Name())
			}
			if near := turn.TurnsAt * math.Pow(turn.At/turn.TurnsAt, 0.01/turn.change()); turn.change() > 0.01 { // a percent nearer to what is assumed
				seen++
				if !p.Asked.end(c, k, near, d).same {
					t.Errorf("%s: it turns at %v already, not at %v", turn.Name, near, turn.TurnsAt)
				}
			}
		}
	}
	if seen == 0 {
		t.Error("nothing turns the decision")
	}
}

// TestDocTables holds the tables of docs/plan.md against what is computed with.
func TestDocTables(t *testing.T) {
	text, err := os.ReadFile("../../docs/plan.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for _, a := range Architectures() {
		rows = append(rows, a.Row())
	}
	for _, x := range Rules() {
		rows = append(rows, x.Row())
		if x.Source == "" || x.Date == "" || x.Says == "" {
			t.Errorf("rule %s has no source, date or text", x.Name)
		}
	}
	for _, f := range Figures() {
		rows = append(rows, f.Row())
	}
	for _, x := range Constants() {
		rows = append(rows, x.Row())
	}
	for _, x := range Costs() {
		rows = append(rows, x.Row())
	}
	for _, x := range Ratios() {
		rows = append(rows, x.Row())
	}
	for _, x := range FileStore() {
		rows = append(rows, x.Row())
	}
	for _, row := range rows {
		if !strings.Contains(string(text), row) {
			t.Errorf("docs/plan.md has no row\n%s", row)
		}
	}
}

// TestDensities holds write IOPS per GB against hand-made ones, and study P4's.
func TestDensities(t *testing.T) {
	list, err := ask(gib, 1).own().Densities(catalogue(t), 1024*gib)
	if err != nil {
		t.Fatal(err)
	}
	tib := 1024 * gib / 1e9
	wired := 5 * 10e9 / (3 * 16384 * 8.0)          // each write crosses 10 Gbit/s three times
	for name, want := range map[string][2]float64{ // per GB, and most of them per GB used
		"ebs-gp3":                           {3000 / tib, 16000 / tib / 0.7},
		"ebs-gp2":                           {3 * 1024 / tib, 3 * 1024 / tib / 0.7},
		"gcp-pd-ssd":                        {30 * 1024 / tib, 30 * 1024 / tib / 0.7},
		"own, RAID 10 of a server":          {80000 / 7680.0, 80000 / 7680.0 / 0.7},
		"own, Ceph of 5 nodes, 3 replicas":  {wired / 19200.0, wired / 19200.0 / 0.7}, // 3 disks of a node: 32 cores; they do 200,000
		"study P4: EBS general purpose SSD": {3, 0},
		"study P4: Ceph, all flash":         {30, 0},
	} {
		i := slices.IndexFunc(list, func(d Density) bool { return d.Name == name })
		if i < 0 || math.Abs(list[i].PerGB-want[0]) > 1e-9 || math.Abs(list[i].MostUsed-want[1]) > 1e-9 || strings.HasPrefix(name, "own") != list[i].Uncertain && !strings.HasPrefix(name, "gcp") {
			t.Errorf("%s: %d, %+v, want %v", name, i, list[max(i, 0)], want)
		}
	}
}

// Copies that nobody asked to have elsewhere are gone with their zone, or region.
func TestNotPlaced(t *testing.T) {
	for survive, want := range map[Failure]string{Machine: "not-placed not-placed", Zone: "async-zone not-placed", Region: "async-zone region-copy"} {
		p, err := New(catalogue(t), ask(100*gib, 50, "EC2").goals(60, 3600, survive).figures("region-traffic", 0.02))
		if err != nil {
			t.Fatal(err)
		}
		o := choiceOf(t, p, Async).Outcomes
		if got := o[2].Rule + " " + o[3].Rule; got != want || (o[2].lost == backup) != (survive == Machine) {
			t.Errorf("--survive %s: %s, want %s: %+v", survive, got, want, o[2:])
		}
	}
}

// A pool loses nothing with a disk, and yet waits until the silent OSD is marked down.
func TestSilentDisk(t *testing.T) {
	i := slices.IndexFunc(Architectures(), func(a Architecture) bool { return a.Kind == Ceph })
	o := ask(gib, 1).withDefaults().outcomes(Architectures()[i], Choice{Kind: Ceph, Provider: Own})
	if disk := o[1]; disk.Failure != Disk || disk.lost != none || disk.Seconds != 20 || disk.Wait != "from 20 s" {
		t.Errorf("%+v", disk)
	}
}

// The first screen has five lines at most, and says what a decision's promise rests on.
func TestHead(t *testing.T) {
	galera := ask(100*gib, 50, "EC2").goals(0, 60, Machine)
	galera.Flavour, galera.MultiMaster = mycnf.MariaDB, true
	tight := ask(200*gib, 100, "EC2").goals(0, 60, Zone)
	tight.Budget = 790 // five ways out
	for _, c := range []struct {
		ask  Request
		want string
	}{
		{galera, "Jepsen saw Galera lose acknowledged commits"},
		{galera, "RTO is the least that is published or assumed"},
		{tight, "without --rpo"},
	} {
		p, err := New(catalogue(t), c.ask)
		if err != nil {
			t.Fatal(err)
		}
		if head := p.Head(); len(head) > 5 || !strings.Contains(strings.Join(head, "\n"), c.want) {
			t.Errorf("%d lines, want %q: %q", len(head), c.want, head)
		}
	}
}

// Of equal bills the one that loses nothing is decided for, before the one that is simpler.
func TestEqualBills(t *testing.T) {
	r := ask(200*gib, 400, "EC2").goals(300, 3600, Machine)
	r.ReadScaling = true
	p, err := New(catalogue(t), r)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := p.Decision()
	if a := choiceOf(t, p, Async); d.Kind != Group || a.Bill.USDMonth != d.Bill.USDMonth {
		t.Errorf("%s at US$%.2f, asynchronous replication %.2f", d.Name(), d.Bill.USDMonth, a.Bill.USDMonth)
	}
}

// TestEveryFailureIsJudged: each architecture has one outcome for each failure, from a rule of its own.
func TestEveryFailureIsJudged(t *testing.T) {
	names := map[string]bool{}
	for _, x := range Rules() {
		if names[x.Name] {
			t.Errorf("two rules are called %s", x.Name)
		}
		names[x.Name] = true
	}
	for _, a := range Architectures() {
		got := ""
		for _, o := range ask(gib, 1).withDefaults().outcomes(a, Choice{Kind: a.Kind}) {
			got += fmt.Sprint(o.Failure, " ")
		}
		if got != "machine disk zone region " { // and none twice
			t.Errorf("%s: %s", a.Kind, got)
		}
	}
}
