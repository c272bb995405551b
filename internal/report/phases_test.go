package report

import (
	"bytes"
	"strings"
	"testing"

	"david/internal/result"
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
