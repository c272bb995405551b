package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"david/internal/probe"
	"david/internal/result"
)

// TestBurstEmpties has a volume slow down in the middle of a long look, as one does whose credits are used
// up.
func TestBurstEmpties(t *testing.T) {
	needRoot(t)
	w := open(t, newHome(t), Options{Volume: true})
	dir, err := w.Scratch("")
	if err != nil {
		t.Fatal(err)
	}
	g, err := w.group(result.Caps{IOPS: 2000}, own(t, w))
	if err != nil {
		t.Fatal(err)
	}
	device, _, err := probe.Look(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	slower := make(chan error, 1)
	throttle := func(on bool) error {
		if on {
			time.AfterFunc(12*time.Second, func() {
				g.Caps.IOPS = 400
				slower <- g.Throttle(true)
			})
		}
		return g.Throttle(on)
	}
	b, err := probe.Place{Dir: dir, Device: device, Effort: probe.Quick(), Start: g.Start, Throttle: throttle}.Sustained(t.Context(), 30)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-slower; err != nil {
		t.Fatal(err)
	}
	if b.Empty < 11 || b.Empty > 16 || b.Then < 300 || b.Then > 480 {
		t.Errorf("it fell in second %d to %.0f: %v", b.Empty, b.Then, b.Series)
	}
	if err := w.ungroup(g); err != nil {
		t.Error(err)
	}
}

// TestOpenIn works in a folder of its own inside another one, and leaves nothing there, nor does one that was
// killed.
func TestOpenIn(t *testing.T) {
	home, dir := newHome(t), t.TempDir()
	w, err := OpenIn(home, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.Dir(), "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v is left, %v", left, err)
	}
	if _, err := OpenIn(home, filepath.Join(dir, "missing")); err == nil {
		t.Error("a folder that is not there was worked in")
	}
	if left, err := filepath.Glob(filepath.Join(home, "run", "*")); err != nil || len(left) > 0 {
		t.Errorf("journals %v are left, %v", left, err)
	}
	w, err = OpenIn(home, "")
	if err != nil {
		t.Fatal(err)
	}
	ran := false
	err = w.Capped("", result.Caps{}, func(start func(*exec.Cmd) error, throttle func(bool) error) error {
		cmd := exec.Command("true")
		ran = throttle(true) == nil && start(cmd) == nil && cmd.Wait() == nil
		return nil
	})
	if err != nil || !ran {
		t.Errorf("ran %v, %v", ran, err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
