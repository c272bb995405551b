package rules

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
)

func baselineProblem(t *testing.T, f mycnf.Flavour, v string, cpus float64, memory int64) Problem {
	t.Helper()
	return Problem{Flavour: f, Version: version(t, v), CPUs: cpus, Memory: memory, FreeDisk: 100 * gib, WriteIOPS: 10000, Threads: 16, Tables: 10, Seed: 1}
}

// value returns that of a setting; "" where it is not set.
func value(settings []mycnf.Setting, name string) string {
	for _, s := range settings {
		if s.Name == name {
			return s.Value
		}
	}
	return ""
}

func named(t *testing.T, list []Baseline, name string) Baseline {
	t.Helper()
	i := slices.IndexFunc(list, func(b Baseline) bool { return b.Name == name })
	if i < 0 {
		t.Fatalf("there is no baseline %s", name)
	}
	return list[i]
}

// TestBaselinesGolden writes every baseline of a machine, with what was translated and locked.
func TestBaselinesGolden(t *testing.T) {
	for _, c := range []struct {
		name, version string
		flavour       mycnf.Flavour
		cpus          float64
		memory, node  int64
	}{
		{"mysql-9.7-2c4g", "9.7.4", mycnf.MySQL, 2, 4 * gib, 0},
		{"mysql-9.7-4c8g", "9.7.4", mycnf.MySQL, 4, 8 * gib, 64 * gib},
		{"percona-8.0.28-4c16g", "8.0.28-19", mycnf.Percona, 4, 16 * gib, 0},
		{"mariadb-10.11-2c4g", "10.11.19-MariaDB", mycnf.MariaDB, 2, 4 * gib, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := baselineProblem(t, c.flavour, c.version, c.cpus, c.memory)
			p.Node = c.node
			got := written(Distinct(Baselines(p)))
			file := filepath.Join("testdata", "baselines-"+c.name+".txt")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; go test -update rewrites it. Now:\n%s", file, got)
			}
		})
	}
}

func written(list []Baseline) string {
	var out strings.Builder
	for _, b := range list {
		fmt.Fprintf(&out, "%s: %s\n", strings.Join(append([]string{b.Name}, b.Also...), " = "), b.Title)
		lines := make([]string, len(b.Settings))
		for i, s := range b.Settings {
			lines[i] = fmt.Sprintf("  %s=%s", s.Name, s.Value)
		}
		slices.Sort(lines)
		for _, note := range b.Translated {
			lines = append(lines, "  # "+note)
		}
		for _, l := range b.Locked {
			lines = append(lines, "  ! "+l.String())
		}
		fmt.Fprintln(&out, strings.Join(append(lines, ""), "\n"))
	}
	return out.String()
}

// TestBufferPools holds the pools to those that the projects' own formulas give, at their edges too.
func TestBufferPools(t *testing.T) {
	sizes := []int64{512 * mib, gib - 1, gib, gib + mib, 4*gib - 1, 4 * gib, 4*gib + 1, 8 * gib, 16*gib + 1}
	for name, want := range map[string][]string{
		"david-2025":    {"384M", "767M", "768M", "768M", "3071M", "3G", "3G", "6G", "12G"},
		"dedicated-8.0": {"128M", "128M", "512M", "524800K", "2147483647", "2G", "3G", "6G", "12G"},
		"dedicated-8.4": {"128M", "128M", "512M", "524800K", "2147483647", "2G", "3G", "6G", "12G"},
		"kubeblocks":    {"128M", "128M", "256M", "0M", "1024M", "1024M", "1024M", "4096M", "9216M"},
		"percona-pxc":   {"256M", "512M", "512M", "640M", "3080M", "3080M", "3080M", "6152M", "12296M"},
		"percona-ps":    {"256M", "512M", "512M", "640M", "2040M", "2G", "2G", "4G", "8G"},
		"moco":          {"358M", "716M", "716M", "717M", "2867M", "2867M", "2867M", "5734M", "11468M"},
		"bitpoke":       {"", "393215K", "384M", "590592K", "2879M", "2880M", "2867M", "6G", "12697M"},
		"rds-8.0":       {"384M", "805306365", "768M", "787200K", "3221225469", "3G", "3G", "6G", "12G"},
	} {
		for i, memory := range sizes {
			p := baselineProblem(t, mycnf.MySQL, "9.7.4", 2, memory)
			if memory == 8*gib {
				p.CPUs = 4
			}
			if got := value(named(t, Baselines(p), name).Settings, "innodb_buffer_pool_size"); got != want[i] {
				t.Errorf("%s with %d bytes has a pool of %q, want %q", name, memory, got, want[i])
			}
		}
	}
}

