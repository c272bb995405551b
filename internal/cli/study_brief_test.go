package cli

import (
	"strings"
	"testing"

	"david/internal/result"
	"david/internal/spec"
	"david/internal/stats"
)

// TestStands: a published ratio agrees with an interval that decides something and has it within, or lies beyond its
// bound; an interval that decides nothing contradicts only what it leaves out.
func TestStands(t *testing.T) {
	for _, c := range []struct {
		value     float64
		bound     string
		low, high float64
		verdict   stats.Verdict
		want      string
	}{
		{2, "", 1.8, 2.2, stats.Faster, agrees},
		{2, "", 1.3, 1.6, stats.Faster, contradicted},
		{2, "", 0.5, 4, stats.Undecided, notShown},
		{1.33, "", 0.95, 1.1, stats.Undecided, contradicted},
		{1, "", 0.98, 1.02, stats.Equivalent, agrees},
		{2, "above", 2.1, 2.6, stats.Faster, agrees},
		{2, "above", 1.8, 2.6, stats.Faster, notShown},
		{2, "above", 1.2, 1.9, stats.Faster, contradicted},
		{1, "below", 0.6, 0.8, stats.Slower, agrees},
		{1, "below", 1.1, 1.3, stats.Faster, contradicted},
		{2, "", 0, 0, stats.Invalid, notShown},
		{2, "", 0, 0, "", notShown},
	} {
		h := studyResult{compared: stats.Arm{Pairs: 6, Interval: stats.Interval{c.low, c.high}, Verdict: c.verdict}}
		if got := stands(spec.Figure{Value: c.value, Of: "ratio", Bound: c.bound}, h); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
	}
	if got := stands(spec.Figure{Value: 2, Of: "tps"}, studyResult{compared: stats.Arm{Interval: stats.Interval{1.9, 2.1}, Verdict: stats.Faster}}); got != notShown {
		t.Errorf("a rate of another machine %s", got)
	}
}

// TestStudyBrief: each study has a first screen of five sentences within 80 columns, whatever was measured of it.
func TestStudyBrief(t *testing.T) {
	measured := studyResult{compared: stats.Arm{Pairs: 6, Ratio: 1.42, Interval: stats.Interval{1.3, 1.55}, Verdict: stats.Faster}}
	for name, c := range map[string]struct {
		here map[string]studyResult
		want []string
	}{
		"p1": {map[string]studyResult{"page-size": {noop: true}, "my-cnf": measured, "volumes-4x5000": {}},
			[]string{"study p1: my.cnf: gain claimed: published 2 x, here 1.42 x (1.30 to 1.55, 6 blocks): faster; that contradicts the published figure", "of 17 published figures, agree with their 95 % interval here: 0, contradicted: 1, not shown here: 16"}},
		"p2": {map[string]studyResult{"kubeblocks": measured}, []string{"without figures: \"The defaults", "CPU-bound, all data in memory, read-intensive: kubeblocks's transactions/s to rds-oracle's are 1.42 x"}},
		"p3": {map[string]studyResult{bestNetwork: measured}, []string{"best pod network (kube-router, plain routing), to bare metal (about): published 0.87 x, here 1.42 x"}},
		"p4": {map[string]studyResult{"ceph-14": {text: "12.3 [11, 13] with 2 copies, 4 clients"}, "pool-5": measured}, []string{"14 % of capacity used (met): published 30 IOPS/GB, here 12.3 [11, 13]", "contradicted: 1, not shown here: 12"}},
		"p5": {map[string]studyResult{"mariadb": measured}, []string{"binary log on, sync_binlog=1: its ratio to MySQL: published 1.33 x, here 1.42 x (1.30 to 1.55, 6 blocks): faster; that agrees"}},
	} {
		st, err := spec.LoadStudy(name)
		if err != nil {
			t.Fatal(err)
		}
		for what, here := range map[string]map[string]studyResult{"": c.here, "nothing": {}} {
			var out strings.Builder
			s := studyScreen{study: st, here: here, setup: st.Setup, cut: []string{"--quick: small data."}, trials: []result.Trial{{}}, records: []string{"study-1", "study-2"}, rest: "the rest"}
			if err := (&app{out: &out}).printStudyBrief(s); err != nil {
				t.Fatal(err)
			}
			fits(t, out.String())
			if n := len(firstScreen(t, out.String())); n != 5 {
				t.Errorf("%s: %d sentences", name, n)
			}
			want := []string{"how sure: --quick: small data; of ", "every gate held in 1 run", "written: the records study-1, study-2", "next: `david show study-2` has every run of the last; the rest"}
			if what == "" {
				want = append(want, c.want...)
			} else {
				want = append(want, "here nothing that counts")
			}
			whole(t, strings.Join(strings.Fields(out.String()), " "), want...)
		}
	}
}

// TestStudyBriefCutDown: a study that was cut down is held against nothing.
func TestStudyBriefCutDown(t *testing.T) {
	st, err := spec.LoadStudy("p5")
	if err != nil {
		t.Fatal(err)
	}
	here := map[string]studyResult{"mariadb": {compared: stats.Arm{Pairs: 6, Ratio: 1.42, Interval: stats.Interval{1.3, 1.55}, Verdict: stats.Faster}}}
	var out strings.Builder
	if err := (&app{out: &out}).printStudyBrief(studyScreen{study: st, here: here, setup: st.Setup, short: true, refused: 1, records: []string{"study-1"}}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	whole(t, text, "1.42 x (1.30 to 1.55, 6 blocks): faster how sure: none of 6 published figures is held against a study that was cut down; ", "what was published is refused (--dry-run says why)")
}
