package report

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"david/internal/result"
	"david/internal/stats"
)

// taxFixture returns a process beside a pod that costs nothing and one that costs some 4 %.
func taxFixture() Data {
	w := fixtureWorkload(4)
	d := Data{Experiment: fixtureExperiment("podtax", w)}
	d.Experiment.Design = result.Design{Control: "process", Blocks: 8, Twin: true, Seed: 7, Margin: 0.03}
	caps := result.Caps{CPUs: 2, Memory: 4 << 30}
	d.Arms = []result.Arm{{Order: 1, Name: "process", Title: "a process of david's own on the node", Caps: caps},
		{Order: 2, Name: "guaranteed", Title: "a Guaranteed pod", Base: "process", Caps: caps, Pod: result.Pod{QoS: "Guaranteed", Image: "mysql:9", Node: "n1"}},
		{Order: 3, Name: "besteffort", Title: "a BestEffort pod", Base: "process", Pod: result.Pod{QoS: "BestEffort", Image: "mysql:9", Node: "n1"}}}
	for block := 1; block <= 8; block++ {
		odd := float64(block % 2)
		for place, x := range []struct {
			arm  string
			twin bool
			tps  float64
		}{{"process", false, 1000 + 4*odd}, {"process", true, 1004 - 4*odd}, {"guaranteed", false, 999 + 6*odd}, {"besteffort", false, 950 + 20*odd}} {
			t := result.Trial{ID: fmt.Sprintf("t%d-%d", block, place), Arm: x.arm, Twin: x.twin, Block: block, Place: place + 1, Workload: w, Settled: true, TPS: x.tps,
				Transactions: 1000, Seconds: 60, Latency: result.Latency{Avg: 4, P50: 4, P95: 8, P99: 12, Max: 20}, Gates: []result.Gate{{Name: "steal", OK: true}}}
			cpu := 500.0
			if x.arm != "process" {
				cpu = 515
			}
			held := 0.1 * odd
			t.Costs.ServerCPU, t.ServerThrottled = &cpu, &held
			d.Trials = append(d.Trials, t)
		}
	}
	d.Finish = &result.Finish{WallSeconds: 2000, MeasureSeconds: 1900, Utilisation: 0.95}
	return d
}

// TestTaxIsTold: every form of the report says what each pod costs.
func TestTaxIsTold(t *testing.T) {
	d := taxFixture()
	same := "guaranteed: Kubernetes costs between -0.3 and 0.3 % of the throughput (95 % interval, 8 blocks): equivalent within 3 %"
	open := "besteffort: Kubernetes costs between 3.3 and 5.1 % of the throughput (95 % interval, 8 blocks): slower by more than 3 %"
	if got, want := Headline(d), same+"; "+open; got != want {
		t.Errorf("the headline is %q, want %q", got, want)
	}
	for name, text := range map[string]string{"text": string(render(t, Text, d)), "md": string(render(t, Markdown, d)), "html": string(render(t, HTML, d))} {
		text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), `\`, "")
		for _, say := range []string{same, open, "p of too slow", "held back by its CPU quota, of the measured time: process 5.0 %, guaranteed 5.0 %, besteffort 5.0 %", "server CPU per transaction, ratio", "1.030 [1.030, 1.030]"} {
			if !strings.Contains(text, say) {
				t.Errorf("%s does not say %q:\n%.3000s", name, say, text)
			}
		}
	}
	var doc struct {
		Arms []struct {
			Name string
			Pod  result.Pod
			Tax  *stats.Tax
		}
	}
	if err := json.Unmarshal(render(t, JSON, d), &doc); err != nil {
		t.Fatal(err)
	}
	if a := doc.Arms[1]; a.Tax == nil || a.Tax.Throughput.Verdict != stats.Equivalent || a.Tax.Throughput.N != 8 || a.Pod.QoS != "Guaranteed" {
		t.Errorf("JSON: %+v", a)
	}
	d.Experiment.Design.Margin = 0
	if text := string(render(t, Text, d)); strings.Contains(text, "Kubernetes") {
		t.Error("a comparison without a margin speaks of what Kubernetes costs")
	}
}

// TestTaxCannotTell: where the pairs are too few, or too far apart, no interval is quoted, and it is said
// what would help.
func TestTaxCannotTell(t *testing.T) {
	for _, c := range []struct {
		blocks int
		share  float64 // of the pods' throughput, in every other block
		say    string
	}{
		{3, 0.01, "3 blocks cannot tell what Kubernetes costs: measure more of them, as with --blocks 30"},
		{4, 0.01, "4 blocks cannot tell what Kubernetes costs: measure more of them, as with --blocks 30"},
	} {
		d := taxFixture()
		d.Trials = slices.DeleteFunc(d.Trials, func(t result.Trial) bool { return t.Block > c.blocks })
		for i := range d.Trials {
			if x := &d.Trials[i]; x.Arm != "process" && x.Block%2 == 0 {
				x.TPS *= c.share
			}
		}
		if h := Build(d).Headline; h.Big+h.Rest != "guaranteed: "+c.say+"; besteffort: "+c.say || h.Tone != "none" {
			t.Errorf("%+v", h)
		}
		if text := string(render(t, Text, d)); strings.Contains(text, "costs between") || strings.Contains(text, "equivalent within") {
			t.Errorf("an interval is quoted:\n%s", text)
		}
	}
}

// TestTaxOfTooFew: two pairs are not judged at all.
func TestTaxOfTooFew(t *testing.T) {
	d := taxFixture()
	d.Trials = slices.DeleteFunc(d.Trials, func(t result.Trial) bool { return t.Block > 2 })
	h := Build(d).Headline
	if got := h.Big + h.Rest; !strings.HasPrefix(got, "No verdict: guaranteed is invalid (2 pairs: a verdict needs 3)") || h.Tone != "invalid" {
		t.Errorf("%+v", h)
	}
	if text := string(render(t, Text, d)); strings.Contains(text, "costs between") || strings.Contains(text, "equivalent within") {
		t.Errorf("an interval is quoted:\n%s", text)
	}
}

// TestTaxVerdicts puts each verdict in words.
func TestTaxVerdicts(t *testing.T) {
	for want, e := range map[string]stats.Equivalence{
		"equivalent within 3 %":                                    {Verdict: stats.Equivalent, Margin: 0.03, Interval95: stats.Interval{0.98, 1.01}},
		"slower by more than 3 %":                                  {Verdict: stats.Slower, Margin: 0.03, Interval95: stats.Interval{0.5, 0.9}},
		"slower, whether by more than 3 % is open":                 {Verdict: stats.Slower, Margin: 0.03, Interval95: stats.Interval{0.9, 0.99}},
		"faster by more than 2.5 %":                                {Verdict: stats.Faster, Margin: 0.025, Interval95: stats.Interval{1.1, 1.2}},
		"undecided, more time would tell whether it is within 3 %": {Verdict: stats.Undecided, Margin: 0.03, Interval95: stats.Interval{0.9, 1.1}},
	} {
		if got := overheadVerdict(e); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	none := overheadLine(stats.Arm{Name: "guaranteed", Why: "1 pair: a verdict needs 3"})
	if none != "guaranteed: no verdict: 1 pair: a verdict needs 3" {
		t.Error(none)
	}
	d := taxFixture()
	for i := range d.Trials {
		d.Trials[i].Gates[0].OK = false
	}
	if h := Build(d).Headline; h.Tone != "invalid" {
		t.Errorf("%+v", h)
	}
}
