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
