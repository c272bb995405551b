package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/advice"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/server"
	"david/internal/testserver"
)

// TestAudit judges real servers with their defaults, for a user who may see all and for one who may see
// little, and makes sure that nothing but SELECT and SHOW reached them.
func TestAudit(t *testing.T) {
	t.Parallel()
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		here := loggedIn(testHome(t))
		judge := func(user string, args ...string) advice.Document {
			t.Helper()
			out, errOut, code := here.david(t, append([]string{"audit", "--json", "--dsn", dsn(s, user)}, args...)...)
			var doc advice.Document
			if err := json.Unmarshal([]byte(out), &doc); err != nil || code != exitDone {
				t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errOut)
			}
			if strings.Contains(out+errOut, testserver.Password) {
				t.Error("the password is shown")
			}
			return doc
		}
		before := commands(t, s)
		full := judge("david", "--data-size", "20G")
		limited := judge("limited", "--memory", "16G")
		for name, n := range commands(t, s) {
			if n > before[name] && name != "com_select" && name != "com_admin_commands" && // pings
				!strings.HasPrefix(name, "com_show_") {
				t.Errorf("%s rose by %.0f", name, n-before[name])
			}
		}
		want := map[mycnf.Flavour][]string{
			mycnf.MySQL:   {"redo-small", "buffer-pool-small", "performance-schema"},
			mycnf.MariaDB: {"sync-binlog", "no-binlog", "redo-small", "buffer-pool-small", "io-capacity", "flush-neighbors"},
		}[s.Flavour]
		for _, doc := range []advice.Document{full, limited} {
			for _, name := range want {
				if !slices.ContainsFunc(doc.Findings, func(f advice.Finding) bool { return f.Name == name }) {
					t.Errorf("no %s in %+v", name, doc.Findings)
				}
			}
			for _, f := range doc.Findings {
				if f.Name == "not-persisted" || f.Severity == advice.Danger && s.Flavour == mycnf.MySQL {
					t.Errorf("%+v", f)
				}
			}
		}
		if unseen := strings.Join(limited.Unseen, "\n"); !strings.Contains(unseen, "size of the data: ") || !strings.Contains(unseen, "PROCESS") {
			t.Errorf("the limited user's audit does not say what it may not see:\n%s", unseen)
		}
		if len(full.Unseen) > 0 {
			t.Errorf("unseen: %q", full.Unseen)
		}
		s.Exec("SET GLOBAL sync_binlog=0", "SET GLOBAL innodb_flush_log_at_trx_commit=2")
		if s.Flavour == mycnf.MySQL {
			s.Exec("SET PERSIST max_connections=200")
		}
		changed := judge("david")
		for _, f := range changed.Findings {
			if f.Name == "not-persisted" && f.Variable == "max_connections" {
				t.Errorf("%+v", f)
			}
		}
		for _, name := range []string{"sync-binlog", "innodb-flush-log-at-trx-commit", "not-persisted"} {
			if !slices.ContainsFunc(changed.Findings, func(f advice.Finding) bool { return f.Name == name }) {
				t.Errorf("no %s in %+v", name, changed.Findings)
			}
		}
		if _, _, code := here.david(t, "audit", "--dsn", dsn(s, "david"), "--fail-on", "danger"); code != exitInvalid {
			t.Errorf("--fail-on danger exits with %d", code)
		}
		s.Options("--skip-grant-tables", "--init-file=/dev/null") // MySQL then listens on no port, and nobody makes accounts
		s.Restart()
		out, errOut, code := here.david(t, "audit", "-S", s.Root().Address, "-u", "nobody", "--fail-on", "danger")
		if code != exitInvalid || !strings.Contains(strings.Join(strings.Fields(out), " "), "anybody may read and change all data") || !strings.Contains(out, "remove skip_grant_tables (restart)") {
			t.Errorf("a server that asks nobody who he is: exit code %d\n%s%s", code, out, errOut)
		}
	}, "--innodb-buffer-pool-size=128M")
}

// commands are the server's counters of statements by kind.
func commands(t *testing.T, s *testserver.Server) map[string]float64 {
	t.Helper()
	status, err := s.Open().Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	counters := map[string]float64{}
	for name, n := range mysqld.Counters(status) {
		if strings.HasPrefix(name, "com_") {
			counters[name] = n
		}
	}
	return counters
}

// TestAuditOfWhatIsInstalled: where nobody says which server a file is for, it is the one that is here, as it is for
// whoever measures; the file may come by standard input.
func TestAuditOfWhatIsInstalled(t *testing.T) {
	t.Parallel()
	const cnf = "[mysqld]\nquery_cache_size=1M\nlog_bin\nsync_binlog=1\n"
	empty := at{home: t.TempDir()} // the system's servers alone
	installed, err := server.Find(t.Context(), empty.home, "auto")
	if err != nil {
		t.Skip(err)
	}
	number, _, _ := strings.Cut(installed.Version, "-")
	judge := func(path, input string) string {
		t.Helper()
		cmd := empty.command("audit", "--memory", "16G", "--cnf", path)
		cmd.Stdin = strings.NewReader(input) // a pipe
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("--cnf %s: %v", path, err)
		}
		fits(t, string(out))
		return strings.Join(strings.Fields(string(out)), " ")
	}
	said := func(first, want string) bool { // whichever lines the width has broken: a long path is broken, too
		return strings.Contains(strings.ReplaceAll(first, " ", ""), strings.ReplaceAll(want, " ", ""))
	}
	file := filepath.Join(t.TempDir(), "my.cnf")
	if err := os.WriteFile(file, []byte(cnf), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, named := range map[string]string{file: file, "-": "standard input", "/dev/stdin": "/dev/stdin"} {
		first := judge(path, cnf)
		if want := installed.Flavour.Product() + " " + number + " (installed here), " + named; !said(first, want) {
			t.Errorf("--cnf %s: no %q in\n%s", path, want, first)
		}
		if removed := strings.Contains(first, "remove query_cache_size=1M"); removed == (installed.Flavour == mycnf.MariaDB) {
			t.Errorf("--cnf %s:\n%s", path, first)
		}
	}
	if first := judge("-", "[mysqld]\ngeneral_log=1\n"); !strings.Contains(first, "general_log ON -> OFF (stdin:2)") {
		t.Errorf("the place in what came by standard input:\n%s", first)
	}
}
