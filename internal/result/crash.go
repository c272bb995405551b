package result

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// CrashTest holds crash.json: a server that was killed under load again and again, and what was there after
// each recovery.
type CrashTest struct {
	Schema  int    `json:"schema"`
	Server  Server `json:"server"`
	Threads int    `json:"threads"` // connections that write
	Seed    uint64 `json:"seed"`    // of the moments of the kills and of what is written
	// Kills says how many times the server was killed and started again on the data it left.
	Kills int `json:"kills"`
	// Acknowledged says how many transactions the server had said to be committed, over all kills; Lost how
	// many of these were not there after the recovery that followed.
	Acknowledged int64 `json:"acknowledged"`
	Lost         int64 `json:"lost"`
	// Late says how many were not right when the server answered first, and were half a second later, the Late of Rounds summed up.
	Late int64 `json:"late,omitempty"`
	// Damaged says how many things were otherwise wrong, the kinds of Kill.Damage summed up.
	Damaged    int64      `json:"damaged"`
	RecoveryMs RecoveryMs `json:"recovery_ms"`
	LimitMs    float64    `json:"recovery_limit_ms"`
	// Proved tells whether every acknowledged transaction was there, whole and once, the binary log agreed,
	// and every recovery kept the limit. Verdict says it in words: "proved", "lost 7 of 1300", ...
	Proved  bool   `json:"proved"`
	Verdict string `json:"verdict"`
	// Failed says how the server failed to come back, in its own words; "" where it always did.
	Failed string `json:"failed,omitempty"`
	// Log is "" where the binary log was held against the tables, else why it was not.
	Log string `json:"binary_log_not_compared,omitempty"`
	// Unlocked are the members of the durability lock that did not hold in this run, as it was asked for,
	// each with what can be lost.
	Unlocked []string `json:"unlocked,omitempty"`
	Notes    []string `json:"notes"` // what a kill cannot show
	// Power is of a test that cuts the power of the server's disk instead of killing the server: Kills counts
	// the cuts, and each of Rounds is one, on its own. Nil for kills.
	Power  *Power `json:"power,omitempty"`
	Rounds []Kill `json:"rounds"`
}

// Power tells of the disk whose power was cut, and sums its cuts up.
type Power struct {
	Filesystem string `json:"filesystem"`
	// Cache is what the disk does to writes until they are durable: volatile, protected, or lying; of a lying
	// one losses are expected.
	Cache        string `json:"disk_cache"`
	Writes       int    `json:"writes"` // to the disk under load
	Flushes      int    `json:"flushes"`
	FlushPoints  int    `json:"flush_points,omitempty"` // flushes before which something was written: where a cut can be at a flush
	Every        bool   `json:"every_flush,omitempty"`  // it was cut before each of them in turn, before the last ones where there were fewer cuts
	SchemaSteps  int64  `json:"schema_changes"`         // acknowledged under load, rotations of the binary log among them
	Lost         int    `json:"writes_lost"`            // over all cuts
	Torn         int    `json:"writes_torn"`
	Repaired     int    `json:"pages_restored"` // by the server, from its doublewrite buffer: torn ones, and those not written yet
	DidNotReturn int    `json:"did_not_come_back"`
}

// Cut describes a cut of the power, and what became of the writes that were not flushed.
type Cut struct {
	AtFlush  bool   `json:"at_flush"` // just before a flush; else at a random moment
	AtRisk   int    `json:"writes_at_risk"`
	Lost     int    `json:"writes_lost"`
	Torn     int    `json:"writes_torn"`
	Grain    int64  `json:"torn_in_units_of"` // bytes
	Repaired int    `json:"pages_restored"`
	Failed   string `json:"failed,omitempty"` // why the filesystem or the server did not come back
	Schema   string `json:"schema,omitempty"` // what is wrong with it
	// Again says how often a server was started anew on the same disk, as the cut left it, after one whose recovery was not
	// right, and AgainBad how many of these were not right either: of a disk that lacks something all are.
	Again    int `json:"recovered_again,omitempty"`
	AgainBad int `json:"recovered_again_badly,omitempty"`
	// AgainFailed says why there were no more of them, where that is not the server's doing.
	AgainFailed string `json:"recovered_again_failed,omitempty"`
}

