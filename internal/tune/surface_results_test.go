//go:build results

package tune

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
	"david/internal/search"
	"david/internal/stats"
)

const (
	surfaceRaw       = "../../results/surface/trials.jsonl"
	surfaceRecording = "../search/testdata/mysql-9.7-rw-iops5000-%s.jsonl" // the david that measured it
	surfaceBatch     = 10                                                  // points measured beside the same control
	surfaceAbout     = "MySQL 9.7.4, 2 CPUs, 23.5 GiB of memory, 5000 IOPS; oltp_read_write, 10 tables of 250000 rows, 4 threads, 6 s a trial after 3 s of warm-up; points drawn at random"
)

// surfaceDefaults say what MySQL 9.7 has where nothing is set (manual, Server System Variables), which is
// where the surface's space begins.
var surfaceDefaults = map[string]string{"innodb_buffer_pool_size": "134217728", "innodb_redo_log_capacity": "104857600", "innodb_log_buffer_size": "67108864", "innodb_io_capacity": "10000",
	"binlog_group_commit_sync_delay": "0", "innodb_lru_scan_depth": "1024", "innodb_thread_concurrency": "0", "innodb_max_dirty_pages_pct_lwm": "10"}

// surfaceTrial describes one on record: At is nil for the control.
type surfaceTrial struct {
	Batch      int               `json:"batch"`
	David      string            `json:"david"`
	At         map[string]string `json:"at,omitempty"`
	TPS        float64           `json:"tps,omitempty"`
	Infeasible string            `json:"infeasible,omitempty"`
}

// TestResultsSurface measures points of what a search moves under the load of the cell rw-iops5000-4t, on
// less data, and writes the recording that searches are measured on. It goes on behind what results/surface
// holds, batch by batch, until DAVID_POINTS (300) are there: 18 s a point. A recording is of the batches of
// one david, which stands for the host it ran on: beside a control that waits for the cap, the points that
// hold all data make as many times its throughput as the host's CPUs allow (2.4 on one, 3.5 on another).
func TestResultsSurface(t *testing.T) {
	f := surfaceField(t)
	trials, err := readSurface()
	if err != nil {
		t.Fatal(err)
	}
	wanted := 300
	if n, err := strconv.Atoi(os.Getenv("DAVID_POINTS")); err == nil {
		wanted = n
	}
	for batch := 1; (batch-1)*surfaceBatch < wanted; batch++ {
		if slices.ContainsFunc(trials, func(x surfaceTrial) bool { return x.Batch == batch }) {
			continue
		}
		more := measureSurface(t, f, batch)
		trials = append(trials, more...)
		if err := errors.Join(appendSurface(more), writeRecordings(f, trials)); err != nil {
			t.Fatal(err)
		}
	}
}

// surfaceField returns the space that a tune would search from the server's defaults where nothing were known
// of its groups, on a machine that is fixed, so that all sessions measure the same space.
func surfaceField(t *testing.T) field {
	p := rules.Problem{Flavour: mycnf.MySQL, Version: version(t, "9.7.4"), CPUs: 2, Memory: 47 * gib / 2, FreeDisk: 64 * gib, WriteIOPS: 5000, PageSize: 16 << 10, Threads: 4, Tables: 10, Seed: 1}
	f, ok := fieldAround(p, result.Arm{Name: stats.Control, Effective: surfaceDefaults}, nil, func(string) float64 { return 1 })
	if !ok {
		t.Fatal("there is nothing to search")
	}
	return f
}

// TestResultsSurfaceRecordings writes the recordings of what is measured already.
func TestResultsSurfaceRecordings(t *testing.T) {
	trials, err := readSurface()
	if err := errors.Join(err, writeRecordings(surfaceField(t), trials)); err != nil {
		t.Fatal(err)
	}
}

// batchPoints draws a batch's points, each level of a knob as probable as the others, from those that are
// safe.
func batchPoints(f field, batch int) (points []search.Point) {
	rng := rand.New(rand.NewPCG(uint64(batch), 97))
	for len(points) < surfaceBatch {
		at := make(search.Point, len(f.knobs))
		for i, k := range f.knobs {
			at[i] = rng.IntN(len(k.Levels))
		}
		if f.space.Feasible(at) && !slices.Equal(at, f.space.Start) {
			points = append(points, at)
		}
	}
	return points
}

