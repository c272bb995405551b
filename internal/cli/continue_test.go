package cli

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// TestContinueThatCannot leaves an experiment as it was whose server is not there any more.
func TestContinueThatCannot(t *testing.T) {
	home := t.TempDir()
	gone := filepath.Join(home, "mysqld")
	s, err := result.Create(filepath.Join(home, "experiments", "compare-1"), result.Experiment{Kind: result.KindCompare, Created: time.Now(),
		Argv:   []string{"david", "compare", "--server", gone, "--arm", "control", "--arm", "x=sync_binlog=1"},
		Design: result.Design{Blocks: 6, Slices: &result.Slices{Seconds: 5, Incarnations: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(result.Finish{Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	_, errOut, code := david(t, home, "compare", "--continue", "4m")
	if code == exitDone {
		t.Fatalf("exit code %d\n%s", code, errOut)
	}
	for _, c := range []struct{ of, kind, says string }{
		{"compare-1", "compare", "going on with compare-1 for 4m"},
		{s.Dir(), "compare", "going on with compare-1 for 4m"},
		{"compare-2", "compare", "compare-2"},
		{"compare-1", "race", "there is no david race compare-1 that has ended"},
	} {
		if _, errOut, code = david(t, home, c.kind, "--continue", "4m", "--of", c.of); code == exitDone || !strings.Contains(errOut, c.says) {
			t.Errorf("%s --of %s: exit code %d\n%s", c.kind, c.of, code, errOut)
		}
	}
	if _, errOut, code = david(t, home, "compare", "--of", "compare-1"); code != exitUsage || !strings.Contains(errOut, "give --continue 10m, too") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
	if s, err = result.Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, finished, err := s.Finished(); err != nil || !finished || s.Experiment().Design.Blocks != 6 {
		t.Errorf("finished %v, %+v, %v; david said %s", finished, s.Experiment().Design, err, errOut)
	}
}
