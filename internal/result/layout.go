package result

import (
	"fmt"
	"strings"
)

// Layout says what an arm's data lie on: volumes that david puts together for it, and takes apart again.
type Layout struct {
	Name    string `json:"name"`           // a file name, "stripe4", "one-ext4"
	Kind    string `json:"kind"`           // "one", "stripe", "raid10", ..., as of david storage plan
	Volumes int    `json:"volumes"`        // 1, 2, ...
	Tool    string `json:"tool,omitempty"` // what puts them together: "btrfs"; "" for one volume
	// Filesystem is what the server sees, Mount how it is mounted: "noatime,nodatacow".
	Filesystem string `json:"filesystem"`
	Mount      string `json:"mount_options,omitempty"`
	// Scheduler and ReadAheadKB hold for each volume; "" as the kernel has them.
	Scheduler   string `json:"scheduler,omitempty"`
	ReadAheadKB string `json:"read_ahead_kb,omitempty"`
	// RecordSize is that of ZFS's records, as "128K"; "": 16K, a page of InnoDB's.
	RecordSize string `json:"recordsize,omitempty"`
	Bytes      int64  `json:"volume_bytes"` // of each volume
	// Disks are the real ones that are asked for; none: files behind loop devices stand in for volumes.
	Disks []string `json:"disks,omitempty"`
	// Ceph, where not nil, is where the one volume is: an image of a pool, that is made for it and removed.
	Ceph *CephPool `json:"ceph,omitempty"`
	// Devices are the block devices that it was built of: "loop3". Each session has its own.
	Devices []string `json:"devices,omitempty"`
	// Fio is what fio got out of it, beside the other layouts of its experiment.
	Fio []FioRate `json:"fio,omitempty"`
}

// CephPool names a pool, and the configuration of its cluster.
type CephPool struct {
	Conf string `json:"conf"`
	Pool string `json:"pool"`
}

// FioRate holds how many operations a second fio got done of one kind.
type FioRate struct {
	Way   string `json:"way"`             // RandomRead or RandomWrite
	Bytes int    `json:"bytes"`           // of each operation
	Sync  bool   `json:"fsync,omitempty"` // after each write
	// Unsynced tells of writes that waited in memory until the filesystem wrote them.
	Unsynced bool `json:"unsynced,omitempty"`
	// IOPS has one figure for each round, in their order: those of one round, of all layouts, are neighbours in
	// time.
	IOPS []float64 `json:"iops"`
}

// Named returns the layout's name; "" where the data lie where everybody's do.
func (l *Layout) Named() string {
	if l == nil {
		return ""
	}
	return l.Name
}

// Asked returns the layout as it was asked for, without what one session made of it; nil for nil.
func (l *Layout) Asked() *Layout {
	if l == nil {
		return nil
	}
	asked := *l
	asked.Devices, asked.Fio = nil, nil
	return &asked
}

// Text says in words what it is: "stripe of 4 volumes, btrfs, noatime,nodatacow".
func (l Layout) Text() string {
	parts := []string{map[string]string{"one": "one volume", "stripe": "stripe of %d volumes", "raid10": "RAID 10 of %d volumes", "ceph-rbd": "an RBD image of a Ceph pool, by rbd-fuse"}[l.Kind]}
	if parts[0] == "" {
		parts[0] = l.Kind + " of %d volumes"
	}
	if strings.Contains(parts[0], "%d") {
		parts[0] = fmt.Sprintf(parts[0], l.Volumes)
	}
	if l.Tool != "" && l.Tool != l.Filesystem {
		parts = append(parts, l.Tool)
	}
	parts = append(parts, l.Filesystem)
	for _, text := range []string{l.Mount, prefixed("scheduler ", l.Scheduler), prefixed("read-ahead KiB ", l.ReadAheadKB), prefixed("recordsize ", l.RecordSize)} {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

func prefixed(before, text string) string {
	if text == "" {
		return ""
	}
	return before + text
}

// Rate finds what fio got of one kind, unsynced writes left out; ok is false where that was not measured.
func (l *Layout) Rate(way string, bytes int, sync bool) (r FioRate, ok bool) {
	if l == nil {
		return r, false
	}
	for _, r := range l.Fio {
		if r.Way == way && r.Bytes == bytes && r.Sync == sync && !r.Unsynced {
			return r, true
		}
	}
	return r, false
}
