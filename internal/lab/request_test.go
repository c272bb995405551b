package lab

import (
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
)

func TestMixed(t *testing.T) {
	my, percona, maria := server.Binary{Flavour: mycnf.MySQL}, server.Binary{Flavour: mycnf.Percona}, server.Binary{Flavour: mycnf.MariaDB}
	for _, c := range []struct {
		list []server.Binary
		want bool
	}{
		{[]server.Binary{my, maria}, true}, {[]server.Binary{maria, maria, percona}, true},
		{[]server.Binary{maria, maria}, false}, {[]server.Binary{my, percona}, false}, {nil, false},
	} {
		if got := mixed(c.list); got != c.want {
			t.Errorf("%v: %v", c.list, got)
		}
	}
}

// What an arm beside another flavour begins with gives way to what the user set.
func TestBesideIsOverridden(t *testing.T) {
	own := []mycnf.Setting{{Name: "binlog_format", Value: "MIXED"}}
	arm := Arm{Name: "maria"}.upon(rules.Beside(mycnf.MariaDB), own, result.Caps{})
	got := map[string]string{}
	for _, s := range arm.Settings {
		got[s.Name] = s.Value
	}
	if got["binlog_format"] != "MIXED" || got["log_slave_updates"] != "ON" || got["log_bin"] != "binlog" {
		t.Errorf("%v", got)
	}
}

// TestApart: where two servers do not fit into memory, trials of their own length are measured, and the
// request stays.
func TestApart(t *testing.T) {
	r := Request{Kind: result.KindExplain, Loads: []result.Workload{{Seconds: 5}}, Instead: Trials{Seconds: 20, Blocks: 4},
		Design: result.Design{Blocks: 12, Slices: &result.Slices{Seconds: 5}}}
	got := r.apart()
	if got.Design.Slices != nil || got.Design.Twin || got.Loads[0].Seconds != 20 || got.Design.Blocks != 4 {
		t.Errorf("%+v of %+v", got.Design, got.Loads)
	}
	if r.Loads[0].Seconds != 5 || r.Design.Slices == nil {
		t.Errorf("the request itself is %+v of %+v", r.Design, r.Loads)
	}
	r.Kind = result.KindCompare
	if !r.apart().Design.Twin {
		t.Error("a comparison in trials has no noise floor")
	}
}
