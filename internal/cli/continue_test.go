package cli

import (
	"errors"
	"os"
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
	link, elsewhere := filepath.Join(t.TempDir(), "experiment"), filepath.Join(t.TempDir(), "compare-1")
	if err := errors.Join(os.Symlink(s.Dir(), link), os.CopyFS(elsewhere, os.DirFS(s.Dir()))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ of, kind, says string }{
		{"compare-1", "compare", "going on with compare-1 for 4m"},
		{s.Dir(), "compare", "going on with compare-1 for 4m"},
		{filepath.Dir(link), "compare", "going on with compare-1 for 4m"},
		{elsewhere, "compare", "is not in " + filepath.Join(home, "experiments")},
		{"compare-2", "compare", "compare-2"},
		{"compare-1", "race", "compare-1 is a compare, and no race"},
	} {
		if _, errOut, code = david(t, home, c.kind, "--continue", "4m", "--of", c.of); code == exitDone || !strings.Contains(errOut, c.says) {
			t.Errorf("%s --of %s: exit code %d\n%s", c.kind, c.of, code, errOut)
		}
	}
	if _, errOut, code = david(t, home, "compare", "--of", "compare-1"); code != exitUsage || !strings.Contains(errOut, "give --continue 10m, too") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
	if _, errOut, code := david(t, home, "kernel", "measure", "vm.swappiness=1", "--continue", "4m"); code != exitUsage || !strings.Contains(errOut, "leave out vm.swappiness=1") {
		t.Errorf("exit code %d\n%s", code, errOut)
	}
	if s, err = result.Open(s.Dir()); err != nil {
		t.Fatal(err)
	}
	if _, finished, err := s.Finished(); err != nil || !finished || s.Experiment().Design.Blocks != 6 {
		t.Errorf("finished %v, %+v, %v; david said %s", finished, s.Experiment().Design, err, errOut)
	}
}
