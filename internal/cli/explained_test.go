package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// explained holds what david explain --json says, as far as it is looked at here.
type explained struct {
	Findings []struct {
		Cause    string   `json:"cause"`
		Share    float64  `json:"share"`
		Evidence []string `json:"evidence"`
	} `json:"findings"`
	Unexplained  float64                                          `json:"unexplained"`
	Confirmation struct{ Cause, Question, Judgement, Why string } `json:"confirmation"`
}

// line is the explanation in a line: causes with their shares in per cent.
func (e explained) line() string {
	var parts []string
	for _, f := range e.Findings {
		if f.Share >= 0.05 || len(parts) == 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", f.Cause, 100*f.Share))
		}
	}
	return strings.Join(parts, ", ") + fmt.Sprintf(", unexplained %.0f %%", 100*e.Unexplained)
}

// newest is the ID of the newest experiment of one of these kinds.
func newest(t *testing.T, dir string, kinds ...result.Kind) string {
	t.Helper()
	list, err := result.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, sum := range list {
		if slices.Contains(kinds, sum.Kind) {
			return sum.ID
		}
	}
	t.Fatalf("there is none of %v", kinds)
	return ""
}

// TestExplainLatest: the newest experiment that can be explained is taken, past a newer crash test and one without a trial.
func TestExplainLatest(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	d := tunedRecord()
	for i := range d.Trials {
		d.Trials[i].TPS, d.Trials[i].Transactions, d.Trials[i].Seconds = 100, 3000, 30
		d.Trials[i].Profile = &result.Profile{Looks: 30, Connections: 4}
		d.Trials[i].Counters = map[string]float64{"Com_commit": 3000, "Innodb_os_log_fsyncs": 3000}
	}
	id := storedTune(t, home, d, true)
	for name, kind := range map[string]result.Kind{"crash-test-later": result.KindCrash, "bench-later": result.KindBench} {
		e := d.Experiment
		e.ID, e.Kind, e.Created = name, kind, e.Created.Add(time.Hour)
		if _, err := result.Create(filepath.Join(home, "experiments", name), e); err != nil {
			t.Fatal(err)
		}
	}
	a := &app{home: home, env: os.Getenv}
	if c, err := a.pick("latest"); err != nil || !strings.HasPrefix(c.which, id+",") {
		t.Errorf("%q, %v", c.which, err)
	}
}
