// Package result is the record of what david measured, and the store it lives in on disk.
//
// The store is the contract between the stages: experiment writes it, report and every later stage read nothing else. One
// folder per experiment, readable without david:
//
//	experiment.json   what was asked, where, with which versions and arguments
//	arms/NAME.json    each arm's configuration, once
//	trials.jsonl      one complete trial a line, appended and fsynced when it ends
//	points/ID.jsonl   the trial's one-second samples
//	logs/             what sysbench and the server printed, by trial
package result

import (
	"time"

	"david/internal/host"
	"david/internal/mycnf"
)

// Schema is the version of the format of every file in the store. A store of another version is refused.
const Schema = 1

// Experiment is experiment.json: everything that is fixed before the first trial. It never holds a password.
type Experiment struct {
	Schema    int        `json:"schema"`
	ID        string     `json:"id"`   // the name of its folder: kind and time, "tune-20250102-150405"
	Kind      string     `json:"kind"` // "bench" or "tune"
	Created   time.Time  `json:"created"`
	David     string     `json:"david"`    // david's own version
	Sysbench  string     `json:"sysbench"` // "1.0.20"
	Argv      []string   `json:"argv"`     // with secrets taken out
	Target    string     `json:"target"`   // "sandbox" or "remote"
	Server    Server     `json:"server"`
	Workloads []Workload `json:"workloads"` // one per thread count
	Host      host.Facts `json:"host"`
	Notes     []string   `json:"notes,omitempty"` // what a reader must know: layout of the data, locks lifted, caveats
}

// Finish is finish.json, written once when an experiment ends; an experiment without it was interrupted.
type Finish struct {
	Schema      int       `json:"schema"`
	Ended       time.Time `json:"ended"`
	WallSeconds float64   `json:"wall_seconds"` // from the start of the first trial's preparation to the end of the last
	// GoldenSeconds is what the one-time golden copy took (0 when it was there already); not in WallSeconds.
	GoldenSeconds  float64 `json:"golden_seconds"`
	MeasureSeconds float64 `json:"measure_seconds"` // warming up and measuring
	Utilisation    float64 `json:"utilisation"`     // MeasureSeconds / WallSeconds
	Best           string  `json:"best"`            // tune: the arm the ladder ended on; "control" when nothing was gained
}

// Server says which server was measured.
type Server struct {
	Path    string        `json:"path,omitempty"`    // the binary; empty for a remote one
	SHA256  string        `json:"sha256,omitempty"`  // of the binary
	Flavour mycnf.Flavour `json:"flavour"`           // mysql, percona, mariadb
	Version string        `json:"version"`           // as the server reports it: "9.7.4", "10.11.19-MariaDB-..."
	Comment string        `json:"comment,omitempty"` // @@version_comment
	Address string        `json:"address,omitempty"` // remote only: host:port or socket, without user and password
}

// Workload is what the load generator does. Durations are in seconds.
type Workload struct {
	Name      string `json:"name"` // oltp_read_write, ..., read-intensive, balanced, write-intensive
	Tables    int    `json:"tables"`
	TableSize int    `json:"table_size"` // rows per table
	Threads   int    `json:"threads"`
	Seconds   int    `json:"seconds"`        // measured time
	Warmup    int    `json:"warmup_seconds"` // before it, not measured
	RandType  string `json:"rand_type"`      // uniform, special, gaussian, pareto
	Database  string `json:"database"`       // the schema; sbtest
}

