package cli

import (
	"path/filepath"
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
	if s, err = result.Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, finished, err := s.Finished(); err != nil || !finished || s.Experiment().Design.Blocks != 6 {
		t.Errorf("finished %v, %+v, %v; david said %s", finished, s.Experiment().Design, err, errOut)
	}
}
