package result

import (
	"errors"
	"fmt"
	"io/fs"
)

// Phase names a part of a tune; "" outside of one.
type Phase string

// The phases of a tune, in their order.
const (
	Race    Phase = "race"    // what others would configure, against the control
	Screen  Phase = "screen"  // groups of knobs, each against the best so far
	Search  Phase = "search"  // the knobs that matter, at once
	Prune   Phase = "prune"   // lines that make no difference are dropped
	Confirm Phase = "confirm" // fresh blocks at steady debt: the numbers to quote
	Prove   Phase = "prove"   // memory, crash, durability lock
)

// QuotedPhase returns the phase of a tune whose trials may be quoted: the confirmation, or where there was
// none the race; "" outside of a tune.
func QuotedPhase(trials []Trial) (quoted Phase) {
	for _, t := range trials {
		switch t.Phase {
		case Confirm:
			return Confirm
		case Race:
			quoted = Race
		}
	}
	return quoted
}

// What a tune looks for.
const (
	ForTPS  = "tps"  // the highest throughput
	ForP99  = "p99"  // the lowest p99 latency, at a throughput that is not below the control's
	ForCost = "cost" // the lowest cost of a transaction: on one machine the highest throughput
)

// TunePlan says how a tune spends its budget, fixed when it begins so that a later session goes on with the
// same.
type TunePlan struct {
	Objective string  `json:"objective"`      // what is looked for: ForTPS, ForP99 or ForCost
	Budget    float64 `json:"budget_seconds"` // for all trials and proofs, over all sessions
	// Short is the load of the trials that look for the winner, Steady of those that confirm it.
	Short  TuneLoad `json:"short"`
	Steady TuneLoad `json:"steady"`
	Cost   float64  `json:"trial_seconds"` // what a short trial was expected to take in all
	// Rivals says how many arms race with the control; LeftOut names those that there was no time for.
	Rivals  int      `json:"rivals"`
	LeftOut []string `json:"left_out,omitempty"`
	// Translated says what became of the rivals' settings on this server, and why MySQLTuner does not race.
	Translated []string `json:"translated,omitempty"`
	// Screens, Searches and Prunes are how many trials these phases have at most, those of the incumbent
	// included.
	Screens  int `json:"screens"`
	Searches int `json:"searches"`
	Prunes   int `json:"prunes"`
	// Slices says how a tune measures in slices; nil: each trial has a fresh server.
	Slices *TuneSlices `json:"slices,omitempty"`
	// RaceBlocks is the most blocks of the race; Blocks and MostBlocks the fewest and the most of the
	// confirmation.
	RaceBlocks int `json:"race_blocks"`
	Blocks     int `json:"confirm_blocks"`
	MostBlocks int `json:"most_confirm_blocks"`
	Kills      int `json:"kills"` // of the crash proof, or the most cuts; 0: it is not run
	// Power is the cache of the disk whose power the crash proof cuts (Power.Cache); "": it kills the server.
	Power string `json:"power,omitempty"`
	// MaxP95 says how many times the control's p95 a winner's may be; RecoveryMs how long its recovery from a
	// crash may take.
	MaxP95     float64 `json:"max_p95_ratio"`
	RecoveryMs float64 `json:"recovery_limit_ms"`
	// Quick has the trials that the counts allow, whatever they take.
	Quick bool   `json:"quick,omitempty"`
	Seed  uint64 `json:"seed"` // of the order within blocks and of the search
	// Unlocked are the members of the durability lock that need not hold, as it was asked for.
	Unlocked []string    `json:"unlocked,omitempty"`
	Machine  TuneMachine `json:"machine"`
}

// TuneSlices describes the slices of a tune, whose servers stay up beside each other. Sizes are in bytes.
type TuneSlices struct {
	Room int64 `json:"room"` // memory for servers that are up together
	Data int64 `json:"data"` // of the data template
	// Threads of the load: what a server takes of memory depends on them.
	Threads int `json:"threads"`
	// Incarnations says how many the confirmation has of each arm; each time it is gone on with adds one.
	Incarnations int `json:"incarnations"`
}

// TuneLoad says how long a trial is, in seconds.
type TuneLoad struct {
	Seconds int `json:"seconds"`
	Warmup  int `json:"warmup_seconds"` // at most
}

