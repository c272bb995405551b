package report

import (
	"encoding/json"
	"strings"
	"testing"

	"david/internal/stats"
)

// againstFixture returns the race with the user's own file as its control.
func againstFixture() Data {
	d := raceFixture()
	d.Experiment.Design.Against = "my.cnf"
	return d
}

// TestStandingIsTold: every form of the report says the same of the file, in its headline and by baseline.
func TestStandingIsTold(t *testing.T) {
	d := againstFixture()
	want := stats.Compare(d.Experiment.Design, d.Arms, d.Trials)[0].Standing
	if want == nil || want.Of != 2 || want.NotWorse != 0 {
		t.Fatalf("%+v", want)
	}
	if got, head := Headline(d), "Non-inferior to 0 of 2 baselines: my.cnf, margin 3 %; faster than 0; slower than 1, the most than memory: 1."; !strings.HasPrefix(got, head) {
		t.Errorf("the headline is %q", got)
	}
	for name, text := range map[string]string{"text": string(render(t, Text, d)), "md": string(render(t, Markdown, d)), "html": string(render(t, HTML, d))} {
		text = wordLink.ReplaceAllString(text, "$1")
		text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), `\_`, "_")
		for _, say := range []string{want.String(), "at most, corrected", "not worse by more than 3 %"} {
			if !strings.Contains(text, say) {
				t.Errorf("%s does not say %q:\n%s", name, say, text)
			}
		}
	}
	var doc struct {
		Comparisons []struct{ Standing *stats.Standing }
	}
	if err := json.Unmarshal(render(t, JSON, d), &doc); err != nil {
		t.Fatal(err)
	}
	if got := doc.Comparisons[0].Standing; got == nil || got.NotWorse != want.NotWorse || len(got.Against) != len(want.Against) {
		t.Errorf("JSON: %+v", got)
	}
	if text := string(render(t, Text, raceFixture())); strings.Contains(text, "non-inferior") {
		t.Error("a race against the defaults speaks of a file")
	}
}

// TestStandingRows: what of a baseline is shown, open, or refuted.
func TestStandingRows(t *testing.T) {
	s := stats.Standing{Own: "my.cnf", Margin: stats.Margin, Against: []stats.Opponent{
		{Arm: "slower", Ratio: 0.5, Interval: stats.Interval{0.4, 0.6}, AtMost: 0.7, NotWorse: true, Faster: true, Verdict: stats.Slower},
		{Arm: "alike", Ratio: 1, Interval: stats.Interval{0.9, 1.1}, AtMost: 1.2, Verdict: stats.Undecided},
		{Arm: "better", Ratio: 1.5, Interval: stats.Interval{1.4, 1.6}, AtMost: 1.7, Verdict: stats.Faster},
		{Arm: "dead", Verdict: stats.Infeasible}}}
	for i, want := range []string{"yes yes", "undecided not shown", "no no", "infeasible -"} {
		row := standingTable(s, fixtureWorkload(4)).Rows[i]
		if got := row[3] + " " + row[4]; got != strings.Replace(want, "-", none, 1) {
			t.Errorf("%s: %q", row[0], got)
		}
	}
}
