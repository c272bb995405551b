package main

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
	arm := namedArm(armSpec{name: "maria"}, rules.Beside(mycnf.MariaDB), own, server.Binary{}.Record(), result.Caps{})
	got := map[string]string{}
	for _, s := range arm.Settings {
		got[s.Name] = s.Value
	}
	if got["binlog_format"] != "MIXED" || got["log_slave_updates"] != "ON" || got["log_bin"] != "binlog" {
		t.Errorf("%v", got)
	}
}

func TestSLOBelowAMillisecond(t *testing.T) {
	goal, err := parseSLO("p99=100ns")
	if err != nil || goal.Ms != 0.0001 {
		t.Errorf("%v, %v", goal, err)
	}
}
