package result

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"david/internal/mycnf"
)

// LiveTuneFile tells of a tune of a running server. What was changed is in a record of its own, which
// `david rollback` goes by.
const LiveTuneFile = "live-tune.json"

// LiveTune holds live-tune.json: what was planned for a running server, and what its traffic was before the
// first step and after each.
type LiveTune struct {
	Schema int `json:"schema"`
	LivePlan
	Hardware []string     `json:"hardware"` // what is known of the server's, with units
	Watch    float64      `json:"watch_seconds"`
	MaxP95   float64      `json:"max_p95"` // what the latency may become, as a ratio
	Persist  bool         `json:"persist"` // SET PERSIST was asked for
	Run      *LiveOutcome `json:"run,omitempty"`
	// Ended says why the run ended before its last step was kept; "" where it did not, or has not ended.
	Ended string `json:"ended,omitempty"`
}

// LivePlan lists what can be changed on a running server, in the order in which it is, what only a restart
// can, and what was left out.
type LivePlan struct {
	Steps  []LiveStep   `json:"steps"`
	Advice []LiveChange `json:"advice"` // takes a restart
	Decide []LiveChange `json:"decide"` // what david changes on no running server: durability, limits of users
	Notes  []string     `json:"notes"`  // what was left out, and why
}

// LiveStep groups what is changed together, and watched together.
type LiveStep struct {
	Name    string       `json:"name"`
	Title   string       `json:"title"`
	Changes []LiveChange `json:"changes"` // in the order in which they are made
}

// LiveChange pairs a setting with the value it replaces, as the server reports it.
type LiveChange struct {
	mycnf.Setting
	Before string `json:"before"`
}

// LiveOutcome tells what a run did.
type LiveOutcome struct {
	Sight  LiveSight         `json:"sight"`
	Before *LiveWindow       `json:"before,omitempty"` // nil: the traffic was not seen to its end
	Steps  []LiveStepOutcome `json:"steps"`
}

// LiveSight says what the guard can see of a server's traffic.
type LiveSight struct {
	P95    bool     `json:"p95"`    // of all statements, from performance_schema
	Mean   bool     `json:"mean"`   // the mean latency of a statement
	Errors bool     `json:"errors"` // statements that failed; else only connections that broke
	Notes  []string `json:"notes"`  // in words, what it cannot see and why among it
}

// LiveStepOutcome holds what became of a step.
type LiveStepOutcome struct {
	Name    string      `json:"name"`
	Kept    bool        `json:"kept"`
	Why     string      `json:"why,omitempty"` // it was not kept
	Traffic *LiveWindow `json:"traffic,omitempty"`
	// Undone tells whether all of a step that was not kept is set back; what is not, the error says.
	Undone bool `json:"undone"`
}

// LiveWindow holds what was seen of the user's traffic for a while.
type LiveWindow struct {
	Began      time.Time `json:"began,omitzero"`
	Seconds    float64   `json:"seconds"`
	Statements float64   `json:"statements"` // how many ended
	Errors     float64   `json:"errors"`     // how many failed; where that is not seen, connections that broke
	Running    float64   `json:"running"`    // threads running at once, on average over the looks
	P95        *float64  `json:"p95_ms"`     // of all statements; nil: not seen, or too few
	Mean       *float64  `json:"mean_ms"`    // as P95, the mean
	// LoadP95 is p95 of the transactions of david's own load; nil: there is no load, or too few of them.
	LoadP95 *float64 `json:"load_p95_ms,omitempty"`
	// Parts are the latencies, in ms, of parts of the window: p95 or mean, as is seen of all of it.
	Parts []float64 `json:"parts_ms,omitempty"`
	// Uneven says how many times the p95 of one half of the window is that of the other; 0: not seen, or too
	// few.
	Uneven float64 `json:"uneven,omitempty"`
	// Looks are what was seen one after the other, several together where there were many.
	Looks []LiveLook `json:"looks,omitempty"`
}

// LiveLook is what was seen of the traffic between two looks.
type LiveLook struct {
	At   float64  `json:"at"`   // seconds from the window's beginning to the later look
	Rate float64  `json:"rate"` // statements/s
	Ms   *float64 `json:"ms"`   // the latency, of the kind that parts_ms are; nil: too few statements
}

// Rate returns the statements per second.
func (w LiveWindow) Rate() float64 { return w.Statements / max(w.Seconds, 1e-3) }

// LiveLatency returns what two windows are compared by, in ms: p95 of all statements, their mean where that is
// not seen, or else p95 of david's own load. what names it, "" where one of the windows has none.
func LiveLatency(before, now LiveWindow) (what string, then, is float64) {
	for _, l := range []struct {
		what     string
		then, is *float64
	}{{"p95", before.P95, now.P95}, {"the mean latency", before.Mean, now.Mean}, {"p95 of david's own load", before.LoadP95, now.LoadP95}} {
		if l.then != nil && l.is != nil {
			return l.what, *l.then, *l.is
		}
	}
	return "", 0, 0
}

// PutLiveTune writes live-tune.json; its schema is set.
func (s *Store) PutLiveTune(t LiveTune) error {
	t.Schema = Schema
	if err := writeJSON(s.path(LiveTuneFile), t); err != nil {
		return fmt.Errorf("cannot store the live tune: %w", err)
	}
	return nil
}

// LiveTune returns live-tune.json; nil where the experiment is no tune of a running server, or of a david that
// wrote none.
func (s *Store) LiveTune() (*LiveTune, error) {
	var t LiveTune
	err := readJSON(s.dir, s.path(LiveTuneFile), &t)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &t, err
}
