package manifest

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"david/internal/manifest/render"
	"david/internal/mycnf"
	"david/internal/rules"
)

// valuesOf lists the lines by variable; a variable that is set twice, or a line without a reason, fails the
// test.
func valuesOf(t *testing.T, req render.Request) map[string]string {
	t.Helper()
	lines, err := render.Lines(req)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, s := range lines {
		if _, twice := values[s.Name]; twice {
			t.Errorf("%s is set twice", s.Name)
		}
		if s.Reason == "" {
			t.Errorf("%s=%s has no reason", s.Name, s.Value)
		}
		values[s.Name] = s.Value
	}
	return values
}

func TestLinesForAnotherSize(t *testing.T) {
	req := tuned()
	got := valuesOf(t, req)
	for name, want := range map[string]string{
		"innodb_buffer_pool_size": "12G", "innodb_buffer_pool_instances": "4", "innodb_redo_log_capacity": "4G", "innodb_io_capacity": "1400", "innodb_adaptive_hash_index": "OFF",
		"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "max_connections": "151", "temptable_max_ram": "512M", "innodb_purge_threads": "4",
	} {
		if got[name] != want {
			t.Errorf("%s=%s, want %s", name, got[name], want)
		}
	}
	for _, name := range []string{"datadir", "innodb_dedicated_server"} {
		if value, there := got[name]; there {
			t.Errorf("%s=%s in a pod", name, value)
		}
	}
	notes, err := Notes(req)
	if text := strings.Join(notes, "\n"); err != nil || !strings.Contains(text, "datadir is left out") || !strings.Contains(text, "innodb_dedicated_server=ON is left out") {
		t.Error(text, err)
	}
}

// TestLinesForTheSameSize: on limits that are the tune's machine, the configuration is the one that was
// measured.
func TestLinesForTheSameSize(t *testing.T) {
	req := tuned()
	req.CPUs, req.Memory = 2, 8<<30
	lines, err := render.Lines(req)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range req.Settings {
		if want.Name != "datadir" && want.Name != "innodb_dedicated_server" && !slices.Contains(lines, want) {
			t.Errorf("%v is not as it was measured", want)
		}
	}
}

// TestVolumeIOPS: a volume that is bought with its IOPS is what flushing is sized to, not the tune's disk.
func TestVolumeIOPS(t *testing.T) {
	req := tuned()
	req.Storage, req.IOPS = render.GP3, 10000
	if got := valuesOf(t, req)["innodb_io_capacity"]; got != "3000" {
		t.Errorf("innodb_io_capacity=%s on 10,000 IOPS, want 30 %%", got)
	}
}

// TestReasonsOfTheDisk: nobody measured the pod's volume, and no reason says so; what a user chose on an
// unmeasured disk stays.
func TestReasonsOfTheDisk(t *testing.T) {
	capacity := func(change func(*render.Request)) (mycnf.Setting, string) {
		req := tuned()
		change(&req)
		lines, err := render.Lines(req)
		if err != nil {
			t.Fatal(err)
		}
		notes, err := Notes(req)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(lines, func(s mycnf.Setting) bool { return s.Name == "innodb_io_capacity" })
		return lines[i], strings.Join(notes, "\n")
	}
	tunes := mycnf.Setting{Name: "innodb_io_capacity", Value: "1400", Reason: "30 % of the 4800 random 16 KiB writes/s measured on this disk, so that commits and reads keep the rest"}
	typed := mycnf.Setting{Name: tunes.Name, Value: tunes.Value, Reason: "a share of what this disk does", OfDisk: true}
	given := mycnf.Setting{Name: "innodb_io_capacity", Value: "4000", Reason: "as it was given"}
	for what, c := range map[string]struct {
		change             func(*render.Request)
		value, reason, say string
	}{
		"rules, bought": {func(r *render.Request) { r.Storage, r.Settings, r.Measured = render.GP3, nil, render.Measured{} }, "900", "the 3000 operations/s that the volume is provisioned with (not measured)", ""},
		"tune":          {func(r *render.Request) { r.Settings = []mycnf.Setting{tunes} }, "1400", "measured on the disk of the tune's machine", ""},
		"tune, typed":   {func(r *render.Request) { r.Settings = []mycnf.Setting{typed} }, "1400", "measured on the disk of the tune's machine", ""},
		"tune, bought":  {func(r *render.Request) { r.Storage, r.Settings = render.GP3, []mycnf.Setting{tunes} }, "900", "provisioned with (not measured)", ""},
		"my.cnf, bought": {func(r *render.Request) {
			r.Storage, r.Settings, r.Measured = render.GP3, []mycnf.Setting{given}, render.Measured{}
		}, "4000", "as it was given", "more than the 3000 operations/s"},
		"my.cnf, a class": {func(r *render.Request) { r.Settings, r.Measured = []mycnf.Setting{given}, render.Measured{} }, "4000", "as it was given", ""},
	} {
		s, notes := capacity(c.change)
		if s.Value != c.value || !strings.Contains(s.Reason, c.reason) || strings.Contains(s.Reason, "this disk") {
			t.Errorf("%s: %s=%s: %s", what, s.Name, s.Value, s.Reason)
		}
		if strings.Contains(notes, "innodb_io_capacity") != (c.say != "") || !strings.Contains(notes, c.say) {
			t.Errorf("%s: %s", what, notes)
		}
	}
}

