// Package result is the record of what david measured, and the store it lives in on disk.
//
// The store is the contract between the stages: experiment writes it, report and every later stage read
// nothing else. One folder per experiment, readable without david:
//
//	experiment.json   what was asked, where, with which versions and arguments
//	arms/NAME.json    each arm's configuration, once
//	trials.jsonl      one complete trial a line, appended and fsynced when it ends
//	points/ID.jsonl   the trial's one-second samples
//	logs/             what sysbench and the server printed, by trial
//	live.jsonl        what is being done, moment by moment, while it is being done
package result

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"david/internal/host"
	"david/internal/mycnf"
)

// Schema is the version of the format of every file in the store. A store of another version is refused.
const Schema = 1

// Experiment is experiment.json: everything that is fixed before the first trial. It never holds a password.
type Experiment struct {
	Schema    int        `json:"schema"`
	ID        string     `json:"id"` // the name of its folder: kind and time, "tune-20250102-150405"
	Kind      Kind       `json:"kind"`
	Created   time.Time  `json:"created"`
	David     string     `json:"david"`    // david's own version
	Sysbench  string     `json:"sysbench"` // "1.0.20"
	Argv      []string   `json:"argv"`     // with secrets taken out
	Target    string     `json:"target"`   // TargetSandbox, TargetRemote, TargetPod, or "node NAME"
	Server    Server     `json:"server"`
	Workloads []Workload `json:"workloads"` // one per thread count
	Host      host.Facts `json:"host"`
	Notes     []string   `json:"notes,omitempty"` // what a reader must know: layout of the data, locks lifted, caveats
	Design    Design     `json:"design,omitzero"`
	// Title says what the experiment is about, where its spec says so.
	Title string `json:"title,omitempty"`
	// Limits says what the machine and the disk under the data were probed to do, within the day before.
	Limits *Limits `json:"limits,omitempty"`
	// Pod is the pod that was measured; nil where the server is none.
	Pod *PodFacts `json:"pod,omitempty"`
	// Nodes are those of client and server where their network is measured in a cluster; nil elsewhere, where they were not seen, and in
	// older records.
	Nodes *Nodes `json:"nodes,omitempty"`
	// Like is the machine that the sandbox was capped to stand in for; nil for none.
	Like *PricedMachine `json:"like,omitempty"`
}

// Quick tells whether the experiment was asked for with --quick: small data and trials of seconds, from which
// nothing is to be concluded. The command line is what every record has of it, the older ones too.
func (e Experiment) Quick() bool {
	return slices.ContainsFunc(e.Argv, func(arg string) bool {
		value, given := strings.CutPrefix(arg, "--quick=")
		on, err := strconv.ParseBool(value)
		return arg == "--quick" || given && err == nil && on
	})
}

// Nodes are the machines that a load in a cluster is spread over.
type Nodes struct {
	Near NodeFacts  `json:"near"`          // the client's
	Far  *NodeFacts `json:"far,omitempty"` // the server's; nil: both are one machine
}

// NodeFacts says what CPUs a node has.
type NodeFacts struct {
	CPUs float64 `json:"cpus"`
	Idle float64 `json:"busy_cpus_without_load"` // what the node did before the load began, its own daemons and other pods
}

// PricedMachine describes an entry of a catalogue of prices, as it was when the experiment began.
type PricedMachine struct {
	Name     string  `json:"name"`
	CPUs     float64 `json:"cpus"`
	USDMonth float64 `json:"usd_month,omitempty"` // 0: not priced in US$
	Source   string  `json:"source"`              // of the price, and its date
	Date     string  `json:"date"`
}

