package sandbox

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"david/internal/kernel"
	"david/internal/result"
)

// interval is a setting of the machine's that nobody here depends on.
const interval = "/proc/sys/net/ipv4/tcp_keepalive_intvl"

func now(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(interval)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// TestKernelSettings: an arm's settings hold until the next arm's, or none; what somebody else changed
// meanwhile is an error, and is left; a david that is killed has the next one set back what it had set.
func TestKernelSettings(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the kernel's settings")
	}
	before := now(t)
	t.Cleanup(func() {
		if err := os.WriteFile(interval, []byte(before), 0); err != nil {
			t.Error(err)
		}
	})
	home := newHome(t)
	w, err := openBare(home)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	set := func(value string) error {
		return w.SetKernel([]result.KernelSetting{{Name: "net.ipv4.tcp_keepalive_intvl", Value: value}})
	}
	is := func(want string) {
		t.Helper()
		if got := now(t); got != want {
			t.Errorf("it is %s, not %s", got, want)
		}
	}
	for _, value := range []string{"74", "73"} {
		if err := set(value); err != nil {
			t.Fatal(err)
		}
		is(value)
	}
	if err := w.SetKernel(nil); err != nil {
		t.Error(err)
	}
	is(before)
	if err := set("0"); !errors.Is(err, kernel.ErrInput) {
		t.Error(err)
	}
	if err := errors.Join(set("74"), os.WriteFile(interval, []byte("71"), 0)); err != nil {
		t.Fatal(err)
	}
	undoable := kernel.Change{Name: "kernel.panic", Before: "0", After: "1"}
	w.journal.Kernel = slices.Insert(w.journal.Kernel, 0, undoable)
	if err := w.ResetKernel(); !errors.Is(err, kernel.ErrChanged) || !strings.Contains(err.Error(), undoable.Name) {
		t.Errorf("somebody else changed it, and another cannot be set back: %v", err)
	}
	w.journal.Kernel = nil
	is("71")
	if err := set("74"); err != nil {
		t.Fatal(err)
	}
	reap := func(w *Workspace) (said string) {
		t.Helper()
		bury(t, w.journal)
		if err := errors.Join(w.journal.mark(w.run), w.journal.write()); err != nil {
			t.Fatal(err)
		}
		if err := Reap(home, func(what string) { said += what + "\n" }); err != nil {
			t.Error(err)
		}
		return said
	}
	if said := reap(w); strings.Contains(said, "is left") {
		t.Error(said)
	}
	is("71")
	if w, err = openBare(home); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	if err := errors.Join(set("74"), os.WriteFile(interval, []byte("72"), 0)); err != nil {
		t.Fatal(err)
	}
	if said := reap(w); !strings.Contains(said, "is 72, and is left: somebody else changed it after david, which had set 74 in the place of 71") {
		t.Error(said)
	}
	is("72")
}
