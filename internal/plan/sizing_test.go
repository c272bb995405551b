package plan

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"david/internal/price"
	"david/internal/result"
)

// sizedServer is a row of docs/results.md, "What another server would carry".
type sizedServer struct {
	server, what        string
	predicted, measured float64
	off                 string
}

func sizedServers(t *testing.T) (list []sizedServer) {
	t.Helper()
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "\n## What another server would carry\n")
	part, _, _ = strings.Cut(part, "\n## ")
	row := regexp.MustCompile(`(?m)^\| ((?:MySQL|MariaDB) [\d.]+) \| (.*?) \| (\d+) \(.*?\), \w+ \| (\d+) \| (.*?) \|$`)
	for _, m := range row.FindAllStringSubmatch(part, -1) {
		predicted, _ := strconv.ParseFloat(m[3], 64)
		measured, _ := strconv.ParseFloat(m[4], 64)
		list = append(list, sizedServer{m[1], m[2], predicted, measured, m[5]})
	}
	return list
}

// TestSizingStored holds the ten predictions that are on record against what was measured: the page says by how much each is off,
// and how many are within the 15 % that were asked for. What a transaction took in that comparison is not on record, so that all
// ten cannot be predicted again without a server: TestResultsSizing does, and TestSizingReplay what can be.
func TestSizingStored(t *testing.T) {
	list := sizedServers(t)
	within := 0
	for _, s := range list {
		off := 100 * (s.predicted/s.measured - 1)
		said, err := strconv.ParseFloat(strings.TrimSuffix(s.off, " %"), 64)
		rounding := 0.5 + 50/s.predicted + 50/s.measured // all three are rounded to whole ones
		if err != nil || math.Abs(off-said) > rounding {
			t.Errorf("%s, %s: %.0f predicted, %.0f measured, %+.1f %%, the page says %s", s.server, s.what, s.predicted, s.measured, off, s.off)
		}
		if math.Abs(off) <= 15 {
			within++
		}
	}
	text, err := os.ReadFile("../../docs/results.md")
	if err != nil || len(list) != 10 || within != 10 || !strings.Contains(string(text), "**Ten of ten are within 15 %.**") {
		t.Errorf("%d servers, %d within 15 %%, and the page says something else: %v", len(list), within, err)
	}
}

// TestSizingReplay predicts one measured server from another: at 2,000 IOPS, where reads bind, the one whose pool holds a quarter
// of the data tells how many pages a transaction reads, and so what one with twice the pool carries. 15 % were asked for.
func TestSizingReplay(t *testing.T) {
	const rows = 4 * 250_000 * BytesPerRow
	measured := map[string]map[string]float64{}
	for _, s := range sizedServers(t) {
		if measured[s.server] == nil {
			measured[s.server] = map[string]float64{}
		}
		measured[s.server][s.what] = s.measured
	}
	for server, tps := range measured {
		quarter, half := tps["2,000 IOPS, a pool of a quarter"], tps["2,000 IOPS, a pool of half"]
		r := Request{Data: price.Size(rows), Queries: 20, Writes: 0.2, Figures: map[string]float64{"measured-pool": 64 * float64(1<<20) / rows, "reads-per-transaction": 2000 / quarter}}
		c, err := r.Capacity(Hardware{Pool: 128 << 20, ReadIOPS: 2000})
		if err != nil || c.Binds != "reads" || !(math.Abs(c.TPS/half-1) <= 0.15) {
			t.Errorf("%s: %.0f transactions/s predicted (%s), %.0f measured: %v", server, c.TPS, c.Binds, half, err)
		}
	}
	if len(measured) != 2 {
		t.Errorf("%d servers", len(measured))
	}
}

// TestSharedCPUs: where the client runs beside the server on the same CPUs, a transaction takes of them what both took. 1,200 us of the
// server are 833 transactions/s of one CPU; with 1,600 us of the client and 200 of interrupts two CPUs do 667, and four do not bind.
func TestSharedCPUs(t *testing.T) {
	cpu := func(x float64) *float64 { return &x }
	e, arms, trials := record(result.KindCompare, []result.Arm{{Name: "control"}}, 1)
	for i := range trials {
		trials[i].QPS = 20 * trials[i].TPS
		trials[i].Costs = result.Costs{ServerCPU: cpu(1200), ClientCPU: cpu(1600), SoftIRQ: cpu(200), ReadKB: cpu(0), WrittenKB: cpu(0)}
	}
	m, err := Measure(e, arms, trials, "", "")
	if err != nil || math.Abs(m.ClientCPU-1800) > 1e-9 {
		t.Fatalf("%v: %+v", err, m)
	}
	r, err := Request{Data: price.Size(m.DataBytes), Queries: 20, Writes: 0.2}.From(m)
	if err != nil {
		t.Fatal(err)
	}
	for shared, want := range map[float64]Capacity{0: {TPS: 833.33, Binds: "CPUs"}, 2: {TPS: 666.67, Binds: "CPUs with the client's"}, 4: {TPS: 833.33, Binds: "CPUs"}} {
		c, err := r.Capacity(Hardware{Cores: 1, Shared: shared, Pool: 2 * m.DataBytes})
		if err != nil || math.Abs(c.TPS-want.TPS) > 0.01 || c.Binds != want.Binds {
			t.Errorf("%g shared: %+v, want %+v: %v", shared, c, want, err)
		}
	}
	r.Measured.ClientCPU = 0
	if _, err := r.Capacity(Hardware{Cores: 1, Shared: 2, Pool: m.DataBytes}); err == nil || !strings.Contains(err.Error(), "was not seen") {
		t.Errorf("%v", err)
	}
}