// Design says how the trials of an experiment are laid out: what is needed, with the arms and the workloads,
// to run it again and to go on with it.
type Design struct {
	// Control is the arm the others are compared with; "" where nothing is compared.
	Control string `json:"control,omitempty"`
	// Against names the user's own option file, where a race's control runs with it; "" where it runs with
	// the server's defaults.
	Against string `json:"against,omitempty"`
	// Blocks says how many blocks are run; 0: until Precision is reached or Budget used up.
	Blocks int `json:"blocks,omitempty"`
	// Precision is the half-width of a ratio's 95 % interval to reach: 0.02 is +-2 %.
	Precision float64 `json:"precision,omitempty"`
	Budget    float64 `json:"budget_seconds,omitempty"` // time for all trials, over all sessions
	// Twin tells whether the control runs twice in every block: the two are an A/A pair, and measure the
	// noise.
	Twin bool `json:"twin,omitempty"`
	// SkipNoops leaves out arms of which no effective variable differs from the control's.
	SkipNoops bool `json:"skip_noops,omitempty"`
	// Steady tells whether a trial is warmed up until its checkpoint age has levelled off, not only its
	// throughput.
	Steady bool   `json:"steady,omitempty"`
	Seed   uint64 `json:"seed,omitempty"` // of the random order within blocks
	// MaxSteal is the share of the CPU time that other guests of the host may take before a trial is invalid;
	// 0: the gate's own limit, 40 %.
	MaxSteal float64 `json:"max_steal,omitempty"`
	// Margin says how far from 1 an arm's ratio may be to be equivalent to the control: 0.03 is 3 %; 0: that
	// is not asked.
	Margin float64 `json:"equivalence_margin,omitempty"`
	// Tune says how a tune spends its budget; nil for anything else.
	Tune *TunePlan `json:"tune,omitempty"`
	SLO  *SLO      `json:"slo,omitempty"`
	// Slices says how servers that stay up are loaded in turn; nil: each trial has a fresh server.
	Slices *Slices `json:"slices,omitempty"`
	// Pinned says what must not change between the sessions of one experiment: "kernel", "server binary",
	// "data", ... and their values.
	Pinned map[string]string `json:"pinned,omitempty"`
}

// Slices says how an experiment measures servers that stay up, warm, and frozen while another one is loaded.
type Slices struct {
	Seconds int `json:"seconds"` // of load in a slice
	// Rounds says how many rounds an incarnation of the arms has: a round has one slice of each arm, in
	// random order.
	Rounds int `json:"rounds_per_incarnation"`
	// Incarnations of each arm's server are planned, starts on a fresh clone each: two at least, and
	// not all of them where Precision is reached or Budget used up before.
	Incarnations int `json:"incarnations"`
}

// SLO describes a goal for the latency: that percentile of the transactions takes at most so many ms.
type SLO struct {
	Percentile float64 `json:"percentile"` // 50, 95, 99 or 99.9
	Ms         float64 `json:"ms"`
}

// Caps are limits put on a server to stand in for a smaller machine or volume. 0 means none.
type Caps struct {
	CPUs      float64 `json:"cpus,omitempty"`
	Memory    int64   `json:"memory,omitempty"`    // bytes
	IOPS      int64   `json:"iops,omitempty"`      // operations/s, reads and writes each
	Bandwidth int64   `json:"bandwidth,omitempty"` // bytes/s, reads and writes each
}

// Text names the caps in words; "none" where there are none.
func (c Caps) Text() string {
	var list []string
	add := func(given bool, format string, args ...any) {
		if given {
			list = append(list, fmt.Sprintf(format, args...))
		}
	}
	add(c.CPUs > 0, "%.4g CPUs", c.CPUs)
	add(c.Memory > 0, "%s", host.Size(c.Memory))
	add(c.IOPS > 0, "%d IOPS", c.IOPS)
	add(c.Bandwidth > 0, "%s/s", host.Size(c.Bandwidth))
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}