// RecoveryMs are times in ms from the start of the server's process until it answered.
type RecoveryMs struct {
	Each   []float64 `json:"each"`
	Median float64   `json:"median"`
	Max    float64   `json:"max"`
}

// Kill describes one kill and the recovery after it.
type Kill struct {
	AfterMs      float64 `json:"after_ms"`     // of load
	Acknowledged int64   `json:"acknowledged"` // transactions since the kill before
	// Kept says how many transactions were there whose commit was sent and not acknowledged: allowed, as is
	// their absence.
	Kept int64 `json:"kept_unacknowledged"`
	Lost int64 `json:"lost"`
	// Late says how many of the acknowledged ones were not there, and how many accounts disagreed with their rows, when the
	// server answered first, and no more when it was asked again half a second later: nothing of that is lost.
	Late int64 `json:"late,omitempty"`
	// Missing says what is lost of each writer, and which accounts disagree with their rows; "" for none.
	Missing string `json:"missing,omitempty"`
	// Damage says what else was wrong.
	Damage     Damage  `json:"damage,omitzero"`
	RecoveryMs float64 `json:"recovery_ms"` // 0 where the server did not come back
	// ServerMs says what the server's log says of it, in ms, from the beginning of InnoDB's recovery to being
	// ready; 0 where it does not tell.
	ServerMs float64 `json:"server_recovery_ms,omitempty"`
	Cut      *Cut    `json:"cut,omitempty"` // nil for a kill
}

// Damage counts what may not be after a recovery, besides losses.
type Damage struct {
	Twice       int64 `json:"twice,omitempty"`       // rows there more than once
	Altered     int64 `json:"altered,omitempty"`     // rows that are not as they were written
	Uncommitted int64 `json:"uncommitted,omitempty"` // rows whose commit was never sent
	Returned    int64 `json:"returned,omitempty"`    // rows that were gone after an earlier recovery
	Half        int64 `json:"half,omitempty"`        // accounts that disagree with their rows: half a transaction
	OnlyLogged  int64 `json:"only_logged,omitempty"` // transactions in the binary log and not in the tables: replicas have them
	Unlogged    int64 `json:"unlogged,omitempty"`    // transactions in the tables and not in the binary log: replicas never get them
	Schema      int64 `json:"schema,omitempty"`      // 1 where tables are not as acknowledged changes of the schema left them
}

// Sum returns the count of all kinds.
func (d Damage) Sum() int64 {
	return d.Twice + d.Altered + d.Uncommitted + d.Returned + d.Half + d.OnlyLogged + d.Unlogged + d.Schema
}

// plus returns the damage of two recoveries.
func (d Damage) plus(e Damage) Damage {
	return Damage{d.Twice + e.Twice, d.Altered + e.Altered, d.Uncommitted + e.Uncommitted, d.Returned + e.Returned, d.Half + e.Half,
		d.OnlyLogged + e.OnlyLogged, d.Unlogged + e.Unlogged, d.Schema + e.Schema}
}

// Judge sums the rounds up and gives the verdict.
func (c CrashTest) Judge() CrashTest {
	c.Schema, c.Kills, c.Acknowledged, c.Lost, c.Late = Schema, len(c.Rounds), 0, 0, 0
	c.RecoveryMs = RecoveryMs{Each: []float64{}}
	if c.Power != nil {
		p := *c.Power
		p.Lost, p.Torn, p.Repaired, p.DidNotReturn = 0, 0, 0, 0
		c.Power = &p
	}
	var damage Damage
	for _, r := range c.Rounds {
		c.Acknowledged += r.Acknowledged
		c.Lost += r.Lost
		c.Late += r.Late
		damage = damage.plus(r.Damage)
		c.Power.add(r.Cut)
		if r.RecoveryMs > 0 { // the last one has none where the server did not come back
			c.RecoveryMs.Each = append(c.RecoveryMs.Each, r.RecoveryMs)
		}
	}
	c.Damaged = damage.Sum()
	if len(c.RecoveryMs.Each) > 0 {
		c.RecoveryMs.Median, c.RecoveryMs.Max = median(c.RecoveryMs.Each), slices.Max(c.RecoveryMs.Each)
	}
	c.Verdict = c.verdict(damage)
	c.Proved = c.Verdict == proved
	return c
}

