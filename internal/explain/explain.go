// Package explain says why a trial was as fast as it was: from the record of a measured run to a short list
// of causes, most costly first, each with its evidence, what relieves it, and the experiment that would show
// whether it is right. explain is pure: it runs nothing and reads no clock.
//
// The time of the connections is divided. In a closed loop N connections measured for T seconds have N x T
// connection-seconds, which is the number of transactions times their mean latency, so a share of the one is
// a share of the other. It is divided twice:
//
//	trial -> symptoms (what connections did: ran, read, waited for a lock) -> causes (who is to blame) -> findings
//
// Symptoms come from the kernel's exact counts of the time threads ran and waited for a CPU, from InnoDB's
// exact count of the time spent waiting for row locks, and for the rest from looks at what the connections
// were doing. Causes follow from the symptoms by one rule: where a device or the CPUs are at their limit,
// everybody who waits for them waits because of those who use them up, in proportion to their use; elsewhere
// a wait has its own cause. What no rule covers is unexplained, and shares with "unexplained" add up to 1.
// docs/explain.md has the model and its limits.
package explain

import (
	"cmp"
	"slices"
	"strings"

	"david/internal/advice"
	"david/internal/host"
	"david/internal/result"
)

// Input holds what a trial is explained from. Only Trial must be there; what else is missing is named in the
// explanation.
type Input struct {
	Experiment string // its ID, for the reader
	Arm        result.Arm
	Server     result.Server
	Trial      result.Trial // with its points and samples
	Host       host.Facts
	// Probed says what david probe found of the machine and the data's device; nil where it was not measured.
	// Limits, where they are zero, are taken from it.
	Probed *result.Limits
	Limits Limits
}

// Limits holds what the data's device was measured to do at best. 0 where it was not.
type Limits struct {
	ReadIOPS, WriteIOPS float64 // operations/s
	Bandwidth           float64 // bytes/s, reads and writes each
}

// Explanation tells where the time of a trial's transactions went, and why. Its shares are of the
// connections' time.
type Explanation struct {
	Experiment   string  `json:"experiment,omitempty"`
	Trial        string  `json:"trial"`
	Arm          string  `json:"arm"`
	Block        int     `json:"block"`
	Threads      int     `json:"threads"`
	TPS          float64 `json:"tps"`
	Transactions int64   `json:"transactions"`
	// Seconds is the time that is divided, in connection-seconds, and Ms what of it each transaction took.
	Seconds float64 `json:"connection_seconds"`
	Ms      float64 `json:"ms_per_transaction"`
	// Findings are the causes, most costly first. Their shares and Unexplained add up to 1.
	Findings    []Finding `json:"findings"`
	Unexplained float64   `json:"unexplained"`
	// Unclear says what is in Unexplained, where that was seen.
	Unclear []string `json:"unclear,omitempty"`
	// Symptoms say what the connections did, most costly first; they add up to 1, "unexplained" included.
	Symptoms   []Share     `json:"symptoms"`
	Statements []Statement `json:"statements,omitempty"`
	// Predicted is the commit-path model's throughput, from the probed limits; nil without them.
	Predicted *Prediction `json:"predicted,omitempty"`
	// Missing names what could not be seen.
	Missing []string `json:"missing,omitempty"`
	// Warnings are gates that failed, the trial's own, and what of the findings is not certain.
	Warnings []string `json:"warnings,omitempty"`
}

// Finding describes one cause of the time a transaction takes.
type Finding struct {
	Cause    Cause    `json:"cause"`
	Share    float64  `json:"share"`              // 0 to 1
	Supposed bool     `json:"supposed,omitempty"` // the share was not found, but is asked about
	Ms       float64  `json:"ms_per_transaction"`
	Evidence []string `json:"evidence"`
	Relief   string   `json:"relief"` // the knob or the purchase
	// Advice is what of the adviser's findings may relieve the cause.
	Advice  []advice.Finding `json:"advice,omitempty"`
	Confirm Confirm          `json:"confirm"`
}

// Share gives one symptom its part.
type Share struct {
	Symptom Symptom `json:"symptom"`
	Share   float64 `json:"share"` // 0 to 1
	Ms      float64 `json:"ms_per_transaction"`
	// Exact is true for what the kernel or InnoDB counted, false for what was estimated from looks.
	Exact bool `json:"exact"`
}

// Statement holds what one kind of statement took of the connections' time.
type Statement struct {
	Text  string  `json:"text"`
	Share float64 `json:"share"`           // 0 to 1
	Count float64 `json:"per_transaction"` // executions a transaction
	Ms    float64 `json:"ms"`              // each
	Lock  float64 `json:"lock_share"`      // of its own time, 0 to 1
	Rows  float64 `json:"rows_examined"`   // each
}