// Finish holds finish.json, written once when an experiment ends; an experiment without it was interrupted.
type Finish struct {
	Schema      int       `json:"schema"`
	Ended       time.Time `json:"ended"`
	WallSeconds float64   `json:"wall_seconds"` // from the start of the first trial's preparation to the end of the last
	// TemplateSeconds says what the one-time data template took (0 when it was there already); not in
	// WallSeconds.
	TemplateSeconds float64 `json:"golden_seconds"`
	MeasureSeconds  float64 `json:"measure_seconds"` // warming up and measuring
	Utilisation     float64 `json:"utilisation"`     // MeasureSeconds / WallSeconds
	Best            string  `json:"best"`            // tune: the arm that is handed over; "control" when nothing was gained; a search for a rate: a sentence
	// RateSearch says how a search for a rate ended; nil for anything else, and in older records: see
	// SearchEnd.
	RateSearch *RateSearch `json:"rate_search,omitempty"`
	// Cluster says what the cluster counted of the pod and its node over the trials; nil where it could not
	// be read.
	Cluster *ClusterCounters `json:"cluster,omitempty"`
	// Earlier counts the trials that earlier sessions measured, whose time is in no figure here; nil in older
	// records, where the dates have to tell.
	Earlier *int `json:"earlier,omitempty"`
	// Failed says why the experiment ended before its first trial; "" where it has any.
	Failed string `json:"failed,omitempty"`
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

// Workload holds what the load generator does. Durations are in seconds.
type Workload struct {
	Name      string `json:"name"` // oltp_read_write, ..., read-intensive, balanced, write-intensive
	Tables    int    `json:"tables"`
	TableSize int    `json:"table_size"` // rows per table
	Threads   int    `json:"threads"`
	Seconds   int    `json:"seconds"`        // measured time
	Warmup    int    `json:"warmup_seconds"` // before it, not measured; at most, as it ends when throughput has settled
	RandType  string `json:"rand_type"`      // uniform, special, gaussian, pareto
	Database  string `json:"database"`       // the schema; sbtest
	// Rate says how many transactions/s arrive (open loop, Poisson); 0: a closed loop, as many as the threads
	// get done.
	Rate float64 `json:"rate,omitempty"`
}

// Arm describes one configuration taking part in a comparison: arms/NAME.json.
type Arm struct {
	Schema int    `json:"schema"`
	Order  int    `json:"order"` // 1, 2, ...: arms in the order in which they were made; PutArm sets it
	Name   string `json:"name"`  // "control", "memory", "redo", ... ; a file name
	Title  string `json:"title"` // what a reader sees: "buffer pool sized to the memory"
	// Phase is the part of a tune that made the arm: Race, Screen, Search, Prune or Confirm; "" for the
	// control, and outside of a tune.
	Phase Phase `json:"phase,omitempty"`
	// Base is the arm this one was built upon and is compared with; empty for the control.
	Base string `json:"base,omitempty"`
	// Changes are the settings this arm adds to its base; Settings are all of them, base included.
	Changes  []mycnf.Setting `json:"changes"`
	Settings []mycnf.Setting `json:"settings"`
	// Effective holds every system variable as the live server reported it; Diff what differs from the
	// base's.
	Effective map[string]string `json:"effective,omitempty"`
	Diff      []Difference      `json:"diff,omitempty"`
	// Noop tells whether no effective variable differs from the base's: the arm was not run.
	Noop bool `json:"noop,omitempty"`
	// Server is the arm's own where it is not the experiment's.
	Server Server `json:"server,omitzero"`
	// Baseline names what the arm is configured like, as david race --list has it; "" for its own settings or
	// none.
	Baseline string `json:"baseline,omitempty"`
	// Caps are put on this arm's server.
	Caps Caps `json:"caps,omitzero"`
	// ClientCPUs says how many CPUs the load generator is held to while it loads this arm's server; 0: it is
	// not.
	ClientCPUs float64 `json:"client_cpus,omitempty"`
	// Pod says where its server runs as a pod of a cluster; zero where it is a process of david's own.
	Pod Pod `json:"pod,omitzero"`
	// Infeasible is the server's own error line where it would not start with this configuration.
	Infeasible string `json:"infeasible,omitempty"`
	// Ceiling tells whether the arm is unsafe on purpose: an upper bound for the arm it is based upon (see
	// tune.Ceiling). It is compared with nothing else, has no verdict and never wins.
	Ceiling bool `json:"ceiling,omitempty"`
	// Kernel are settings of the machine's kernel that hold while this arm's server starts and is loaded.
	Kernel []KernelSetting `json:"kernel,omitempty"`
	// Tmpfs is the size, in bytes, of the tmpfs that holds its data; 0: they lie where everybody's do.
	Tmpfs int64 `json:"tmpfs_bytes,omitempty"`
	// Layout is what its data lie on, where that is not where everybody's do.
	Layout *Layout `json:"layout,omitempty"`
	// Path is the network path that the load takes to the server, which all arms that have one share; zero:
	// as the experiment's target has it.
	Path Path `json:"path,omitzero"`
	// PathProbe is what was measured of its path alone; nil where it has none, or nothing was.
	PathProbe *PathProbe `json:"path_probe,omitempty"`
}

// Path is a way that a load takes to its server.
type Path struct {
	Kind string `json:"kind"`           // as of david network measure: host, vxlan, ...
	MTU  int    `json:"mtu,omitempty"`  // of the wire between the nodes, in bytes; 0: 1,500
	Rate int64  `json:"rate,omitempty"` // that the wire is held to, in bits/s; 0: to none
	TLS  bool   `json:"tls,omitempty"`
	// Compressed tells whether client and server compress what they send.
	Compressed bool `json:"compressed,omitempty"`
	// CPUs is apart where client and server have half of the CPUs each, together where they share the server's half; "": they
	// run wherever the kernel has them run. ClientCPUs and ServerCPUs are the CPUs' numbers, as in 0,2.
	CPUs       string  `json:"cpus,omitempty"`
	ClientCPUs CPUList `json:"client_cpus,omitempty"`
	ServerCPUs CPUList `json:"server_cpus,omitempty"`
	// Delay is how long each packet is held back, microseconds, to stand in for a distance.
	Delay int64 `json:"delay_us,omitempty"`
}

// CPUList has the numbers of CPUs, as in 0,2: text, so that paths can be compared. "" has none.
type CPUList string

// CPUsOf lists CPUs in the order of their numbers.
func CPUsOf(cpus []int) CPUList {
	var texts []string
	for _, cpu := range slices.Sorted(slices.Values(cpus)) {
		texts = append(texts, strconv.Itoa(cpu))
	}
	return CPUList(strings.Join(texts, ","))
}

// Numbers returns them; an error where the list is none that CPUsOf has made.
func (l CPUList) Numbers() (cpus []int, err error) {
	if l == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(string(l), ",") {
		cpu, err := strconv.Atoi(text)
		if err != nil || cpu < 0 {
			return nil, fmt.Errorf("%q are no CPUs' numbers", string(l))
		}
		cpus = append(cpus, cpu)
	}
	return cpus, nil
}

// Len is how many there are.
func (l CPUList) Len() int {
	if l == "" {
		return 0
	}
	return 1 + strings.Count(string(l), ",")
}

// PathBalancer is the kind of a path that goes by a balancer on the client's node.
const PathBalancer = "balancer"

// PingBytes are the size of a ping-pong's messages: about that of a query, and of the answer of one row. Those of a second
// one are of AnswerBytes, about an answer of a hundred rows. The two tell what a byte costs where a few packets come at a
// time; in a stream hundreds do, and a byte costs a part of that.
const PingBytes, AnswerBytes = 100, 8000

// PathProbe holds what iperf3 and sockperf measured of a path before a server was loaded over it: the medians
// of some runs.
type PathProbe struct {
	Runs        int     `json:"runs"`
	Rate        float64 `json:"bits_per_second"`   // of one TCP stream
	Retransmits float64 `json:"retransmits_per_s"` // TCP segments
	RTT50       float64 `json:"rtt_p50_us"`        // of a request of PingBytes and its answer over TCP, microseconds
	RTT99       float64 `json:"rtt_p99_us"`
	RTTCPU      float64 `json:"rtt_cpu_us"` // CPU time that a round trip takes of both ends and of the kernel's interrupts
	// AnswerRTT and AnswerCPU are as RTT50 and RTTCPU, of AnswerBytes there and back; 0: not measured.
	AnswerRTT float64 `json:"answer_rtt_us,omitempty"`
	AnswerCPU float64 `json:"answer_cpu_us,omitempty"`
	// Beside is what was measured while other work was done on all CPUs; nil: nothing.
	Beside *BesideWork `json:"beside_work,omitempty"`
	// IRQApart tells whether the kernel keeps the time of interrupts apart from that of processes. Where it does not, that time
	// is in the processes' and is not added to it.
	IRQApart bool `json:"irq_time_apart,omitempty"`
	// Partly says that a program on the way, as a balancer, takes CPU time that is not in RTTCPU, and has connections of its
	// own whose retransmits are not counted.
	Partly bool `json:"partly_seen,omitempty"`
	// Far is what the far end takes where it is another machine: RTTCPU, AnswerCPU, and what is taken from other work are the near end's
	// then. nil: one machine, or an older record of a cluster, in which what the far end takes was not seen.
	Far *PathEnd `json:"far_end,omitempty"`
}

// PathEnd is what the far end of a path takes, as PathProbe has it of the near one; of its round trips RTT50 is not told.
type PathEnd struct {
	RTTCPU    float64     `json:"rtt_cpu_us"`
	AnswerCPU float64     `json:"answer_cpu_us,omitempty"`
	Beside    *BesideWork `json:"beside_work,omitempty"`
}

// BesideWork holds round trips of PingBytes, and of AnswerBytes there and back, on a machine whose CPUs are at work.
type BesideWork struct {
	Ping   RoundTrip `json:"ping"`
	Answer RoundTrip `json:"answer"`
}

// RoundTrip is what a round trip takes, in microseconds.
type RoundTrip struct {
	RTT50 float64 `json:"rtt_p50_us"`
	CPU   float64 `json:"cpu_us"` // CPU time of both ends and of the kernel's interrupts
	// Taken is the CPU time that it takes from the work, with what that loses by caches that are not its own afterwards; 0: not seen.
	Taken float64 `json:"taken_us"`
}

// KernelSetting names a setting of the kernel with an arm's value.
type KernelSetting struct {
	Name  string `json:"name"` // as of david kernel plan
	Disk  string `json:"disk,omitempty"`
	Value string `json:"value"`
}

// Pod says how an arm's server runs in a cluster.
type Pod struct {
	QoS         string `json:"qos"` // "Guaranteed", whose requests and limits are the arm's caps, or "BestEffort", without any
	Image       string `json:"image"`
	ImageID     string `json:"image_id,omitempty"` // as the container runtime names it
	Node        string `json:"node"`
	HostNetwork bool   `json:"host_network,omitempty"` // it has the node's network instead of one of its own
	// Neighbour says what takes CPU in bursts on its node while it is loaded; "" for nothing of david's.
	Neighbour string `json:"neighbour,omitempty"`
}

// Difference describes one effective variable that differs between two arms.
type Difference struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Trial describes one measured run of a workload against an arm: a line of trials.jsonl.
type Trial struct {
	Schema int    `json:"schema"`
	ID     string `json:"id"` // hash of what it measures; names its points and logs
	Arm    string `json:"arm"`
	Phase  Phase  `json:"phase,omitempty"` // the part of a tune it belongs to: Race, Screen, Search, Prune or Confirm
	Block  int    `json:"block"`           // 1, 2, ...: the repeat
	Twin   bool   `json:"twin,omitempty"`  // the control's second run in its block: the other half of the A/A pair
	Place  int    `json:"place,omitempty"` // 1, 2, ...: its place in the random order of its block
	// Incarnation says which start of its arm's server a slice was run on: 1, 2, ...; 0: a trial, which has a
	// server of its own. The Block of a slice is its round.
	Incarnation int `json:"incarnation,omitempty"`
	// Session counts the times an experiment in slices was gone on with, from 1: what is measured without a
	// pause on one machine.
	Session int `json:"session,omitempty"`
	// On is the arm whose server ran a slice of a pair in place, made this arm's by SET GLOBAL; "": its own.
	On string `json:"on,omitempty"`
	// Against is the arm that a slice of a tune is compared with in its block; "" for the control's.
	Against  string    `json:"against,omitempty"`
	Workload Workload  `json:"workload"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"`         // measured, as sysbench counted them; warm-up not included
	Prewarm  float64   `json:"prewarm_seconds"` // reading the tables once, before the warm-up under load
	// Warmed says how long the warm-up under load took, in seconds; Settled whether throughput had settled by
	// then.
	Warmed  float64 `json:"warmed_seconds"`
	Settled bool    `json:"settled"`

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
	Points       []Point  `json:"points,omitempty"`  // kept in points/, not in trials.jsonl
	Samples      []Sample `json:"samples,omitempty"` // kept in points/ as well

	// Counters are the server's status counters: last minus first, over the measured run.
	Counters map[string]float64 `json:"counters,omitempty"`
	Costs    Costs              `json:"per_transaction,omitzero"`
	// Wire is the link by which the client reaches the server; nil where it goes by a socket, the link is not
	// known, or the record is older.
	Wire *Wire `json:"wire,omitempty"`
	// ServerThrottled is the share of the measured run for which a CPU quota held the server back, each CPU
	// held back counted, up to 1; nil where the server is not a process of this machine.
	ServerThrottled *float64 `json:"server_throttled,omitempty"`
	// Before and After are what the server owed when the measured run began and ended.
	Before   Debt     `json:"debt_before,omitzero"`
	After    Debt     `json:"debt_after,omitzero"`
	Sampling Sampling `json:"sampling,omitzero"`
	// Profile says where the time of the load's connections went; nil where nothing could be seen.
	Profile *Profile `json:"profile,omitempty"`
	// Disturbance says what the machine did beside the load.
	Disturbance *Disturbance `json:"disturbance,omitempty"`
	// Warnings are doubts that do not make the trial invalid.
	Warnings []Warning `json:"warnings,omitempty"`
	// Clients are those the load was spread over; none where it came from one.
	Clients  []Client `json:"clients,omitempty"`
	Gates    []Gate   `json:"gates"`
	Overhead Overhead `json:"overhead_seconds"`
	// EndedEarly says why the measured run ended before Workload.Seconds: it was hopeless; "" where it did
	// not. Seconds says how many it had. Its figures are those of its seconds; what needs the histogram,
	// which is lost, is 0.
	EndedEarly string `json:"ended_early,omitempty"`
	// Unsafe names the parts of the durability lock this trial ran without.
	Unsafe []string `json:"unsafe,omitempty"`
}

// Wire tells what a link carried while it was measured, whatever it was.
type Wire struct {
	Link string  `json:"link"`
	Rate int64   `json:"bits_per_second,omitempty"` // it carries at most, as a token bucket or a network card says; 0: not known
	In   float64 `json:"in_bits_per_second"`        // to the client
	Out  float64 `json:"out_bits_per_second"`       // from it
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

// Bucket describes one bucket of sysbench's latency histogram: Count transactions took about Ms milliseconds.
type Bucket struct {
	Ms    float64 `json:"ms"`
	Count int64   `json:"count"`
}

// Point describes one second of a trial. Second counts from the start of the warm-up, and on through the
// measured run; those of the warm-up are marked Warm and are not part of the result.
type Point struct {
	Second     int     `json:"second"`
	Warm       bool    `json:"warm,omitempty"`
	TPS        float64 `json:"tps"`
	QPS        float64 `json:"qps"`
	P95        float64 `json:"p95_ms"` // 0 in a second without a completion: a stall
	Errors     float64 `json:"errors_per_s"`
	Reconnects float64 `json:"reconnects_per_s"`
	// Queue says how many transactions wait for a thread and Busy how many are being run, with a rate only.
	Queue int64 `json:"queue,omitempty"`
	Busy  int64 `json:"busy,omitempty"`
}

// Sample describes one second of what was read from the kernel and the server beside the load. Values are
// named with their unit, "host.cpu.user_pct", "disk.write_iops"; docs/measuring.md lists them. A value that
// could not be read is missing.
type Sample struct {
	At     float64            `json:"at"` // seconds since the measured run began; negative while warming up
	Values map[string]float64 `json:"values"`
}

// Costs holds what one transaction took of the machine, from counters over the measured run. A pointer is nil
// where the figure could not be read.
type Costs struct {
	ServerCPU *float64 `json:"server_cpu_us,omitempty"` // microseconds
	ClientCPU *float64 `json:"client_cpu_us,omitempty"`
	// SoftIRQ is the CPU time of the whole machine that the kernel spent on interrupts, packets among them, in
	// microseconds; nil in older records.
	SoftIRQ *float64 `json:"softirq_cpu_us,omitempty"`
	// HostCPU is all CPU time of the machine but what programs used that are neither the server nor the client nor david, in
	// microseconds; nil in older records.
	HostCPU *float64 `json:"host_cpu_us,omitempty"`
	// NearCPU is all CPU time of the client's node in a cluster, and FarCPU of the server's where that is another machine, in microseconds,
	// with what they do without a load (Experiment.Nodes); nil elsewhere, and in older records.
	NearCPU *float64 `json:"near_cpu_us,omitempty"`
	FarCPU  *float64 `json:"far_cpu_us,omitempty"`
	// Network are the bytes that the server counted both ways, those of david's own looking included; nil in older
	// records.
	Network   *float64 `json:"network_bytes,omitempty"`
	Switches  *float64 `json:"context_switches,omitempty"` // of the whole machine
	ReadKB    *float64 `json:"read_kb,omitempty"`          // from the data's device, KiB
	WrittenKB *float64 `json:"written_kb,omitempty"`
	Fsyncs    *float64 `json:"fsyncs,omitempty"` // InnoDB's data and log files, and the binary log's where it is counted
	RedoBytes *float64 `json:"redo_bytes,omitempty"`
	HitRate   *float64 `json:"buffer_pool_hit_rate,omitempty"` // share of page requests met without a read, 0 to 1
}

// Debt is work a server has put off.
type Debt struct {
	CheckpointAge *float64 `json:"checkpoint_age_bytes,omitempty"` // redo not yet covered by flushed pages
	DirtyPages    *float64 `json:"dirty_pages,omitempty"`
	History       *float64 `json:"history_list,omitempty"` // undo logs not purged
}

// Sampling holds what looking cost, while the measured run lasted.
type Sampling struct {
	Samples   int     `json:"samples"`
	DavidCPU  float64 `json:"david_cpu"`  // share of one core that david itself used, sysbench's output included
	ServerCPU float64 `json:"server_cpu"` // share of one core, at most: the time the server took to answer the samples' queries
	// Missing names what could not be read, and why where the server or the kernel said so.
	Missing []string `json:"missing,omitempty"`
}

// Disturbance holds what others took of the machine while a trial or slice was measured, as shares of all its
// CPU time. It is noise: it is recorded and weighs, within wide limits.
type Disturbance struct {
	Steal  float64 `json:"steal"`  // other guests of the host
	Others float64 `json:"others"` // other processes of this machine; 0 where they could not be seen
}

// Gate records a check that must hold before a trial counts.
type Gate struct {
	Name   GateName `json:"name"`
	OK     bool     `json:"ok"`
	Detail string   `json:"detail,omitempty"` // what was seen, with units
}

// Overhead holds what a trial cost besides warming up and measuring, in seconds.
type Overhead struct {
	Reset float64 `json:"reset"` // dropping the old data and cloning the data template
	Start float64 `json:"start"` // until the server answers
	Stop  float64 `json:"stop"`
	Other float64 `json:"other"` // reading variables and counters, counting rows, writing the store
}

// Valid tells whether all gates hold, and names those that do not.
func (t Trial) Valid() (ok bool, failed []string) {
	for _, g := range t.Gates {
		if !g.OK {
			failed = append(failed, string(g.Name)+": "+g.Detail)
		}
	}
	return len(failed) == 0, failed
}

// Took returns all the time the trial cost, in seconds.
func (t Trial) Took() float64 {
	o := t.Overhead
	return t.Prewarm + t.Warmed + t.Seconds + o.Reset + o.Start + o.Stop + o.Other
}
