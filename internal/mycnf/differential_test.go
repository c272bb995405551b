package mycnf_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/server"
	"david/internal/testserver"
)

// files is how many option files are tried on each flavour; DAVID_DIFF says another number, DAVID_DIFF_SEED
// another beginning.
const files = 150

// TestDifferential holds david's reading of option files against the servers': what --verbose --help prints of
// a generated file has to be what david says of every variable of the durability lock; and what david says
// that the server does not start with, it must not start with.
func TestDifferential(t *testing.T) {
	for _, flavour := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		t.Run(string(flavour), func(t *testing.T) {
			d := newDifferential(t, flavour)
			if one := numberOf(t, "DAVID_DIFF_FILE", -1); one >= 0 {
				d.explain(uint64(one))
				return
			}
			for i := range numberOf(t, "DAVID_DIFF", files) {
				if d.try(i, d.generate(uint64(i))); d.failures >= 20 {
					t.FailNow()
				}
			}
			t.Logf("%d files: %d taken, %d refused by both, %d with which the server's help crashed; %d values of the lock compared, %d others, %d of them numbers that the server clips", d.tried, d.taken, d.refused, d.crashed, d.compared, d.others, d.clipped)
			if d.taken < d.tried/2 || d.refused < d.tried/20 {
				t.Errorf("of %d files %d were taken and %d refused: the generator makes no fair mixture", d.tried, d.taken, d.refused)
			}
		})
	}
}

