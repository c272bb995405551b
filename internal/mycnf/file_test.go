package mycnf

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func parse(t *testing.T, text string) File {
	t.Helper()
	f, err := Parse(strings.NewReader(text), "my.cnf")
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// tricky holds what the servers' own reader treats in a particular way; odd names need no server that knows
// them.
const tricky = `# comment
; comment too
[client]
user = root
password="a#b;c'd\"e\\f"

[mysqld]
  innodb-buffer-pool-size  =  128M   # and why
max_connections=100#close by
init_connect='SET NAMES utf8; # not a comment'
sql_mode=""
report_host = two words
report_user = "  kept blanks  "
log_error=C:\temp\new;x
slow_query_log
tmpdir = it's
lc_messages=a\sb\qc\
[ server ]
max_connections=400
[server ]
max_connections=200
[mysqld-99.1]
max_connections=300
[mysqld]
port=3307
`

func TestParseReadsWhatServersRead(t *testing.T) {
	got := map[string]string{}
	for _, s := range parse(t, tricky).Settings("mysqld", "server") {
		got[s.Name] = s.Value
	}
	want := map[string]string{"innodb_buffer_pool_size": "128M", "max_connections": "200", "init_connect": "SET NAMES utf8; # not a comment",
		"sql_mode": "", "report_host": "two words", "report_user": "  kept blanks  ", "log_error": "C:\temp\new;x", "slow_query_log": "",
		"tmpdir": "it's", "lc_messages": "a b\\qc\\", "port": "3307"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	client := parse(t, tricky).Settings("client")
	if len(client) != 2 || client[1].Name != "password" || client[1].Value != `a#b;c'd"e\f` {
		t.Errorf("%+v", client)
	}
}

// server finds a mariadbd or mysqld that can tell how it reads an option file.
func server(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"mariadbd", "mysqld", "/usr/sbin/mariadbd", "/usr/sbin/mysqld"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no mariadbd or mysqld on PATH or in /usr/sbin: install one")
	return ""
}

// asServerReads asks a real server which arguments it takes from an option file.
func asServerReads(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(server(t), "--defaults-file="+file, "--print-defaults").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	_, args, _ := strings.Cut(string(out), "arguments:\n")
	return strings.TrimSpace(args)
}

// arguments writes the items of a file as a server's --print-defaults does.
func arguments(f File) string {
	var args []string
	for _, i := range f.Items {
		if i.Group != "mysqld" && i.Group != "server" {
			continue
		}
		if i.Bare {
			args = append(args, "--"+i.Name)
			continue
		}
		args = append(args, "--"+i.Name+"="+i.Value)
	}
	return strings.Join(args, " ")
}

func TestParseAgreesWithARealServer(t *testing.T) {
	for _, text := range []string{tricky, "[mysqld]\r\nport=1\r\n", "[mysqld]\na='b\"\nc=\"d\\\\\"\ne = \\\\f\ng='\\'#'\n\tport=1\nh=\"i\" # j\n"} {
		if got, want := arguments(parse(t, text)), asServerReads(t, text); got != want {
			t.Errorf("david reads  %q\nthe server %q", got, want)
		}
	}
}

func TestRenderedValuesReachARealServer(t *testing.T) {
	settings := []Setting{{Name: "init_connect", Value: `a "quoted" # 'value'; with \ and`}, {Name: "tmpdir", Value: "  b\tlanks "},
		{Name: "log_bin", Value: ""}, {Name: "sql_mode", Value: ""}, {Name: "report_host", Value: `"x"`}}
	var out bytes.Buffer
	if err := Render(&out, []string{"head"}, settings); err != nil {
		t.Fatal(err)
	}
	want := "--sql_mode= --log_bin --init_connect=" + settings[0].Value + ` --report_host="x" --tmpdir=` + settings[1].Value
	got := strings.Fields(asServerReads(t, out.String()))
	words := strings.Fields(want)
	slices.Sort(got)
	slices.Sort(words)
	if !slices.Equal(got, words) {
		t.Errorf("the server reads %q from\n%s", got, out.String())
	}
}

func TestParseErrorsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"port=1\n":                   `cannot read my.cnf:1: option "port" stands before any section such as [mysqld]`,
		"[mysqld]\n\n[client\n":      `cannot read my.cnf:3: a section lacks its closing bracket`,
		"!includes /etc\n":           `cannot read my.cnf:1: unknown directive: there are !include and !includedir`,
		"!include\n":                 `cannot read my.cnf:1: !include names no path`,
		"[client]\n=secret\n":        `cannot read my.cnf:2: a value without a name before "="`,
		"[mysqld]\na=\x00\n":         `cannot read my.cnf:2: it holds a NUL byte: this is no my.cnf`,
		"[m]\n\v!include /etc/x.cnf": `cannot read my.cnf:2: the line does not end, and servers leave out the last letter of such a path; end it`,
		"[m]\n#" + strings.Repeat("x", 4100) + "sync_binlog=0\n": `cannot read my.cnf:2: the line is longer than servers read (4092 bytes)`,
		"[m]\na=" + strings.Repeat("x", 5000):                    `cannot read my.cnf:2: the line is longer than servers read (4092 bytes)`,
	} {
		if _, err := Parse(strings.NewReader(text), "my.cnf"); err == nil || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
}

func TestErrorsHideSecrets(t *testing.T) {
	_, err := Parse(strings.NewReader("password=hunter2\n"), "my.cnf")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Error(err)
	}
}

