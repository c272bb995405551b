//go:build results

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestMain is the first process of the guest, too.
func TestMain(m *testing.M) {
	if first() {
		inside()
	}
	os.Exit(m.Run())
}

// within runs a command in the guest, which gets a share of a CPU, or 0: what there is.
func within(t *testing.T, share float64, args ...string) (out, errOut string) {
	t.Helper()
	cache, err := cacheFolder()
	if err != nil {
		t.Fatal(err)
	}
	image, err := built(t.Context(), cache, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
	defer cancel()
	var o, e bytes.Buffer
	code, err := boot(ctx, image, options{memory: "3G", cpus: 2, disk: 40 << 30, share: share}, args, &o, &e)
	t.Logf("%s\n%s%s", strings.Join(args, " "), e.String(), o.String())
	if err != nil || code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	return o.String(), e.String()
}

// TestResultsZFS builds md, LVM and ZFS where a kernel has them, makes followers of a MariaDB on ZFS, has fio drive records of two sizes, and holds what fio gets out of a RAIDZ of four disks
// of 500 IOPS against what the rules of storage plan rest on: 660 reads/s, where one disk with xfs gave 499; 1,318 writes/s, where a
// stripe gave 1,582, as they do where they wait for the emulated CPUs and not for the disks (docs/storage.md).
func TestResultsZFS(t *testing.T) {
	t.Chdir("../..")
	t.Run("stacks", func(t *testing.T) {
		out, _ := within(t, 0, "bin/guest/sandbox.test", "-test.run", "^TestStacks$", "-test.v")
		if strings.Contains(out, "SKIP") || !strings.Contains(out, "--- PASS: TestStacks/raidz2x4") {
			t.Error("not everything was built")
		}
	})
	t.Run("followers", func(t *testing.T) {
		out, _ := within(t, 0, "bin/guest/follower.test", "-test.run", "^TestZFSFollower$", "-test.v")
		if !strings.Contains(out, "--- PASS: TestZFSFollower/within") {
			t.Error("no follower was made")
		}
	})
	t.Run("shares", func(t *testing.T) {
		out, _ := within(t, 0, "bin/david", "storage", "measure", "--layout", "one,stripe4,raidz4", "--with", "zfs", "--volume", "500iops",
			"--fio-only", "--fio-time", "10s", "--fio-rounds", "3", "--fio-unsynced", "20s", "--json")
		doc := layoutsOf(t, out)
		shares := map[string]float64{"stripe4 randread": 1815.0 / 499, "stripe4 randwrite": 1582.0 / 481, "raidz4 randread": 660.0 / 499, "raidz4 randwrite": 1318.0 / 481}
		want := maps.Clone(shares)
		for _, l := range doc.Layouts {
			for _, f := range l.Fio {
				share := shares[l.Name+" "+f.Way]
				if share == 0 || f.Bytes != 16<<10 || f.Fsync {
					continue
				}
				t.Logf("%s %s, unsynced %v: %.0f/s, %.2f of one volume's, was %.2f: %+.1f %%", l.Name, f.Way, f.Unsynced, f.IOPS, f.Ratio, share, 100*(f.Ratio/share-1))
				if f.Unsynced != (f.Way == "randwrite") { // ZFS before 2.3 has each of fio's other writes synced, and the shares are of none
					continue
				}
				delete(want, l.Name+" "+f.Way)
				if l.Name+" "+f.Way == "raidz4 randread" && math.Abs(f.Ratio/share-1) > 0.10 {
					t.Errorf("%s %s is not within 10 %% of what it was", l.Name, f.Way)
				}
			}
		}
		if len(want) > 0 {
			t.Errorf("not measured: %v", want)
		}
	})
	t.Run("records", func(t *testing.T) {
		out, _ := within(t, 0, "bin/david", "storage", "measure", "--layout", "one,stripe4,raidz4", "--with", "zfs", "--recordsize", "128K", "--volume", "500iops",
			"--fio-only", "--fio-time", "5s", "--fio-rounds", "3", "--json")
		doc := layoutsOf(t, out)
		got := map[string]float64{}
		for _, l := range doc.Layouts {
			for _, f := range l.Fio {
				kind := fmt.Sprintf("%s of %d KiB, fsync %v", f.Way, f.Bytes>>10, f.Fsync)
				got[l.Name+" "+kind] = f.IOPS
				usual, other := strings.CutSuffix(l.Name, "-recordsize-128K")
				if was := got[usual+" "+kind]; other {
					t.Logf("%s, %s: %.0f/s with records of 128 KiB, %.0f/s with those of 16: %.2f of it", usual, kind, f.IOPS, was, f.IOPS/was)
				}
			}
		}
		if len(got) != 25 {
			t.Errorf("five layouts by five loads were asked for: %v", got)
		}
	})
	t.Run("writes", func(t *testing.T) {
		got := map[string][]float64{}
		for _, operations := range []string{"500", "0"} {
			out, _ := within(t, 0.35, "sh", "test/guest/testdata/raidz.sh", operations, "5")
			for line := range strings.Lines(out) {
				var kind string
				var iops float64
				if _, err := fmt.Sscan(line, &kind, &iops); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
				got[kind+operations] = append(got[kind+operations], iops)
			}
		}
		middle := func(names ...string) float64 {
			var all []float64
			for _, name := range names {
				all = append(all, got[name]...)
			}
			if slices.Sort(all); len(all) != 5*len(names) {
				t.Fatalf("%d runs of %v", len(all), names)
			}
			return (all[len(all)/2] + all[(len(all)-1)/2]) / 2
		}
		const was = 1318.0 / 1582
		share := middle("raidz500", "raidz0") / middle("stripe500", "stripe0")
		t.Logf("raidz to stripe: %.2f with disks of 500, %.2f with disks that are not capped, %.2f (%+.1f %%) of all; it was %.2f; %v",
			middle("raidz500")/middle("stripe500"), middle("raidz0")/middle("stripe0"), share, 100*(share/was-1), was, got)
		if math.Abs(share/was-1) > 0.25 { // a pair's share has a standard deviation of 0.1
			t.Errorf("a RAIDZ's writes are %.2f of a stripe's, and were %.2f", share, was)
		}
		for _, kind := range []string{"stripe", "raidz"} {
			if gain := middle(kind+"0") / middle(kind+"500"); gain > 1.25 {
				t.Errorf("%s: disks that are not capped give %.2f times as much: the CPU is not what it waits for", kind, gain)
			}
		}
	})
}

// measuredLayouts is what `david storage measure --json` says that fio got of each layout.
type measuredLayouts struct {
	Layouts []struct {
		Name string
		Fio  []struct {
			Way         string
			Bytes       int
			Fsync       bool
			Unsynced    bool
			IOPS, Ratio float64
		}
	}
}

func layoutsOf(t *testing.T, out string) (m measuredLayouts) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &m); err != nil {
		t.Fatal(err)
	}
	return m
}