// TestPoolOfPXC: three quarters where that leaves 1e9 bytes or more, else half, always rounded up.
func TestPoolOfPXC(t *testing.T) {
	for memory, want := range map[int64]string{3_999_999_600: "1928M", 4_000_000_000: "2952M"} {
		got := value(named(t, Baselines(baselineProblem(t, mycnf.MySQL, "9.7.4", 2, memory)), "percona-pxc").Settings, "innodb_buffer_pool_size")
		if got != want {
			t.Errorf("with %d bytes the pool is %s, want %s", memory, got, want)
		}
	}
}

func TestRedoOfDedicatedServers(t *testing.T) {
	for _, c := range []struct {
		name, version string
		cpus          float64
		memory        int64
		want          string
	}{
		{"dedicated-8.0", "8.4.6", 4, 2*gib - 1, "100M"},
		{"dedicated-8.0", "8.4.6", 4, 2 * gib, "1G"},
		{"dedicated-8.0", "8.4.6", 4, 4 * gib, "1G"},
		{"dedicated-8.0", "8.4.6", 4, 5 * gib, "2G"},  // round(3.75) x 0.5
		{"dedicated-8.0", "8.4.6", 4, 10 * gib, "4G"}, // round(7.5) x 0.5
		{"dedicated-8.0", "8.4.6", 4, 11 * gib, "6G"}, // round(6.1875)
		{"dedicated-8.0", "8.4.6", 4, 170 * gib, "96G"},
		{"dedicated-8.0", "8.4.6", 4, 171 * gib, "128G"},
		{"dedicated-8.4", "9.7.4", 0.5, 4 * gib, "512M"},
		{"dedicated-8.4", "9.7.4", 1, 4 * gib, "512M"},
		{"dedicated-8.4", "26.7.0", 3, 4 * gib, "1536M"},
		{"dedicated-8.4", "8.10.0", 64, 4 * gib, "16G"},
		{"kubeblocks", "9.7.4", 4, 2*gib - 1, "100M"},
		{"kubeblocks", "9.7.4", 4, 2 * gib, "512M"},
		{"kubeblocks", "9.7.4", 4, 3 * gib, "1G"},
		{"kubeblocks", "9.7.4", 4, 8 * gib, "3G"},
		{"kubeblocks", "9.7.4", 4, 11 * gib, "3584M"}, // round(7.1775) x 0.5
		{"kubeblocks", "9.7.4", 4, 170 * gib, "128G"},
		{"bitpoke", "9.7.4", 4, gib - 1, "96M"},
		{"bitpoke", "9.7.4", 4, 4*gib + 1, "1G"},
		{"bitpoke", "9.7.4", 4, 16*gib + 1, "4G"},
	} {
		got := value(named(t, Baselines(baselineProblem(t, mycnf.MySQL, c.version, c.cpus, c.memory)), c.name).Settings, "innodb_redo_log_capacity")
		if got != c.want {
			t.Errorf("%s for %s with %d bytes and %g CPUs has a redo log of %q, want %q", c.name, c.version, c.memory, c.cpus, got, c.want)
		}
	}
}

