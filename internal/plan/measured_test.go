package plan

import (
	"errors"
	"math"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
)

// run is a trial of sysbench's mix at 100 transactions/s; CPU in microseconds, KiB read and written by a
// transaction.
func run(arm string, cpu, read, written float64) result.Trial {
	hit := 0.9
	return result.Trial{Arm: arm, TPS: 100, QPS: 2000, Transactions: 1000, Workload: result.Workload{Name: "oltp_read_write", Tables: 10, TableSize: 1_000_000},
		Costs: result.Costs{ServerCPU: &cpu, ReadKB: &read, WrittenKB: &written, HitRate: &hit}}
}

func armWith(name, pool string) result.Arm {
	return result.Arm{Name: name, Effective: map[string]string{"innodb_buffer_pool_size": pool}}
}

func tried() (e result.Experiment, arms []result.Arm, trials []result.Trial) {
	e = result.Experiment{ID: "tune-1", Server: result.Server{Flavour: mycnf.MySQL}}
	broken := run("winner", 9999, 9999, 9999)
	broken.Gates = []result.Gate{{Name: "errors"}}
	unsafe := run("fast", 1, 0, 1)
	unsafe.Unsafe, unsafe.TPS = []string{"sync_binlog"}, 900
	return e, []result.Arm{armWith("control", "134217728"), armWith("winner", "4294967296"), armWith("fast", "4294967296")},
		[]result.Trial{run("control", 4000, 440, 480), run("control", 4400, 440, 480), run("winner", 1800, 0, 32), run("winner", 2000, 0, 64), broken, unsafe}
}

func TestMeasure(t *testing.T) {
	e, arms, trials := tried()
	e.Limits = &result.Limits{IO: []result.IOLimit{{Way: result.RandomWrite, Bytes: 16384, IOPS: result.Figure{Value: 9000}}, {Way: result.RandomWrite, Bytes: 4096, IOPS: result.Figure{Value: 20000}}}}
	m, err := Measure(e, arms, trials, "", "winner")
	if err != nil || m.DiskWrites != 9000 {
		t.Fatal(m.DiskWrites, err)
	}
	want := map[string]float64{"cpu-in-memory": 1900, "cpu-per-transaction": 4200, "reads-per-transaction": 27.5, "writes-per-transaction": 30, "writes-in-memory": 3, "measured-queries": 20, "measured-writes": 0.2,
		"measured-pool": 134217728.0 / (1e7 * BytesPerRow)}
	for name, x := range want {
		if math.Abs(m.Figures[name]-x) > 1e-9*x {
			t.Errorf("%s: %v, want %v", name, m.Figures[name], x)
		}
	}
	// The interval of 1,800 and 2,000: a geometric mean of 1,897.4, times e to the 12.706 x ln(2000/1800) / 2.
	half := math.Exp(12.706 * math.Log(2000.0/1800) / 2)
	if m.Runs != 2 || m.Cold != "control" || math.Abs(m.Low["cpu-in-memory"]-math.Sqrt(1800*2000)/half) > 0.5 || math.Abs(m.High["cpu-in-memory"]-math.Sqrt(1800*2000)*half) > 5 {
		t.Errorf("%+v", m)
	}
	if m, err := Measure(e, arms, trials, "", ""); err != nil || m.Arm != "control" && m.Arm != "winner" {
		t.Errorf("an unsafe arm may not stand for any: %+v, %v", m, err)
	}
	if _, err := Measure(e, arms, trials, "fast", ""); err == nil || !strings.Contains(err.Error(), "durability lock") {
		t.Errorf("unsafe: %v", err)
	}
	trials[0].Costs, trials[1].Costs = result.Costs{}, result.Costs{}
	if _, err := Measure(e, arms, trials, "control", ""); err == nil || !strings.Contains(err.Error(), "was not seen") {
		t.Errorf("not seen: %v", err)
	}
	trials[0].Workload.Name, trials[1].Workload.Name = "mine", "mine"
	if _, err := Measure(e, arms, trials, "control", ""); err == nil || !strings.Contains(err.Error(), "how many queries of mine write") {
		t.Errorf("unknown workload: %v", err)
	}
}

func TestBorrowed(t *testing.T) {
	e, arms, trials := tried()
	redo, before, after := 10_000.0, 0.0, 5e6 // of 10,000 bytes x 1,000 transactions
	for i := range trials {
		trials[i].Costs.RedoBytes, trials[i].Before.CheckpointAge, trials[i].After.CheckpointAge = &redo, &before, &after
	}
	if m, err := Measure(e, arms, trials, "winner", ""); err != nil || !m.Borrowed || !strings.Contains(m.String(), "still to be flushed") {
		t.Errorf("%+v, %v", m, err)
	}
	after = 5e5
	if m, _ := Measure(e, arms, trials, "winner", ""); m.Borrowed {
		t.Error("a twentieth is no loan")
	}
}

