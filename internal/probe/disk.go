package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"david/internal/account"
	"david/internal/host"
	"david/internal/result"
)

// Place says where and how a disk is probed.
type Place struct {
	Dir    string        // the folder: of the servers' user, as whom fio runs where david is root
	Device result.Device // what Look found there
	Caps   result.Caps   // that Start and Throttle put into force
	Effort Effort
	Start  Start
	// Throttle puts caps on I/O into force, or lifts them: laying out the file is not measured. nil where
	// there are none.
	Throttle func(on bool) error
	Say      func(string) // told what is being measured; nil for nobody
}

// Effort says how long a probe looks.
type Effort struct {
	Rounds int           // how often each job is run, and each workload of the CPUs
	Job    time.Duration // how long each time
}

// Full keeps a probe below a minute, and Quick below twenty seconds.
func Full() Effort { return Effort{Rounds: 3, Job: time.Second} }

// Quick tells orders of magnitude.
func Quick() Effort { return Effort{Rounds: 1, Job: 300 * time.Millisecond} }

// allRounds says how long all rounds may take: under small caps there is time for fewer.
const allRounds = 44 * time.Second

// ioJob describes one kind of I/O, measured once in each round.
type ioJob struct {
	way   string // of result.SyncLimit or result.IOLimit
	bytes int
	depth int
	sync  bool
}

// jobs returns what is measured, in their order within a round.
func jobs(caps result.Caps) []ioJob {
	large := 1 << 20
	if caps.Bandwidth > 0 { // a block must not take longer than the run
		large = int(min(int64(large), max(16<<10, caps.Bandwidth/64>>12<<12)))
	}
	return []ioJob{
		{way: result.Append, bytes: 512, sync: true}, {way: result.Append, bytes: 4 << 10, sync: true}, {way: result.Append, bytes: 16 << 10, sync: true},
		{way: result.Overwrite, bytes: 4 << 10, sync: true},
		{way: result.RandomRead, bytes: 16 << 10, depth: 1}, {way: result.RandomWrite, bytes: 16 << 10, depth: 1},
		{way: result.RandomRead, bytes: 16 << 10, depth: 32}, {way: result.RandomWrite, bytes: 16 << 10, depth: 32},
		{way: result.Read, bytes: large, depth: 8}, {way: result.Write, bytes: large, depth: 8},
	}
}

// Disk measures syncs and I/O in rounds, so that what drifts shows in the spread, and adds them to l. The
// folder is empty again afterwards.
func (p Place) Disk(ctx context.Context, l *result.Limits) (err error) {
	engine, note, err := engine(ctx)
	if err != nil {
		return err
	}
	file, err := p.layOut(ctx)
	defer func() { err = errors.Join(err, remove(file)) }()
	if err != nil {
		return err
	}
	if err := p.throttle(true); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.throttle(false)) }()
	if note != "" {
		l.Notes = append(l.Notes, note)
	}
	list, began := jobs(p.Caps), time.Now()
	shots := make([][]measured, len(list))
	for r := range p.Effort.Rounds {
		for i, j := range list {
			m, err := p.measure(ctx, j, engine, file, r+1)
			if err != nil {
				return err
			}
			shots[i] = append(shots[i], m)
		}
		if took := time.Since(began); took+took/time.Duration(r+1) > allRounds {
			break
		}
	}
	for i, j := range list {
		gather(l, j, shots[i])
	}
	return nil
}

// measured describes a shot, and what reached the device.
type measured struct {
	shot
	writes float64 // write operations of the device
	seen   bool    // whether they could be counted
	kernel float64 // microseconds of CPU that others than fio used
	told   bool    // whether they could be
}

func (p Place) measure(ctx context.Context, j ioJob, engine, file string, round int) (measured, error) {
	if p.Say != nil {
		p.Say(fmt.Sprintf("round %d of at most %d: %s", round, p.Effort.Rounds, j))
	}
	before, errBefore := deviceWrites(p.Device.Disk)
	busy, errBusy := busyCPU()
	var s shot
	var err error
	if j.sync {
		s, err = p.syncs(ctx, j, file)
	} else {
		s, err = job{p.Start, file, j.side(), p.Effort.Job}.run(ctx, p.ioArgs(j, engine)...)
	}
	after, errAfter := deviceWrites(p.Device.Disk)
	then, errThen := busyCPU()
	// Where a host takes time, the machine's busy time is without it, and fio's own is with it: less than none tells nothing.
	others := then - busy - s.cpu
	return measured{s, after - before, errBefore == nil && errAfter == nil, others, errBusy == nil && errThen == nil && others > 0}, err
}

// String names a job for people.
func (j ioJob) String() string {
	if j.sync {
		return fmt.Sprintf("fdatasync after writes of %d B (%s)", j.bytes, j.way)
	}
	return fmt.Sprintf("%s of %d KiB at queue depth %d", j.way, j.bytes>>10, j.depth)
}