// TestNothingFaster: a tune that found nothing faster than the defaults gives these, and nothing says that
// there was no tune.
func TestNothingFaster(t *testing.T) {
	req := tuned()
	req.Settings, req.FromTune = nil, true
	got := valuesOf(t, req)
	for _, name := range []string{"innodb_io_capacity", "innodb_redo_log_capacity", "innodb_flush_neighbors"} {
		if value, there := got[name]; there {
			t.Errorf("%s=%s: the tune did not find that faster", name, value)
		}
	}
	if got["innodb_buffer_pool_size"] != "12G" || got["innodb_flush_log_at_trx_commit"] != "1" {
		t.Errorf("what a pod needs is not there: %v", got)
	}
	notes, err := Notes(req)
	if err != nil || strings.Contains(strings.Join(notes, "\n"), "nothing was measured") || strings.Contains(string(archive(t, req)), "nothing was measured") {
		t.Error(notes, err)
	}
}

// TestReasonsOfWhatIsLeftOut: each line that is not the pod's says why, and the reason is that line's.
func TestReasonsOfWhatIsLeftOut(t *testing.T) {
	for line, want := range map[string]string{
		"ssl_ca=/etc/ca.pem":         "mount a Secret",
		"bind_address=127.0.0.1":     "the NetworkPolicy's",
		"skip_networking=ON":         "the NetworkPolicy's",
		"server_id=7":                "give each its own",
		"port=3307":                  "Services have theirs",
		"wsrep_on=ON":                "an operator's flavour",
		"report_host=db1":            "names another machine",
		"user=mysql":                 "how the server is run",
		"tmpdir=/mnt/tmp":            "a place on another machine",
		"expire_logs_days=7":         "left out: it was removed in MySQL 8.2",
		"log_bin=/data/binlog/mybin": "the binary log goes to the data directory",
	} {
		name, value, _ := strings.Cut(line, "=")
		req := tuned()
		req.Settings = []mycnf.Setting{{Name: name, Value: value, Reason: "as it was given"}}
		notes, err := Notes(req)
		if err != nil || len(notes) != 1 || !strings.HasPrefix(notes[0], name) || !strings.Contains(notes[0], want) {
			t.Errorf("%s: %q, %v; want %q", line, notes, err, want)
		}
		if name != "log_bin" {
			continue
		}
		lines, err := render.Lines(req)
		i := slices.IndexFunc(lines, func(s mycnf.Setting) bool { return s.Name == name })
		if err != nil || lines[i].Value != "binlog" || !strings.Contains(lines[i].Reason, "given was "+line) {
			t.Error(lines[i], err)
		}
	}
}

func TestLinesForOtherVersions(t *testing.T) {
	req := tuned()
	req.Version = mycnf.Version{Major: 8, Minor: 0, Patch: 20}
	if got := valuesOf(t, req); got["innodb_log_file_size"] != "2G" || got["innodb_redo_log_capacity"] != "" { // two files
		t.Error(got)
	}
	req = tuned()
	req.Server, req.Version = mycnf.MariaDB, mycnf.Version{Major: 11, Minor: 4}
	got := valuesOf(t, req)
	if got["innodb_log_file_size"] != "4G" || got["innodb_buffer_pool_instances"] != "" || got["temptable_max_ram"] != "" {
		t.Error(got)
	}
	for name := range got {
		if _, ok := mycnf.Lookup(name, req.Server, req.Version); !ok {
			t.Errorf("%s: a server of this version does not know it", name)
		}
	}
}

