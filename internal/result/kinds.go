package result

import (
	"encoding/json"
	"strings"
)

// Kind names the command that made an experiment, and so how it is told of.
type Kind string

// The kinds of experiments.
const (
	KindBench      Kind = "bench"
	KindCompare    Kind = "compare"
	KindExperiment Kind = "experiment" // of a specification
	KindStudy      Kind = "study"      // one that david ships
	KindRace       Kind = "race"       // what others would configure, against the control
	KindTune       Kind = "tune"       // the search for the fastest safe configuration
	KindExplain    Kind = "explain"    // confirms or refutes what a trial was explained by
	KindPodTax     Kind = "podtax"     // what Kubernetes costs
	// These have no trials: a server that was killed, and a running server that was changed.
	KindCrash Kind = "crash-test"
	KindLive  Kind = "live-tune"
)

// Where the measured servers ran. Those of podtax ran on a node: "node NAME".
const (
	TargetSandbox = "sandbox"
	TargetRemote  = "remote"
	TargetPod     = "pod"
)

// GateName names a gate. Verdicts hang on it, so nothing looks for the words of a gate's detail.
type GateName string

// The gates.
const (
	GateTransactions GateName = "transactions"
	GateErrors       GateName = "errors"
	GateReconnects   GateName = "reconnects"
	GateServer       GateName = "server" // it ended, or could not be reached, before the trial did
	GateSameServer   GateName = "same server"
	GateSameBinary   GateName = "same binary and data"
	GateSteal        GateName = "steal"
	GateOthers       GateName = "other processes"
	GateClientCPU    GateName = "client CPU"
	GateThrottling   GateName = "CPU throttling"
	GateSwap         GateName = "swap"
	GateClock        GateName = "clock"
	GateCounters     GateName = "counters agree"
	GateRows         GateName = "row counts"
	GateDisk         GateName = "disk space"
	GateDurability   GateName = "durability"
	GateSteady       GateName = "steady state"
	GateClients      GateName = "clients"
	GateQueue        GateName = "queue"
	GatePath         GateName = "network path" // a link of it went down; not listed where none did
)

// WarningKind names what a warning is about.
type WarningKind string

// The kinds of warnings of a trial.
const (
	BorrowedSpeed WarningKind = "borrowed speed" // it ended with more dirty pages to be flushed than it began with
	Disturbed     WarningKind = "disturbed"      // others took much of the machine
	Unsteady      WarningKind = "steady state"   // its throughput moved, where that is no gate
)

// Warning states a doubt about a trial that does not make it invalid. Verdicts look at the kind, readers at
// the text.
type Warning struct {
	Kind WarningKind `json:"kind"`
	Text string      `json:"text"`
}

// String says the warning in one line.
func (w Warning) String() string {
	if w.Kind == "" {
		return w.Text
	}
	return w.Kind.String() + ": " + w.Text
}

// String returns the kind as it is read; stored is what it was called first.
func (k WarningKind) String() string {
	if k == BorrowedSpeed {
		return "dirty pages still to be flushed"
	}
	return string(k)
}

// UnmarshalJSON reads a warning, also one that was stored as the line that String says.
func (w *Warning) UnmarshalJSON(b []byte) error {
	var line string
	if json.Unmarshal(b, &line) == nil {
		kind, text, found := strings.Cut(line, ": ")
		if *w = (Warning{WarningKind(kind), text}); !found {
			*w = Warning{Text: line}
		}
		return nil
	}
	type plain Warning
	return json.Unmarshal(b, (*plain)(w))
}

// Warned tells whether a trial has a warning of that kind.
func (t Trial) Warned(kind WarningKind) bool {
	for _, w := range t.Warnings {
		if w.Kind == kind {
			return true
		}
	}
	return false
}