// side returns the part of fio's output that the job is in.
func (j ioJob) side() string {
	if j.way == result.RandomRead || j.way == result.Read {
		return "read"
	}
	return "write"
}

// syncs writes and syncs, one after the other: at the end of a new file, or over the blocks of the one that
// is there.
func (p Place) syncs(ctx context.Context, j ioJob, file string) (s shot, err error) {
	args := []string{"--rw=write", fmt.Sprintf("--bs=%d", j.bytes), "--fdatasync=1", "--ioengine=psync", "--runtime=" + p.Effort.Job.String()}
	if j.way == result.Overwrite {
		return job{p.Start, file, "write", p.Effort.Job}.run(ctx, append(args, "--time_based", fmt.Sprintf("--size=%d", leastFileBytes), "--allow_file_create=0", "--overwrite=1")...)
	}
	file = filepath.Join(p.Dir, "append")
	defer func() { err = errors.Join(err, remove(file)) }()
	// Without fallocate the file grows with each write; it ends where it is as large as there is room.
	return job{p.Start, file, "write", p.Effort.Job}.run(ctx, append(args, fmt.Sprintf("--size=%d", p.Device.FileBytes), "--fallocate=none")...)
}

func (p Place) ioArgs(j ioJob, engine string) []string {
	return []string{"--rw=" + j.way, fmt.Sprintf("--bs=%d", j.bytes), fmt.Sprintf("--iodepth=%d", j.depth), "--ioengine=" + engine,
		fmt.Sprintf("--size=%d", p.Device.FileBytes), "--direct=" + bit(p.Device.Direct), "--norandommap", "--allow_file_create=0",
		"--time_based", "--runtime=" + p.Effort.Job.String()}
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

// slowest bounds the writing of the file: a disk that gets 1 MiB/s done is slower than any.
const slowest = fileBytes >> 20 * time.Second

// layOut writes the file that is read and written at random, before any cap on I/O: reads of blocks never
// written would not reach the disk.
func (p Place) layOut(ctx context.Context) (file string, err error) {
	if p.Say != nil {
		p.Say(fmt.Sprintf("writing a file of %d MiB", p.Device.FileBytes>>20))
	}
	file = filepath.Join(p.Dir, "random")
	_, err = job{nil, file, "write", slowest}.run(ctx, "--rw=write", "--bs=1m", "--ioengine=psync", "--end_fsync=1", "--direct="+bit(p.Device.Direct),
		fmt.Sprintf("--size=%d", p.Device.FileBytes))
	return file, err
}

func (p Place) throttle(on bool) error {
	if p.Throttle == nil {
		return nil
	}
	return p.Throttle(on)
}

// remove removes a file, which need not be there.
func remove(file string) error {
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("cannot remove what was written for the probe: %w", err)
	}
	return nil
}

// engine returns how fio keeps several operations under way: libaio as InnoDB does, else io_uring, else
// posixaio's threads.
func engine(ctx context.Context) (name, note string, err error) {
	fio, err := exec.LookPath("fio")
	if err != nil {
		return "", "", ErrNoFio
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	out, err := account.Look(ctx, filepath.Dir(fio), []string{fio, "--enghelp"}, (*exec.Cmd).Output)
	if err != nil {
		return "", "", fmt.Errorf("cannot ask fio for its engines: %w", err)
	}
	have := strings.Fields(out)
	for _, name := range []string{"libaio", "io_uring", "posixaio"} {
		if !slices.Contains(have, name) {
			continue
		}
		if name != "libaio" {
			note = "this fio has no libaio: I/O was measured with " + name
		}
		return name, note, nil
	}
	return "", "", errors.New("this fio can keep no more than one operation under way: install one with libaio, as distributions' packages have it")
}

// deviceWrites returns the write operations a disk has completed: the fifth field of its stat
// (Documentation/block/stat.rst).
func deviceWrites(disk string) (float64, error) {
	b, err := os.ReadFile(filepath.Join("/sys/block", disk, "stat"))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(b))
	if len(fields) < 5 {
		return 0, fmt.Errorf("cannot read %q as a disk's stat", strings.TrimSpace(string(b)))
	}
	return strconv.ParseFloat(fields[4], 64)
}

// busyCPU returns the time the machine's CPUs were busy since it was started, in microseconds.
func busyCPU() (float64, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	s, err := proc.Stat()
	if err != nil {
		return 0, err
	}
	return 1e6 * host.BusyTime(s.CPUTotal), nil
}

// figure returns the median of some values, with the least and the most.
func figure(values []float64) result.Figure {
	if len(values) == 0 {
		return result.Figure{}
	}
	s := slices.Sorted(slices.Values(values))
	return result.Figure{Value: (s[(len(s)-1)/2] + s[len(s)/2]) / 2, Low: s[0], High: s[len(s)-1], Rounds: len(s)}
}

// over returns the figure of one value of each shot.
func over(shots []measured, value func(measured) float64) result.Figure {
	var values []float64
	for _, m := range shots {
		values = append(values, value(m))
	}
	return figure(values)
}
