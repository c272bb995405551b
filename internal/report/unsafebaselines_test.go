package report

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"david/internal/result"
)

// raceFixture returns the comparison with a rival as it is shipped beside it, twice as fast as the control.
func raceFixture() Data {
	d := compareFixture()
	d.Experiment.Kind = "race"
	shipped := fixtureCeiling("control")
	shipped.Name, shipped.Tmpfs, shipped.Title = "moco-shipped", 0, "moco as it is shipped, unsafe: sync_binlog=0 (committed transactions)"
	d.Arms = append(d.Arms, shipped)
	rng := rand.New(rand.NewPCG(5, 6))
	for block := 1; block <= fixtureBlocks; block++ {
		t := fixtureTrial(rng, shipped, d.Trials[0].Workload, block, 1030+float64(block), 3)
		t.Unsafe = []string{"sync_binlog is 0"}
		d.Trials = append(d.Trials, t)
	}
	return d
}

func TestShippedIsTold(t *testing.T) {
	for name, text := range map[string]string{"text": string(render(t, Text, raceFixture())), "md": string(render(t, Markdown, raceFixture())), "html": string(render(t, HTML, raceFixture()))} {
		text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), `\_`, "_") // wrapped, and escaped
		for _, want := range []string{"moco-shipped (unsafe, no verdict): 1,03", " transactions/s, 2.0", "sync_binlog=0 (committed transactions)"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "of the unsafe upper limit") || strings.Contains(text, unsafeLimit) {
			t.Errorf("%s speaks of the unsafe upper limit", name)
		}
	}
}

// TestShippedHasNoVerdict: headline, verdicts and JSON are those of the comparison without it.
func TestShippedHasNoVerdict(t *testing.T) {
	if got, want := Headline(raceFixture()), Headline(compareFixture()); got != want {
		t.Errorf("the headline is %q, without the unsafe arm %q", got, want)
	}
	var doc struct {
		Arms []struct {
			Name    string
			Verdict string
		}
		AsShipped []unsafeBaseline `json:"as_shipped"`
	}
	if err := json.Unmarshal(render(t, JSON, raceFixture()), &doc); err != nil {
		t.Fatal(err)
	}
	if last := doc.Arms[len(doc.Arms)-1]; last.Name != "moco-shipped" || last.Verdict != "" {
		t.Errorf("the unsafe arm: %+v", last)
	}
	if len(doc.AsShipped) != 1 || doc.AsShipped[0].Ratio < 1.8 || doc.AsShipped[0].Pairs != fixtureBlocks || !(doc.AsShipped[0].Interval[0] < doc.AsShipped[0].Ratio && doc.AsShipped[0].Ratio < doc.AsShipped[0].Interval[1]) {
		t.Errorf("as shipped: %+v", doc.AsShipped)
	}
}

// TestShippedWithoutRun: one that could not be started says why.
func TestShippedWithoutRun(t *testing.T) {
	d := raceFixture()
	last := len(d.Arms) - 1
	d.Arms[last].Infeasible = "unknown variable"
	d.Trials = slices.DeleteFunc(d.Trials, func(x result.Trial) bool { return x.Arm == "moco-shipped" })
	if text := string(render(t, Text, d)); !strings.Contains(text, "moco-shipped (unsafe, no verdict): unknown variable") {
		t.Errorf("%s", text)
	}
}