// TuneMachine holds what the rules and the bounds of the search were computed for. Sizes are in bytes.
type TuneMachine struct {
	CPUs       float64 `json:"cpus"`
	Memory     int64   `json:"memory"`
	FreeDisk   int64   `json:"free_disk"`
	Rotational bool    `json:"rotational,omitempty"`
	WriteIOPS  float64 `json:"write_iops,omitempty"` // 16 KiB random writes/s; 0 where they were not measured
	Node       int64   `json:"node_memory,omitempty"`
}

// Proof holds what was proved of an arm before it is handed over. A part that was not run is nil, and Notes
// say why.
type Proof struct {
	Session int          `json:"session,omitempty"` // of a tune in slices
	Arm     string       `json:"arm"`
	OK      bool         `json:"ok"`
	Why     string       `json:"why,omitempty"` // what failed; "" where nothing did
	Memory  *MemoryProof `json:"memory,omitempty"`
	Crash   *CrashTest   `json:"crash,omitempty"`
	// Control is the same done to the control, where the power was cut and not all was kept. Shared says why what
	// was not kept is not the arm's own doing; "" where nothing says so.
	Control *CrashTest `json:"crash_of_control,omitempty"`
	Shared  string     `json:"shared_with_control,omitempty"`
	// Lock says that the members of the durability lock read back as the control's.
	Lock    bool     `json:"lock"`
	Seconds float64  `json:"seconds"` // what proving took
	Notes   []string `json:"notes,omitempty"`
}

// MemoryProof holds what a server takes with all its connections busy. Sizes are in bytes.
type MemoryProof struct {
	Connections int   `json:"connections"`       // that were busy at a time
	Allowed     int   `json:"max_connections"`   // that the server allows
	Peak        int64 `json:"peak"`              // resident, at the most
	Empty       int64 `json:"pool_pages_unused"` // of the buffer pool, not touched and so not resident
	Each        int64 `json:"each_connection"`   // that one busy connection added
	Worst       int64 `json:"worst"`             // peak, the rest of the pool, and the connections that were not opened
	Limit       int64 `json:"limit"`             // what the server may use
	OK          bool  `json:"ok"`
}

// Judge sums a memory proof up: what was seen, what of the pool is not touched yet, and the connections that
// were not opened.
func (m MemoryProof) Judge() MemoryProof {
	m.Worst = m.Peak + m.Empty + m.Each*int64(max(0, m.Allowed-m.Connections))
	m.OK = m.Worst <= m.Limit
	return m
}

// Worth holds what lines of a configuration are worth, by what happened without them.
type Worth struct {
	Lines []string `json:"lines"` // removed together
	// Ratio is the throughput without them over that with them (of a tune for p99: the p99 with them over
	// that without), of Pairs pairs of trials; 0 where it could not be run.
	Ratio   float64   `json:"ratio"`
	Pairs   int       `json:"pairs"`
	Ratios  []float64 `json:"ratios,omitempty"` // by pair
	Dropped bool      `json:"dropped"`
	Why     string    `json:"why,omitempty"` // why it could not be run
}

// Searched sums up the search phase of a tune. Its ratios are of short trials, to the control's throughput,
// and prove nothing.
type Searched struct {
	Trials int     `json:"trials"` // those of the incumbent included
	Start  float64 `json:"start"`  // what race and screen had found
	Best   float64 `json:"best"`   // the best point that was tried, as all trials of the search together have it
	// Enough is after how many trials one was tried that has 95 % of the gain over the control that Best has;
	// 0: the start has.
	Enough int `json:"enough"`
}

// proofsFile is a JSON list of Proof.
const proofsFile = "proofs.json"

type proofs struct {
	Schema int     `json:"schema"`
	Proofs []Proof `json:"proofs"`
}

// PutProof adds a proof, in place of an earlier one of its arm.
func (s *Store) PutProof(p Proof) error {
	if err := s.reopen(); err != nil {
		return err
	}
	list, err := s.Proofs()
	if err != nil {
		return err
	}
	kept := []Proof{}
	for _, old := range list {
		if old.Arm != p.Arm {
			kept = append(kept, old)
		}
	}
	if err := writeJSON(s.path(proofsFile), proofs{Schema, append(kept, p)}); err != nil {
		return fmt.Errorf("cannot store the proof of arm %s: %w", p.Arm, err)
	}
	return nil
}

// Proofs returns what was proved, in the order in which it was; none outside of a tune.
func (s *Store) Proofs() ([]Proof, error) {
	var p proofs
	err := readJSON(s.dir, s.path(proofsFile), &p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return p.Proofs, err
}
