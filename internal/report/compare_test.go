package report

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"david/internal/result"
	"david/internal/stats"
)

// verdicts makes contenders of a workload: the headline is about them, however they were concluded.
func verdicts(arms ...stats.Arm) []contender {
	return contenders([]stats.Comparison{{Control: "control", Arms: append([]stats.Arm{{Name: "control", Verdict: stats.IsControl}}, arms...)}})
}

func TestCompareHeadline(t *testing.T) {
	gain := stats.Arm{Name: "tuned", Ratio: 1.523, Interval: stats.Interval{1.472, 1.571}, Pairs: 6, Verdict: stats.Faster}
	small := stats.Arm{Name: "big", Ratio: 1.034, Interval: stats.Interval{1.0204, 1.0479}, Pairs: 5, Verdict: stats.Faster}
	loss := stats.Arm{Name: "sync", Ratio: 0.81, Interval: stats.Interval{0.77, 0.84}, Pairs: 6, Verdict: stats.Slower}
	open := stats.Arm{Name: "flush", Ratio: 1.004, Interval: stats.Interval{0.987, 1.021}, Pairs: 6, Verdict: stats.Undecided}
	unknown := stats.Arm{Name: "wild", Ratio: 0.99, Interval: stats.Interval{0.052, 19.2}, Pairs: 3, Verdict: stats.Undecided}
	likely := stats.Arm{Name: "flush", Ratio: 1.02, Interval: stats.Interval{0.99, 1.05}, Pairs: 6, Odds: 0.912, Verdict: stats.Undecided}
	alike := stats.Arm{Name: "io", Ratio: 1.004, Interval: stats.Interval{0.987, 1.021}, Pairs: 6, Verdict: stats.Equivalent, Why: "90 % interval within ±1.9 %"}
	bad := stats.Arm{Name: "hog", Verdict: stats.Invalid, Why: "steal: 14.2 % of the CPU"}
	for want, arms := range map[string][]stats.Arm{
		"tuned: 1.52x the control's throughput (95 % interval 1.47 to 1.57, 6 blocks)":                                             {gain},
		"big: 1.034x the control's throughput (95 % interval 1.020 to 1.048, 5 blocks)":                                            {small},
		"tuned: 1.52x the control's throughput (95 % interval 1.47 to 1.57, 6 blocks); the most of 2 faster arms of 4":             {small, open, gain, loss},
		"Undecided: flush is 1.004x the control's throughput (95 % interval 0.987 to 1.021, 6 blocks)":                             {open},
		"Undecided: wild is 0.990x the control's throughput (95 % interval 0.052 to 19.200, 3 blocks)":                             {unknown},
		"sync: 0.81x the control's throughput, slower (95 % interval 0.77 to 0.84, 6 blocks)":                                      {loss},
		"No gain: no arm is faster than the control (1 undecided, 1 slower)":                                                       {open, loss},
		"Undecided: flush is 1.020x the control's throughput (95 % interval 0.990 to 1.050, 6 blocks); 91.2 % likely to be faster": {likely},
		"io: equivalent to the control (90 % interval within ±1.9 %; margin 3 %)":                                                  {alike},
		"No difference: no arm is faster than the control (2 equivalent)":                                                          {alike, alike},
		"Undecided: no arm is faster than the control (1 equivalent, 1 undecided)":                                                 {alike, open},
		"No gain: no arm is faster than the control (1 equivalent, 1 slower)":                                                      {loss, alike},
		"No verdict: hog is invalid (steal: 14.2 % of the CPU)":                                                                    {bad},
		"Undecided: no arm is faster than the control (1 undecided, 1 invalid); no verdict for hog (steal: 14.2 % of the CPU)":     {open, bad},
		"No verdict: no run was stored, so there is nothing to compare":                                                            nil,
	} {
		if got := concluded(Data{}, verdicts(arms...), 1).String(); got != want {
			t.Errorf("headline is %q\n            want %q", got, want)
		}
	}
}

func TestHeadlineOfSeveralWorkloadsNamesTheOne(t *testing.T) {
	got := Headline(twoWorkloads())
	if !strings.Contains(got, "with oltp_read_write, ") || !strings.Contains(got, "faster in 2 of 8 comparisons (arms x workloads)") {
		t.Error(got)
	}
}

func TestCompareTextFitsATerminal(t *testing.T) {
	for name, d := range map[string]Data{"compare": compareFixture(), "hostile": hostileCompare(), "slo": sloFixture(), "workloads": twoWorkloads()} {
		for line := range strings.Lines(string(render(t, Text, d))) {
			if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
				t.Errorf("%s: %d columns: %s", name, n, line)
			}
		}
	}
}

