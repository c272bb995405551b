package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"david/internal/home"
	"david/internal/report"
	"david/internal/result"
	"david/internal/stats"
)

// outcome is what an experiment came to, in a line of a list.
type outcome struct {
	Verdict  stats.Verdict  `json:"verdict,omitempty"` // of Arm; invalid where nothing may be concluded; "" where nothing is compared
	Arm      string         `json:"arm,omitempty"`
	Ratio    float64        `json:"ratio,omitempty"` // to the control
	Interval stats.Interval `json:"interval"`        // 95 %, of Ratio
	TPS      float64        `json:"tps,omitempty"`   // transactions/s of Arm, or of a bench's first load
	Why      string         `json:"why,omitempty"`   // it is invalid; of a tune of a running server the verdict in a sentence
}

// outcomeOf works out what an experiment came to: of a tune the arm that was handed over, of others the arm that did
// best.
func outcomeOf(d report.Data) (o outcome) {
	list := comparedArms(d)
	if len(list) > 0 {
		best := bestOf(list[0], d.Finish)
		o = outcome{Verdict: best.Verdict, Arm: best.Name, Ratio: best.Ratio, Interval: best.Interval, TPS: best.TPS}
	} else if runs := stats.RunsOf(d.Arms, d.Trials); len(runs) > 0 {
		o = outcome{Arm: runs[0].Arm, TPS: runs[0].TPS}
	}
	if err := verdictIn(d, list); err != nil && len(d.Trials) > 0 {
		o = outcome{Verdict: stats.Invalid, Arm: o.Arm, Why: err.Error()} // no figure may be quoted
	}
	return o
}

func bestOf(c stats.Comparison, f *result.Finish) (best stats.Arm) {
	order := []stats.Verdict{stats.Faster, stats.Equivalent, stats.Undecided, stats.Slower}
	rank := func(a stats.Arm) int {
		i := slices.Index(order, a.Verdict)
		if i < 0 {
			return len(order)
		}
		return i
	}
	for _, a := range c.Arms {
		switch {
		case a.Verdict == stats.IsControl:
		case f != nil && a.Name == f.Best:
			return a
		case best.Name == "" || cmp.Or(cmp.Compare(rank(a), rank(best)), cmp.Compare(best.Ratio, a.Ratio)) < 0:
			best = a
		}
	}
	return best
}

// outcomeSchema changes with what an outcome holds, and with how it is worked out.
const outcomeSchema = 1

// kept is an outcome in the cache, and what it was worked out from.
type keptOutcome struct {
	Schema  int       `json:"schema"`
	David   string    `json:"david"`
	Bytes   int64     `json:"bytes"`   // of the trials
	Changed time.Time `json:"changed"` // the record was
	outcome
}

// outcomes are what experiments came to, kept so that a list need not work it out each time.
type outcomes struct {
	a    *app
	dir  string
	told bool // that this takes a while
}

func (a *app) outcomes() *outcomes {
	return &outcomes{a: a, dir: filepath.Join(home.CachePath(a.home), "outcomes")}
}

func (o *outcomes) path(id string) string { return filepath.Join(o.dir, id+".json") }

// longestOutcome bounds a file of the cache, in bytes.
const longestOutcome = 64 << 10

// of returns what an experiment came to, from the cache where nothing has changed since.
func (o *outcomes) of(s result.Summary) (outcome, error) {
	now := keptOutcome{Schema: outcomeSchema, David: o.a.build.String(), Bytes: s.Bytes, Changed: s.Changed}
	if b, err := home.Read(o.path(s.ID), longestOutcome); err == nil {
		var old keptOutcome
		if json.Unmarshal(b, &old) == nil && old.Schema == now.Schema && old.David == now.David && old.Bytes == now.Bytes && old.Changed.Equal(now.Changed) {
			return old.outcome, nil
		}
	}
	if !o.told && onTerminal(o.a.err) {
		o.a.remark("working out what experiments came to; it is kept for the next time")
		o.told = true
	}
	d, err := o.a.loadDir(s.Dir)
	if err != nil {
		return outcome{}, err
	}
	now.outcome = outcomeOf(d)
	return now.outcome, o.keep(s.ID, now)
}

// errNotKept says that a list is right, and will be as slow the next time.
var errNotKept = errors.New("cannot keep what experiments came to")

func (o *outcomes) keep(id string, k keptOutcome) error {
	b, err := json.Marshal(k)
	if err == nil {
		_, err = home.Cache(o.a.home)
	}
	if err == nil {
		err = os.MkdirAll(o.dir, 0o755)
	}
	if err == nil {
		err = home.Write(o.path(id), b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotKept, err)
	}
	return nil
}

// prune removes what is kept of experiments that are gone.
func (o *outcomes) prune(list []result.Summary) error {
	entries, err := os.ReadDir(o.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id := strings.TrimSuffix(e.Name(), ".json")
		if !slices.ContainsFunc(list, func(s result.Summary) bool { return s.ID == id }) {
			err = errors.Join(err, os.Remove(o.path(id)))
		}
	}
	return err
}
