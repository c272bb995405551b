package main

import (
	"testing"

	"david/internal/explain"
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
	if err != nil || len(q.arms) != 2 || q.design.Control != asMeasured {
		t.Fatalf("%+v, %v", q, err)
	}
	before, after := q.arms[0], q.arms[1]
	if before.caps.IOPS != 500 || after.caps.IOPS != 1000 || !after.ceiling || before.ceiling {
		t.Errorf("the arms are %+v and %+v", before, after)
	}
	if len(before.sets) != 2 || before.sets[1] != "skip_name_resolve" || len(after.sets) != 3 || after.sets[2] != "sync_binlog=0" {
		t.Errorf("settings %q and %q", before.sets, after.sets)
	}
	if q.design.Slices == nil || q.design.Slices.Seconds != 5 || q.loads[0].Seconds != 5 || q.design.Blocks != 4 {
		t.Errorf("not slices of 5 s: %+v of %+v", q.design, q.loads)
	}
	if q.apart(); q.design.Slices != nil || q.design.Twin || q.loads[0].Seconds != 20 || q.design.Blocks != 4 {
		t.Errorf("where two servers do not fit into memory: %+v of %+v", q.design, q.loads)
	}
	half := c.Trial.Workload
	half.Threads = 4
	q, err = confirming(c, explain.Confirm{Workload: &half}, explainFlags{blocks: 4})
	if err != nil || len(q.arms) != 1 || len(q.loads) != 2 || q.loads[1].Threads != 4 || q.design.Control != "" {
		t.Errorf("a changed load: %+v, %v", q, err)
	}
	if _, err := confirming(c, explain.Confirm{Question: "is it faster on a machine of its own?"}, explainFlags{blocks: 4}); err == nil {
		t.Error("an experiment that nobody can run is run")
	}
	if _, err := confirming(c, explain.Confirm{Socket: true}, explainFlags{blocks: 4}); err == nil {
		t.Error("two ways to a server are compared, of which an experiment has one")
	}
	c.Arm.Effective = map[string]string{"skip_networking": "OFF"}
	if q, err := confirming(c, explain.Confirm{Workload: &half}, explainFlags{blocks: 4}); err != nil || !q.tcp {
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
