package main

import (
	"testing"

	"david/internal/mycnf"
)

// TestAsked reads settings as the servers do, so that none of them gets past the durability lock by another name.
func TestAsked(t *testing.T) {
	got := asked([]mycnf.Setting{{Name: "skip_innodb_doublewrite"}, {Name: "loose_sync_binlog", Value: "0"}, {Name: "skip_name_resolve", Value: "0"}, {Name: "max_connections", Value: "7"}})
	for name, want := range map[string]string{"innodb_doublewrite": "OFF", "sync_binlog": "0", "max_connections": "7"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if v, ok := got["name_resolve"]; ok {
		t.Errorf("name_resolve is %q: it is not switched off", v)
	}
}
