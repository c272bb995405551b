package cli

import (
	"slices"
	"testing"

	"david/internal/result"
	"david/internal/spec"
	"david/internal/stats"
)

// TestFiguresBeside puts what was measured beside what was published.
func TestFiguresBeside(t *testing.T) {
	trial := func(tps, least, most float64) result.Trial {
		return result.Trial{TPS: tps, Latency: result.Latency{Min: least, Max: most}}
	}
	arm := studyResult{trials: []result.Trial{trial(300, 2, 90), trial(310, 3, 80)},
		compared: stats.Arm{Pairs: 6, Ratio: 2.41, Interval: stats.Interval{2.3, 2.52}, Verdict: stats.Faster}}
	for want, p := range map[string]spec.Figure{
		"305.00 /s (2 runs)":                      {Unit: "/s", Of: "tps"},
		"2.00 ms (2 runs)":                        {Unit: "ms", Of: "min"},
		"90.00 ms (2 runs)":                       {Unit: "ms", Of: "max"},
		"2.41 x (2.30 to 2.52, 6 blocks): faster": {Unit: "x", Of: "ratio"},
		"-": {Unit: "US$"},
	} {
		if got := measuredFigure(p, arm); got != want {
			t.Errorf("%s is %q, want %q", p.Of, got, want)
		}
	}
	if got := measuredFigure(spec.Figure{Of: "ratio"}, studyResult{noop: true}); got != "no-op: no effective variable differs, not run" {
		t.Errorf("a no-op is %q", got)
	}
	if got := measuredFigure(spec.Figure{Of: "tps"}, studyResult{}); got != "-" {
		t.Errorf("an arm that was not run is %q", got)
	}
}

// TestStudyFiguresNameArms: a figure of an arm that no experiment of its study has would never be shown.
func TestStudyFiguresNameArms(t *testing.T) {
	named := 0
	for _, name := range spec.StudyNames() {
		st, err := spec.LoadStudy(name)
		if err != nil {
			t.Fatal(err)
		}
		var arms []string
		for _, s := range st.Specs {
			for _, a := range s.Arms {
				arms = append(arms, a.Name)
			}
		}
		for _, p := range st.Published {
			if p.Arm == "" && p.Of == "" {
				continue
			}
			named++
			if st.Cluster && slices.Contains([]string{"host", "best"}, p.Arm) { // the nodes' own network, and the best of pods
				continue
			}
			if st.Ceph && p.Of == "iops_per_gb" && slices.Contains([]string{"ceph-14", "ceph-87"}, p.Arm) {
				continue
			}
			if st.Ceph && p.Arm == "ceph-servers" {
				continue
			}
			if !slices.Contains(arms, p.Arm) || !slices.Contains([]string{"tps", "qps", "avg", "p95", "min", "max", "ratio"}, p.Of) {
				t.Errorf("%s: %q names arm %q, figure %q", name, p.What, p.Arm, p.Of)
			}
		}
	}
	if named == 0 {
		t.Error("no published figure has one of ours beside it")
	}
}