// measureSurface runs a batch, each trial on a fresh copy of the data, between two of the control.
func measureSurface(t *testing.T, f field, batch int) (list []surfaceTrial) {
	for _, at := range slices.Concat([]search.Point{nil}, batchPoints(f, batch), []search.Point{nil}) {
		x := surfaceTrial{Batch: batch}
		var set []string
		if at != nil {
			x.At = f.space.Values(at)
			for _, s := range f.settings(at) {
				set = append(set, "--set", s.Name+"="+s.Value)
			}
		}
		d, refused := benchDavid(t, set...)
		switch {
		case refused != "" && at == nil:
			t.Fatalf("the control does not run: %s", refused)
		case refused != "":
			x.Infeasible = refused
		case at == nil:
			checkDefaults(t, d.Arms[0])
		}
		if refused == "" {
			x.David, x.TPS = d.Experiment.David, d.Trials[0].TPS
		}
		if refused != "" || usable(d.Trials[0]) {
			list = append(list, x)
		}
	}
	return list
}

func checkDefaults(t *testing.T, control result.Arm) {
	for name, want := range surfaceDefaults {
		if got := control.Effective[name]; mycnf.MatchValues(name, want, got) != mycnf.Same {
			t.Fatalf("the server's %s is %q, not %q", name, got, want)
		}
	}
}

type surfaceDocument struct {
	Experiment result.Experiment `json:"experiment"`
	Arms       []result.Arm      `json:"arms"`
	Trials     []result.Trial    `json:"trials"`
}

// targetExit is david's exit code where a server does not start or ends.
const targetExit = 4

// benchDavid runs one trial with bin/david; a server that does not run is refused with david's reason. A
// failed gate is an exit code, and the trial is there.
func benchDavid(t *testing.T, set ...string) (d surfaceDocument, refused string) {
	args := []string{"bench", "--json", "--fresh", "--server", "mysql", "--iops", "5000", "--tables", "10", "--table-size", "250000", "--threads", "4", "--time", "6s", "--warmup", "3s"}
	cmd := exec.Command("../../bin/david", append(args, set...)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if json.Unmarshal(out, &d) == nil && len(d.Trials) == 1 {
		return d, ""
	}
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != targetExit {
		t.Fatalf("david bench printed no trial: %v\n%s", err, &said)
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	return d, lines[len(lines)-1]
}

func readSurface() (trials []surfaceTrial, err error) {
	text, err := os.ReadFile(surfaceRaw)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range bytes.Lines(text) {
		var x surfaceTrial
		if err := json.Unmarshal(line, &x); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", surfaceRaw, err)
		}
		trials = append(trials, x)
	}
	return trials, err
}

func appendSurface(trials []surfaceTrial) error {
	if err := os.MkdirAll(filepath.Dir(surfaceRaw), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(surfaceRaw, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	out := json.NewEncoder(file)
	for _, x := range trials {
		err = errors.Join(err, out.Encode(x))
	}
	return errors.Join(err, file.Close())
}

// writeRecordings writes a recording of each david's batches.
func writeRecordings(f field, trials []surfaceTrial) (err error) {
	own := map[string][]surfaceTrial{}
	for _, x := range trials {
		i := slices.IndexFunc(trials, func(c surfaceTrial) bool { return c.Batch == x.Batch && c.At == nil })
		if i >= 0 {
			own[trials[i].David] = append(own[trials[i].David], x)
		}
	}
	for david, batches := range own {
		err = errors.Join(err, writeRecording(f, batches, fmt.Sprintf(surfaceRecording, david)))
	}
	return err
}

// writeRecording makes observations of the trials: each against the mean of its batch's control and twin,
// with the standard error that all pairs of control and twin tell together.
func writeRecording(f field, trials []surfaceTrial, to string) error {
	controls := map[int][]float64{}
	for _, x := range trials {
		if x.At == nil {
			controls[x.Batch] = append(controls[x.Batch], math.Log(x.TPS))
		}
	}
	variance, pairs := 0.0, 0.0
	for _, logs := range controls {
		if len(logs) == 2 {
			variance += (logs[0] - logs[1]) * (logs[0] - logs[1]) / 2
			pairs++
		}
	}
	if pairs == 0 {
		return errors.New("no batch has its control and twin: the noise is not known")
	}
	variance /= pairs
	r := search.Recording{About: surfaceAbout, Space: f.space}
	r.Space.Feasible = nil
	for _, x := range trials {
		own := controls[x.Batch]
		if x.At == nil || len(own) == 0 {
			continue
		}
		at, err := f.space.Point(x.At)
		if err != nil {
			return err
		}
		o := search.Observation{Point: at, Against: f.space.Start, Infeasible: x.Infeasible}
		if x.Infeasible == "" {
			o.LogRatio, o.SE, o.Reference = math.Log(x.TPS)-stats.Mean(own), math.Sqrt(variance*(1+1/float64(len(own)))), x.Batch
		}
		r.Observations = append(r.Observations, o)
	}
	var b bytes.Buffer
	if err := r.Write(&b); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, b.Bytes(), 0o644)
}
