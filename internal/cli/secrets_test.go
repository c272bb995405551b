package cli

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestDSNInThePlaceOfAPath gives where a server is, with its password, where david wants something else.
func TestDSNInThePlaceOfAPath(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	for _, dsn := range []string{"app:s3/c%rê&t@tcp(db:3306)/", "app:s3/c%rê&t@unix(/run/x)/", "mysql://app:s3%2Fc@db/", "app:s3/c%rê&t@db:3306/", "app:s3//c%rê&t@tcp(db)/x"} {
		for _, args := range [][]string{{"audit", "--cnf"}, {"show"}, {"rollback"}, {"explain"}, {"report"}, {"price"}, {"experiment", "run"}, {"manifest", "check"}, {"audit", "--defaults-file"},
			{"bench", "--cnf"}, {"bench", "--threads"}, {"bench", "--tables"}, {"manifest", "--from"}, {"tune", "--base"}, {"compare", "--arm"}, {}, {"show", "x"}, {"bench", "--pod"},
			{"price", "latest", "--catalogue"}, {"bench", "--set"}, {"probe", "--dir"}, {"--"}, {"doctor"}} {
			cmd := exec.Command(os.Args[0], append(args, dsn)...)
			cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+home, "HOME="+home)
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != exitUsage || bytes.Contains(out, []byte("s3/c")) || bytes.Contains(out, []byte("s3%2Fc")) || bytes.Contains(out, []byte("c%r")) {
				t.Errorf("%s %s: exit code %d: %s", strings.Join(args, " "), dsn, code, out)
			}
		}
	}
}