func TestRulesWithoutATune(t *testing.T) {
	req := tuned()
	req.Settings, req.Measured = nil, render.Measured{}
	req.Server, req.Version = mycnf.MariaDB, mycnf.Version{Major: 10, Minor: 11}
	got := valuesOf(t, req)
	if got["log_bin"] == "" || got["sync_binlog"] != "1" || got["innodb_buffer_pool_size"] != "12G" {
		t.Error(got)
	}
	if notes, _ := Notes(req); !strings.Contains(strings.Join(notes, "\n"), "nothing was measured") {
		t.Error(notes)
	}
}

// TestSmallMemoryShips: what was tuned for 1 GiB runs in a pod of as much, as it was tuned.
func TestSmallMemoryShips(t *testing.T) {
	req := tuned()
	req.Memory, req.Measured.Memory = 1<<30, 1<<30
	req.Settings = []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "384M"}, {Name: "innodb_log_buffer_size", Value: "16M"}, {Name: "max_connections", Value: "85"},
		{Name: "performance_schema", Value: "OFF"}}
	lines, err := render.Lines(req)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range req.Settings {
		if !slices.ContainsFunc(lines, func(l mycnf.Setting) bool { return l.Name == s.Name && l.Value == s.Value }) {
			t.Errorf("%s=%s is not among %v", s.Name, s.Value, lines)
		}
	}
	req.Settings = req.Settings[:3]
	if _, err := render.Lines(req); err == nil {
		t.Error("with the performance schema it fits as well")
	}
}

