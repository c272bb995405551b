package rules

import (
	"testing"

	"david/internal/mycnf"
)

// TestSmallMemory: with 1 GiB the rules make room for a pool three times the default, which the memory rule
// holds; nobody's running server is told to.
func TestSmallMemory(t *testing.T) {
	p := Problem{Flavour: mycnf.MySQL, Version: version(t, "9.7.4"), CPUs: 2, FreeDisk: 64 * gib, WriteIOPS: 5000, PageSize: 16 << 10, Tables: 10}
	p.Memory, p.Sandbox, p.Threads = gib, true, 16
	vars := map[string]string{}
	for _, rules := range Sizing(p) {
		for _, s := range rules.Settings {
			if before, ok := vars[s.Name]; ok {
				t.Errorf("%s is set twice: %s, %s", s.Name, before, s.Value)
			}
			vars[s.Name] = s.Value
		}
	}
	for name, want := range map[string]string{"innodb_buffer_pool_size": "384M", "performance_schema": "OFF", "max_connections": "85", "innodb_log_buffer_size": "16M"} {
		if vars[name] != want {
			t.Errorf("%s=%s, want %s", name, vars[name], want)
		}
	}
	if need := p.Need(func(name string) string { return vars[name] }); need > MemoryCeiling(gib) {
		t.Errorf("it needs %s", gibText(need))
	}
	p.Threads = 200
	if got := p.connections(); got != 210 {
		t.Errorf("%d connections for 200 threads", got)
	}
	for what, other := range map[string]Problem{"another's server": {Flavour: mycnf.MySQL, Memory: gib}, "2 GiB": {Flavour: mycnf.MySQL, Memory: 2 * gib, Sandbox: true},
		"MariaDB": {Flavour: mycnf.MariaDB, Memory: gib, Sandbox: true}} {
		if other.small() || other.connections() != defaultConnMax || other.logBuffer() != logBuffer || other.Pool() != BufferPool(other) {
			t.Errorf("%s has the rules of small memory", what)
		}
	}
}
