package report

import (
	"bytes"
	"strings"
	"testing"

	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// TestPhasesQuoteTheConfirmation: the headline and the comparison are of the confirmation, whatever the short trials showed.
func TestPhasesQuoteTheConfirmation(t *testing.T) {
	d := phasesFixture()
	h := Headline(d)
	if !strings.HasPrefix(h, "2.57x the control's throughput") || !strings.Contains(h, "the short trials had promised 2.64x") {
		t.Error(h)
	}
	for _, c := range comparisons(d) {
		if len(c.Arms) != 3 || c.Blocks != 3 {
			t.Errorf("%d arms in %d blocks, want the control, the rival and the winner in 3", len(c.Arms), c.Blocks)
		}
	}
	text := string(render(t, Text, d))
	for _, want := range []string{"killed for memory", "left out for want of time: random", "innodb_io_capacity=2500", "not run", "dropped", "kept", "durability lock"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q", want)
		}
	}
	if page := render(t, HTML, d); !bytes.Contains(page, []byte("The race: what others would configure")) || !bytes.Contains(page, []byte("phase-3-section")) {
		t.Error("the page lacks the phases")
	}
}

// TestPhasesWithoutGain says so plainly.
func TestPhasesWithoutGain(t *testing.T) {
	d := phasesFixture()
	d.Finish.Best, d.Proofs = "control", nil
	for i := range d.Trials {
		if d.Trials[i].Arm == "winner" {
			d.Trials[i].TPS = 305
		}
	}
	if h := Headline(d); !strings.HasPrefix(h, "No significant gain over the control") {
		t.Error(h)
	}
	for i := range d.Trials {
		if d.Trials[i].Arm == "control" {
			d.Trials[i].Gates = []result.Gate{{Name: "steal"}}
		}
	}
	if h := Headline(d); !strings.HasPrefix(h, "No verdict") {
		t.Error(h)
	}
}

// TestPhasesNameTheirMetric: ratios of a tune for p99 are of the p99, and say so wherever they stand.
func TestPhasesNameTheirMetric(t *testing.T) {
	d := phasesFixture()
	d.Experiment.Design.Tune.Objective = result.ForP99
	for i := range d.Trials {
		x := &d.Trials[i]
		x.Latency.P99 = 6000 / x.TPS * float64(100+x.Block%3) / 100
	}
	if h := Headline(d); !strings.Contains(h, "x lower p99 latency than the control's (95 % interval") || !strings.Contains(h, ", p99 ") || strings.Contains(h, "the control's throughput") {
		t.Error(h)
	}
	text := string(render(t, Text, d))
	for _, want := range []string{"ratio, p99 [95 %]", "to control, p99 [95 %]", "to incumbent, p99", "p99, times lower", "the p99 of a short trial is noisy", "noise floor, p99"} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the text does not say %q", want)
		}
	}
	if page := render(t, HTML, d); !bytes.Contains(page, []byte("times lower the p99 latency")) || !bytes.Contains(render(t, JSON, d), []byte(`"metric":"p99"`)) {
		t.Error("the page or the document does not name the metric")
	}
}

// TestPhasesCost: a tune for cost quotes it for the winner and the control.
func TestPhasesCost(t *testing.T) {
	d := phasesFixture()
	d.Price = &price.Quote{Arms: []price.Arm{{Name: "control", USDPer1000: 200, Interval: stats.Interval{190, 210}}, {Name: "winner", USDPer1000: 80}}}
	if h := Headline(d); strings.Contains(h, "US$") {
		t.Error(h)
	}
	d.Experiment.Design.Tune.Objective = result.ForCost
	if h := Headline(d); !strings.Contains(h, "US$ a month per 1,000 transactions/s: 80.00 (no interval) against 200.00 (95 % interval 190.00 to 210.00)") {
		t.Error(h)
	}
	d.Finish.Best = "control"
	if h := Headline(d); !strings.Contains(h, "per 1,000 transactions/s: 200.00 (95 %") {
		t.Error(h)
	}
}
