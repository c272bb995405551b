package rules

import (
	"cmp"
	"fmt"
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
)

// LightSpeed names a ceiling's arm.
const LightSpeed = "light-speed"

// Room tells what is known of the memory a ceiling may use. Sizes are in bytes.
type Room struct {
	Data      int64  // what the loaded tables take on the disk
	Available int64  // memory that can be used without swapping
	Threads   int    // the most the workload uses
	NoTmpfs   string // why no tmpfs can be had here; "" where one can
}

// Left free beside the server and its tmpfs, for the client, david and the kernel.
const ceilingMargin = gib

// Ceiling returns the light speed of an arm: its own settings with durability off, the buffer pool raised to
// hold the data, and where that fits in memory the data on a tmpfs. Its caps on memory and I/O are lifted,
// the one on CPUs stays. InnoDB's redo log stays on, though not synced: writing it is work every commit has,
// on either flavour. Checksums stay as well.
func Ceiling(base result.Arm, room Room) result.Arm {
	pool, whole := ceilingPool(base, room)
	tmpfs, where := ceilingTmpfs(base, room, pool)
	title := "unsafe upper limit, to measure with only: durability off, no binary log, " + where
	if !whole {
		title += fmt.Sprintf("; the buffer pool of %s does not hold all %s of data", gibText(pool), gibText(room.Data))
	}
	changes := ceilingSettings(pool)
	return result.Arm{Name: LightSpeed, Title: title, Base: base.Name, Server: base.Server, Ceiling: true, Tmpfs: tmpfs,
		Caps: result.Caps{CPUs: base.Caps.CPUs}, Changes: changes, Settings: Merge(base.Settings, changes)}
}

// ceilingSettings exist, with these values, in every version of both flavours that david knows.
func ceilingSettings(pool int64) []mycnf.Setting {
	const reason = "a ceiling only: nothing of a commit waits for a disk"
	var list []mycnf.Setting
	for _, s := range [][2]string{{"innodb_flush_log_at_trx_commit", "0"}, {"sync_binlog", "0"}, {"skip_log_bin", ""},
		{"innodb_doublewrite", "OFF"}, {"innodb_flush_method", "nosync"}} {
		list = append(list, mycnf.Setting{Name: s[0], Value: s[1], Group: "unsafe", Reason: reason, Source: "docs/measuring.md, The unsafe upper limit"})
	}
	return append(list, mycnf.Setting{Name: "innodb_buffer_pool_size", Value: mycnf.FormatSize(pool), Group: "unsafe",
		Reason: "a ceiling only: the pool holds the data, also beyond a cap on memory", Source: "docs/measuring.md, The unsafe upper limit"})
}

// ceilingPool returns the buffer pool: the arm's own, or 1.25 times the data where that is more and there is
// room for it. whole tells whether it holds the data.
func ceilingPool(base result.Arm, room Room) (pool int64, whole bool) {
	own := sizeOf(base, "innodb_buffer_pool_size", DefaultPool)
	if own >= room.Data*5/4 {
		return own, true
	}
	free := room.Available - ceilingMargin - serverMemory(room.Threads)
	want, most := upTo(room.Data*5/4), int64(float64(free)/poolOverhead)/Chunk*Chunk
	pool = max(own, min(want, most))
	return pool, pool >= room.Data
}

// upTo rounds to what a server takes without rounding: whole chunks, and from 1 GiB on chunks of eight
// instances.
func upTo(n int64) int64 {
	step := Chunk
	if n > gib {
		step = gib
	}
	return (n + step - 1) / step * step
}

func serverMemory(threads int) int64 { return baseMemory + logBuffer + int64(threads)*perConnection }

// ceilingTmpfs returns the size of the tmpfs: the data and half as much again for what a run adds (page
// splits, undo), the redo log, and room that the disk space gate wants left; 0 where it does not fit beside
// the server. where says so in words.
func ceilingTmpfs(base result.Arm, room Room, pool int64) (size int64, where string) {
	if room.NoTmpfs != "" {
		return 0, "the data on the ordinary volume: " + room.NoTmpfs
	}
	const slack = 768 * mib
	need := room.Data*3/2 + redoBytes(base) + slack
	touched := min(pool, upTo(room.Data*3/2)) // a pool larger than the data stays empty there, and takes no memory
	free := room.Available - ceilingMargin - serverMemory(room.Threads) - int64(poolOverhead*float64(touched))
	if need > free {
		return 0, fmt.Sprintf("the data on the ordinary volume: a tmpfs of %s would not fit in the %s of memory left beside the server", gibText(need), gibText(max(0, free)))
	}
	return need, fmt.Sprintf("the data in memory (a tmpfs of %s)", gibText(need))
}

// redoBytes returns how large the redo log may grow; older versions keep several files.
func redoBytes(arm result.Arm) int64 {
	const standard, files = 128 * mib, 2
	return max(sizeOf(arm, "innodb_redo_log_capacity", standard), files*sizeOf(arm, "innodb_log_file_size", standard/files))
}

// sizeOf returns a size of the arm's: as its server reported it, as it was asked for, else the default.
func sizeOf(arm result.Arm, name string, standard int64) int64 {
	asked := ""
	if i := slices.IndexFunc(arm.Settings, func(s mycnf.Setting) bool { return s.Name == name }); i >= 0 {
		asked = arm.Settings[i].Value
	}
	n, err := mycnf.ParseSize(cmp.Or(arm.Effective[name], asked))
	if err != nil {
		return standard
	}
	return n
}
