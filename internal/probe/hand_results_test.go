//go:build results

package probe

import (
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/result"
)

// TestResultsHandRun holds every job against fio run by hand, one after the other, five times: the medians
// must agree within 15 %.
func TestResultsHandRun(t *testing.T) {
	dir := t.TempDir()
	d, _, err := Look(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	owned(t, dir)
	p := Place{Dir: dir, Device: d, Effort: Full()}
	file, err := p.layOut(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs(p.Caps) {
		var ours, byHand []float64
		for r := range 5 {
			m, err := p.measure(t.Context(), j, "libaio", file, r)
			if err != nil {
				t.Fatal(err)
			}
			ours, byHand = append(ours, told(j, m.shot)), append(byHand, told(j, hand(t, dir, j)))
		}
		a, b := figure(ours), figure(byHand)
		t.Logf("%s: %.0f (%.0f-%.0f), by hand %.0f (%.0f-%.0f): %+.1f %%", j, a.Value, a.Low, a.High, b.Value, b.Low, b.High, 100*(a.Value/b.Value-1))
		if math.Abs(a.Value/b.Value-1) > 0.15 {
			t.Errorf("%s: %.0f, by hand %.0f", j, a.Value, b.Value)
		}
	}
}

// told returns the figure people look at: the median sync in microseconds, or operations/s.
func told(j ioJob, s shot) float64 {
	if j.sync {
		return s.p50
	}
	return s.IOPS
}

// hand runs fio as one would at a terminal.
func hand(t *testing.T, dir string, j ioJob) shot {
	t.Helper()
	line := fmt.Sprintf("--rw=%s --bs=%d --iodepth=%d --ioengine=libaio --direct=1 --time_based --runtime=1 --size=512m --filename=random", j.way, j.bytes, j.depth)
	if j.way == result.Append {
		line = fmt.Sprintf("--rw=write --bs=%d --ioengine=sync --fdatasync=1 --fallocate=none --runtime=1 --size=512m --filename=by-hand", j.bytes)
	} else if j.sync {
		line = fmt.Sprintf("--rw=write --bs=%d --ioengine=sync --fdatasync=1 --time_based --runtime=1 --size=64m --overwrite=1 --filename=random", j.bytes)
	}
	cmd := exec.Command("fio", append(strings.Fields(line), "--name=hand", "--output-format=json")...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	s, err := parseShot(out, j.side())
	if err != nil {
		t.Fatal(err)
	}
	if err := remove(filepath.Join(dir, "by-hand")); err != nil {
		t.Fatal(err)
	}
	return s
}
