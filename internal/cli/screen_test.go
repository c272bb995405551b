package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"david/internal/advice"
	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/sandbox"
	"david/internal/stats"
)

// fits fails where a line is longer than a terminal.
func fits(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if n := utf8.RuneCountInString(strings.TrimRight(line, "\n")); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// whole fails where a name is broken, or missing.
func whole(t *testing.T, text string, names ...string) {
	t.Helper()
	for _, name := range names {
		if !strings.Contains(text, name) {
			t.Errorf("no %s in\n%s", name, text)
		}
	}
}

// firstScreen returns the sentences of a first screen, and fails where there are more than five.
func firstScreen(t *testing.T, text string) (list []string) {
	t.Helper()
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, " ") {
			list = append(list, "")
		}
		list[len(list)-1] += " " + strings.TrimSpace(line)
	}
	if len(list) > 5 {
		t.Errorf("%d sentences:\n%s", len(list), text)
	}
	return list
}

const manyFaults = `[mysqld]
innodb_flush_log_at_trx_commit=2
sync_binlog=0
sql_mode=""
table_open_cache=100
max_connections=2000
sort_buffer_size=64M
join_buffer_size=64M
innodb_io_capacity=200
query_cache_size=1M
table_cache_of_as_long_a_name_as_no_server_has_ever_had=1
innodb_buffer_pool_size=128M
innodb_buffer_pool_instances=8
max_allowed_packet=64M
`

// TestAuditScreens: the first screen of an audit is five sentences that have every line to write, -v has the reasons, and
// both fit a terminal of 80 columns, with no name broken.
func TestAuditScreens(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	cnf := filepath.Join(home, "my.cnf")
	if err := os.WriteFile(cnf, []byte(manyFaults), 0o600); err != nil {
		t.Fatal(err)
	}
	screen := func(args ...string) string {
		t.Helper()
		out, errOut, code := david(t, home, append([]string{"audit", "--cnf", cnf, "--memory", "16G", "--cpus", "2"}, args...)...)
		if code != exitDone {
			t.Fatalf("exit code %d\n%s", code, errOut)
		}
		out = strings.ReplaceAll(out, home, "DIR")
		fits(t, out)
		return out
	}
	names := []string{"table_cache_of_as_long_a_name_as_no_server_has_ever_had"}
	first := screen()
	whole(t, first, append(names, "DIR/my.cnf:2", "innodb_flush_log_at_trx_commit 2 -> 1", "innodb_redo_log_capacity 100M", "; conflict:")...)
	if list := firstScreen(t, first); len(list) != 5 || !strings.Contains(list[0], "findings: data can be lost; 2 more: the server can be killed for memory; 2 more: the server does not start; MySQL 9.7") || !strings.Contains(list[4], "the same with -v has") || strings.Contains(first, "manual") {
		t.Errorf("the first screen:\n%s", first)
	}
	all := screen("-v")
	names = append(names, "innodb_flush_log_at_trx_commit=1", "sql_mode=STRICT_TRANS_TABLES", "innodb_redo_log_capacity=")
	whole(t, all, append(names, "innodb-flush-log-at-trx-commit", "Not seen", "session-buffers-large")...)
	if n := strings.Count(all, "each connection may take one of each"); n != 1 {
		t.Errorf("what two findings have in common stands %d times:\n%s", n, all)
	}
}

