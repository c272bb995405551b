package cli

import (
	"errors"
	"strings"
	"testing"
	"time"

	"david/internal/lab"
	"david/internal/result"
)

// probedLimits are those of a disk with three rounds.
func probedLimits() result.Limits {
	of := func(v float64) result.Figure { return result.Figure{Value: v, Low: 0.9 * v, High: 1.1 * v, Rounds: 3} }
	return result.Limits{Key: "sandbox-0123456789ab", Measured: time.Now().Add(-3 * time.Hour), Seconds: 41,
		Device:  result.Device{Layout: "an xfs image behind a loop device", Filesystem: "xfs", Source: "/dev/loop0", Disk: "vda", Direct: true},
		Syncs:   []result.SyncLimit{{Way: result.Append, Bytes: commitBytes, P50: of(806), P99: of(1420), Cycle: of(850)}},
		IO:      []result.IOLimit{{Way: result.RandomRead, Depth: deepQueue, IOPS: of(15300)}, {Way: result.RandomWrite, Depth: deepQueue, IOPS: of(9100)}},
		Machine: result.Machine{CPUs: 2, IntegerOne: of(512), IntegerAll: of(1010)}}
}

// TestProbeBrief: five sentences within 80 columns, also where rounds, or the disk, are missing.
func TestProbeBrief(t *testing.T) {
	short, blind, long := probedLimits(), probedLimits(), probedLimits()
	short.Machine.IntegerOne.Rounds = 1
	blind.Syncs, blind.IO, blind.Notes = nil, nil, []string{"/mnt: read-only; the CPUs and the kernel were"}
	long.Burst = &result.Burst{Seconds: 600, First: 3000, FirstSeconds: 60, Empty: 200, Then: 500}
	for name, c := range map[string]struct {
		found lab.Probed
		quick bool
		want  []string
	}{
		"whole": {lab.Probed{Limits: probedLimits()}, false, []string{"806 us (p50; p99 1420 us), 1180 times a second; at depth 32 the disk does 15300 random reads/s of 16 KiB and 9100 writes/s",
			"how sure: medians of 3 rounds, least to most: fdatasync p50 725-887, reads/s 13800-16800", "measured now, in 41 s", "written: probes/sandbox-0123456789ab.json", "next: `david bench`"}},
		"kept":      {lab.Probed{Limits: probedLimits(), Before: true}, false, []string{"measured 3 h ago"}},
		"quick":     {lab.Probed{Limits: short}, true, []string{"how sure: one round", "written: nothing: what --quick", "next: `david probe` takes a minute"}},
		"no disk":   {lab.Probed{Limits: blind, Flaw: errors.New("read-only")}, false, []string{"the disk was not measured; one thread does 512 million", "; /mnt: read-only", "written: nothing", "--dir DIR"}},
		"sustained": {lab.Probed{Limits: long}, false, []string{"from second 200 on 500 (17 %)"}},
	} {
		var out strings.Builder
		if err := (&app{out: &out}).printLimitsBrief(c.found, c.quick); err != nil {
			t.Fatal(err)
		}
		fits(t, out.String())
		if n := len(firstScreen(t, out.String())); n != 5 {
			t.Errorf("%s: %d sentences", name, n)
		}
		whole(t, strings.Join(strings.Fields(out.String()), " "), c.want...)
	}
}
