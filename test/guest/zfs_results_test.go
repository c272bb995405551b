//go:build results

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"math"
	"os"
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

// within runs a command in the guest.
func within(t *testing.T, args ...string) (out, errOut string) {
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
	code, err := boot(ctx, image, options{memory: "3G", cpus: 2, disk: 40 << 30}, args, &o, &e)
	t.Logf("%s\n%s%s", strings.Join(args, " "), e.String(), o.String())
	if err != nil || code != 0 {
		t.Fatalf("exit code %d, %v", code, err)
	}
	return o.String(), e.String()
}

// TestResultsZFS builds md, LVM and ZFS where a kernel has them, makes followers of a MariaDB on ZFS, and holds what fio gets out of a RAIDZ of four disks
// of 500 IOPS against what the rules of storage plan rest on: 1,318 writes/s and 660 reads/s, where one disk with xfs
// gave 481 and 499.
func TestResultsZFS(t *testing.T) {
	t.Chdir("../..")
	t.Run("stacks", func(t *testing.T) {
		out, _ := within(t, "bin/guest/sandbox.test", "-test.run", "^TestStacks$", "-test.v")
		if strings.Contains(out, "SKIP") || !strings.Contains(out, "--- PASS: TestStacks/raidz2x4") {
			t.Error("not everything was built")
		}
	})
	t.Run("followers", func(t *testing.T) {
		out, _ := within(t, "bin/guest/follower.test", "-test.run", "^TestZFSFollower$", "-test.v")
		if !strings.Contains(out, "--- PASS: TestZFSFollower/within") {
			t.Error("no follower was made")
		}
	})
	t.Run("shares", func(t *testing.T) {
		out, _ := within(t, "bin/david", "storage", "measure", "--layout", "one,stripe4,raidz4", "--with", "zfs", "--volume", "500iops",
			"--fio-only", "--fio-time", "10s", "--fio-rounds", "3", "--fio-unsynced", "20s", "--json")
		var doc struct {
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
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Fatal(err)
		}
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
				if strings.HasPrefix(l.Name, "raidz") && math.Abs(f.Ratio/share-1) > 0.10 {
					t.Errorf("%s %s is not within 10 %% of what it was", l.Name, f.Way)
				}
			}
		}
		if len(want) > 0 {
			t.Errorf("not measured: %v", want)
		}
	})
}