func TestNoiseFloorComesBeforeEveryNumber(t *testing.T) {
	text := string(render(t, Text, compareFixture()))
	if at := strings.Index(text, "smallest difference that can be seen: "); at < 0 || at > strings.Index(text, "ratio [95 %]") {
		t.Error(text)
	}
	none := floor(stats.Comparison{})
	if strings.Contains(none, "0 %") || !strings.Contains(none, "not measured") {
		t.Errorf("without a pair: %s", none)
	}
	if instead := floor(stats.Comparison{NoiseFloor: stats.NoiseFloor{Floor: 0.05}}); !strings.Contains(instead, "5 % stands in") {
		t.Errorf("without a pair, a floor in its stead: %s", instead)
	}
}

func TestCompareJSON(t *testing.T) {
	d := compareFixture()
	b := render(t, JSON, d)
	var doc struct {
		Arms       []map[string]any   `json:"arms"`
		NoiseFloor float64            `json:"noise_floor"`
		Noise      stats.NoiseFloor   `json:"noise"`
		Blocks     int                `json:"blocks"`
		Gates      []gateRow          `json:"gates"`
		Full       []stats.Comparison `json:"comparisons"`
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	c := comparisons(d)[0]
	if doc.NoiseFloor <= 0 || doc.NoiseFloor != c.NoiseFloor.Floor || doc.Noise.Pairs != fixtureBlocks || doc.Blocks != c.Blocks || len(doc.Full) != 1 {
		t.Errorf("noise %v %+v, blocks %d", doc.NoiseFloor, doc.Noise, doc.Blocks)
	}
	for i, a := range doc.Arms {
		for _, key := range []string{"name", "title", "order", "tps", "p95_ms", "p99_ms", "ratio", "interval", "verdict"} {
			if _, ok := a[key]; !ok {
				t.Errorf("arm %d has no %s", i, key)
			}
		}
		if a["name"] != d.Arms[i].Name || a["title"] != d.Arms[i].Title || a["tps"] != c.Arms[i].TPS {
			t.Errorf("arm %d: %v %v %v", i, a["name"], a["title"], a["tps"])
		}
	}
	want := []gateRow{{"row counts", 24, 24, "10 x 1000000"}, {"steal", 23, 24, "memory: 14.2 % of the CPU, at most 5 %"}}
	if !reflect.DeepEqual(doc.Gates, want) {
		t.Errorf("gates %+v", doc.Gates)
	}
}

// Under several workloads every arm stands once for each, with that one's figures.
func TestMatrixJSON(t *testing.T) {
	d := twoWorkloads()
	var doc struct {
		Arms []struct {
			Name, Workload string
			Threads        int
			TPS            float64
		}
	}
	if err := json.Unmarshal(render(t, JSON, d), &doc); err != nil {
		t.Fatal(err)
	}
	list, n := comparisons(d), len(d.Arms)
	if len(list) != 2 || len(doc.Arms) != 2*n {
		t.Fatalf("%d comparisons, %d arms of %d", len(list), len(doc.Arms), n)
	}
	for i, a := range doc.Arms {
		c := list[i/n]
		if a.Name != d.Arms[i%n].Name || a.Workload != c.Workload.Name || a.Threads != c.Workload.Threads || a.TPS != c.Arms[i%n].TPS {
			t.Errorf("cell %d: %+v", i, a)
		}
	}
}

// One pair has no interval: null in JSON, a dash in a table, never 0 to 0.
func TestNoIntervalIsNotZero(t *testing.T) {
	d := compareFixture()
	d.Trials = slices.DeleteFunc(d.Trials, func(x result.Trial) bool { return x.Block > 1 })
	b, text := string(render(t, JSON, d)), string(render(t, Text, d))
	if strings.Contains(b, `_interval":[0,0]`) || strings.Contains(b, `"interval":[0,0]`) || strings.Count(b, `"interval":null`) != 2*len(d.Arms) {
		t.Error(b[:2000])
	}
	if !strings.Contains(text, " [-]") || strings.Contains(text, "[0.00") {
		t.Error(text)
	}
	var i stats.Interval
	if err := json.Unmarshal([]byte("null"), &i); err != nil || i != (stats.Interval{}) {
		t.Errorf("%v, %v", i, err)
	}
	if err := json.Unmarshal([]byte("[1,2]"), &i); err != nil || i != (stats.Interval{1, 2}) {
		t.Errorf("%v, %v", i, err)
	}
}

// TestEachArmIsNamedOnce looks at the text, as a map keeps only one of two equal keys.
func TestEachArmIsNamedOnce(t *testing.T) {
	b, err := json.Marshal(armDocument{Arm: result.Arm{Name: "inner", Title: "inner"}, Figures: &stats.Arm{Name: "figures"}, Name: "a", Title: "b"})
	if err != nil {
		t.Fatal(err)
	}
	if s := string(b); strings.Count(s, `"name":`) != 1 || strings.Count(s, `"title":`) != 1 || !strings.Contains(s, `"name":"a"`) {
		t.Error(s)
	}
}

func TestWithoutPairsTheFloorIsNull(t *testing.T) {
	d := compareFixture()
	for i := range d.Trials {
		d.Trials[i].Twin = false
	}
	if b := string(render(t, JSON, d)); !strings.Contains(b, `"noise_floor":null`) {
		t.Error("a floor that was not measured has a number")
	}
}

func TestGateEvidenceIsTheFirstFailure(t *testing.T) {
	gate := func(ok bool, detail string) result.Trial {
		return result.Trial{Arm: "a", Gates: []result.Gate{{Name: "steal", OK: ok, Detail: detail}}}
	}
	got := gateRows([]result.Trial{gate(true, "0 %"), gate(false, "9 %"), gate(true, "1 %"), gate(false, "8 %")})
	if want := []gateRow{{"steal", 2, 4, "a: 9 %"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
}

func TestScreening(t *testing.T) {
	d := compareFixture()
	if got := screening(d); got != "screening: 24 of 24 trials ended with more dirty pages to be flushed than they began with; confirm with --steady" {
		t.Error(got)
	}
	d.Trials[0].After.CheckpointAge = d.Trials[0].Before.CheckpointAge
	d.Trials[1].Before.CheckpointAge = nil
	if got := screening(d); !strings.Contains(got, "22 of 23 trials") {
		t.Error(got)
	}
	if d.Experiment.Design.Steady = true; screening(d) != "" {
		t.Error("a steady experiment is called screening")
	}
}

func TestDeviationNeedsTwoSeconds(t *testing.T) {
	one := result.Trial{Points: []result.Point{{Second: 1, Warm: true}, {Second: 2, TPS: 5}}}
	two := result.Trial{Points: append(one.Points, result.Point{Second: 3, TPS: 5})}
	if deviation(one) != none || deviation(two) != "0.00" || deviation(result.Trial{StdDevTPS: 3}) != "3.00" {
		t.Error(deviation(one), deviation(two))
	}
}

func TestSLOHeadline(t *testing.T) {
	d := sloFixture()
	if h := Build(d).Headline; h.Big != "300" || h.Tone != "gain" || h.String() != d.Finish.Best {
		t.Errorf("%+v", h)
	}
	d.Finish.RateSearch = &result.RateSearch{Outcome: result.RateNone}
	if h := Build(d).Headline; h.String() != d.Finish.Best || h.Tone == "gain" {
		t.Errorf("the words count, and not the field: %+v", h)
	}
	d.Finish.RateSearch, d.Finish.Best = nil, "No rate keeps p99 at or below 20 ms"
	if h := Build(d).Headline; h.String() != d.Finish.Best || h.Tone == "gain" {
		t.Errorf("%+v", h)
	}
	d.Finish = nil
	if got := Headline(d); !strings.HasPrefix(got, "No rate found that keeps p99 at or below 20 ms") {
		t.Error(got)
	}
}

func TestSamplingTellsWhenItCostsTooMuch(t *testing.T) {
	cheap := []result.Trial{{Sampling: result.Sampling{Samples: 30, DavidCPU: 0.004, ServerCPU: 0.002}}, {}}
	if got := sampling(cheap); got != "0.40 % of one core for david, at most 0.20 % for the server (mean of 1 run)" {
		t.Error(got)
	}
	cheap[0].Sampling.ServerCPU = 0.02
	if got := sampling(cheap); !strings.HasSuffix(got, "more than the 1 % it may cost") {
		t.Error(got)
	}
}

func TestWrapLosesNothing(t *testing.T) {
	long := strings.Repeat("é", 45)
	for _, s := range []string{"", "one", "a b  c", "ab " + long + " cd", long} {
		lines := Wrap(s, 20)
		for _, line := range lines {
			if utf8.RuneCountInString(line) > 20 {
				t.Errorf("%q is too long", line)
			}
		}
		if got, want := strings.ReplaceAll(strings.Join(lines, ""), " ", ""), strings.ReplaceAll(s, " ", ""); got != want {
			t.Errorf("%q became %q", s, lines)
		}
	}
}
