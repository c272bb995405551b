package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
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

// run runs one job of fio on a file and reads what it says of one way, "read" or "write".
func run(ctx context.Context, start Start, file, way string, args ...string) (shot, error) {
	fio, err := exec.LookPath("fio")
	if err != nil {
		return shot{}, ErrNoFio
	}
	// A thread and not a process of fio's, which would outlive it when it is killed.
	args = append([]string{"--name=probe", "--thread", "--output-format=json", "--filename=" + escape(file)}, args...)
	cmd := exec.CommandContext(ctx, fio, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if start == nil {
		start = (*exec.Cmd).Start
	}
	runtime.LockOSThread() // the signal is tied to the thread that forks
	defer runtime.UnlockOSThread()
	if err := start(cmd); err != nil {
		return shot{}, fmt.Errorf("cannot start fio: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return shot{}, errors.Join(ctx.Err(), fmt.Errorf("cannot probe %s with fio: %w: %s", file, err, strings.TrimSpace(said.String())))
	}
	s, err := parseShot(out.Bytes(), way)
	s.cpu = float64((cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Microseconds())
	return s, err
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
