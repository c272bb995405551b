package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"david/internal/kernel"
)

// TestKernelDoc holds the table of docs/kernel.md against the code.
func TestKernelDoc(t *testing.T) {
	text, err := os.ReadFile("../../docs/kernel.md")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("| setting | P1 | P4 | today | risk | source |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, s := range kernel.Table() {
		b.WriteString("| " + strings.Join([]string{s.Name, s.P1, s.P4, s.Reason, s.Risk, s.Source}, " | ") + " |\n")
	}
	if !strings.Contains(string(text), b.String()) {
		t.Errorf("docs/kernel.md must hold this table:\n%s", b.String())
	}
}

// TestKernelNamesDisk: whoever changes a disk's setting reads which disk it is, before and after.
func TestKernelNamesDisk(t *testing.T) {
	var out strings.Builder
	if err := printKernelPlan(&out, []kernel.Row{{Name: "disk.scheduler", Disk: "sda", Now: "bfq", Advice: kernel.Set, Value: "none"}}, true); err != nil {
		t.Fatal(err)
	}
	a := &app{out: &out}
	if err := a.printKernelChanges(kernelChanges{Changes: []kernel.Change{{Name: "disk.scheduler", Disk: "sda", Before: "bfq", After: "none"}}}); err != nil {
		t.Fatal(err)
	}
	a.printKernelUndone(kernel.Undone{Restored: []kernel.Change{{Name: "disk.read_ahead_kb", Disk: "sdb", Before: "1", After: "2"}}}, "x")
	for _, want := range []string{"  disk.scheduler of sda: bfq -> none: ", "\ndisk.scheduler of sda  bfq ", "\ndisk.scheduler of sda\n", "\ndisk.scheduler of sda: bfq -> none\n", "\ndisk.read_ahead_kb of sdb: 2 -> 1\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	out.Reset()
	if err := a.printKernelChanges(kernelChanges{Notes: []string{"disk.scheduler of sda is left out"}}); err != nil || out.String() != "disk.scheduler of sda is left out\nnothing else is advised\n" {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// TestKernelOfUser: an ordinary user gets the whole plan, sees what apply would do and what it needs, and
// changes nothing.
func TestKernelOfUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can run david as another user")
	}
	home := t.TempDir()
	if err := errors.Join(os.Chown(home, stranger, stranger), os.Chmod(filepath.Dir(home), 0o711)); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile("/proc/sys/net/core/somaxconn")
	if err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, int) {
		cmd := at{home: home, dir: "/"}.command(args...)
		cmd.Path = "/proc/self/exe"
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
		out, err := cmd.CombinedOutput()
		if err != nil && cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"kernel", "plan", "-v"}, exitDone, "to set it: root sets it"},
		{[]string{"kernel", "apply", "net.core.somaxconn=4098"}, exitDone, "net.core.somaxconn: root sets it"},
		{[]string{"kernel", "apply", "net.core.somaxconn=4098", "--apply"}, exitUsage, "net.core.somaxconn: root sets it"},
	} {
		if out, code := run(c.args...); code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("%v: exit code %d\n%s", c.args, code, out)
		}
	}
	if after, err := os.ReadFile("/proc/sys/net/core/somaxconn"); err != nil || string(after) != string(before) {
		t.Errorf("%s, %v; was %s", after, err, before)
	}
}
