package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/advice"
	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestAdviserReadsAlike starts a server of each flavour with an option file's settings: what is read of the
// server gets the advice that the file gets, and the plan for it tells all of it. Other forms of the same
// facts are held together without a server (TestAgreement in internal/advice).
func TestAdviserReadsAlike(t *testing.T) {
	t.Parallel()
	lines := []string{"sync_binlog=0", "innodb_flush_log_at_trx_commit=2", "sql_mode=", "table_open_cache=100", "sort_buffer_size=64M", "join_buffer_size=64M", "log_bin=binlog"}
	var options []string
	for _, l := range lines {
		options = append(options, "--"+l)
	}
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		here := loggedIn(testHome(t))
		cnf := filepath.Join(t.TempDir(), "my.cnf")
		if err := os.WriteFile(cnf, []byte("[mysqld]\n"+strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		machine := []string{"--memory", "16G", "--cpus", "2", "--json"}
		found := func(args ...string) (all map[string]string, doc advice.Document) {
			t.Helper()
			out, errOut, code := here.david(t, append(append([]string{"audit"}, args...), machine...)...)
			if err := json.Unmarshal([]byte(out), &doc); code != exitDone || err != nil {
				t.Fatalf("exit code %d, %v\n%s", code, err, errOut)
			}
			all = map[string]string{}
			for _, f := range doc.Findings {
				for _, l := range lines {
					if name, _, _ := strings.Cut(l, "="); f.Variable == name {
						all[f.Name+" "+f.Variable] = fmt.Sprintf("%s %s", f.Severity, f.Line)
					}
				}
			}
			return all, doc
		}
		server, doc := found("--dsn", dsn(s, "david"))
		file, whole := found("--cnf", cnf, "--flavour", string(doc.Flavour), "--server-version", doc.Version)
		if len(file) < 6 || !maps.Equal(server, file) {
			t.Errorf("the server:\n%v\nits file:\n%v", server, file)
		}
		for _, f := range whole.Findings {
			if f.Variable == "sql_mode" && f.Where != cnf+":4" {
				t.Errorf("sql_mode is said to be at %q", f.Where)
			}
		}
		out, errOut, code := here.david(t, append([]string{"tune", "--dsn", dsn(s, "david")}, machine...)...)
		var plan liveDocument
		if err := json.Unmarshal([]byte(out), &plan); code != exitDone || err != nil {
			t.Fatalf("exit code %d, %v\n%s", code, err, errOut)
		}
		for _, name := range []string{"sync_binlog", "innodb_flush_log_at_trx_commit", "sql_mode", "sort_buffer_size", "join_buffer_size"} {
			if told := decided(plan, name); told == "" {
				t.Errorf("the plan passes over %s: %+v", name, plan.Decide)
			}
		}
	}, options...)
}

// decided returns the value that a plan would have somebody else give a variable; "" where it does not tell
// of it.
func decided(plan liveDocument, name string) string {
	for _, c := range plan.Decide {
		if c.Name == name && mycnf.MatchValues(name, c.Value, c.Before) != mycnf.Same {
			return c.Value
		}
	}
	return ""
}
