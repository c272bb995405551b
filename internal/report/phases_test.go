package report

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// TestPhasesQuoteTheConfirmation: the headline and the comparison are of the confirmation, whatever the short
// trials showed.
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
	text := strings.Join(strings.Fields(string(render(t, Text, d))), " ")
	for _, want := range []string{"killed for memory", "left out for want of time: random", "innodb_io_capacity=2500", "server is the same as control's: not run", "dropped", "kept", "durability lock"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text does not say %q", want)
		}
	}
	if page := render(t, HTML, d); !bytes.Contains(page, []byte("The race: what others would configure")) || !bytes.Contains(page, []byte("phase-3-section")) {
		t.Error("the page lacks the phases")
	}
}

// TestAttempts: each trial is held against its incumbent, which passes its level on; what cannot be run
// stands where its turn was.
func TestAttempts(t *testing.T) {
	var got []string
	for _, x := range history(phasesFixture()).Tried {
		got = append(got, fmt.Sprintf("%s %s %s %.3f %.3f %.3f", x.Phase, x.Arm, x.State, x.Ratio, x.Level, x.Best))
	}
	want := []string{
		"screen david-rules incumbent 1.000 1.000 1.000", "screen screen-redo tried 1.083 1.083 1.000",
		"search screen-redo incumbent 1.000 1.083 1.083", "search search-01 tried 1.057 1.144 1.083", "search search-01 invalid 1.050 1.137 1.083",
		"search search-02 infeasible 0.000 0.000 1.083", "search search-03 no-op 0.000 0.000 1.083",
		"prune search-01 incumbent 1.000 1.144 1.144", "prune prune-01 tried 1.004 1.149 1.144",
		"prune prune-01 incumbent 1.000 1.144 1.144", "prune prune-02 tried 0.710 0.812 1.144", "prune prune-03 tried 0.400 0.458 1.144",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestAttemptsKeepTheirTurn: an arm that could not be run stands before the trial of the next one.
func TestAttemptsKeepTheirTurn(t *testing.T) {
	d := phasesFixture()
	i := slices.IndexFunc(d.Arms, func(a result.Arm) bool { return a.Name == "search-01" })
	d.Arms[i], d.Arms[i+1] = d.Arms[i+1], d.Arms[i]
	list := history(d).Tried
	at := func(state string) int {
		return slices.IndexFunc(list, func(x attempt) bool { return x.Arm == "search-02" && x.State == state })
	}
	if own := slices.IndexFunc(list, func(x attempt) bool { return x.Arm == "search-01" }); at(infeasible) != own-1 {
		t.Errorf("search-02 is number %d, search-01 number %d", at(infeasible), own)
	}
}

// TestWorth: a line is worth what its last removal showed; one never taken out is named, not drawn.
func TestWorth(t *testing.T) {
	h := history(phasesFixture())
	if len(h.Lines) != 2 || h.Lines[0].Lines[0] != "innodb_buffer_pool_size" || h.Lines[1].Lines[0] != "innodb_redo_log_capacity" {
		t.Fatalf("%+v", h.Lines)
	}
	one, two := h.Lines[0].Interval, h.Lines[1].Interval
	if one != (stats.Interval{}) || !(two[0] < 0.7 && two[1] > 0.72) {
		t.Errorf("one pair has %v, two have %v", one, two)
	}
	if got := strings.Join(h.Untried, " "); got != "performance_schema" {
		t.Errorf("not taken out: %s", got)
	}
}

// TestPhasesTextFitsATerminal of 80 columns, without what the server derives from the lines.
func TestPhasesTextFitsATerminal(t *testing.T) {
	text := string(render(t, Text, phasesFixture()))
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if strings.Contains(text, "performance_schema_accounts_size") || !strings.Contains(text, "performance_schema: ON -> OFF") {
		t.Error("the winner is told of by other than its lines")
	}
}

// TestPhasesRivalHandedOver: what stands beside it is david's own find, and no rival.
func TestPhasesRivalHandedOver(t *testing.T) {
	d := phasesFixture()
	for _, a := range d.Arms {
		if a.Phase == result.Race && slices.ContainsFunc(d.Trials, func(x result.Trial) bool { return x.Phase == result.Confirm && x.Arm == a.Name }) {
			d.Finish.Best = a.Name
		}
	}
	if line := rivalLine(d); d.Finish.Best == "winner" || !strings.HasPrefix(line, "winner, which david had found itself, beside "+d.Finish.Best) {
		t.Errorf("%s: %s", d.Finish.Best, line)
	}
}

// TestTimeSinceInterruption: the time of a finish is the last session's, and says so.
func TestTimeSinceInterruption(t *testing.T) {
	d := phasesFixture()
	d.Finish.Ended = d.Trials[0].Started.Add(2000 * time.Second)
	if s := utilisation(d); strings.Contains(s, "gone on with") {
		t.Error(s)
	}
	for i := range d.Trials[2:] {
		d.Trials[2+i].Started = d.Finish.Ended.Add(-time.Minute)
	}
	d.Finish.WallSeconds = 300
	if s := utilisation(d); !strings.Contains(s, fmt.Sprintf("since it was gone on with: 2 of %d runs had been measured before", len(d.Trials))) {
		t.Error(s)
	}
	if page := string(render(t, HTML, d)); !strings.Contains(page, "spent measuring, since it was gone on with") {
		t.Error("the page does not say it")
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
	d.Proofs = []result.Proof{{Arm: "winner", Why: "memory: 1 GiB with 150 connections busy; the limit is 1 GiB"}}
	if h := Headline(d); !strings.HasPrefix(h, "No safe gain over the control") || !strings.Contains(h, "failed its proof: winner: memory: 1 GiB") {
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

// TestPhasesNotConfirmed: a winner whose confirmation was disturbed is no "no gain": it says what there was,
// and which gates failed.
func TestPhasesNotConfirmed(t *testing.T) {
	d := phasesFixture()
	if name, ok := Unconfirmed(d); ok {
		t.Errorf("a confirmed winner, %s, is taken for an unconfirmed one", name)
	}
	d.Finish.Best = stats.Control
	pairs := 0
	for i := range d.Trials {
		if x := &d.Trials[i]; x.Phase == result.Confirm && x.Arm == "winner" {
			if pairs++; pairs > 1 {
				x.Gates = []result.Gate{{Name: "steal"}}
			}
		}
	}
	if name, ok := Unconfirmed(d); !ok || name != "winner" {
		t.Errorf("got %q, %v", name, ok)
	}
	h := Headline(d)
	for _, want := range []string{"Not confirmed: winner had 1 pair with the control where every gate held, 2.5", "(failed of 9 runs: steal in 2)", "the short trials had promised 2.64x"} {
		if !strings.Contains(h, want) {
			t.Errorf("no %q in %s", want, h)
		}
	}
}

// TestPhasesInDebt: a winner that still borrowed from its redo log is not quoted without that word.
func TestPhasesInDebt(t *testing.T) {
	d := phasesFixture()
	if h := Headline(d); strings.Contains(h, "dirty pages") {
		t.Error(h)
	}
	for i := range d.Trials {
		if x := &d.Trials[i]; x.Phase == result.Confirm && x.Arm == "winner" {
			x.Warnings = []result.Warning{{Kind: result.BorrowedSpeed, Text: "the checkpoint age grew"}}
		}
	}
	if h := Headline(d); !strings.Contains(h, "; dirty pages were still to be flushed in ") {
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
	if h := Headline(d); !strings.Contains(h, "x lower p99 latency than the control's, confirmed: ") || !strings.Contains(h, ", p99 ") || strings.Contains(h, "the control's throughput") {
		t.Error(h)
	}
	text := string(render(t, Text, d))
	for _, want := range []string{"ratio, p99 [95 %]", "to control, p99 [95 %]", "to best so far, p99", "p99, times lower", "the p99 of a short trial is noisy", "smallest difference that can be seen, p99"} {
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
