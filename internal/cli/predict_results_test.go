//go:build results

package cli

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"david/internal/explain"
	"david/internal/result"
)

// cell is one place of the grid that predictions are held against.
type cell struct {
	flavour string
	load    string
	iops    string // the cap; "" for none
	trial   result.Trial
	arm     result.Arm
}

// TestResultsPredict holds the commit-path prediction against measured cells: it prints them all, and how far
// off it was. The costs of a transaction are first the cell's own, as explain has them, then those of one
// thread without caps.
func TestResultsPredict(t *testing.T) {
	dir, loads := testHome(t), number("DAVID_LOADS", 3)
	limits := map[string]result.Limits{"": probed(t, dir)}
	const iops = "1000"
	limits[iops] = probed(t, dir, "--iops", iops)
	var own, alone []float64
	t.Log("flavour workload threads cap measured own-costs error one-thread-costs error ceiling binds group | redo syncs/s all InnoDB's | device writes/s flushes/s busy await | gates")
	for _, flavour := range []string{"mysql", "mariadb"} {
		for _, load := range []string{"oltp_update_index", "oltp_write_only", "oltp_read_write"}[:loads] {
			free := cells(t, dir, flavour, load, "")
			for _, c := range append(free, cells(t, dir, flavour, load, iops)...) {
				p := predict(t, c, c.trial.Costs, limits[c.iops])
				q := predict(t, c, free[0].trial.Costs, limits[c.iops])
				e, f := p.TPS/c.trial.TPS-1, q.TPS/c.trial.TPS-1
				own, alone = append(own, math.Abs(e)), append(alone, math.Abs(f))
				ok, failed := c.trial.Valid()
				t.Logf("%s %s %d %q %.0f %.0f %+.0f%% %.0f %+.0f%% %.0f %q %.1f | %s | %v %q", c.flavour, c.load, c.trial.Workload.Threads, c.iops,
					c.trial.TPS, p.TPS, 100*e, q.TPS, 100*f, p.Ceiling, p.Binds, p.Group, c.syncs(), ok, failed)
			}
		}
	}
	for name, list := range map[string][]float64{"own costs": own, "costs of one thread": alone} {
		slices.Sort(list)
		t.Logf("%s: %d cells, median error %.0f %%, 90 %% of them within %.0f %%, worst %.0f %%", name, len(list),
			50*(list[(len(list)-1)/2]+list[len(list)/2]), 100*list[len(list)*9/10], 100*list[len(list)-1])
	}
	if want := 12 * loads; len(own) != want {
		t.Errorf("%d cells, %d are wanted", len(own), want)
	}
}

// syncs tells how often the server synced, and what its device did.
func (c cell) syncs() string {
	mean := func(name string) float64 {
		sum, n := 0.0, 0.0
		for _, s := range c.trial.Samples {
			if v, ok := s.Values[name]; ok && s.At > 0 {
				sum, n = sum+v, n+1
			}
		}
		return sum / n
	}
	rate := func(name string) float64 { return c.trial.Counters[name] / c.trial.Seconds }
	return fmt.Sprintf("%.0f %.0f | %.0f %.0f %.0f%% %.2f ms", rate("innodb_os_log_fsyncs"), rate("innodb_data_fsyncs"),
		mean("disk.write_iops"), mean("disk.flushes_per_s"), mean("disk.busy_pct"), mean("disk.write_await_ms"))
}

// cells measures a flavour and a workload with some numbers of threads, durably.
func cells(t *testing.T, dir, flavour, load, iops string) (list []cell) {
	t.Helper()
	args := []string{"bench", "--fresh", "--server", flavour, "--workload", load, "--tables", "4", "--table-size", "20000", "--time", "5s", "--warmup", "3s",
		"--threads", "1,4,32", "--set", "innodb_buffer_pool_size=512M", "--set", "innodb_flush_log_at_trx_commit=1", "--set", "sync_binlog=1"}
	if iops != "" {
		args = append(args, "--iops", iops)
	}
	out, errOut, code := david(t, dir, args...)
	if code != exitDone && code != exitInvalid {
		t.Fatalf("exit code %d\n%s%s", code, out, errOut)
	}
	stores, err := result.List(dir)
	if err != nil || len(stores) == 0 {
		t.Fatal(err)
	}
	store, err := result.Open(stores[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	arms, err := store.Arms()
	trials, err2 := store.Trials()
	trials, err3 := store.WithPoints(trials)
	if err = errors.Join(err, err2, err3); err != nil || len(arms) != 1 {
		t.Fatal(len(arms), err)
	}
	for _, trial := range trials {
		list = append(list, cell{flavour, load, iops, trial, arms[0]})
	}
	return list
}

// predict predicts a cell from the costs of a transaction.
func predict(t *testing.T, c cell, costs result.Costs, l result.Limits) explain.CommitPrediction {
	t.Helper()
	c.trial.Costs = costs
	in, err := explain.CommitOf(l, c.arm, c.trial)
	if err != nil {
		t.Fatal(err)
	}
	p, err := explain.PredictCommit(in)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
