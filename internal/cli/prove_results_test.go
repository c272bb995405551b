//go:build results

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/result"
)

// TestResultsProvePower proves winners by cuts of the power of their disks, of controls so slow that there is
// a winner. What the user's own settings lose is not the winner's doing, and it is handed over, told.
func TestResultsProvePower(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can cut the power of a disk")
	}
	slow := "[mysqld]\ninnodb_buffer_pool_size=6M\ninnodb_log_file_size=4M\n"
	t.Run("safe", func(t *testing.T) {
		p, text := provedByPower(t, slow)
		if !p.OK || !p.Crash.Proved || p.Control != nil || strings.Contains(text, "control's") {
			t.Errorf("%+v %+v", p, p.Crash)
		}
	})
	t.Run("unsafe", func(t *testing.T) {
		p, text := provedByPower(t, slow+"innodb_flush_log_at_trx_commit=2\n", "--unlock", "innodb_flush_log_at_trx_commit")
		if !p.OK || p.Crash.Proved || p.Control == nil || p.Control.Proved || !strings.Contains(p.Shared, "the control's server meets the same") {
			t.Errorf("%+v %+v", p, p.Crash)
		}
		for _, want := range []string{"not proved", p.Shared} {
			if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
				t.Errorf("the report does not say %q:\n%s", want, text)
			}
		}
	})
}

// provedByPower tunes upon an option file, and returns the winner's proof and the report.
func provedByPower(t *testing.T, cnf string, more ...string) (result.Proof, string) {
	t.Helper()
	home, dir := testHome(t), t.TempDir()
	base := filepath.Join(dir, "base.cnf")
	if err := os.WriteFile(base, []byte(cnf), 0o644); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"tune", "--quick", "--server", "mariadb", "--tables", "2", "--table-size", "60000", "--time", "1s", "--warmup", "1s", "--memory", "1G", "--no-light-speed", "--base", base,
		"--prove", "power", "--out", filepath.Join(dir, "out"), "--json"}, more...)
	out, errOut, code := david(t, home, args...)
	var doc struct{ Proofs []result.Proof }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Proofs) == 0 {
		t.Fatalf("exit code %d, %v, no proof\n%s", code, err, errOut)
	}
	p := doc.Proofs[0]
	t.Logf("exit code %d, %+v", code, p.Crash.Verdict)
	if p.Crash.Power == nil || p.Crash.Power.Cache != "volatile" || p.Crash.Kills != 2 {
		t.Errorf("%+v", p.Crash)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out", "report.md"))
	if err != nil {
		t.Fatal(err)
	}
	return p, string(text)
}
