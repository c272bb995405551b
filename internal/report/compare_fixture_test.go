package report

import (
	"math"
	"math/rand/v2"

	"david/internal/result"
)

const fixtureBlocks = 6

// compareFixture returns a comparison in six blocks with twins: one arm faster, one equivalent, one not run,
// one that cannot start, and one run of which a gate failed.
func compareFixture() Data {
	w, all := fixtureWorkload(4), fixtureArms()
	d := Data{Experiment: fixtureExperiment("compare", w)}
	d.Experiment.Design = result.Design{Control: "control", Blocks: fixtureBlocks, Twin: true, SkipNoops: true, Seed: 42}
	for _, i := range []int{0, 1, 2, 4, 7} { // control, page (no-op), memory, flush, large-pages (infeasible)
		a := all[i]
		a.Order, a.Caps = len(d.Arms)+1, result.Caps{CPUs: 2, Memory: 4 << 30, IOPS: 2000}
		if a.Base != "" {
			a.Base = "control"
		}
		d.Arms = append(d.Arms, a)
	}
	rng := rand.New(rand.NewPCG(3, 9))
	for block := 1; block <= fixtureBlocks; block++ {
		d.Trials = append(d.Trials, fixtureBlock(rng, d.Arms, w, block)...)
	}
	d.Trials[6].Gates[1] = result.Gate{Name: "steal", Detail: "14.2 % of the CPU, at most 5 %"}
	d.Trials[9].Warnings = []result.Warning{{Kind: result.BorrowedSpeed, Text: "the checkpoint age grew by 212 MiB"}}
	d.Finish = &result.Finish{Schema: result.Schema, WallSeconds: 1044, MeasureSeconds: 912, Utilisation: 0.874, Best: "memory"}
	return d
}

func fixtureBlock(rng *rand.Rand, arms []result.Arm, w result.Workload, block int) []result.Trial {
	runs := []struct {
		arm        result.Arm
		twin       bool
		tps, scale float64
	}{{arms[0], false, 513, 7.2}, {arms[0], true, 513, 7.2}, {arms[2], false, 781, 4.7}, {arms[3], false, 516, 7.1}}
	drift, places := math.Exp(0.03*rng.NormFloat64()), rng.Perm(len(runs))
	var trials []result.Trial
	for i := range runs {
		r := runs[places[i]]
		t := fixtureTrial(rng, r.arm, w, block, cents(r.tps*drift*math.Exp(0.012*rng.NormFloat64())), r.scale)
		t.Twin, t.Place, t.Settled, t.Warmed = r.twin, i+1, true, warmup
		t.ID = result.TrialID(r.arm, w, block, 0, r.twin, result.Server{}, "16384")
		fixtureSampled(rng, &t)
		trials = append(trials, t)
	}
	return trials
}

// fixtureSampled adds what is read beside the load. Fsyncs are left unknown, as they are where nothing counts
// them.
func fixtureSampled(rng *rand.Rand, t *result.Trial) {
	age := 20e6 + 1e6*rng.Float64()
	t.Before.CheckpointAge, t.Before.DirtyPages, t.Before.History = some(age), some(120), some(4)
	for s := range seconds {
		age += 3e6 * math.Exp(-float64(s)/12)
		t.Samples = append(t.Samples, result.Sample{At: float64(s), Values: map[string]float64{
			"server.cpu_cores": cents(1.6 + 0.1*rng.NormFloat64()), "disk.read_iops": cents(400 + 40*rng.NormFloat64()),
			"disk.write_iops": cents(1500 + 90*rng.NormFloat64()), "innodb.checkpoint_age_bytes": math.Round(age)}})
	}
	t.After.CheckpointAge, t.After.DirtyPages, t.After.History = some(math.Round(age)), some(2410), some(31)
	t.Costs = result.Costs{ServerCPU: some(2210.4), ClientCPU: some(180.2), Switches: some(61.3), ReadKB: some(12.5), WrittenKB: some(48.25),
		RedoBytes: some(6512), HitRate: some(0.99124)}
	t.Sampling = result.Sampling{Samples: seconds, DavidCPU: 0.0042, ServerCPU: 0.0017}
}

func some(x float64) *float64 { return &x }

// sloFixture returns a search for the highest rate that keeps p99 at or below 20 ms.
func sloFixture() Data {
	control := result.Arm{Schema: result.Schema, Order: 1, Name: "control", Title: "as given"}
	d := Data{Experiment: fixtureExperiment("bench", fixtureWorkload(16)), Arms: []result.Arm{control}}
	d.Experiment.Design.SLO = &result.SLO{Percentile: 99, Ms: 20}
	rng := rand.New(rand.NewPCG(1, 4))
	for i, x := range []struct{ rate, tps, scale float64 }{{0, 410, 17.9}, {200, 200.1, 6.1}, {400, 391, 60}, {300, 299.7, 8.4}, {350, 349, 11.8}} {
		w := fixtureWorkload(16)
		w.Rate = x.rate
		t := fixtureTrial(rng, control, w, 1, x.tps, x.scale)
		for s := range t.Points {
			if t.Points[s].Busy = 16; x.rate == 400 {
				t.Points[s].Queue = int64(9 * s)
			}
		}
		if i == 2 {
			t.Gates = append(t.Gates, result.Gate{Name: "queue", Detail: "grew from 72 to 333 in 30 s"})
		}
		d.Trials = append(d.Trials, t)
	}
	d.Finish = &result.Finish{Schema: result.Schema, WallSeconds: 231, MeasureSeconds: 190, Utilisation: 0.823,
		Best: "300 transactions/s keep p99 at or below 20 ms (closed loop: 410 at p99 38 ms)"}
	return d
}

// hostileCompare returns a comparison whose every text, names of arms included, tries to be HTML, Markdown or
// the end of a script.
func hostileCompare() Data {
	d := compareFixture()
	evil := `</script><img src=x onerror="alert(1)">|<!--` + "`&"
	for i := range d.Arms {
		d.Arms[i].Title, d.Arms[i].Infeasible = evil, ""
		if i > 0 {
			d.Arms[i].Name += evil
		}
	}
	d.Arms[4].Infeasible = evil
	for i := range d.Trials {
		if d.Trials[i].Arm != "control" {
			d.Trials[i].Arm += evil
		}
		d.Trials[i].Warnings = []result.Warning{{Text: evil}}
		d.Trials[i].Samples[0].Values[evil+"checkpoint_age"] = 1
	}
	d.Trials[6].Gates[1].Name, d.Trials[6].Gates[1].Detail = result.GateName(evil), evil
	d.Experiment.Notes = []string{evil}
	return d
}

// twoWorkloads returns the comparison with half as many threads beside it, in which every arm is a little
// slower.
func twoWorkloads() Data {
	d := compareFixture()
	d.Experiment.Workloads = append(d.Experiment.Workloads, fixtureWorkload(2))
	for _, t := range d.Trials {
		t.Workload, t.TPS, t.ID = fixtureWorkload(2), 0.7*t.TPS, t.ID+"b"
		d.Trials = append(d.Trials, t)
	}
	return d
}