// firstFailure says why the server did not come back from the first cut after which it did not.
func (c CrashTest) firstFailure() string {
	for _, r := range c.Rounds {
		if r.Cut != nil && r.Cut.Failed != "" {
			return r.Cut.Failed
		}
	}
	return ""
}

// add sums a cut up.
func (p *Power) add(c *Cut) {
	if c == nil {
		return
	}
	p.Lost, p.Torn, p.Repaired = p.Lost+c.Lost, p.Torn+c.Torn, p.Repaired+c.Repaired
	if c.Failed != "" {
		p.DidNotReturn++
	}
}

// proved is the verdict on a test that found nothing.
const proved = "proved"

func (c CrashTest) verdict(d Damage) string {
	var bad []string
	if c.Lost > 0 {
		bad = append(bad, fmt.Sprintf("lost %d of %d", c.Lost, c.Acknowledged))
	}
	if c.Failed != "" {
		bad = append(bad, "the server did not come back: "+c.Failed)
	}
	if c.Power != nil && c.Power.DidNotReturn > 0 {
		bad = append(bad, fmt.Sprintf("the server did not come back from %d of %d cuts: %s", c.Power.DidNotReturn, c.Kills, c.firstFailure()))
	}
	bad = append(bad, d.Words()...)
	if c.RecoveryMs.Max > c.LimitMs {
		bad = append(bad, fmt.Sprintf("recovery took up to %.0f ms, the limit is %.0f ms", c.RecoveryMs.Max, c.LimitMs))
	}
	switch {
	case len(bad) > 0:
		return strings.Join(bad, "; ")
	case c.Acknowledged == 0:
		return "nothing was acknowledged before a kill: nothing is proved"
	}
	return proved
}

// Words says what is damaged, one phrase for each kind there is.
func (d Damage) Words() (list []string) {
	for _, kind := range d.kinds() {
		if kind.n > 0 {
			list = append(list, fmt.Sprintf("%d %s", kind.n, kind.what))
		}
	}
	return list
}

// Kinds says which kinds of damage there are.
func (d Damage) Kinds() (list []string) {
	for _, kind := range d.kinds() {
		if kind.n > 0 {
			list = append(list, kind.what)
		}
	}
	return list
}

// damaged counts one kind of damage.
type damaged struct {
	n    int64
	what string
}

func (d Damage) kinds() []damaged {
	return []damaged{
		{d.Half, "accounts disagree with their rows (half a transaction)"},
		{d.Twice, "rows are there twice"},
		{d.Altered, "rows are not as they were written"},
		{d.Uncommitted, "rows are there whose commit was never sent"},
		{d.Returned, "rows came back that were gone after an earlier recovery"},
		{d.OnlyLogged, "transactions are in the binary log only (replicas have them, this server does not)"},
		{d.Unlogged, "transactions are not in the binary log (replicas never get them)"},
		{d.Schema, "times the tables were not as acknowledged changes of the schema left them"},
	}
}

// Kept tells whether a round lost and damaged nothing, and the server came back within the limit.
func (c CrashTest) Kept(k Kill) bool {
	return k.Lost == 0 && k.Damage.Sum() == 0 && (k.Cut == nil || k.Cut.Failed == "") && k.RecoveryMs <= c.LimitMs
}

// Missed counts the rounds that were not kept.
func (c CrashTest) Missed() (n int) {
	for _, k := range c.Rounds {
		if !c.Kept(k) {
			n++
		}
	}
	return n
}

// median of at least one value.
func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// PutCrash writes crash.json; its schema is set.
func (s *Store) PutCrash(c CrashTest) error {
	c.Schema = Schema
	if err := writeJSON(s.path(crashFile), c); err != nil {
		return fmt.Errorf("cannot store the crash test: %w", err)
	}
	return nil
}

// Crash returns crash.json; nil where the experiment is no crash test, or one that did not end.
func (s *Store) Crash() (*CrashTest, error) {
	var c CrashTest
	err := readJSON(s.dir, s.path(crashFile), &c)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &c, err
}