func TestRenderGolden(t *testing.T) {
	settings := []Setting{
		{Name: "slow_query_log", Value: "OFF", Group: "logging", Reason: "the slow log costs time in every statement it writes"},
		{Name: "innodb_buffer_pool_size", Value: "3G", Group: "memory", Source: "MySQL 8.4 manual, 17.8.3.1",
			Reason: "the data fits into memory: 0.75 of the 4 GiB that the cgroup allows, less what connections and the performance schema need",
			Effect: "1.42x of the step before (1 run)"},
		{Name: "innodb_redo_log_capacity", Value: "1G", Group: "redo", Reason: "fewer checkpoints"},
		{Name: "join_buffer_size", Value: "256K", Group: "memory"},
		{Name: "plugin_x", Value: "a # b"}, {Name: "skip_log_bin", Group: "durability"}, {Name: "zebra", Value: "1", Group: "animals"},
	}
	head := []string{"Written by david for MySQL 9.7.4.", "Measured with oltp_read_write on 10 tables of 1,000,000 rows, 4 threads, on 2 CPUs and 4 GiB; other workloads may differ."}
	var out bytes.Buffer
	if err := Render(&out, head, settings); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("testdata/render.cnf", out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/render.cnf")
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("rendered\n%s", out.String())
	}
	roundTrip(t, settings)
}

func TestRenderRefuses(t *testing.T) {
	for _, bad := range [][]Setting{{{Name: "a b", Value: "1"}}, {{Name: "", Value: "1"}}, {{Name: "a", Value: "\x00"}},
		{{Name: "a", Value: "1"}, {Name: "a", Value: "2"}}, {{Name: "a", Value: strings.Repeat("x", 4096)}}} {
		if err := Render(&bytes.Buffer{}, nil, bad); err == nil {
			t.Errorf("rendered %.60v", bad)
		}
	}
}

// roundTrip checks that Parse gives back what Render wrote.
func roundTrip(t *testing.T, settings []Setting) {
	t.Helper()
	var out bytes.Buffer
	if err := Render(&out, []string{"head\nof two lines"}, settings); err != nil {
		return // refused with a reason
	}
	want := map[string]string{}
	for _, s := range settings {
		want[s.Name] = s.Value
	}
	got := map[string]string{}
	for _, i := range parse(t, out.String()).Items {
		got[i.Name] = i.Value
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q, from\n%s", got, want, out.String())
	}
}

func FuzzRenderParse(f *testing.F) {
	f.Add("innodb_buffer_pool_size", "4G", "memory", "because")
	f.Add("x", `a"b'c\d#e;f`, "g\n[mysqld]", "line\nx=1")
	f.Add("y", " \t\r\n\b", "", "")
	f.Fuzz(func(t *testing.T, name, value, group, reason string) {
		roundTrip(t, []Setting{{Name: name, Value: value, Group: group, Reason: reason, Source: reason, Effect: reason}})
	})
}

func FuzzParse(f *testing.F) {
	f.Add(tricky)
	f.Add("[a\n")
	f.Add("!include x")
	f.Add("[a]\n=")
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Parse(strings.NewReader(text), "my.cnf")
		if err != nil {
			return
		}
		for _, i := range file.Items {
			if i.Line < 1 || (i.Name == "") == (i.Include == "") {
				t.Fatalf("item %+v", i)
			}
		}
		if len(file.Settings("mysqld")) > len(file.Items) {
			t.Fatal("settings out of nowhere")
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse(strings.NewReader(tricky), "my.cnf"); err != nil {
			b.Fatal(err)
		}
	}
}