// Explain divides the time of a trial's connections and says why it went there.
func Explain(in Input) Explanation {
	t := newTrial(in)
	found := t.findings(t.causes())
	return Explanation{
		Experiment: in.Experiment, Trial: t.Trial.ID, Arm: t.Trial.Arm, Block: t.Trial.Block, Threads: t.Trial.Workload.Threads,
		TPS: t.Trial.TPS, Transactions: t.Trial.Transactions, Seconds: t.total, Ms: t.ms(1),
		Findings: found, Unexplained: t.did[Unexplained], Unclear: t.looks.unclear(), Symptoms: t.shares(),
		Statements: t.statements(), Predicted: t.predicted(), Missing: t.missing(), Warnings: slices.Concat(t.warnings(), tied(found), t.waiting(found)),
	}
}

// tie sets by how much of the time two causes must differ for one of them to be the first for sure.
const tie = 0.05

// tied says so where the first cause might be another one in the next run.
func tied(list []Finding) []string {
	if len(list) < 2 || list[0].Share-list[1].Share >= tie {
		return nil
	}
	return []string{say("%s and %s have about the same share: which of them comes first can change from run to run", list[0].Cause, list[1].Cause)}
}

// shares returns the symptoms, most costly first, unexplained last.
func (t dividedTrial) shares() (list []Share) {
	for _, s := range symptoms() {
		if share := t.did[s]; share > 0 || s == Unexplained {
			list = append(list, Share{Symptom: s, Share: share, Ms: t.ms(share), Exact: t.exact(s)})
		}
	}
	last := func(s Symptom) int {
		if s == Unexplained {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(x, y Share) int {
		return cmp.Or(cmp.Compare(last(x.Symptom), last(y.Symptom)), cmp.Compare(y.Share, x.Share))
	})
	return list
}

// statements returns the digests, most costly first.
func (t dividedTrial) statements() (list []Statement) {
	if t.Trial.Profile == nil || t.total <= 0 || t.Trial.Transactions <= 0 {
		return nil
	}
	total := 0.0 // the statements' own, where that is more: they are counted from a little before the trial to a little after it
	for _, s := range t.Trial.Profile.Statements {
		total += s.Seconds
	}
	total = max(total, t.total)
	for _, s := range t.Trial.Profile.Statements {
		if s.Count <= 0 {
			continue
		}
		n := float64(s.Count)
		list = append(list, Statement{Text: s.Text, Share: s.Seconds / total, Count: n / float64(t.Trial.Transactions),
			Ms: 1000 * s.Seconds / n, Lock: ratio(s.Lock, s.Seconds), Rows: float64(s.Examined) / n})
	}
	slices.SortStableFunc(list, func(x, y Statement) int { return cmp.Compare(y.Share, x.Share) })
	return list
}

// missing names what could not be seen, the profile's own list first.
func (t dividedTrial) missing() (list []string) {
	p := t.Trial.Profile
	if p == nil {
		return append(list, "no profile: what the connections did was not looked at")
	}
	list = append(list, p.Missing...)
	if p.Looks == 0 {
		list = append(list, "no looks at the connections: waits other than for a CPU cannot be told apart")
	}
	if _, ok := t.connections(); !ok {
		list = append(list, "CPU of the server's connection threads: /proc was not read, so running and waiting for a CPU are not told apart")
	}
	if p.Client == (result.Threads{}) {
		list = append(list, "CPU of the load generator: it is not told from the way between it and the server")
	}
	if len(p.Statements) == 0 {
		list = append(list, "statements: performance_schema is off or has no digests")
	}
	return append(list, t.missingInputs()...)
}

// missingInputs names what is missing besides the profile.
func (t dividedTrial) missingInputs() (list []string) {
	if len(t.Trial.Counters) == 0 {
		list = append(list, "the server's counters")
	}
	if _, ok := t.mean("disk.write_iops"); !ok {
		list = append(list, "the data's device: whether it is at its limit is not known")
	}
	if far := t.Server.Address != "" || t.Arm.Path.Kind != ""; far && t.networked() && t.wire.limit == 0 && t.did[Between] >= tie {
		list = append(list, "what the way to the server can carry: network bandwidth is not told from round trips")
	}
	if t.redoLimit() == 0 {
		list = append(list, "the redo log's size: whether it is full is not known")
	}
	if t.Trial.Workload.Rate > 0 && t.idle() == 0 {
		list = append(list, "how many connections were at work: the load has a rate, and idle connections count as waiting for the client")
	}
	return list
}

// warnings returns the gates that failed, which may be evidence, and the trial's own doubts.
func (t dividedTrial) warnings() (list []string) {
	if len(t.Trial.Unsafe) > 0 {
		list = append(list, "it was measured without all durability, so commits cost less than they would: "+strings.Join(t.Trial.Unsafe, "; "))
	}
	if _, failed := t.Trial.Valid(); len(failed) > 0 {
		for _, f := range failed {
			list = append(list, "the trial does not count: "+f)
		}
	}
	for _, w := range t.Trial.Warnings {
		list = append(list, w.String())
	}
	return list
}
