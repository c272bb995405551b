package rules

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/mycnf"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestSizingGolden writes each machine's rules as a my.cnf: one golden file a flavour, version and size.
func TestSizingGolden(t *testing.T) {
	for _, c := range []struct {
		name, version string
		flavour       mycnf.Flavour
		p             Problem
	}{
		{"mysql-9.7-2c24g", "9.7.4", mycnf.MySQL, Problem{CPUs: 2, Memory: 24 * gib, FreeDisk: 80 * gib, WriteIOPS: 40000, Threads: 4, Tables: 10}},
		{"mysql-8.0.28-4c16g", "8.0.28", mycnf.MySQL, Problem{CPUs: 4, Memory: 16 * gib, FreeDisk: 100 * gib, WriteIOPS: 5000, Threads: 4, Tables: 10}},
		{"percona-8.4-16c64g", "8.4.6-6", mycnf.Percona, Problem{CPUs: 16, Memory: 64 * gib, FreeDisk: 500 * gib, Threads: 64, Tables: 100}},
		{"mariadb-10.11-1c1g", "10.11.19-MariaDB", mycnf.MariaDB, Problem{CPUs: 1, Memory: gib, FreeDisk: 10 * gib, Rotational: true, Threads: 1, Tables: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.p.Flavour, c.p.Version = c.flavour, version(t, c.version)
			var all []mycnf.Setting
			for _, s := range Sizing(c.p) {
				all = Merge(all, s.Settings)
			}
			var got strings.Builder
			if err := mycnf.Render(&got, nil, all); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", c.name+".cnf")
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != string(want) {
				t.Errorf("%s differs; go test -update rewrites it. Now:\n%s", file, got.String())
			}
		})
	}
}

// TestRulesAreSafe holds the rules to the safe bounds on every size of machine: memory, redo, reasons, and
// the lock.
func TestRulesAreSafe(t *testing.T) {
	locked := map[string]bool{}
	for _, l := range mycnf.Lock(mycnf.MySQL) {
		locked[l.Name] = true
	}
	for _, memory := range []int64{512 * mib, gib, 2 * gib, 3*gib + 7, 16 * gib, 1000 * gib} {
		for _, disk := range []int64{gib, 20 * gib, 4000 * gib} {
			p := Problem{Flavour: mycnf.MySQL, Version: version(t, "9.7.4"), CPUs: 4, Memory: memory, FreeDisk: disk, Threads: 64, Tables: 10}
			pool := BufferPool(p)
			used := float64(baseMemory+logBuffer) + poolOverhead*float64(pool) + float64(p.connections())*float64(perConnection)
			if pool > DefaultPool && used > memoryCeiling*float64(memory) {
				t.Errorf("memory %d: a pool of %d uses %.0f", memory, pool, used)
			}
			if r := RedoSize(p); r > 512*mib && (r > disk/4 || r > memory/4) {
				t.Errorf("memory %d, disk %d: redo of %d", memory, disk, r)
			}
			for _, rules := range Sizing(p) {
				for _, s := range rules.Settings {
					if s.Reason == "" || s.Source == "" || s.Group == "" {
						t.Errorf("%s has no reason, source or group", s.Name)
					}
					if locked[s.Name] && s.Name != "innodb_flush_method" {
						t.Errorf("%s is part of the durability lock", s.Name)
					}
				}
			}
		}
	}
}

// Beside a MySQL, a MariaDB's control keeps the binary log as MySQL's defaults do; MySQL itself needs
// nothing.
func TestBeside(t *testing.T) {
	if a := Beside(mycnf.MySQL); len(a.Settings) > 0 {
		t.Errorf("MySQL: %v", a.Settings)
	}
	vars, a := map[string]string{}, Beside(mycnf.MariaDB)
	for _, s := range a.Settings {
		vars[s.Name] = s.Value
	}
	if vars["log_bin"] == "" || vars["sync_binlog"] != "1" || vars["binlog_format"] != "ROW" || vars["log_slave_updates"] != "ON" || len(a.Changes) != len(a.Settings) {
		t.Errorf("MariaDB: %v", a.Settings)
	}
	if len(Control(mycnf.MariaDB).Settings) != 2 {
		t.Errorf("a MariaDB among its own kind: %v", Control(mycnf.MariaDB).Settings)
	}
}
