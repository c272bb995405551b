package result

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Limits holds what a machine and a device were measured to do at best: what david probe found. The kept
// files lie in $DAVID_HOME/probes.
type Limits struct {
	Schema   int       `json:"schema"`
	Key      string    `json:"key"`      // names the machine, the device and the caps; a file name
	David    string    `json:"david"`    // david's own version
	Measured time.Time `json:"measured"` // when it began
	Seconds  float64   `json:"seconds"`  // how long it took
	Device   Device    `json:"device"`
	Caps     Caps      `json:"caps,omitzero"` // that were in force
	// Syncs are the commit path; none where the device could not be measured.
	Syncs []SyncLimit `json:"syncs,omitempty"`
	IO    []IOLimit   `json:"io,omitempty"`
	// Burst is the long look at random writes, where it was asked for.
	Burst   *Burst  `json:"burst,omitempty"`
	Machine Machine `json:"machine,omitzero"`
	// Notes say what a reader must know: what could not be measured, and what was measured instead.
	Notes []string `json:"notes,omitempty"`
}

// Device says what was probed.
type Device struct {
	Folder     string `json:"folder,omitempty"` // "" for where the data of trials lies
	Layout     string `json:"layout,omitempty"` // how it lies there
	Filesystem string `json:"filesystem"`       // "xfs"
	Source     string `json:"source"`           // what is mounted there: "/dev/vda1"
	Disk       string `json:"disk,omitempty"`   // the whole disk under it, where it can be told
	Direct     bool   `json:"direct_io"`        // false: the page cache had its part in every figure of Limits.IO
	FileBytes  int64  `json:"file_bytes"`       // of the file that was read and written at random
}

// Figure holds a measured number: the median over the rounds, and the least and the most of them.
type Figure struct {
	Value  float64 `json:"value"`
	Low    float64 `json:"low"`
	High   float64 `json:"high"`
	Rounds int     `json:"rounds"`
}

// The ways of writing before a sync.
const (
	Append    = "append"    // the file grows, as the binary log's does: the sync writes metadata too
	Overwrite = "overwrite" // the blocks are there already, as the redo log's are
)

// SyncLimit tells how long one thread waits for fdatasync after a write, in microseconds.
type SyncLimit struct {
	Way   string `json:"way"`   // Append or Overwrite
	Bytes int    `json:"bytes"` // of each write
	P50   Figure `json:"p50_us"`
	P99   Figure `json:"p99_us"`
	Mean  Figure `json:"mean_us"`
	// Cycle from one write's begin to the next one's, in microseconds.
	Cycle Figure `json:"cycle_us"`
	// Writes are the device's write operations for each sync, by the kernel's counters; nil where the disk is
	// not known.
	Writes *Figure `json:"device_writes,omitempty"`
	// KernelCPU are the microseconds of CPU that a sync takes besides the thread's own: of the kernel's
	// threads that write for it, by the machine's idle time, so of whatever else ran as well; nil where it
	// could not be told.
	KernelCPU *Figure `json:"kernel_cpu_us,omitempty"`
}

// The ways of reading and writing.
const (
	RandomRead  = "randread"
	RandomWrite = "randwrite"
	Read        = "read"
	Write       = "write"
)

// IOLimit tells what one kind of I/O gets done.
type IOLimit struct {
	Way   string `json:"way"`   // RandomRead, RandomWrite, Read, Write
	Bytes int    `json:"bytes"` // of each operation
	Depth int    `json:"depth"` // operations under way at a time
	IOPS  Figure `json:"iops"`  // operations/s
	MB    Figure `json:"mb_s"`  // 10^6 bytes/s
}

// Burst describes a long run of random 16 KiB writes, which shows whether a store of burst credits empties.
type Burst struct {
	Seconds int     `json:"seconds"`
	First   float64 `json:"first_iops"` // the mean of the first FirstSeconds
	// FirstSeconds says what the rest is held against: a minute, or half of a run below two.
	FirstSeconds int `json:"first_seconds"`
	// Empty is the second from which throughput stayed below 70 % of the first; 0: it did not fall.
	Empty int     `json:"empty_second,omitempty"`
	Then  float64 `json:"then_iops,omitempty"` // the median from there on
	// Series are the operations/s of each second.
	Series []float64 `json:"series"`
}

// Machine tells how fast the CPUs and the kernel are.
type Machine struct {
	CPUs int `json:"cpus"` // threads used for "all"
	// Integer is a chain of dependent shifts, exclusive ors and multiplications, in 10^6 rounds/s.
	IntegerOne Figure `json:"integer_one_m_s"`
	IntegerAll Figure `json:"integer_all_m_s"`
	// Memory is a chase of pointers through 64 MiB, in 10^6 loads/s: latency, not bandwidth.
	MemoryOne Figure `json:"memory_one_m_s"`
	MemoryAll Figure `json:"memory_all_m_s"`
	// ClockSource says where the kernel gets the time; Clock what asking for it takes, in nanoseconds.
	ClockSource string `json:"clock_source,omitempty"`
	Clock       Figure `json:"clock_ns"`
	// SleepP50 and SleepP99 are by how much a sleep of 100 us is too long, in microseconds.
	SleepP50 Figure `json:"sleep_over_p50_us"`
	SleepP99 Figure `json:"sleep_over_p99_us"`
	// SwitchSame and SwitchOther are half of a round trip through two pipes between two threads, in
	// microseconds: on one CPU, and on two; the latter is 0 where there is only one.
	SwitchSame  Figure `json:"switch_same_cpu_us"`
	SwitchOther Figure `json:"switch_other_cpu_us,omitzero"`
}

// Sync finds how long a sync takes after a write of so many bytes; ok is false where that was not measured.
func (l Limits) Sync(way string, bytes int) (s SyncLimit, ok bool) {
	for _, s := range l.Syncs {
		if s.Way == way && s.Bytes == bytes {
			return s, true
		}
	}
	return s, false
}

// Find finds what a kind of I/O gets done; ok is false where that was not measured.
func (l Limits) Find(way string, depth int) (io IOLimit, ok bool) {
	for _, io := range l.IO {
		if io.Way == way && io.Depth == depth {
			return io, true
		}
	}
	return io, false
}

// limitsPath returns where a home keeps the limits of that key.
func limitsPath(home, key string) string { return filepath.Join(home, "probes", key+".json") }

// KeepLimits keeps limits in david's home; earlier ones of their key are replaced.
func KeepLimits(home string, l Limits) error {
	if !fileName.MatchString(l.Key) {
		return fmt.Errorf("cannot keep limits as %q: that is no file name", l.Key)
	}
	l.Schema = Schema
	path := limitsPath(home, l.Key)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = writeJSON(path, l)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the limits: %w", err)
	}
	return nil
}

// KeptLimits returns the limits kept in david's home under that key; ok is false where there are none.
func KeptLimits(home, key string) (l Limits, ok bool, err error) {
	err = readJSON(filepath.Join(home, "probes"), limitsPath(home, key), &l)
	if errors.Is(err, fs.ErrNotExist) {
		return Limits{}, false, nil
	}
	return l, err == nil, err
}
