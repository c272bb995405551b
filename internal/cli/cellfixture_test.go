package cli

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
)

// cellTrial is a valid trial of a phase.
func cellTrial(phase result.Phase, block int, arm string, tps float64) result.Trial {
	return result.Trial{
		ID: string(phase) + arm, Arm: arm, Phase: phase, Block: block,
		Workload: result.Workload{Name: "oltp_read_write", Threads: 16}, Settled: true, TPS: tps,
		Latency: result.Latency{P95: 1000 / tps}, Histogram: []result.Bucket{{Ms: 1, Count: 9}},
		Gates: []result.Gate{{Name: "steal", OK: true, Detail: "0 %"}},
	}
}

// cellTuned is a tune whose winner has 2.5 times the control's throughput and 1.25 times its best rival's, in
// three blocks.
func cellTuned() report.Data {
	e := result.Experiment{Schema: result.Schema, ID: "tune-1", Kind: "tune", David: "v9", Created: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Argv: []string{"david", "tune"},
		Server: result.Server{Path: "/secret/mysqld", Flavour: mycnf.MySQL, Version: "9.7.4"}, Workloads: []result.Workload{{Name: "oltp_read_write", Threads: 16}},
		Design: result.Design{Control: "control", Tune: &result.TunePlan{MaxP95: 1.1}}}
	d := report.Data{Experiment: e, Finish: &result.Finish{Best: "winner"}, Searched: &result.Searched{Trials: 20, Start: 2, Best: 2.5, Enough: 7},
		Arms: []result.Arm{{Name: "control", Effective: map[string]string{"a": "b"}}, {Name: "moco", Phase: result.Race, Base: "control"}, {Name: "winner", Phase: result.Confirm, Base: "control"}},
		Proofs: []result.Proof{{Arm: "winner", OK: true, Crash: &result.CrashTest{Kills: 20, RecoveryMs: result.RecoveryMs{Max: 1500}, Rounds: []result.Kill{{}}},
			Memory: &result.MemoryProof{Worst: 1 << 30, Limit: 2 << 30, OK: true}}}}
	for block := 1; block <= 3; block++ {
		drift := math.Exp(0.01 * float64(block))
		for arm, tps := range map[string]float64{"control": 100, "moco": 200, "winner": 250} {
			d.Trials = append(d.Trials, cellTrial(result.Confirm, block, arm, tps*drift*math.Exp(0.001*float64(block%2))))
		}
	}
	return d
}

// cellRaced is the race of its my.cnf with two baselines, one of them as fast.
func cellRaced() report.Data {
	d := cellTuned()
	d.Experiment.Kind, d.Experiment.Argv = "race", []string{"david", "race"}
	d.Experiment.Design = result.Design{Control: "control", Against: "my.cnf"}
	d.Finish, d.Proofs, d.Searched, d.Trials = &result.Finish{}, nil, nil, nil
	d.Arms = []result.Arm{{Name: "control"}, {Name: "moco", Base: "control"}, {Name: "bitpoke", Base: "control"}}
	for block, noise := range []float64{0.001, -0.001, 0.002} {
		for arm, tps := range map[string]float64{"control": 250, "moco": 200 * math.Exp(noise), "bitpoke": 250 * math.Exp(10*noise)} {
			d.Trials = append(d.Trials, cellTrial("", block+1, arm, tps))
		}
	}
	return d
}

// TestCellRow: what david prints, thinned, makes a row, and nothing of the machine's own stays in it.
func TestCellRow(t *testing.T) {
	dir := t.TempDir()
	cell := filepath.Join(dir, "rw-none")
	if err := os.Mkdir(cell, 0o755); err != nil {
		t.Fatal(err)
	}
	put := func(file string, text []byte) {
		if err := os.WriteFile(filepath.Join(cell, file), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put(cellCnf, []byte("# why\n[mysqld]\ninnodb_buffer_pool_size = 1G\n\nskip_name_resolve\n"))
	for file, d := range map[string]report.Data{cellTune: cellTuned(), cellRace: cellRaced()} {
		var b strings.Builder
		if err := report.JSON(&b, d); err != nil {
			t.Fatal(err)
		}
		thin, err := thinned([]byte(b.String()))
		if err != nil || !json.Valid(thin) {
			t.Fatal(err)
		}
		for _, gone := range []string{"secret", `"histogram"`, `"effective"`, `"rounds"`, "steal"} {
			if strings.Contains(string(thin), gone) {
				t.Errorf("%s still has %s", file, gone)
			}
		}
		put(file, thin)
	}
	table, err := cellTable(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| `rw-none` | MySQL 9.7.4 | 16 | 2.50 [2.50, 2.50] | 1.25 [1.25, 1.25], moco | 1 of 2 (bitpoke 0.97 to 1.05", "| undecided (bitpoke 1.01 [0.97, 1.05]) ",
		"| 2 | 20 kills, 0 lost, recovery 1500 ms at most; 1 GiB of 2 GiB | 7 of 20 | 2026-03-01, v9 |\n", "- `rw-none`: `david tune`\n- `rw-none`: `david race`\n", "Not measured: `rw-iops5000`, "} {
		if !strings.Contains(table, want) {
			t.Errorf("the table has no %q:\n%s", want, table)
		}
	}
	if empty, err := cellTable(t.TempDir()); err != nil || !strings.HasPrefix(empty, "No cell is measured yet.\n\nNot measured: `rw-none`") {
		t.Errorf("%v: %s", err, empty)
	}
}

// TestCellWithoutGain: a tune that handed over the control says so.
func TestCellWithoutGain(t *testing.T) {
	d := cellDocument{Finish: &result.Finish{Best: stats.Control}}
	if d.winner() != "no significant gain" || d.rival() != unmeasured || d.proof() != unmeasured || d.search() != unmeasured {
		t.Errorf("%s, %s, %s, %s", d.winner(), d.rival(), d.proof(), d.search())
	}
	var none *cellDocument
	if got := none.standing(); got[0] != "not raced" || got[1] != unmeasured {
		t.Errorf("%v", got)
	}
}
