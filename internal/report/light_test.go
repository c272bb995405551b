package report

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
)

func fixtureCeiling(base string) result.Arm {
	changes := []mycnf.Setting{{Name: "sync_binlog", Value: "0", Group: "unsafe", Reason: "a ceiling only"}, {Name: "skip_log_bin", Group: "unsafe"}}
	return result.Arm{Schema: result.Schema, Order: 99, Name: "light-speed", Base: base, Ceiling: true, Tmpfs: 4 << 30, Changes: changes, Settings: changes,
		Title: "unsafe upper limit, to measure with only: durability off, no binary log, the data in memory (a tmpfs of 4 GiB)"}
}

// lightFixture returns a bench beside its ceiling, three blocks.
func lightFixture() Data {
	rng, w := rand.New(rand.NewPCG(8, 9)), fixtureWorkload(4)
	arm := result.Arm{Schema: result.Schema, Order: 1, Name: "measured", Title: "the server's defaults"}
	d := Data{Experiment: fixtureExperiment("bench", w), Arms: []result.Arm{arm, fixtureCeiling("measured")}}
	d.Experiment.Design = result.Design{Control: "measured", Blocks: 3}
	for block := 1; block <= 3; block++ {
		own := fixtureTrial(rng, d.Arms[0], w, block, 1234+7*float64(block), 5)
		light := fixtureTrial(rng, d.Arms[1], w, block, 1714-9*float64(block), 3)
		light.Unsafe = []string{"sync_binlog is 0"}
		d.Trials = append(d.Trials, light, own)
	}
	d.Finish = &result.Finish{Schema: result.Schema, WallSeconds: 300, MeasureSeconds: 228, Utilisation: 0.76}
	return d
}

// tuneLightFixture returns the tune with its winner's light speed.
func tuneLightFixture() Data {
	d := phasesFixture()
	light := fixtureCeiling("winner")
	x := fixtureTrial(rand.New(rand.NewPCG(3, 4)), light, d.Trials[0].Workload, 7, 1085, 2)
	x.Phase, x.Unsafe = result.Confirm, []string{"sync_binlog is 0"}
	d.Arms, d.Trials = append(d.Arms, light), append(d.Trials, x)
	return d
}

func TestLightSpeedIsTold(t *testing.T) {
	golden(t, "light.txt", render(t, Text, lightFixture()))
	golden(t, "light.md", render(t, Markdown, lightFixture()))
	text := strings.Join(strings.Fields(string(render(t, Text, tuneLightFixture()))), " ")
	if !strings.Contains(text, "the tuned server reaches 72 % of the unsafe upper limit (a further run of each, no interval): 779 of 1,085 transactions/s") || !strings.Contains(text, "unsafe upper limit") {
		t.Errorf("%s", text)
	}
	page := string(render(t, HTML, tuneLightFixture()))
	if !strings.Contains(page, "reaches 72 % of the unsafe upper limit") {
		t.Error("the page does not say it")
	}
}

// TestLightSpeedClaimsNothing: the headline, the comparison and the fastest run are those of what is safe.
func TestLightSpeedClaimsNothing(t *testing.T) {
	if got, want := Headline(tuneLightFixture()), Headline(phasesFixture()); got != want {
		t.Errorf("headline %q, want %q", got, want)
	}
	if got := Headline(lightFixture()); !strings.HasPrefix(got, "1,247.99 transactions/s") || strings.Contains(got, "unsafe") {
		t.Errorf("headline %q", got)
	}
	for _, c := range benchCards(lightFixture(), Build(lightFixture()).light) {
		if strings.HasPrefix(c.Label, "queries/s") && (c.Value != "25,100.00" || !strings.Contains(c.Label, "measured")) {
			t.Errorf("card %+v", c)
		}
	}
	var doc struct {
		Comparisons []struct{ Arms []struct{ Name string } }
		LightSpeed  []struct{ Share, TPS float64 } `json:"light_speed"`
	}
	for _, d := range []Data{lightFixture(), tuneLightFixture()} {
		if err := json.NewDecoder(bytes.NewReader(render(t, JSON, d))).Decode(&doc); err != nil {
			t.Fatal(err)
		}
		if len(doc.LightSpeed) != 1 || doc.LightSpeed[0].Share < 0.7 || doc.LightSpeed[0].Share > 0.75 {
			t.Errorf("%+v", doc)
		}
		for _, c := range doc.Comparisons {
			for _, a := range c.Arms {
				if a.Name == "light-speed" {
					t.Error("it is compared with the control")
				}
			}
		}
	}
}

// TestLightSpeedThatFailedIsSaid in the tune's report, with its reason.
func TestLightSpeedThatFailedIsSaid(t *testing.T) {
	d := tuneLightFixture()
	d.Trials = d.Trials[:len(d.Trials)-1]
	d.Arms[len(d.Arms)-1].Infeasible = "cannot mount a tmpfs"
	if text := string(render(t, Text, d)); !strings.Contains(text, "the unsafe upper limit is not known: cannot mount a tmpfs") {
		t.Errorf("%s", text)
	}
}
