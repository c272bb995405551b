// Package live changes a running server's variables in steps, and guards each: the inverse is on disk before
// the change is made, the user's own traffic is watched after it, and a step that makes that worse is set
// back at once.
//
//	record    changes.jsonl, an event a line, appended and synced; what is still to be undone follows from it
//	journal   the file it is in
//	trust     what is believed of a record that somebody else may have written
//	target    who the server is, whether it lets its variables be set, setting one
//	session   the one connection that changes it, and holds its lock
//	reading   the counters of the user's traffic: performance_schema where there is one, status counters
//	judge     two windows of traffic: is the later one worse
//	run       the steps
//	rollback  what was recorded, set back in reverse order
//	watchdog  a process that sets a step back where david died before it was judged
//	load      a load of the caller's own, where it asks for one: what it tells of each second
//
// live puts no load on a server by itself.
package live

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// RecordFile is the name of the record in an experiment's folder.
const RecordFile = "changes.jsonl"

// schema is the version of the record's format; oldest is the first that is still read. The second names the
// watchdog.
const (
	schema = 2
	oldest = 1
)

// Server says which server was changed. It holds neither user nor password.
type Server struct {
	UUID     string        `json:"uuid,omitempty"` // server_uuid, or MariaDB's server_uid; "" where it has none
	Hostname string        `json:"hostname"`
	Port     string        `json:"port"`
	Datadir  string        `json:"datadir"`
	Flavour  mycnf.Flavour `json:"flavour"`
	Version  string        `json:"version"`
	Network  string        `json:"network"` // "unix" or "tcp"
	Address  string        `json:"address"`
	TLS      mysqld.TLS    `json:"tls"`     // names of files only
	Started  int64         `json:"started"` // by the server's clock, in seconds since 1970
}

// is tells whether two are the same server, whatever its version and the way it is reached.
func (s Server) is(other Server) bool {
	const unknown = "unknown" // MariaDB's server_uid where its machine has no MAC address
	s.UUID, other.UUID = strings.TrimPrefix(s.UUID, unknown), strings.TrimPrefix(other.UUID, unknown)
	if s.UUID != "" || other.UUID != "" {
		return s.UUID == other.UUID
	}
	return s.Hostname == other.Hostname && s.Port == other.Port && s.Datadir == other.Datadir
}

// restarted tells whether the server was started again since, by its own clock; two seconds are allowed for
// rounding.
func (s Server) restarted(since Server) bool { return s.Started > since.Started+2 }

// event names what a line of the record says of a change.
type event string

const (
	intended   event = "intended"   // written before SET GLOBAL
	done       event = "set"        // after it, with the value the server then reported
	kept       event = "kept"       // the guard saw nothing against it
	persisting event = "persisting" // written before SET PERSIST
	undone     event = "undone"     // the old value is back
	guarded    event = "watchdog"   // of no change: from here on a watchdog waits for david's death
)

// recordLine describes one line of the record. The first has the server and no event.
type recordLine struct {
	Schema    int       `json:"schema"`
	At        time.Time `json:"at"`
	Server    *Server   `json:"server,omitempty"`
	N         int       `json:"n,omitempty"` // of the change: 1, 2, ...
	Event     event     `json:"event,omitempty"`
	Step      string    `json:"step,omitempty"`
	Name      string    `json:"name,omitempty"`
	Before    string    `json:"before,omitempty"`
	After     string    `json:"after,omitempty"`     // what is asked for, then what the server reports
	Persisted *string   `json:"persisted,omitempty"` // the value SET PERSIST replaces; nil: there was none
	PID       int       `json:"pid,omitempty"`       // of the watchdog
}

// Change names one variable that david set, or was about to set.
type Change struct {
	N                int     `json:"n"`
	Step             string  `json:"step"`
	Name             string  `json:"name"`
	Before           string  `json:"before"`
	After            string  `json:"after"`
	Kept             bool    `json:"kept"`
	Persist          bool    `json:"persisted"`                  // SET PERSIST was given, or was about to be
	PersistedBefore  *string `json:"persisted_before,omitempty"` // nil: no value was persisted
	Undone           bool    `json:"undone"`
	effectiveUnknown bool    // david died, or the server went away, before the change was seen
}

// Record keeps the changes of one run. It is not safe for concurrent use.
type Record struct {
	Server  Server
	changes []Change
	journal journal
}

// parse reads a record. A last line that was torn is left out; whole is how many bytes the lines before it
// have.
func parse(b []byte) (r *Record, whole int, err error) {
	whole = bytes.LastIndexByte(b, '\n') + 1
	r = &Record{}
	for i, text := range bytes.Split(bytes.TrimSuffix(b[:whole], []byte("\n")), []byte("\n")) {
		var l recordLine
		if err := json.Unmarshal(text, &l); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", i+1, err)
		}
		if l.Schema < oldest || l.Schema > schema {
			return nil, 0, fmt.Errorf("line %d has schema %d, this david knows %d to %d", i+1, l.Schema, oldest, schema)
		}
		if (i == 0) != (l.Server != nil) {
			return nil, 0, fmt.Errorf("line %d: the first line, and no other, names the server", i+1)
		}
		if i == 0 {
			r.Server = *l.Server
			continue
		}
		if err := r.take(l); err != nil {
			return nil, 0, fmt.Errorf("line %d: %w", i+1, err)
		}
	}
	return r, whole, nil
}

// take brings the changes up to a line. One that no david wrote is refused.
func (r *Record) take(l recordLine) error {
	if err := r.check(l); err != nil {
		return err
	}
	switch l.Event {
	case guarded:
		return nil
	case intended:
		r.changes = append(r.changes, Change{N: l.N, Step: l.Step, Name: l.Name, Before: l.Before, After: l.After, effectiveUnknown: true})
		return nil
	}
	c := &r.changes[l.N-1]
	switch l.Event {
	case done:
		c.After, c.effectiveUnknown = l.After, false
	case kept:
		c.Kept = true
	case persisting:
		c.Persist, c.PersistedBefore = true, l.Persisted
	case undone:
		c.Undone = true
	}
	return nil
}

// Changes lists all changes in the order in which they were made.
func (r *Record) Changes() []Change { return slices.Clone(r.changes) }

// Pending lists the changes that are not undone, the last one first.
func (r *Record) Pending() (list []Change) {
	for _, c := range slices.Backward(r.changes) {
		if !c.Undone {
			list = append(list, c)
		}
	}
	return list
}

// unproven lists those of the pending changes that were not kept.
func (r *Record) unproven() []Change {
	return slices.DeleteFunc(r.Pending(), func(c Change) bool { return c.Kept })
}

// command returns the command line that sets back all that is on record.
func (r *Record) command() string { return "david rollback " + filepath.Dir(r.journal.path) }