// TestAuditFindsNothing: that is said, and what was not seen is counted.
func TestAuditFindsNothing(t *testing.T) {
	var out strings.Builder
	a := &app{out: &out}
	if err := a.printAudit(advice.Document{Flavour: mycnf.MariaDB, Version: "10.11", Of: "db:3306", Report: advice.Report{Unseen: []string{"the hardware"}}}); err != nil {
		t.Fatal(err)
	}
	if want := "nothing found; MariaDB 10.11, db:3306; hardware not seen\nnext:      the same with -v has 1 thing not seen\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}

// longPlan is the plan for a server with long names, long values and much to say.
func longPlan() liveDocument {
	change := func(name, before, value string) result.LiveChange {
		return result.LiveChange{Setting: mycnf.Setting{Name: name, Value: value, Reason: strings.Repeat("a reason that goes on ", 6), Source: "MySQL manual, " + name}, Before: before}
	}
	return liveDocument{Flavour: mycnf.MySQL, Version: "9.7.4-2", Of: "/var/lib/mysql-of-the-second-instance/mysqld.sock", Hardware: []string{"memory 16 GiB", "2 CPUs", "free disk 72 GiB", "data 24 MiB"},
		LivePlan: result.LivePlan{
			Steps: []result.LiveStep{
				{Name: "concurrency", Title: "threads and spinning sized to the CPUs", Changes: []result.LiveChange{change("innodb_sync_spin_loops", "30", "10"), change("innodb_spin_wait_delay", "6", "2")}},
				{Name: "redo", Title: "the redo log", Changes: []result.LiveChange{change("innodb_redo_log_capacity", "104857600", "4G")}},
			},
			Decide: []result.LiveChange{change("innodb_flush_log_at_trx_commit", "2", "1"), change("sql_mode", "", "STRICT_TRANS_TABLES")},
			Advice: []result.LiveChange{change("performance_schema_events_statements_history_long_size", "ON", "OFF")},
			Notes:  []string{strings.Repeat("what was left out and why ", 8)},
		}}
}

// TestPlanScreens: the plan for a running server is five sentences, or with -v all of it, within 80 columns and with no
// name broken; of a server that david does not change the commands for others stay whole.
func TestPlanScreens(t *testing.T) {
	t.Parallel()
	screen := func(d liveDocument, verbose bool) string {
		t.Helper()
		var out strings.Builder
		a := &app{out: &out, verbose: verbose}
		if err := a.printLive(d, false); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	d := longPlan()
	first, all := screen(d, false), screen(d, true)
	fits(t, first+all)
	names := []string{"innodb_flush_log_at_trx_commit", "performance_schema_events_statements_history_long_size", "innodb_redo_log_capacity", d.Of}
	whole(t, first, append(names, "STRICT_TRANS_TABLES", "3 variables to change while it runs, in 2 steps", "innodb_flush_log_at_trx_commit 2 -> 1", "--apply")...)
	whole(t, all, append(names, "Step 2, redo: the redo log\n  innodb_redo_log_capacity 100M -> 4G\n", "sql_mode empty -> STRICT_TRANS_TABLES", "\nNotes\n", "MySQL manual")...)
	if list := firstScreen(t, first); len(list) != 5 || strings.Contains(first, "manual") {
		t.Errorf("the first screen:\n%s", first)
	}

	d.Dir = "somewhere"
	if first := screen(d, false); strings.Contains(first, "\nnext: ") {
		t.Errorf("a plan that is being carried out says what to do next:\n%s", first)
	}
	d.Dir = ""
	group := rules.RenderGroup(d.LivePlan)
	d.Barred, d.Group = "it is a replica", &group
	if first := screen(d, false); !strings.Contains(first, "david does not change this server: it is a replica") || strings.Contains(first, "--apply") || len(firstScreen(t, first)) != 5 {
		t.Errorf("a server that is barred:\n%s", first)
	}
	whole(t, screen(d, true), group.Apply[0]+"\n", group.Revert[0]+"\n")

	d = liveDocument{Flavour: mycnf.MySQL, Version: "9.7.4", Of: "db:3306"}
	if got, want := screen(d, false), "nothing to change while it runs; MySQL 9.7.4, db:3306; hardware not known\nnext:      the same with -v has reasons and sources\n"; got != want {
		t.Errorf("nothing to change:\n%s", got)
	}
}

// TestListFits: a list is within 80 columns whatever experiments came to and however they are called, and their names are
// whole.
func TestListFits(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	a := &app{out: &out}
	row := func(id string, kind result.Kind, o outcome) listed {
		return listed{Summary: result.Summary{ID: id, Kind: kind, Finished: true, Server: result.Server{Flavour: mycnf.Percona, Version: "8.4.3-3"}, Trials: 52}, Size: 1010 << 20, outcome: o}
	}
	won := outcome{Verdict: stats.Faster, Arm: "winner", Ratio: 2.5, Interval: stats.Interval{2.34, 2.67}}
	running := row("tune-20261124-143403.761", result.KindTune, won)
	running.Finished = false
	doc := listDocument{Home: "/home/of-a-user/.local/share/david", Volume: &sandbox.Volume{Path: "/home/of-a-user/.local/share/david/cache/volume.xfs", Bytes: 77 << 20, Length: 64 << 30}, Experiments: []listed{
		row("tune-20261124-143403.762", result.KindTune, won), running,
		row("live-tune-20261124-143403.763", result.KindLive, outcome{Verdict: report.KeptPartly, Why: "2 of 4 steps kept: p95 9.90 ms against 12.40 ms before, 0.82x; the third was set back"}),
		row("compare-20261124-143403.764", result.KindCompare, outcome{Verdict: stats.Invalid, Why: invalidText + "arm winner, 4 threads, run 6: " + strings.Repeat("other processes took much of the time; ", 9)}),
		row("bench-20261124-143403.765", result.KindBench, outcome{TPS: 12345.6}),
	}}
	if err := a.printListing(doc); err != nil {
		t.Fatal(err)
	}
	fits(t, out.String())
	whole(t, out.String(), "tune-20261124-143403.762", "live-tune-20261124-143403.763", "faster: winner, 2.50x", "1010 MiB", "tune-20261124-143403.761       percona 8.4.3  1010 MiB  interrupted, or running;", "12346 transactions/s")
	if n := strings.Count(out.String(), "\n"); n > 24 || !strings.Contains(out.String(), "invalid: arm winner, 4") || !strings.Contains(out.String(), " ...\n") {
		t.Errorf("%d lines, or why a run is invalid is not there, or not cut:\n%s", n, out.String())
	}
	if strings.Contains(out.String(), "e+") {
		t.Errorf("a number as a power of ten:\n%s", out.String())
	}
	out.Reset()
	long := strings.Repeat("study-of-an-afternoon-", 4)
	if err := a.printListing(listDocument{Experiments: []listed{row(long, result.KindStudy, won)}}); err != nil {
		t.Fatal(err)
	}
	whole(t, out.String(), long+"  percona 8.4.3  1010 MiB\n  faster: winner, 2.50x [2.34, 2.67]\n")
}

// TestHang: what is written behind a head stays within the columns, in any letters.
func TestHang(t *testing.T) {
	for head, sentence := range map[string]string{"größer: ": strings.Repeat("größer ", 40), "": strings.Repeat("x", 300), "list: ": strings.Repeat("a_name_of_a_variable,", 20)} {
		var out strings.Builder
		if err := hang(&out, head, sentence); err != nil {
			t.Fatal(err)
		}
		fits(t, out.String())
		if strings.Contains(sentence, "_") && strings.Contains(strings.ReplaceAll(out.String(), "a_name_of_a_variable", ""), "_") {
			t.Errorf("a name is broken:\n%s", out.String())
		}
	}
}
