package main

import (
	"testing"

	"david/internal/explain"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
)

func TestJudgePing(t *testing.T) {
	for ratio, want := range map[float64]explain.Judgement{0.02: explain.Refuted, 0.5: explain.Undecided, 0.9: explain.Confirmed, 1.6: explain.Confirmed} {
		if got := judgePing(explain.Outcome{Ratio: ratio}); got != want {
			t.Errorf("%g of what was found: %s, want %s", ratio, got, want)
		}
	}
}

// TestDefaultArm is never a ceiling where something else was measured.
func TestDefaultArm(t *testing.T) {
	d := report.Data{Arms: []result.Arm{{Name: "measured"}, {Name: "light-speed", Ceiling: true}}, Trials: []result.Trial{{Arm: "measured"}, {Arm: "light-speed"}}}
	if got := defaultArm(d); got != "measured" {
		t.Errorf("%s is explained", got)
	}
	d.Trials = d.Trials[1:]
	if got := defaultArm(d); got != "light-speed" {
		t.Errorf("%s is explained", got)
	}
}

// TestConfirming makes the question of an experiment: a changed arm, or a changed load.
func TestConfirming(t *testing.T) {
	c := choice{target: "sandbox"}
	c.Arm = result.Arm{Settings: []mycnf.Setting{{Name: "sync_binlog", Value: "1"}, {Name: "skip_name_resolve"}}, Caps: result.Caps{IOPS: 500}}
	c.Trial.Workload = result.Workload{Name: "oltp_write_only", Threads: 8, Seconds: 20}
	q, err := confirming(c, explain.Confirm{Settings: []mycnf.Setting{{Name: "sync_binlog", Value: "0"}}, Unsafe: true, Caps: &result.Caps{IOPS: 1000}}, explainFlags{blocks: 4})
	if err != nil || len(q.Arms) != 2 || q.Design.Control != asMeasured {
		t.Fatalf("%+v, %v", q, err)
	}
	before, after := q.Arms[0], q.Arms[1]
	if before.Caps.IOPS != 500 || after.Caps.IOPS != 1000 || !after.Ceiling || before.Ceiling {
		t.Errorf("the arms are %+v and %+v", before, after)
	}
	if len(before.Sets) != 2 || before.Sets[1] != "skip_name_resolve" || len(after.Sets) != 3 || after.Sets[2] != "sync_binlog=0" {
		t.Errorf("settings %q and %q", before.Sets, after.Sets)
	}
	if q.Design.Slices == nil || q.Design.Slices.Seconds != 5 || q.Loads[0].Seconds != 5 || q.Design.Blocks != 4 {
		t.Errorf("not slices of 5 s: %+v of %+v", q.Design, q.Loads)
	}
	if q.Instead != (lab.Trials{Seconds: 20, Blocks: 4}) {
		t.Errorf("instead of slices: %+v", q.Instead)
	}
	half := c.Trial.Workload
	half.Threads = 4
	q, err = confirming(c, explain.Confirm{Workload: &half}, explainFlags{blocks: 4})
	if err != nil || len(q.Arms) != 1 || len(q.Loads) != 2 || q.Loads[1].Threads != 4 || q.Design.Control != "" {
		t.Errorf("a changed load: %+v, %v", q, err)
	}
	if _, err := confirming(c, explain.Confirm{Question: "is it faster on a machine of its own?"}, explainFlags{blocks: 4}); err == nil {
		t.Error("an experiment that nobody can run is run")
	}
	if _, err := confirming(c, explain.Confirm{Socket: true}, explainFlags{blocks: 4}); err == nil {
		t.Error("two ways to a server are compared, of which an experiment has one")
	}
	c.Arm.Effective = map[string]string{"skip_networking": "OFF"}
	if q, err := confirming(c, explain.Confirm{Workload: &half}, explainFlags{blocks: 4}); err != nil || !q.TCP {
		t.Errorf("what was measured over TCP is confirmed over a socket: %v", err)
	}
	light := c
	light.Arm.Ceiling = true
	if _, err := confirming(light, explain.Confirm{Workload: &half}, explainFlags{blocks: 4}); err == nil || exitCode(err) != exitUsage {
		t.Errorf("a ceiling is confirmed: %v", err)
	}
	c.target = "remote"
	if _, err := confirming(c, explain.Confirm{Workload: &half}, explainFlags{blocks: 4}); err == nil {
		t.Error("a server that is not david's is changed")
	}
}
