package report

import (
	"math/rand/v2"

	"david/internal/mycnf"
	"david/internal/result"
)

// phasesFixture returns a tune in phases: two rivals, one of which is infeasible, a screened group, a search
// with an infeasible point and a no-op, lines that were dropped, kept and never taken out, three blocks of
// confirmation and the proofs.
func phasesFixture() Data {
	rng := rand.New(rand.NewPCG(5, 5))
	w := fixtureWorkload(4)
	d := Data{Experiment: fixtureExperiment("tune", w), Cnf: fixtureCnf}
	d.Experiment.Design = result.Design{Control: "control", Seed: 7, Tune: &result.TunePlan{Objective: "tps", Budget: 2400, Rivals: 2, LeftOut: []string{"random"}, RaceBlocks: 3,
		Blocks: 3, MostBlocks: 10, Kills: 20, MaxP95: 1.1, RecoveryMs: 60000, Short: result.TuneLoad{Seconds: 20, Warmup: 6}, Steady: result.TuneLoad{Seconds: 40, Warmup: 40}}}
	arm := func(name string, phase result.Phase, title string) *result.Arm {
		d.Arms = append(d.Arms, result.Arm{Schema: 1, Order: len(d.Arms) + 1, Name: name, Phase: phase, Title: title, Base: "control",
			Settings: []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "4G", Group: "memory"}}})
		return &d.Arms[len(d.Arms)-1]
	}
	*arm("control", "", "the server's defaults") = result.Arm{Schema: 1, Order: 1, Name: "control", Title: "the server's defaults"}
	arm("david-rules", result.Race, "david's rules")
	arm("moco", result.Race, "MOCO").Infeasible = "killed for memory"
	arm("screen-redo", result.Screen, "with innodb_redo_log_capacity=4G")
	arm("search-01", result.Search, "innodb_io_capacity=2500")
	arm("search-02", result.Search, "innodb_page_cleaners=9999").Infeasible = "refused"
	arm("search-03", result.Search, "innodb_redo_log_capacity=4097M").Noop = true
	arm("prune-01", result.Prune, "without innodb_purge_threads, general_log")
	arm("prune-02", result.Prune, "without innodb_redo_log_capacity")
	arm("prune-03", result.Prune, "without innodb_buffer_pool_size")
	best := arm("winner", result.Confirm, "the winner: search-01, with the lines that make a difference")
	for _, s := range [][2]string{{"innodb_redo_log_capacity", "4G"}, {"performance_schema", "OFF"}} {
		best.Settings = append(best.Settings, mycnf.Setting{Name: s[0], Value: s[1]})
	}
	best.Diff = []result.Difference{{Name: "innodb_buffer_pool_size", Before: "134217728", After: "4294967296"}, {Name: "performance_schema", Before: "ON", After: "OFF"},
		{Name: "performance_schema_accounts_size", Before: "-1", After: "0"}}
	block := 0
	run := func(phase result.Phase, twin bool, name string, tps float64) {
		for _, a := range d.Arms {
			if a.Name == name {
				t := fixtureTrial(rng, a, w, block, tps, 4000/tps)
				t.Phase, t.Twin, t.Settled = phase, twin, true
				t.ID = result.TrialID(a, w, block, 0, twin, result.Server{}, string(phase))
				d.Trials = append(d.Trials, t)
			}
		}
	}
	for block = 1; block <= 2; block++ {
		run(result.Race, false, "control", 300)
		run(result.Race, true, "control", 306)
		run(result.Race, false, "david-rules", 700+float64(block))
	}
	run(result.Screen, false, "david-rules", 702)
	run(result.Screen, false, "screen-redo", 760)
	block++
	run(result.Search, false, "screen-redo", 758)
	run(result.Search, false, "search-01", 801)
	run(result.Search, false, "search-01", 796) // a disturbed one
	d.Trials[len(d.Trials)-1].Gates = []result.Gate{{Name: "steal", Detail: "14.2 % of the CPU"}}
	block++
	run(result.Prune, false, "search-01", 797)
	run(result.Prune, false, "prune-01", 800.2)
	block++
	run(result.Prune, false, "prune-01", 790)
	run(result.Prune, false, "prune-02", 560.9)
	run(result.Prune, false, "prune-03", 316)
	for block = 7; block <= 9; block++ {
		run(result.Confirm, false, "control", 303+float64(block%2))
		run(result.Confirm, false, "david-rules", 690+float64(block))
		run(result.Confirm, false, "winner", 777+2*float64(block%3))
	}
	d.Pruned = []result.Worth{{Lines: []string{"innodb_purge_threads", "general_log"}, Ratio: 1.004, Ratios: []float64{1.004}, Pairs: 1, Dropped: true}, {Lines: []string{"innodb_redo_log_capacity"}, Ratio: 0.71, Ratios: []float64{0.7, 0.72}, Pairs: 2},
		{Lines: []string{"innodb_buffer_pool_size"}, Ratio: 0.4, Ratios: []float64{0.4}, Pairs: 1}}
	d.Proofs = []result.Proof{fixtureProof()}
	d.Finish = &result.Finish{Schema: result.Schema, WallSeconds: 2301, MeasureSeconds: 1800, Utilisation: 0.78, Best: "winner"}
	return d
}

func fixtureProof() result.Proof {
	m := result.MemoryProof{Connections: 150, Allowed: 151, Peak: 5 << 30, Empty: 1 << 28, Each: 1 << 20, Limit: 8 << 30}.Judge()
	c := result.CrashTest{Threads: 8, LimitMs: 60000, Notes: []string{"a kill takes the process, not the kernel's cache"},
		Rounds: []result.Kill{{AfterMs: 900, Acknowledged: 812, RecoveryMs: 2100}, {AfterMs: 1300, Acknowledged: 1002, RecoveryMs: 2500}}}.Judge()
	return result.Proof{Arm: "winner", OK: true, Memory: &m, Crash: &c, Lock: true, Seconds: 190}
}