// TestMemoryFits: whatever the pod's memory and connections, the lines fit, or the error says what would, and
// that does.
func TestMemoryFits(t *testing.T) {
	fits := regexp.MustCompile(`what fits: memory (\d+[MG]i)(?:, or max_connections=(\d+))?`)
	refused := 0
	for _, memory := range []int64{128 << 20, 512 << 20, 900 << 20, 1 << 30, 1200 << 20, 3 << 29, 2 << 30, 4 << 30, 64 << 30, 1 << 40} {
		for _, most := range []int{10, 151, 800, 5000} {
			req := tuned()
			req.Memory = memory
			req.Settings = append(req.Settings, mycnf.Setting{Name: "max_connections", Value: fmt.Sprint(most), Reason: "asked for"},
				mycnf.Setting{Name: "sort_buffer_size", Value: "4M", Reason: "asked for"})
			lines, err := render.Lines(req)
			if err == nil {
				if render.Need(lines) > rules.MemoryCeiling(memory) {
					t.Errorf("%s, %d connections: the lines need %s", render.Mebi(memory), most, render.Mebi(render.Need(lines)))
				}
				continue
			}
			refused++
			m := fits.FindStringSubmatch(err.Error())
			if !errors.Is(err, render.ErrBad) || m == nil {
				t.Errorf("%s, %d connections: %v", render.Mebi(memory), most, err)
				continue
			}
			more, less := req, req
			q := resource.MustParse(m[1])
			more.Memory = q.Value()
			if _, err := render.Lines(more); err != nil {
				t.Errorf("%s was said to fit: %v", m[1], err)
			}
			if m[2] != "" {
				less.Settings = slices.Clone(req.Settings)
				less.Settings[len(less.Settings)-2].Value = m[2]
				if _, err := render.Lines(less); err != nil {
					t.Errorf("max_connections=%s was said to fit: %v", m[2], err)
				}
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was too small")
	}
}

// TestMeasuredPoolTooLarge: a pool that was measured on as much memory is not made smaller in silence.
func TestMeasuredPoolTooLarge(t *testing.T) {
	req := tuned()
	req.Memory = 8 << 30
	req.Settings = slices.Clone(req.Settings)
	req.Settings[0].Value = "8G"
	_, err := render.Lines(req)
	m := regexp.MustCompile(`or innodb_buffer_pool_size=(\d+[MG])`).FindStringSubmatch(fmt.Sprint(err))
	if m == nil {
		t.Fatal(err)
	}
	req.Settings[0].Value = m[1]
	if _, err := render.Lines(req); err != nil {
		t.Errorf("%s was said to fit: %v", m[1], err)
	}
}

// TestUnknownNames: what no server knows is not rendered, nor what this release does not have; what a plugin may have, or
// a server ignores, is.
func TestUnknownNames(t *testing.T) {
	for _, server := range []struct {
		flavour mycnf.Flavour
		version mycnf.Version
		left    string // out, as the release has no such option
	}{{mycnf.MySQL, mycnf.Version{Major: 9, Minor: 7, Patch: 4}, "debug_no_sync,binlog_optimize_thread_scheduling"}, {mycnf.MariaDB, mycnf.Version{Major: 10, Minor: 11, Patch: 19}, "admin_port,activate_all_roles_on_login"}} {
		req := operated(render.StatefulSet, "")
		req.Server, req.Version, req.FromTune = server.flavour, server.version, false
		lines := func(name string) ([]mycnf.Setting, error) {
			req.Settings = []mycnf.Setting{{Name: name, Value: "0", Reason: "given", Source: "my.cnf"}}
			return render.Lines(req)
		}
		there := func(lines []mycnf.Setting, name string) bool {
			return slices.ContainsFunc(lines, func(s mycnf.Setting) bool { return s.Name == name })
		}
		for _, name := range []string{"no_such_thing", "sync_binlogs", "innodb_turbo", "@@global_x", "syncbinlog"} {
			if got, err := lines(name); !errors.Is(err, render.ErrBad) || !strings.Contains(err.Error(), "loose_"+name) {
				t.Errorf("%s, %s: %v %v", server.flavour, name, got, err)
			}
		}
		for _, name := range []string{"loose_no_such_thing", "component.variable", "validate_password_length", "max_connect_errors"} {
			if got, err := lines(name); err != nil || !there(got, name) {
				t.Errorf("%s, %s: %v %v", server.flavour, name, got, err)
			}
		}
		for _, name := range strings.Split(server.left, ",") {
			if got, err := lines(name); err != nil || there(got, name) {
				t.Errorf("%s, %s: %v %v", server.flavour, name, got, err)
			}
		}
	}
}

// TestDoubtfulLines: a server that nobody could write to is refused or said to be one, and so are tables that
// would not fit into the pod.
func TestDoubtfulLines(t *testing.T) {
	with := func(f render.Flavor, lines ...mycnf.Setting) (string, error) {
		req := operated(f, "")
		req.Settings = append(req.Settings, lines...)
		notes, err := Notes(req)
		return strings.Join(notes, "\n"), err
	}
	for _, line := range []mycnf.Setting{{Name: "super_read_only"}, {Name: "super_read_only", Value: "1"}, {Name: "loose_super_read_only", Value: "true"}} {
		if _, err := with(render.StatefulSet, line); !errors.Is(err, render.ErrBad) || !strings.Contains(err.Error(), "super_read_only: the image could not make root's account") {
			t.Errorf("%v: %v", line, err)
		}
	}
	for _, f := range render.Flavors() {
		for _, line := range []mycnf.Setting{{Name: "transaction_read_only", Value: "1"}, {Name: "tx_read_only", Value: "ON"}} {
			if _, err := with(f, line); !errors.Is(err, render.ErrBad) || !strings.Contains(err.Error(), line.Name+": nobody could write") {
				t.Errorf("%s, %v: %v", f, line, err)
			}
		}
	}
	for _, line := range []mycnf.Setting{{Name: "transaction_read_only", Value: "OFF"}, {Name: "super_read_only", Value: "OFF"}, {Name: "read_only", Value: "0"}, {Name: "tmp_table_size", Value: "1G"}, {Name: "max_heap_table_size", Value: "16G"}} {
		if notes, err := with(render.StatefulSet, line); err != nil || strings.Contains(notes, "can write") || strings.Contains(notes, line.Name) {
			t.Errorf("%v: %v %s", line, err, notes)
		}
	}
	if notes, err := with(render.Oracle, mycnf.Setting{Name: "super_read_only", Value: "ON"}, mycnf.Setting{Name: "read_only", Value: "ON"}); err != nil || strings.Contains(notes, "can write") ||
		!strings.Contains(notes, "super_read_only: the operator decides which server takes writes") {
		t.Errorf("an operator's own: %v %s", err, notes)
	}
	for want, line := range map[string]mycnf.Setting{
		"read_only: only administrators can write":                                              {Name: "read_only", Value: "ON"},
		"tmp_table_size=100G is more than the pod's memory of 16Gi: it bounds":                  {Name: "tmp_table_size", Value: "100G"},
		"max_heap_table_size=34359738368 is more than the pod's memory of 16Gi: a MEMORY table": {Name: "max_heap_table_size", Value: "34359738368"},
	} {
		if notes, err := with(render.StatefulSet, line); err != nil || !strings.Contains(notes, want) {
			t.Errorf("want %q: %v %s", want, err, notes)
		}
	}
}
