package plan

import (
	"math"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// record is an experiment of four blocks: each arm's throughput is so much of its control's 100 transactions/s, and a
// percent or two more.
func record(kind result.Kind, arms []result.Arm, shares ...float64) (e result.Experiment, _ []result.Arm, trials []result.Trial) {
	load := result.Workload{Name: "oltp_read_write", Tables: 10, TableSize: 100_000, Threads: 4}
	e = result.Experiment{ID: "podtax-1", Kind: kind, Created: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC), Workloads: []result.Workload{load}, Design: result.Design{Control: arms[0].Name, Blocks: 4, Margin: 0.03}}
	for block := 1; block <= 4; block++ {
		for i, arm := range arms {
			tps := 100 * shares[i] * (1 + 0.01*float64(block*(i+1)%3))
			trials = append(trials, result.Trial{Arm: arm.Name, Block: block, Workload: load, TPS: tps, Gates: []result.Gate{{Name: "rows", OK: true}}})
		}
	}
	return e, arms, trials
}

func pods() (result.Experiment, []result.Arm, []result.Trial) {
	return record(result.KindPodTax, []result.Arm{{Name: "process"}, {Name: "best-effort", Pod: result.Pod{QoS: "BestEffort"}}, {Name: "guaranteed", Pod: result.Pod{QoS: "Guaranteed"}, Caps: result.Caps{CPUs: 1}}}, 1, 1.1, 0.8)
}

// TestCostsOf reads what the three kinds of measurements say of throughput, and nothing of what may not be quoted.
func TestCostsOf(t *testing.T) {
	path := func(kind string) result.Arm { return result.Arm{Name: kind, Path: result.Path{Kind: kind}} }
	layout := func(name, kind string, iops int64) result.Arm {
		return result.Arm{Name: name, Layout: &result.Layout{Name: name, Kind: kind}, Caps: result.Caps{IOPS: iops}}
	}
	for _, c := range []struct {
		kind   result.Kind
		arms   []result.Arm
		shares []float64
		what   string
		says   []string
	}{
		{result.KindPodTax, []result.Arm{{Name: "process"}, {Name: "guaranteed", Pod: result.Pod{QoS: "Guaranteed"}, Caps: result.Caps{CPUs: 1}}}, []float64{1, 0.8}, "pod",
			[]string{"0.8", "of the process's throughput (1 CPUs), Guaranteed", "4 pairs; counted in the plan"}},
		{result.KindCompare, []result.Arm{path("host"), path("vxlan"), path("bridge")}, []float64{1, 0.7, 0.9}, "network path", []string{"of the throughput of host: vxlan 0.7", ", bridge 0.", "oltp_read_write, 4 rounds"}},
		{result.KindCompare, []result.Arm{layout("one", "one", 1000), layout("stripe4", "stripe", 1000)}, []float64{1, 2.5}, "stripe", []string{"of the transactions of one (1,000 IOPS): stripe4 2.5"}},
		{result.KindCompare, []result.Arm{layout("one", "one", 0), layout("ceph-rbd", "ceph-rbd", 0)}, []float64{1, 0.5}, "Ceph RBD", []string{"of the transactions of one (not capped): ceph-rbd 0.5"}},
	} {
		e, arms, trials := record(c.kind, c.arms, c.shares...)
		list := CostsOf(e, arms, trials)
		if len(list) != 1 || list[0].What != c.what || !list[0].Measured || list[0].Source != "measured: experiment podtax-1" || list[0].Date != "2026-11-20" {
			t.Fatalf("%s: %+v", c.what, list)
		}
		for _, want := range c.says {
			if !strings.Contains(list[0].Says, want) {
				t.Errorf("%s: no %q in %q", c.what, want, list[0].Says)
			}
		}
		for i := range trials { // a gate failed in all
			trials[i].Gates[0].OK = false
		}
		if list := CostsOf(e, arms, trials); len(list) != 0 {
			t.Errorf("%s: invalid runs say %+v", c.what, list)
		}
	}
	e, arms, trials := pods()
	if list := CostsOf(e, arms, trials[:6]); len(list) != 0 {
		t.Errorf("two pairs say nothing of a pod: %+v", list)
	}
	e, arms, trials = record(result.KindCompare, []result.Arm{{Name: "control"}, {Name: "tuned"}}, 1, 2)
	if list := CostsOf(e, arms, trials); len(list) != 0 {
		t.Errorf("settings are no part: %+v", list)
	}
}

// TestStoredPod: a pod that leaves 0.8 of the throughput takes 1/0.8 of the cores, which the plan says to be measured,
// with the ends of its interval; a share that is given wins.
func TestStoredPod(t *testing.T) {
	e, arms, trials := pods()
	costs := CostsOf(e, arms, trials)
	bare := ask(100*gib, 50, "EC2")
	pod := bare
	pod.Kubernetes = true
	cores := func(r Request) (float64, Plan) {
		t.Helper()
		p, err := New(catalogue(t), r)
		if err != nil {
			t.Fatal(err)
		}
		return choiceOf(t, p, Galera).Load.Cores, p
	}
	none, _ := cores(bare)
	usual, _ := cores(pod)
	here, p := cores(pod.WithCosts(costs))
	given, q := cores(pod.figures("pod-throughput", 0.5).WithCosts(costs))
	delete(bare.Figures, "pod-throughput")
	if math.Abs(usual-none/0.952) > 1e-9 || math.Abs(here-none/costs[0].Ratio) > 1e-9 || math.Abs(given-none/0.5) > 1e-9 {
		t.Errorf("cores %v of a process, %v in a pod by david's figure, %v by the measured one, %v by the given one", none, usual, here, given)
	}
	if p.Span == nil || !(p.Span.LowLoad.Cores < p.Span.HighLoad.Cores) || !strings.Contains(p.Head()[1], "what a pod costs measured by you; over its 95 % interval US$") {
		t.Errorf("no interval: %+v, %q", p.Span, p.Head()[1])
	}
	for want, c := range map[string]Choice{"0.8": choiceOf(t, p, Galera), "0.5 of the process's throughput, as given": choiceOf(t, q, Galera)} {
		if x := c.Costs[0]; x.What != "pod" || !strings.Contains(x.Says, want) || x.Measured != (want == "0.8") {
			t.Errorf("%+v, want %q", x, want)
		}
	}
	// Where no pod is planned, what one costs is nobody's business.
	if _, p := cores(bare.WithCosts(costs)); p.Span != nil || strings.Contains(p.Head()[1], "pod") {
		t.Errorf("%+v", p.Span)
	}
}

// TestLayoutDensities: 900 and 1,100 writes/s, a geometric mean of 995, over a million rows of 247 bytes.
func TestLayoutDensities(t *testing.T) {
	e, arms, _ := record(result.KindCompare, []result.Arm{{Name: "stripe4", Layout: &result.Layout{Kind: "stripe", Fio: []result.FioRate{{Way: result.RandomWrite, Bytes: 16384, IOPS: []float64{900, 1100}}}}}, {Name: "bare"}}, 1, 1)
	list := LayoutDensities(e, arms)
	if len(list) != 1 || math.Abs(list[0].PerGB-math.Sqrt(900*1100)/0.247) > 1e-6 || !strings.Contains(list[0].Name, "stripe4 of podtax-1") {
		t.Errorf("%+v", list)
	}
}
