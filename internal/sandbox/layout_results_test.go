//go:build results

package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/probe"
	"david/internal/result"
)

// TestResultsLayoutsByHand holds fio as david runs it on a layout's volume against fio as one runs it at a
// terminal, under a cap that is written by hand: they agree within 5 %.
func TestResultsLayoutsByHand(t *testing.T) {
	needRoot(t)
	w, err := openBare(newHome(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	for _, l := range []result.Layout{layoutOf("one", "one", "", "xfs", "noatime", 1), layoutOf("stripe4", "stripe", "btrfs", "btrfs", "noatime,nodatacow", 4)} {
		if _, err := w.Build(t.Context(), l); err != nil {
			t.Fatal(err)
		}
		dir, err := w.Scratch(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := probe.LayOut(t.Context(), dir, 128<<20)
		if err != nil {
			t.Fatal(err)
		}
		at, err := w.place(l.Name)
		if err != nil {
			t.Fatal(err)
		}
		for _, load := range probe.Loads() {
			var ours, byHand []float64
			for pair := range 5 { // interleaved, each first in turn
				if pair%2 == 0 {
					ours = append(ours, driven(t, w, l.Name, file, load))
				}
				byHand = append(byHand, hand(t, at, filepath.Join(dir, "random"), load))
				if pair%2 == 1 {
					ours = append(ours, driven(t, w, l.Name, file, load))
				}
			}
			a, b := slices.Sorted(slices.Values(ours))[2], slices.Sorted(slices.Values(byHand))[2]
			t.Logf("%s, %s: %.0f %v, by hand %.0f %v: %+.1f %%", l.Name, load, a, ours, b, byHand, 100*(a/b-1))
			if math.Abs(a/b-1) > 0.05 {
				t.Errorf("%s, %s: %.0f, by hand %.0f", l.Name, load, a, b)
			}
		}
	}
}

const handCap = 1000

func driven(t *testing.T, w *Workspace, layout string, file probe.File, load probe.Load) (iops float64) {
	t.Helper()
	err := w.Capped(layout, result.Caps{IOPS: handCap}, func(start func(*exec.Cmd) error, throttle func(bool) error) error {
		if err := throttle(true); err != nil {
			return err
		}
		rate, err := file.Drive(t.Context(), load, 2*time.Second, start)
		iops = rate.IOPS
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return iops
}

// hand caps each device by the root group's file, and runs fio.
func hand(t *testing.T, at place, file string, load probe.Load) float64 {
	t.Helper()
	limit := func(rate int) {
		for _, d := range at.devices {
			for _, way := range []string{"read", "write"} {
				if err := os.WriteFile("/sys/fs/cgroup/blkio/blkio.throttle."+way+"_iops_device", fmt.Appendf(nil, "%s %d", d, rate), 0); err != nil {
					t.Skipf("by hand it is cgroup v1 only: %v", err)
				}
			}
		}
	}
	limit(handCap)
	defer limit(0)
	line := fmt.Sprintf("--name=hand --rw=%s --bs=%dk --numjobs=16 --group_reporting --direct=1 --norandommap --time_based --runtime=2 --output-format=json --filename=%s", load.Way, load.Bytes>>10, file)
	if load.Sync {
		line += " --ioengine=psync --fsync=1"
	} else {
		line += " --ioengine=libaio --iodepth=4"
	}
	cmd := exec.Command("fio", strings.Fields(line)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Jobs []map[string]json.RawMessage }
	if err := json.Unmarshal(out[max(0, bytes.IndexByte(out, '{')):], &doc); err != nil || len(doc.Jobs) != 1 {
		t.Fatal(err)
	}
	var r struct{ IOPS float64 }
	if err := json.Unmarshal(doc.Jobs[0][map[string]string{result.RandomRead: "read", result.RandomWrite: "write"}[load.Way]], &r); err != nil {
		t.Fatal(err)
	}
	return r.IOPS
}
