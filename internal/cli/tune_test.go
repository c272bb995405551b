package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"david/internal/result"
)

// TestBenchAgreesWithSysbench holds what david prints against sysbench's own words in the log: within 1 %.
func TestBenchAgreesWithSysbench(t *testing.T) {
	t.Parallel()
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			dir := sharedHome(t)
			out, errOut, code := david(t, dir, append([]string{"bench", "--server", flavour, "--json"}, small...)...)
			if code != exitDone {
				t.Fatalf("exit code %d\n%s", code, errOut)
			}
			var doc struct {
				Experiment struct{ ID string }
				Trials     []result.Trial
			}
			if err := json.Unmarshal([]byte(out), &doc); err != nil {
				t.Fatal(err)
			}
			logs, err := filepath.Glob(filepath.Join(dir, "experiments", doc.Experiment.ID, "logs", doc.Trials[0].ID+".sysbench.log"))
			if err != nil || len(logs) != 1 {
				t.Fatalf("logs %v, %v", logs, err)
			}
			log, err := os.ReadFile(logs[0])
			if err != nil {
				t.Fatal(err)
			}
			all := regexp.MustCompile(`transactions:\s+\d+\s+\(([\d.]+) per sec`).FindAllSubmatch(log, -1)
			if len(all) != 1 {
				t.Fatalf("%d summaries in the log, want the measurement's: the warm-up is cut off", len(all))
			}
			said, err := strconv.ParseFloat(string(all[0][1]), 64)
			if err != nil {
				t.Fatal(err)
			}
			if ratio := doc.Trials[0].TPS / said; ratio < 0.99 || ratio > 1.01 {
				t.Errorf("david says %.2f tps, sysbench %.2f", doc.Trials[0].TPS, said)
			}
		})
	}
}

// TestRedacted keeps secrets out of the store.
func TestRedacted(t *testing.T) {
	args := []string{"bench", "--dsn", "u:secret@tcp(h:1)/", "--dsn=u:secret@tcp(h:1)/", "--threads", "4"}
	if got := strings.Join(redacted(args), " "); strings.Contains(got, "secret") || !strings.Contains(got, "--threads 4") {
		t.Error(got)
	}
}

// closed is an output nobody reads any more.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("nobody reads") }

// TestOutputStays keeps what a tune wrote although showing it failed.
func TestOutputStays(t *testing.T) {
	t.Parallel()
	home, out := sharedHome(t), filepath.Join(t.TempDir(), "out")
	args := append([]string{"tune", "--server", "mariadb", "--memory", "1G", "--no-light-speed", "--out", out}, quick...)
	a := &app{out: closed{}, err: t.Output(), home: home, env: os.Getenv, argv: args, build: Build{Version: "dev"}, sharing: beside(home)}
	if code := a.execute(t.Context()); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	for _, name := range []string{"my.cnf", "report.html", "report.md"} {
		if _, err := os.Stat(filepath.Join(out, name)); err != nil {
			t.Error(err)
		}
	}
}
