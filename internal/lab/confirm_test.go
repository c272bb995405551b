package lab

import (
	"testing"

	"david/internal/explain"
	"david/internal/mycnf"
	"david/internal/result"
)

// changed is the request for another change.
func (c Confirm) changed(x explain.Confirm) (Request, error) {
	c.Change = x
	return c.Request()
}

// TestConfirming makes the question of an experiment: a changed arm, or a changed load.
func TestConfirming(t *testing.T) {
	c := Confirm{Target: "sandbox", Blocks: 4}
	c.Of.Arm = result.Arm{Settings: []mycnf.Setting{{Name: "sync_binlog", Value: "1"}, {Name: "skip_name_resolve"}}, Caps: result.Caps{IOPS: 500}}
	c.Of.Trial.Workload = result.Workload{Name: "oltp_write_only", Threads: 8, Seconds: 20}
	q, err := c.changed(explain.Confirm{Settings: []mycnf.Setting{{Name: "sync_binlog", Value: "0"}}, Unsafe: true, Caps: &result.Caps{IOPS: 1000}})
	if err != nil || len(q.Arms) != 2 || q.Design.Control != explain.AsMeasured {
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
	if q.Instead != (Trials{Seconds: 20, Blocks: 4}) {
		t.Errorf("instead of slices: %+v", q.Instead)
	}
	half := c.Of.Trial.Workload
	half.Threads = 4
	q, err = c.changed(explain.Confirm{Workload: &half})
	if err != nil || len(q.Arms) != 1 || len(q.Loads) != 2 || q.Loads[1].Threads != 4 || q.Design.Control != "" {
		t.Errorf("a changed load: %+v, %v", q, err)
	}
	if _, err := c.changed(explain.Confirm{Question: "is it faster on a machine of its own?"}); err == nil {
		t.Error("an experiment that nobody can run is run")
	}
	if _, err := c.changed(explain.Confirm{Socket: true}); err == nil {
		t.Error("two ways to a server are compared, of which an experiment has one")
	}
	c.Of.Arm.Effective = map[string]string{"skip_networking": "OFF"}
	if q, err := c.changed(explain.Confirm{Workload: &half}); err != nil || !q.TCP {
		t.Errorf("what was measured over TCP is confirmed over a socket: %v", err)
	}
	path := result.Path{Kind: "host", Rate: 1e6}
	wired := c
	wired.Of.Arm.Path = path
	if q, err := wired.changed(explain.Confirm{Path: &result.Path{Kind: "host", Rate: 2e6}}); err != nil || q.Arms[0].Path != path || q.Arms[1].Path.Rate != 2e6 || q.Probes == 0 {
		t.Errorf("a wider path: %+v, %v", q, err)
	}
	if q, err := wired.changed(explain.Confirm{Workload: &half}); err != nil || q.Arms[0].Path != path {
		t.Errorf("a changed load over a path: %+v, %v", q, err)
	}
	if _, err := wired.changed(explain.Confirm{Caps: &result.Caps{CPUs: 1}}); err == nil || FaultOf(err) != Input {
		t.Errorf("two servers over one path: %v", err)
	}
	light := c
	light.Of.Arm.Ceiling = true
	if _, err := light.changed(explain.Confirm{Workload: &half}); err == nil || FaultOf(err) != Input {
		t.Errorf("a ceiling is confirmed: %v", err)
	}
	c.Target = "remote"
	if _, err := c.changed(explain.Confirm{Workload: &half}); err == nil {
		t.Error("a server that is not david's is changed")
	}
}
