package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestMemoryAboveCgroup asks for more memory than the cgroup gives, in a real one of 1 GiB.
func TestMemoryAboveCgroup(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("making a cgroup needs root")
	}
	procs := limitedCgroup(t, 1<<30)
	args := fmt.Sprintf("echo $$ > %s && exec %s tune --server mariadb --memory 2G", procs, os.Args[0])
	cmd := exec.Command("sh", "-c", args)
	cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+testHome(t))
	out, _ := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(out), "--memory 2G is more than the 1 GiB") {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// limitedCgroup makes a cgroup with a memory limit, of whichever version the memory controller is on, and
// returns the file a process joins it by.
func limitedCgroup(t *testing.T, limit int64) (procs string) {
	t.Helper()
	for _, c := range []struct{ parent, limit string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"},
	} {
		dir := filepath.Join(c.parent, fmt.Sprintf("david-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			if err := os.Remove(dir); err != nil {
				t.Error(err)
			}
		})
		if os.WriteFile(filepath.Join(dir, c.limit), fmt.Append(nil, limit), 0o644) == nil {
			return filepath.Join(dir, "cgroup.procs")
		}
	}
	t.Skip("no cgroup with a memory limit can be made here")
	return ""
}
