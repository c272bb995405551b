package cli

import (
	"strings"
	"testing"

	"david/internal/lab"
)

// TestCrowds: what servers get done beside each other is summed up over them, and shown by their number.
func TestCrowds(t *testing.T) {
	crowds := []lab.CephCrowd{{Servers: 1, Clients: 8, TPS: []float64{10, 10}, Least: []float64{10, 10}, P95: []float64{50, 50}},
		{Servers: 4, Clients: 8, TPS: []float64{20, 20}, Least: []float64{4, 4}, P95: []float64{200, 300}}}
	here := map[string]studyResult{}
	addCrowds(here, crowds)
	if got, want := here["ceph-servers"].text, "1 server 10.0 [10.0, 10.0] transactions/s, p95 50 ms; 4 servers 20.0 [20.0, 20.0] transactions/s, p95 250 ms; 8 clients each"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := strings.Join(crowdTable(crowds)[2], " "), "4 32 20.0 [20.0, 20.0] 5.0 4.0 250"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	none := map[string]studyResult{}
	if addCrowds(none, nil); len(none) > 0 {
		t.Error("a figure stands where nothing was measured")
	}
}

// TestCephFigures puts writes beside those published for a Ceph as full, by the GB that clients write to.
func TestCephFigures(t *testing.T) {
	cells := []lab.CephCell{
		{Pool: "a", Replicas: 2, Used: 0.139, Bytes: 2e9, Rows: []lab.CephRow{{Clients: 1, IOPS: []float64{10, 10}}, {Clients: 4, IOPS: []float64{100, 100}}, {Clients: 4, Sync: true, IOPS: []float64{7, 7}}}},
		{Pool: "b", Replicas: 3, Used: 0.5, Bytes: 1e9, Rows: []lab.CephRow{{Clients: 1, IOPS: []float64{10, 10}}}},
	}
	here := map[string]studyResult{}
	addCephResults(here, cells)
	if got, want := here["ceph-14"].text, "50 [50, 50] with 2 copies, 4 clients"; got != want {
		t.Errorf("beside 14 %%: %q, want %q", got, want)
	}
	if _, there := here["ceph-87"]; there {
		t.Error("a figure stands beside 87 %, where nothing was so full")
	}
	table := cephTable(cells)
	if len(table) != 5 || strings.Join(table[3], " ") != "a 2 14 % 2.00 4 each flushed 7 [7, 7] 3.5 0.0" {
		t.Errorf("the table is %q", table)
	}
}