// TestBaselinesByVersion: what applies where, and by which names.
func TestBaselinesByVersion(t *testing.T) {
	for _, c := range []struct {
		flavour mycnf.Flavour
		version string
		without []string
	}{
		{mycnf.MySQL, "5.7.44", []string{"dedicated-8.0", "dedicated-8.4", "mariadb-default"}},
		{mycnf.MySQL, "8.0.36", []string{"dedicated-8.4"}},
		{mycnf.MySQL, "8.10.1", nil},
		{mycnf.Percona, "8.4.6-6", nil},
		{mycnf.MariaDB, "11.8.3-MariaDB", []string{"dedicated-8.0", "dedicated-8.4", "mysql-default"}},
	} {
		var names []string
		for _, b := range Baselines(baselineProblem(t, c.flavour, c.version, 2, 4*gib)) {
			names = append(names, b.Name)
			for _, s := range slices.Concat(b.Shipped, b.Settings) {
				if _, ok := mycnf.Lookup(s.Name, c.flavour, version(t, c.version)); (!ok && s.Name != isolation) || s.Group == "" {
					t.Errorf("%s for %s %s sets %s, which the server does not have", b.Name, c.flavour, c.version, s.Name)
				}
			}
			for _, note := range b.Translated {
				if strings.Contains(note, "david does not know") {
					t.Errorf("%s: %s", b.Name, note)
				}
			}
		}
		if i := slices.IndexFunc(c.without, func(n string) bool { return slices.Contains(names, n) }); i >= 0 {
			t.Errorf("%s does not apply to %s %s", c.without[i], c.flavour, c.version)
		}
		if !slices.Contains(names, "bitpoke") || !slices.Contains(names, "random") || !slices.Contains(names, "david-rules") {
			t.Errorf("%s %s lacks baselines: it has %v", c.flavour, c.version, names)
		}
	}
}

// TestBaselinesHoldTheLock: what runs in a race has no unsafe value of the lock, and leaves what must be
// equal alone.
func TestBaselinesHoldTheLock(t *testing.T) {
	for _, flavour := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		v := map[mycnf.Flavour]string{mycnf.MySQL: "8.0.36", mycnf.MariaDB: "10.11.19-MariaDB"}[flavour]
		for _, b := range Baselines(baselineProblem(t, flavour, v, 2, 4*gib)) {
			vars := map[string]string{}
			for _, s := range b.Settings {
				vars[s.Name] = s.Value
			}
			for _, bad := range mycnf.CheckLock(flavour, vars) {
				if _, set := vars[bad.Name]; set {
					t.Errorf("%s on %s: %s", b.Name, flavour, bad)
				}
			}
			if vars["transaction_isolation"]+vars["tx_isolation"]+vars["binlog_transaction_compression"]+vars["skip_log_bin"] != "" {
				t.Errorf("%s on %s changes what must be alike: %v", b.Name, flavour, vars)
			}
		}
	}
}

// TestShippedIsKept: what the lock took is still known, with what it could lose.
func TestShippedIsKept(t *testing.T) {
	list := Baselines(baselineProblem(t, mycnf.MySQL, "9.7.4", 2, 4*gib))
	for name, want := range map[string]string{"percona-pxc": "innodb_flush_log_at_trx_commit=0 became 1", "bitpoke": "innodb_flush_log_at_trx_commit=2 became 1",
		"moco": "transaction_isolation=READ-COMMITTED is left", "dedicated-8.0": "innodb_flush_method=O_DIRECT_NO_FSYNC became O_DIRECT",
		"kubeblocks": "binlog_format=MIXED is left"} {
		b := named(t, list, name)
		if !slices.ContainsFunc(b.Locked, func(l Locked) bool { return strings.HasPrefix(l.String(), want) && l.Lost != "" }) {
			t.Errorf("%s: the lock took %v, want %q", name, b.Locked, want)
		}
		if len(b.Shipped) < len(b.Settings) {
			t.Errorf("%s ships %d settings and runs %d", name, len(b.Shipped), len(b.Settings))
		}
	}
	if b := named(t, list, "rds-8.0"); len(b.Locked) > 0 {
		t.Errorf("rds-8.0 is as durable as the control, and the lock took %v", b.Locked)
	}
}