func TestFrom(t *testing.T) {
	e, arms, trials := tried()
	m, err := Measure(e, arms, trials, "winner", "")
	if err != nil {
		t.Fatal(err)
	}
	r := ask(5*gib, 400, "E2E")
	r.Flavour = mycnf.MariaDB
	if _, err := r.From(m); !errors.Is(err, ErrFlavour) {
		t.Errorf("another flavour: %v", err)
	}
	r.Flavour = ""
	r = r.figures("writes-per-transaction", 10)
	if r, err = r.From(m); err != nil {
		t.Fatal(err)
	}
	p, err := New(catalogue(t), r)
	if err != nil {
		t.Fatal(err)
	}
	d, _ := p.Decision()
	if p.Asked.figure("writes-per-transaction") != 10 || p.Asked.figure("cpu-in-memory") != 1900 || p.Span == nil {
		t.Fatalf("%+v", p.Asked)
	}
	if lo, hi := p.Span.LowLoad.Cores, p.Span.HighLoad.Cores; !(lo < d.Load.Cores && d.Load.Cores < hi) {
		t.Errorf("cores %v [%v, %v]", d.Load.Cores, lo, hi)
	}
	if !strings.Contains(d.Load.Extrapolated, "4.0 times the measured 100 transactions/s") {
		t.Errorf("%q", d.Load.Extrapolated)
	}
	control, _ := Measure(e, arms, trials, "control", "")
	if v := p.Unlock(catalogue(t), p.Asked.Untuned(control)); v == nil || v.Saved != v.USDMonth-d.Bill.USDMonth || v.Saved <= 0 {
		t.Errorf("%+v", v)
	}
}

// What was measured with all data in memory says nothing of reads with less of it.
func TestOnlyInMemory(t *testing.T) {
	e, arms, trials := tried()
	m, err := Measure(e, arms[1:2], trials, "winner", "")
	if err != nil || m.Figures["measured-pool"] != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	r, _ := ask(500*gib, 50, "EC2").From(m)
	p, err := New(catalogue(t), r)
	if err != nil {
		t.Fatal(err)
	}
	if c := choiceOf(t, p, Single); c.Priced || !strings.Contains(c.Refused, "what is read then is not known") {
		t.Errorf("%+v", c)
	}
}

// TestCapacity by hand: winner took 1,900 us of CPU and 3 pages written with all data in its pool; control read 27.5, wrote 30
// and took 4,200 us with 128 MiB of 2,355 MiB.
func TestCapacity(t *testing.T) {
	e, arms, trials := tried()
	m, err := Measure(e, arms, trials, "winner", "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := Request{Data: 1e7 * BytesPerRow, Writes: 0.2, Queries: 20}.From(m)
	if err != nil {
		t.Fatal(err)
	}
	half := float64(r.Data) / 2
	cold := 0.5 / (1 - m.Figures["measured-pool"])
	for _, x := range []struct {
		h     Hardware
		tps   float64
		binds string
	}{
		{Hardware{Cores: 1, Pool: 4 << 30}, 1e6 / 1900.0, "CPUs"},
		{Hardware{Cores: 0.5, Pool: 4 << 30}, 0.5e6 / 1900.0, "CPUs"},
		{Hardware{Cores: 2, WriteIOPS: 900, ReadIOPS: 900, Pool: 4 << 30}, 300, "writes"},
		{Hardware{Cores: 2, ReadIOPS: 1000, Pool: half}, 1000 / (27.5 * cold), "reads"},
		{Hardware{Cores: 2, ReadIOPS: 1e6, Pool: half}, 2e6 / (1900 + 2300*cold), "CPUs"},
	} {
		c, err := r.Capacity(x.h)
		if err != nil || math.Abs(c.TPS-x.tps) > 1e-6*x.tps || c.Binds != x.binds {
			t.Errorf("%+v: %+v, %v; want %v, %s", x.h, c, err, x.tps, x.binds)
		}
		if low, high, err := r.CapacityInterval(x.h); err != nil || low > c.TPS*(1+1e-9) || high < c.TPS*(1-1e-9) || low == high && x.h.Pool == 4<<30 {
			t.Errorf("%+v: %v to %v, %v", x.h, low, high, err)
		}
	}
	if _, err := r.Capacity(Hardware{Pool: half}); err == nil || !strings.Contains(err.Error(), "cores or its IOPS") {
		t.Error(err)
	}
}
