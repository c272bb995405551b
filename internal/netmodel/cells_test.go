package netmodel

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// run is one that testdata/cells.json holds: what a `david network measure` of 2026-11-28 found (docs/network.md has its command and
// machine), of each path besides the control.
type run struct {
	When, Record string
	Settled      bool // the model was settled on it
	Control      Control
	Paths        []struct {
		Name  string
		Ratio float64 // the throughput over the control's
		Path  Path
	}
}

// TestCells holds the model against 22 cells that were measured after it was settled: 5 paths with 1, 4, 16 and 64 clients and two of them once
// more, all within 10 %, as bandwidth alone is not; and against the 28 that it was settled on.
func TestCells(t *testing.T) {
	b, err := os.ReadFile("testdata/cells.json")
	if err != nil {
		t.Fatal(err)
	}
	var runs []run
	if err := json.Unmarshal(b, &runs); err != nil {
		t.Fatal(err)
	}
	after, by := 0, 0
	for _, r := range runs {
		for _, p := range r.Paths {
			off := 100 * (Predict(r.Control, p.Path).TPS/r.Control.TPS/p.Ratio - 1)
			alone := 100 * (p.Path.Rate/r.Control.Path.Rate/p.Ratio - 1) // as study P3 would have it
			t.Logf("%s, %2d clients, %-13s %.3f of the control: off by %+5.1f %%, by bandwidth alone %+6.1f %%", r.When, r.Control.Threads, p.Name, p.Ratio, off, alone)
			if !(math.Abs(off) < 10) {
				t.Errorf("%s, %d clients, %s: off by %+.1f %%", r.Record, r.Control.Threads, p.Name, off)
			}
			if !r.Settled {
				after++
				if math.Abs(alone) > 10 {
					by++
				}
			}
		}
	}
	if after != 22 || by < 10 {
		t.Errorf("%d cells were measured after the model was settled, of which bandwidth alone misses %d by more than 10 %%", after, by)
	}
}

// TestP3 applies the model to what study P3 published: 7,302 transactions/s over 10 Gbit/s, 2,700 over 1 Gbit/s, and half of the
// first over SR-IOV at line rate. Its numbers of clients and round trips are not known: sysbench's oltp_read_write takes 20 and
// some 40 KiB, nearly all of them answers; the CPUs are taken to be a fifth busy.
func TestP3(t *testing.T) {
	for _, clients := range []int{16, 64, 256} {
		fast := Control{Threads: clients, TPS: 7302, CPU: 1000, CPUs: 36, RoundTrips: 20, Bytes: 40 << 10, Path: Path{RTT: 60, RTTCPU: 30, Rate: 9.4e9}}
		thin := fast.Path
		thin.Rate = 0.94e9
		if got := Predict(fast, thin); got.Bound != Bandwidth || math.Abs(got.TPS/2700-1) > 0.10 {
			t.Errorf("%d clients over 1 Gbit/s: %+v, the study has 2,700", clients, got)
		}
		// Of twice the time that a transaction takes, a 20th is each round trip's: 16 clients 110 us, 64 438 us, 256 1.75 ms more.
		slow := fast.Path
		slow.RTT += float64(clients) * second / 7302 / 20
		if got := Predict(fast, slow); got.Bound == Bandwidth || math.Abs(got.TPS/3651-1) > 0.02 {
			t.Errorf("%d clients over SR-IOV: %+v, the study has about 3,651", clients, got)
		}
	}
}