// Arm is one configuration taking part in a comparison: arms/NAME.json.
type Arm struct {
	Schema int    `json:"schema"`
	Order  int    `json:"order"` // 1, 2, ...: arms in the order in which they were made; PutArm sets it
	Name   string `json:"name"`  // "control", "memory", "redo", ... ; a file name
	Title  string `json:"title"` // what a reader sees: "buffer pool sized to the memory"
	// Base is the arm this one was built upon and is compared with (empty for the control). It is the step before that was
	// kept, so a step that was rejected is nobody's base.
	Base string `json:"base,omitempty"`
	// Changes are the settings this arm adds to its base; Settings are all of them, base included.
	Changes  []mycnf.Setting `json:"changes"`
	Settings []mycnf.Setting `json:"settings"`
	// Effective holds every system variable as the live server reported it; Diff what differs from the base's.
	Effective map[string]string `json:"effective,omitempty"`
	Diff      []Difference      `json:"diff,omitempty"`
	// Noop is true when no effective variable differs from the base's: the arm was not run.
	Noop bool `json:"noop,omitempty"`
	// Infeasible is the server's own error line where it would not start with this configuration.
	Infeasible string `json:"infeasible,omitempty"`
}

// Difference is one effective variable that differs between two arms.
type Difference struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Trial is one measured run of a workload against an arm: a line of trials.jsonl.
type Trial struct {
	Schema   int       `json:"schema"`
	ID       string    `json:"id"` // hash of what it measures; names its points and logs
	Arm      string    `json:"arm"`
	Block    int       `json:"block"` // 1, 2, ...: the repeat
	Workload Workload  `json:"workload"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`         // measured, as sysbench counted them; warm-up not included
	Prewarm  float64   `json:"prewarm_seconds"` // reading the tables once, before the warm-up under load

	TPS          float64  `json:"tps"` // transactions/s
	QPS          float64  `json:"qps"` // queries/s
	Latency      Latency  `json:"latency_ms"`
	Transactions int64    `json:"transactions"`
	Queries      int64    `json:"queries"`
	Errors       int64    `json:"errors"` // deadlocks and lock timeouts, which sysbench ignores and counts
	Reconnects   int64    `json:"reconnects"`
	StdDevTPS    float64  `json:"tps_stddev"` // over the one-second points
	Stalls       int      `json:"stalls"`     // seconds without one completion
	Histogram    []Bucket `json:"histogram,omitempty"`
	Points       []Point  `json:"points,omitempty"` // kept in points/, not in trials.jsonl

	// Counters are the server's status counters: last minus first, over warm-up and measurement.
	Counters map[string]float64 `json:"counters,omitempty"`
	Gates    []Gate             `json:"gates"`
	Overhead Overhead           `json:"overhead_seconds"`
	// Unsafe names the parts of the durability lock this trial ran without.
	Unsafe []string `json:"unsafe,omitempty"`
}

// Latency holds a trial's transaction latencies in ms. P50, P95 and P99 come from the histogram.
type Latency struct {
	Min float64 `json:"min"`
	Avg float64 `json:"avg"`
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Bucket is one bucket of sysbench's latency histogram: Count transactions took about Ms milliseconds.
type Bucket struct {
	Ms    float64 `json:"ms"`
	Count int64   `json:"count"`
}

// Point is one second of a trial. Second counts from the start of the threads; those up to the workload's Warmup are
// marked Warm and are not part of the result.
type Point struct {
	Second     int     `json:"second"`
	Warm       bool    `json:"warm,omitempty"`
	TPS        float64 `json:"tps"`
	QPS        float64 `json:"qps"`
	P95        float64 `json:"p95_ms"` // 0 in a second without a completion: a stall
	Errors     float64 `json:"errors_per_s"`
	Reconnects float64 `json:"reconnects_per_s"`
}

// Gate is a check that must hold before a trial counts.
type Gate struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"` // what was seen, with units
}

// Overhead is what a trial cost besides warming up and measuring, in seconds.
type Overhead struct {
	Reset float64 `json:"reset"` // dropping the old data and cloning the golden copy
	Start float64 `json:"start"` // until the server answers
	Stop  float64 `json:"stop"`
	Other float64 `json:"other"` // reading variables and counters, counting rows, writing the store
}

// Valid tells whether all gates hold, and names those that do not.
func (t Trial) Valid() (ok bool, failed []string) {
	for _, g := range t.Gates {
		if !g.OK {
			failed = append(failed, g.Name+": "+g.Detail)
		}
	}
	return len(failed) == 0, failed
}
