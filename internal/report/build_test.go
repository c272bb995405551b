package report

import (
	"strings"
	"testing"

	"david/internal/result"
)

// TestEveryFormHasTheParts: whatever kind of experiment it is, text and Markdown have its headline, how near
// it came to light speed, and its caveats.
func TestEveryFormHasTheParts(t *testing.T) {
	for name, d := range map[string]Data{"bench": benchFixture(), "light": lightFixture(), "compare": compareFixture(), "race": raceFixture(), "against": againstFixture(),
		"tax": taxFixture(), "slo": sloFixture(), "tune": tuneLightFixture(), "live": liveFixture(), "empty": {}} {
		r := Build(d)
		text, markdown := strings.Join(strings.Fields(string(render(t, Text, d))), " "), string(render(t, Markdown, d))
		for _, part := range append(append([]string{r.Headline.String()}, r.Light...), r.Caveats...) {
			if !strings.Contains(text, strings.Join(strings.Fields(part), " ")) {
				t.Errorf("%s: the text lacks %q", name, part)
			}
			if !strings.Contains(markdown, escape(part)) {
				t.Errorf("%s: the Markdown lacks %q", name, part)
			}
		}
	}
}

// TestLightSpeedIsOfKindsThatHaveIt: of a race the unsafe arms are what is shipped, and no ceiling of
// anything.
func TestLightSpeedIsOfKindsThatHaveIt(t *testing.T) {
	if r := Build(raceFixture()); len(r.Light) > 0 || len(r.light) > 0 || len(r.unsafeBaselines) == 0 {
		t.Errorf("a race: %q, %d, %d", r.Light, len(r.light), len(r.unsafeBaselines))
	}
	for _, kind := range []result.Kind{result.KindStudy, result.KindExperiment} { // whose files may ask for unsafe arms
		d := raceFixture()
		d.Experiment.Kind = kind
		if r := Build(d); len(r.light) > 0 || len(r.unsafeBaselines) == 0 {
			t.Errorf("a %s: %d, %d", kind, len(r.light), len(r.unsafeBaselines))
		}
	}
	if r := Build(lightFixture()); len(r.Light) == 0 || r.comparisons != nil || r.unsafeBaselines != nil {
		t.Errorf("a bench: %q, %v", r.Light, r.comparisons)
	}
}
