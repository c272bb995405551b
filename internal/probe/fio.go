package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"david/internal/account"
	"david/internal/process"
)

// Start starts a command: in a cgroup, where it is one's. nil just starts it.
type Start func(*exec.Cmd) error

// shot holds what one run of fio says. Times are in microseconds; those of syncs are 0 in a run without any.
type shot struct {
	Rate
	cycle          float64 // from one operation's begin to the next one's, in a run at queue depth 1
	syncs          float64
	p50, p99, mean float64 // of a sync
	cpu            float64 // that fio itself used
}

// grace beyond the time that fio was given: it starts, and waits for what it wrote last.
const grace = time.Minute

// filename is the option that names the file.
const filename = "--filename="

// job is one run of fio on a file.
type job struct {
	start Start
	file  string
	way   string        // that is read of what it says: "read" or "write"
	takes time.Duration // as it is told to; without a time, as a slow disk takes
}

// run runs fio and reads what it says. Where david is root fio runs as the servers' user, to whom the file's
// folder has to belong.
func (j job) run(ctx context.Context, args ...string) (s shot, err error) {
	fio, err := exec.LookPath("fio")
	if err != nil {
		return shot{}, ErrNoFio
	}
	a, err := account.Find()
	if err != nil {
		return shot{}, err
	}
	door, err := a.Door(filepath.Dir(j.file))
	if err != nil {
		return shot{}, fmt.Errorf("cannot probe %s: %w", j.file, err)
	}
	defer func() { err = errors.Join(err, door.Close()) }()
	limit := j.takes + grace
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("fio had not ended after %s and was stopped; the disk may hang", limit))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	// A thread and not a process of fio's, which would outlive it when it is killed.
	args = append([]string{"--name=probe", "--thread", "--output-format=json", filename + j.file}, args...)
	cmd := exec.CommandContext(ctx, fio, args...)
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	door.Prepare(cmd)
	for i, arg := range cmd.Args {
		if path, ok := strings.CutPrefix(arg, filename); ok {
			cmd.Args[i] = filename + escape(path)
		}
	}
	return j.wait(ctx, end, cmd, door)
}

// wait starts a prepared fio, and waits for its end. end ends it with a reason.
func (j job) wait(ctx context.Context, end context.CancelCauseFunc, cmd *exec.Cmd, door *account.Door) (shot, error) {
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	start := j.start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	runtime.LockOSThread() // the signal is tied to the thread that forks
	defer runtime.UnlockOSThread()
	if err := start(cmd); err != nil {
		return shot{}, fmt.Errorf("cannot start fio: %w", err)
	}
	go endStopped(ctx, end, cmd.Process.Pid, grace)
	if err := cmd.Wait(); err != nil {
		if cause := context.Cause(ctx); cause != nil { // david ended it
			err = cause
		} else if why := door.Outward(firstSaid(said.String())); why != "" {
			err = fmt.Errorf("%w: %s", err, why)
		}
		return shot{}, fmt.Errorf("cannot probe %s with fio: %w", j.file, err)
	}
	s, err := parseShot(out.Bytes(), j.way)
	s.cpu = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds())
	return s, err
}

// endStopped ends a fio that somebody has stopped (SIGSTOP) and nobody lets go on in time: a slow disk is waited for
// much longer.
func endStopped(ctx context.Context, end context.CancelCauseFunc, pid int, patience time.Duration) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	var since time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-every.C:
			stopped, err := process.Stopped(pid)
			switch {
			case err != nil || !stopped:
				since = time.Time{}
			case since.IsZero():
				since = now
			case now.Sub(since) >= patience:
				end(fmt.Errorf("somebody stopped it (SIGSTOP); david waited for %s, and ended it", patience))
			}
		}
	}
}

// firstSaid is the first line of what fio said, as it says much the same of each operation; and how many follow.
func firstSaid(text string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	if more {
		first += fmt.Sprintf(" (and %d lines more)", strings.Count(rest, "\n")+1)
	}
	return first
}

// escape keeps fio from taking a colon for the end of a file's name.
func escape(path string) string { return strings.ReplaceAll(path, ":", `\:`) }

// parseShot reads fio's JSON (version 3: times in ns, the run's in ms).
func parseShot(out []byte, way string) (shot, error) {
	var doc struct {
		Jobs []map[string]json.RawMessage `json:"jobs"`
	}
	if at := bytes.IndexByte(out, '{'); at > 0 { // what fio remarks comes first
		out = out[at:]
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Jobs) != 1 {
		return shot{}, errors.Join(errors.New("cannot read fio's output: it has no job"), err)
	}
	var r struct {
		IOPS    float64 `json:"iops"`
		Bytes   float64 `json:"bw_bytes"`
		Runtime float64 `json:"runtime"`
		Total   float64 `json:"total_ios"`
	}
	if err := json.Unmarshal(doc.Jobs[0][way], &r); err != nil || !(r.IOPS > 0) || !(r.Bytes > 0) {
		return shot{}, errors.Join(fmt.Errorf("cannot read fio's output: it has no %s IOPS", way), err)
	}
	s := shot{Rate: Rate{r.IOPS, r.Bytes}}
	if r.Total > 0 {
		s.cycle = max(0, 1000*r.Runtime/r.Total)
	}
	return s, s.readSyncs(doc.Jobs[0]["sync"])
}

func (s *shot) readSyncs(part json.RawMessage) error {
	var sync struct {
		Lat struct {
			Mean       float64            `json:"mean"`
			N          float64            `json:"N"`
			Percentile map[string]float64 `json:"percentile"`
		} `json:"lat_ns"`
	}
	if part == nil {
		return nil
	}
	if err := json.Unmarshal(part, &sync); err != nil {
		return fmt.Errorf("cannot read fio's output: its syncs: %w", err)
	}
	if sync.Lat.N < 0 || sync.Lat.Mean < 0 || sync.Lat.Percentile["50.000000"] < 0 || sync.Lat.Percentile["99.000000"] < 0 {
		return errors.New("cannot read fio's output: a sync took less than no time")
	}
	s.syncs, s.mean = sync.Lat.N, sync.Lat.Mean/1000
	s.p50, s.p99 = sync.Lat.Percentile["50.000000"]/1000, sync.Lat.Percentile["99.000000"]/1000
	return nil
}