func numberOf(t *testing.T, variable string, otherwise int) int {
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// differential is a flavour's server, and what was seen of it.
type differential struct {
	t        *testing.T
	binary   server.Binary
	flavour  mycnf.Flavour
	version  mycnf.Version
	dir      string
	seed     int
	defaults map[string]string
	names    []string // of variables besides the lock
	switches []string // whose values the help prints as TRUE or FALSE

	failures, crashed, tried, taken, refused, compared, others, clipped int
}

func newDifferential(t *testing.T, flavour mycnf.Flavour) *differential {
	b := testserver.Find(t, string(flavour))
	v, err := mycnf.ParseVersion(b.Version)
	if err != nil {
		t.Fatal(err)
	}
	d := &differential{t: t, binary: b, flavour: flavour, version: v, dir: t.TempDir(), seed: numberOf(t, "DAVID_DIFF_SEED", 1)}
	h := d.ask("[mysqld]\n")
	values, switches := h.Values, h.Switches
	if !h.Taken || len(values) < 300 {
		t.Fatalf("the server says of an empty file: %d values, %s", len(values), h.Complaints)
	}
	d.defaults, d.switches = values, switches
	for name, value := range values {
		digits := strings.Trim(value, "0123456789") == "" && value != ""
		if (digits || slices.Contains(switches, name)) && harmless(name) && mycnf.AnyServers(name) {
			d.names = append(d.names, name)
		}
	}
	slices.Sort(d.names)
	return d
}

// harmless leaves out what changes the help itself, is computed from the machine, is always on there whatever was asked for
// (user_variables, a plugin of MariaDB's), or is known by another name as well: of two names of one variable, but for the
// lock's, david does not say which line was the last.
func harmless(name string) bool {
	for _, part := range []string{"help", "verbose", "version", "getopt", "open_files_limit", "table_open_cache", "table_definition_cache", "max_connections",
		"console", "gdb", "validate", "cost_thr", "_now", "session_track", "server_id", "table_cache", "mysqlx", "delay_key", "writer_threads", "heuristic", "builtin", "preserve_commit", "lwm", "skip_name", "recover", "group_commit", "daemonize", "performance_schema", "ngram", "debug", "wsrep", "ndb", "upgrade", "initialize", "bootstrap", "flashback", "feedback", "plugin", "large", "ssl", "lower_case", "port", "back_log", "host_cache", "thread_cache", "optimizer_trace", "slow_query", "long_query", "slave", "replica", "max_connect", "user_variables"} {
		if strings.Contains(name, part) {
			return false
		}
	}
	return true
}

// ask gives a server the text, and reads the values it then has.
func (d *differential) ask(text string) testserver.Help {
	d.t.Helper()
	path := filepath.Join(d.dir, "my.cnf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
	return testserver.AskHelp(context.Background(), d.binary, d.dir, "--defaults-file="+path)
}

// try holds david's reading of a file against the server's.
func (d *differential) try(number int, text string) {
	d.tried++
	h := d.ask(text)
	values, complaints, ok := h.Values, h.Complaints, h.Taken
	lines, err := d.read(text)
	var why string
	for _, l := range lines {
		passes := d.flavour == mycnf.MySQL && (l.Absent || l.Option.Name == "enforce_gtid_consistency" && !l.Ignored) // with --help
		if w, refused := l.Refused(); refused && !passes {
			why = fmt.Sprintf("%s: %s", l.Where(), w)
		}
	}
	if err != nil {
		why = err.Error()
	}
	switch {
	case h.Crashed: // MariaDB falls over some settings that need InnoDB to run, and over most after loose_autoset_
		d.crashed++
	case !ok && why != "":
		d.refused++
	case !ok:
		d.fail("file %d: the server refuses what david takes: %s\n%s", number, errorsOf(complaints), shown(lines, ""))
	case err != nil && strict(why):
		d.refused++
	case why != "":
		d.fail("file %d: the server takes what david says it refuses: %s\n%s", number, why, shown(lines, ""))
	default:
		d.taken++
		d.compare(number, text, lines, values)
	}
}

func errorsOf(complaints string) string {
	text := ""
	for line := range strings.Lines(complaints) {
		if strings.Contains(line, "[ERROR]") {
			text += line
		}
	}
	return text
}

// strict tells whether david refuses a file where servers go on with less: what is wrong in an included file
// makes them leave its rest out, and an !include without an end loses a letter of its path.
func strict(why string) bool {
	return strings.Contains(why, "cannot include") || strings.Contains(why, "the line does not end")
}

// fail counts what differs, so that a broken rule does not fill the terminal.
func (d *differential) fail(format string, args ...any) {
	d.t.Helper()
	d.failures++
	d.t.Errorf(format, args...)
}

// explain shows all of one file, and what both say of it.
func (d *differential) explain(number uint64) {
	text := d.generate(number)
	d.t.Logf("%q", text)
	filepath.WalkDir(d.dir, func(path string, e os.DirEntry, _ error) error {
		if !e.IsDir() {
			inner, err := os.ReadFile(path)
			d.t.Logf("%s: %q %v", path, inner, err)
		}
		return nil
	})
	h := d.ask(text)
	complaints, ok := h.Complaints, h.Taken
	d.t.Log(ok, errorsOf(complaints))
	lines, err := d.read(text)
	d.t.Logf("%v\n%s", err, shown(lines, ""))
	d.try(int(number), text)
}

// shown lists lines as they were written and as david takes them, of options with a part in their name.
func shown(lines []mycnf.Line, part string) string {
	var out strings.Builder
	for _, l := range lines {
		if strings.Contains(l.Option.Name, part) {
			fmt.Fprintf(&out, "%s [%s] %s = %q %v: %s = %q %q %v %v\n", l.Where(), l.Group, l.Item.Name, l.Item.Value, l.Bare, l.Option.Name, l.Option.Value, l.Reads, l.Ignored, l.Doubts)
		}
	}
	return out.String()
}

// read is david's way: parse, includes, lines of the server's groups.
func (d *differential) read(text string) ([]mycnf.Line, error) {
	file, err := d.parse(text)
	if err != nil {
		return nil, err
	}
	return file.Lines(d.flavour, d.version), nil
}

func (d *differential) parse(text string) (mycnf.File, error) {
	path := filepath.Join(d.dir, "read.cnf")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return mycnf.File{}, err
	}
	return lab.ReadOptions(path)
}

// compare holds the values against each other.
func (d *differential) compare(number int, text string, lines []mycnf.Line, values map[string]string) {
	file, err := d.parse(text)
	if err != nil {
		d.t.Fatal(err)
	}
	asked := mycnf.Asked(d.flavour, d.version, file.ServerSettings(d.flavour, d.version))
	for _, member := range lock(d.flavour) {
		got, there := values[member]
		want, set := asked[member]
		if !there || member == "log_bin" && set || member == "enforce_gtid_consistency" && unwritten(lines, member) { // its help has what was written
			continue
		}
		if !set {
			want = d.defaults[member]
		}
		if member == "enforce_gtid_consistency" { // the help has what was written
			got = mycnf.Asked(d.flavour, d.version, []mycnf.Setting{{Name: member, Value: got}})[member]
		}
		d.compared++
		if got != strings.TrimSpace(want) { // the help has no blanks at its end
			d.fail("file %d: %s is %q, david says %q\n%s", number, member, got, want, shown(lines, member[:3]))
		}
	}
	for name, want := range asked {
		got, there := values[name]
		if !there || slices.Contains(lock(d.flavour), name) || d.ofPlugin(name) {
			continue
		}
		d.others++
		switched := got == "ON" || got == "OFF"
		if differs := mycnf.MatchValues(name, want, got) == mycnf.Different; differs && switched {
			d.fail("file %d: %s is %q, david says %q\n%s", number, name, got, want, shown(lines, name))
		} else if differs { // the bounds of these numbers are not in the catalogue
			d.clipped++
		}
	}
}

// ofPlugin tells whether a name switches a plugin of MariaDB's, which the help says is on whatever was asked for.
func (d *differential) ofPlugin(name string) bool {
	return d.flavour == mycnf.MariaDB && d.defaults[name] == "ON" && !slices.Contains(d.switches, name)
}

// unwritten tells whether a line sets an option without a value of its own.
func unwritten(lines []mycnf.Line, name string) bool {
	return slices.ContainsFunc(lines, func(l mycnf.Line) bool {
		return l.Option.Name == name && (l.Bare || strings.Contains(mycnf.Normalise(l.Item.Name), "enable_"))
	})
}

// lock lists the members of the durability lock.
func lock(f mycnf.Flavour) (names []string) {
	for _, l := range mycnf.Lock(f) {
		names = append(names, l.Name)
	}
	return names
}
