package lab

import (
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/server"
	"david/internal/tune"
)

func TestMixed(t *testing.T) {
	my, percona, maria := server.Binary{Flavour: mycnf.MySQL}, server.Binary{Flavour: mycnf.Percona}, server.Binary{Flavour: mycnf.MariaDB}
	for _, c := range []struct {
		list []server.Binary
		want bool
	}{
		{[]server.Binary{my, maria}, true}, {[]server.Binary{maria, maria, percona}, true},
		{[]server.Binary{maria, maria}, false}, {[]server.Binary{my, percona}, true}, {nil, false},
		{[]server.Binary{{Flavour: mycnf.MariaDB, Version: "10.11.19"}, {Flavour: mycnf.MariaDB, Version: "11.8.9"}}, true},
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

// TestSpread: twelve servers are started as often as half an hour holds, and what does not hold two starts is
// refused with the number.
func TestSpread(t *testing.T) {
	for _, c := range []struct {
		arms   int
		budget float64
		want   int
	}{{2, 1800, 10}, {2, 600, 5}, {12, 1800, 3}, {12, 900, 2}, {12, 60, 2}, {2, 0, 2}} {
		r := Request{Arms: make([]Arm, c.arms), Loads: []result.Workload{{Seconds: 5, Warmup: 15}},
			Design: result.Design{Budget: c.budget, Slices: &result.Slices{Seconds: 5, Incarnations: 2}}}
		r.Spread()
		if got := r.Design.Slices.Incarnations; got != c.want {
			t.Errorf("%d arms in %g s: %d starts, want %d", c.arms, c.budget, got, c.want)
		}
		if err := r.Fits(); (err != nil) != (c.budget == 60) || err != nil && !strings.Contains(err.Error(), "12 servers 2 times") {
			t.Errorf("%d arms in %g s: %v", c.arms, c.budget, err)
		}
	}
}

// TestUnlocks: a name with dashes unlocks the variable too, so that no rival's safe value stands in its
// place.
func TestUnlocks(t *testing.T) {
	asked := Tune{Wish: tune.Wish{Unlocked: []string{"sync-binlog", "innodb_doublewrite"}}}
	for name, want := range map[string]bool{"sync_binlog": true, "innodb_doublewrite": true, "innodb_flush_method": false} {
		if asked.unlocks(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
