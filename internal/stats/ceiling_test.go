package stats

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"david/internal/result"
)

// lightTrials are runs of an arm and of its ceiling in blocks, with the ratios of their throughputs.
func lightTrials(shares ...float64) []result.Trial {
	var trials []result.Trial
	for i, share := range shares {
		own, limit := trial("control", 1000*share, 10), trial("light-speed", 1000, 5)
		own.Block, limit.Block = i+1, i+1
		limit.Unsafe = []string{"sync_binlog"}
		trials = append(trials, limit, own)
	}
	return trials
}

var lightArms = []result.Arm{{Name: "control"}, {Name: "light-speed", Base: "control", Ceiling: true}}

// TestLightSpeedByHand holds the share and its interval against the formula: t(0.975, 2) = 4.3027.
func TestLightSpeedByHand(t *testing.T) {
	list := LightSpeeds(lightArms, lightTrials(0.5, 0.6, 0.7))
	if len(list) != 1 {
		t.Fatalf("%+v", list)
	}
	l := list[0]
	logs := []float64{math.Log(0.5), math.Log(0.6), math.Log(0.7)}
	half := 4.302652730 * StdDev(logs) / math.Sqrt(3)
	near(t, "share", l.Share, math.Exp(Mean(logs)))
	near(t, "low", l.Interval[0], math.Exp(Mean(logs)-half))
	near(t, "high", l.Interval[1], math.Exp(Mean(logs)+half))
	near(t, "ceiling", l.CeilingTPS, 1000)
	if l.Pairs != 3 || l.Arm != "control" || l.Ceiling != "light-speed" || l.Why != "" || len(l.Warnings) != 0 {
		t.Errorf("%+v", l)
	}
}

// TestLightSpeedWithoutRepeats has a share and no interval; two runs of the control in its block are one
// observation.
func TestLightSpeedWithoutRepeats(t *testing.T) {
	trials := lightTrials(0.5)
	twin := trial("control", 720, 10)
	twin.Block, twin.Twin = 1, true
	l := LightSpeeds(lightArms, append(trials, twin))[0]
	near(t, "share", l.Share, 0.6) // of the geometric mean of 500 and 720
	if l.Interval != (Interval{}) || l.Pairs != 1 {
		t.Errorf("%+v", l)
	}
}

// TestLightSpeedOfPairsOnly: a block without a valid run of both counts nowhere, and the throughputs give the
// share.
func TestLightSpeedOfPairsOnly(t *testing.T) {
	trials := lightTrials(0.5, 0.5, 0.5)
	trials[0].TPS = 9000
	trials[1].Gates = []result.Gate{{Name: "steal", Detail: "12 %"}}
	l := LightSpeeds(lightArms, trials)[0]
	near(t, "share", l.Share, 0.5)
	near(t, "of the throughputs", l.TPS/l.CeilingTPS, 0.5)
	if l.Pairs != 2 || len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "1 invalid run of control: steal") {
		t.Errorf("%+v", l)
	}
}

func TestLightSpeedSaysWhatIsMissing(t *testing.T) {
	failed := lightTrials(0.5)
	failed[0].Gates = []result.Gate{{Name: "steal", Detail: "12 %"}}
	own := lightTrials(0.5)
	own[1].Gates = failed[0].Gates
	dead := []result.Arm{lightArms[0], {Name: "light-speed", Base: "control", Ceiling: true, Infeasible: "[ERROR] no"}}
	for _, c := range []struct {
		name   string
		arms   []result.Arm
		trials []result.Trial
		why    string
	}{
		{"not run", lightArms, nil, "no trial was stored"},
		{"infeasible", dead, nil, "[ERROR] no"},
		{"invalid", lightArms, failed, "steal: 12 %"},
		{"the arm is invalid", lightArms, own, "no block has a valid run both of control"},
	} {
		list := LightSpeeds(c.arms, c.trials)
		if len(list) != 1 || list[0].Share != 0 || !strings.Contains(list[0].Why, c.why) {
			t.Errorf("%s: %+v", c.name, list)
		}
	}
	if list := LightSpeeds(lightArms[:1], lightTrials(0.5)[1:]); list != nil {
		t.Errorf("without a ceiling: %+v", list)
	}
	if l := LightSpeeds(lightArms, lightTrials(1.04))[0]; len(l.Warnings) != 1 || !strings.Contains(l.Warnings[0], "above 100 %") {
		t.Errorf("beyond light speed: %+v", l)
	}
}

// TestCeilingsAreNoContenders: neither sums of runs nor a comparison change where a ceiling stands in the
// store, however fast it is.
func TestCeilingsAreNoContenders(t *testing.T) {
	arms := []result.Arm{{Name: "control"}, {Name: "memory", Base: "control", Diff: []result.Difference{{Name: "a"}}}}
	var trials []result.Trial
	for block := 1; block <= 6; block++ {
		for _, x := range []result.Trial{trial("control", 500+float64(block), 10), trial("memory", 700, 10)} {
			x.Block = block
			trials = append(trials, x)
		}
	}
	light := trial("light-speed", 9000, 1)
	light.Block = 1
	with := append(arms, result.Arm{Name: "light-speed", Base: "memory", Ceiling: true})
	all := append(append([]result.Trial{}, trials...), light)
	if got, want := RunsOf(with, all), RunsOf(arms, trials); !reflect.DeepEqual(got, want) {
		t.Errorf("runs %+v, want %+v", got, want)
	}
	d := result.Design{Control: "control"}
	if got, want := Compare(d, with, all), Compare(d, arms, trials); !reflect.DeepEqual(got, want) {
		t.Errorf("comparison %+v, want %+v", got, want)
	}
}