func TestDistinct(t *testing.T) {
	list := []Baseline{{Name: "a"}, {Name: "b", Settings: []mycnf.Setting{{Name: "x", Value: "1024M"}, {Name: "y", Value: "on"}}},
		{Name: "c"}, {Name: "d", Settings: []mycnf.Setting{{Name: "y", Value: "ON"}, {Name: "x", Value: "1G"}}}, {Name: "e", Settings: []mycnf.Setting{{Name: "x", Value: "1"}}}}
	var got []string
	for _, b := range Distinct(list) {
		got = append(got, strings.Join(append([]string{b.Name}, b.Also...), "="))
	}
	if want := []string{"a=c", "b=d", "e"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(list[0].Also) > 0 {
		t.Error("the list given was changed")
	}
}

// TestRandomIsSafe: whatever is drawn, memory, redo and lock hold; seeds differ and repeat.
func TestRandomIsSafe(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		memory := 512*mib + int64(seed)*17*mib
		p := baselineProblem(t, mycnf.MySQL, "9.7.4", float64(1+seed%9)/2, memory)
		p.FreeDisk, p.Seed = int64(1+seed%200)*gib, seed
		b := p.random()
		seen[Fingerprint(b.Settings)] = true
		checkSafe(t, p, b)
		if again := p.random(); Fingerprint(again.Settings) != Fingerprint(b.Settings) {
			t.Fatalf("seed %d draws another configuration the second time", seed)
		}
	}
	if len(seen) < 1990 {
		t.Errorf("2000 seeds draw %d configurations", len(seen))
	}
}

func checkSafe(t *testing.T, p Problem, b Baseline) {
	t.Helper()
	pool, buffer := sizeOf(result.Arm{Settings: b.Settings}, "innodb_buffer_pool_size", 0), sizeOf(result.Arm{Settings: b.Settings}, "innodb_log_buffer_size", 0)
	used := float64(baseMemory+buffer) + poolOverhead*float64(pool) + float64(p.connections())*float64(perConnection)
	if pool < DefaultPool || pool > DefaultPool && used > memoryCeiling*float64(p.Memory) {
		t.Errorf("seed %d: a pool of %d and a log buffer of %d in %d of memory", p.Seed, pool, buffer, p.Memory)
	}
	redo := sizeOf(result.Arm{Settings: b.Settings}, "innodb_redo_log_capacity", 0)
	if redo < LeastRedo || redo > LeastRedo && redo > p.FreeDisk/4 || redo > MostRedo {
		t.Errorf("seed %d: a redo log of %d with %d of disk", p.Seed, redo, p.FreeDisk)
	}
	if len(b.Locked) > 0 {
		t.Errorf("seed %d: drew from the durability lock: %v", p.Seed, b.Locked)
	}
}

// FuzzTranslate: whatever is set, the server gets only names it has, each once, and every other one is told
// of.
func FuzzTranslate(f *testing.F) {
	f.Add("innodb_log_file_size", "800M", uint8(0))
	f.Add("loose_innodb_redo_log_capacity", "x", uint8(3))
	f.Add("transaction_isolation", "", uint8(5))
	f.Fuzz(func(t *testing.T, name, value string, n uint8) {
		versions := []string{"5.7.44", "8.0.29", "8.0.30", "9.7.4", "10.5.1-MariaDB", "10.11.19-MariaDB"}
		v := versions[int(n)%len(versions)]
		p := baselineProblem(t, mycnf.FlavourOf(v, ""), v, 2, 4*gib)
		known, notes := p.translate([]mycnf.Setting{{Name: name, Value: value}})
		if len(known)+len(notes) == 0 {
			t.Errorf("%q=%q disappeared without a word", name, value)
		}
		for _, s := range known {
			if !p.has(s.Name) {
				t.Errorf("%s %s has no %s", p.Flavour, v, s.Name)
			}
		}
	})
}
