package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"david/internal/mysqld"
	"david/internal/rules"
)

// Run describes what is to be done to a server.
type Run struct {
	Addr    mysqld.Addr
	Steps   []rules.LiveStep
	Record  *Record
	Watch   time.Duration // of the traffic before the first step, and after each
	MaxP95  float64       // how much of the latency before the first step a step may make: 1.1
	Persist bool          // SET PERSIST what was kept
	// Load puts a load on the server and returns when it is even; nil: none. It is called when nobody else
	// changes the server.
	Load func(context.Context) (*Load, error)
	Say  func(string)
}

// Outcome tells what a run did.
type Outcome struct {
	Sight  Sight         `json:"sight"`
	Before *Window       `json:"before,omitempty"` // nil: the traffic was not seen to its end
	Steps  []StepOutcome `json:"steps"`
}

// StepOutcome holds what became of a step.
type StepOutcome struct {
	Name    string  `json:"name"`
	Kept    bool    `json:"kept"`
	Why     string  `json:"why,omitempty"` // it was not kept
	Traffic *Window `json:"traffic,omitempty"`
	// Undone tells whether all of a step that was not kept is set back; what is not, the error says.
	Undone bool `json:"undone"`
}

// The ways a run ends early.
var (
	// ErrWorse says that a step made the user's traffic worse, and was set back.
	ErrWorse = errors.New("the step made the traffic worse")
	// ErrInterrupted says that the run was stopped from outside.
	ErrInterrupted = errors.New("interrupted")
	// ErrBusy says that another david changes the same server.
	ErrBusy = errors.New("another david is changing this server: wait for its end")
	// ErrNotUndone says that something david set is still there.
	ErrNotUndone = errors.New("not set back")
)

// lockName is the server's own lock that one david at a time holds.
const lockName = "david live tune"

// Do watches the traffic, and goes through the steps until one makes it worse. Each change is recorded before
// it is made. Steps that were kept stay whatever happens to a later one; a step that was not, because of the
// traffic, an interruption or a lost connection, is set back, for which Do tries to reach the server for two
// minutes.
func (r *Run) Do(ctx context.Context) (out Outcome, err error) {
	out.Steps = []StepOutcome{}
	conn, err := mysqld.Open(ctx, r.Addr)
	if err != nil {
		return out, err
	}
	defer conn.Close()
	release, err := lock(ctx, conn)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, release()) }()
	eye, err := openEye(ctx, conn, r.Record.Server.Flavour)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, eye.close()) }()
	load, end, err := r.begin(ctx)
	if err != nil {
		return out, unchanged(ctx, err)
	}
	defer func() { err = errors.Join(err, end()) }()
	eye.loaded(load)
	out.Sight = eye.Sight
	r.say("watching the traffic for %s, to know what it is like before", r.Watch.Round(time.Second))
	before, _, err := r.watch(ctx, eye, nil)
	if ctx.Err() != nil || err != nil {
		return out, unchanged(ctx, err)
	}
	out.Before = &before
	for _, doubt := range r.doubts(before, out.Sight) {
		out.Sight.Notes = append(out.Sight.Notes, doubt)
		r.say("%s", doubt)
	}
	for _, step := range r.Steps {
		one, err := r.step(ctx, conn, eye, step, before)
		out.Steps = append(out.Steps, one)
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// doubts says what the window before the first step does not let the guard see.
func (r *Run) doubts(before Window, sight Sight) (list []string) {
	watch := r.Watch.Round(time.Second)
	what, _, _ := latency(before, before)
	switch {
	case what == "" && (sight.P95 || sight.Mean || r.Load != nil):
		list = append(list, fmt.Sprintf("latency is not judged: %.0f statements ended in %s before the first step, and it takes %d; a longer --watch helps", before.Statements, watch, enough))
	case before.Uneven > r.MaxP95:
		list = append(list, fmt.Sprintf("the traffic is uneven: before the first step p95 differed %.2fx between the two halves of %s, so a step may be set back that did no harm; a longer --watch helps", before.Uneven, watch))
	}
	return list
}

// unchanged returns the error of a run that ended before its first step.
func unchanged(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("nothing was changed: %w: %w", ErrInterrupted, cmp.Or(err, ctx.Err()))
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

// lockPatience is for how long, in seconds, another david's lock is waited for: a busy server takes a moment
// to see that one that was killed is gone.
const lockPatience = 5

// lock takes the server's own lock, so that two davids do not take each other's changes for the user's. It
// ends with its connection.
func lock(ctx context.Context, c *mysqld.Conn) (release func() error, err error) {
	held, err := c.Single(ctx)
	if err != nil {
		return nil, err
	}
	got, err := held.Pairs(ctx, fmt.Sprintf("SELECT 'got', GET_LOCK('%s', %d)", lockName, lockPatience))
	if err == nil && got["got"] != "1" {
		err = ErrBusy
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, err := held.Rows(ctx, "SELECT RELEASE_LOCK('"+lockName+"')")
		if err != nil { // the connection is gone, and the lock with it
			err = nil
		}
		return errors.Join(err, held.Close())
	}, nil
}

// step makes a step's changes, watches the traffic, and keeps them or sets them back.
func (r *Run) step(ctx context.Context, conn *mysqld.Conn, eye *eye, step rules.LiveStep, before Window) (StepOutcome, error) {
	out := StepOutcome{Name: step.Name}
	r.say("step %s: %s", step.Name, text(step))
	cause := r.apply(ctx, conn, step)
	if cause == nil {
		now, why, err := r.watch(ctx, eye, &before)
		out.Traffic, cause = &now, err
		if why != "" {
			cause = fmt.Errorf("%w: %s", ErrWorse, why)
		}
	}
	if cause == nil {
		cause = r.keep(ctx, conn)
	}
	if cause == nil {
		out.Kept = true
		r.say("step %s is kept: %s", step.Name, seen(before, *out.Traffic))
		return out, nil
	}
	if ctx.Err() != nil {
		cause = fmt.Errorf("%w: %w", ErrInterrupted, cause)
	}
	out.Why = cause.Error()
	r.say("step %s is set back: %v", step.Name, cause)
	err := r.undo(ctx)
	out.Undone = err == nil
	if err != nil {
		return out, fmt.Errorf("step %s: %w", step.Name, errors.Join(cause, err))
	}
	return out, fmt.Errorf("step %s was set back: %w", step.Name, cause)
}

// apply records each change and makes it.
func (r *Run) apply(ctx context.Context, conn *mysqld.Conn, step rules.LiveStep) error {
	for _, c := range step.Changes {
		v, err := variables(ctx, conn, c.Name)
		if err != nil {
			return err
		}
		if v[c.Name] != c.Before {
			return fmt.Errorf("%s is %s by now, and was %s when the plan was made: somebody else changes this server", c.Name, v[c.Name], c.Before)
		}
		n := len(r.Record.changes) + 1
		if err := r.Record.note(recordLine{N: n, Event: intended, Step: step.Name, Name: c.Name, Before: c.Before, After: c.Value}); err != nil {
			return err
		}
		effective, err := r.set(ctx, conn, c)
		if effective != "" { // also one that was not asked for: it is david's doing
			err = errors.Join(err, r.Record.note(recordLine{N: n, Event: done, After: effective}))
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// set is not interrupted: a statement that was cut off could still take effect after it was set back.
func (r *Run) set(ctx context.Context, conn *mysqld.Conn, c rules.LiveChange) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*settle)
	defer cancel()
	return set(ctx, conn, "GLOBAL", c.Name, c.Value)
}

// keep persists the changes of a step where that was asked for, and puts on record that they stay.
func (r *Run) keep(ctx context.Context, conn *mysqld.Conn) error {
	for _, c := range r.Record.unproven() {
		if r.Persist {
			if err := r.persist(ctx, conn, c); err != nil {
				return err
			}
		}
	}
	for _, c := range r.Record.unproven() {
		if err := r.Record.note(recordLine{N: c.N, Event: kept}); err != nil {
			return err
		}
	}
	return nil
}

func (r *Run) persist(ctx context.Context, conn *mysqld.Conn, c Change) error {
	old, err := persisted(ctx, conn, c.Name)
	if err != nil {
		return err
	}
	if err := r.Record.note(recordLine{N: c.N, Event: persisting, Persisted: old}); err != nil {
		return err
	}
	_, err = set(ctx, conn, "PERSIST", c.Name, c.After)
	return err
}

// reconnectFor says how long a server is waited for that has a change to be set back.
const reconnectFor = 2 * time.Minute

// undo sets back what was not kept, also after an interruption, and reconnects for it. Where that is not
// possible the error has the statements that do it.
func (r *Run) undo(ctx context.Context) error {
	if len(r.Record.unproven()) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconnectFor)
	defer cancel()
	for {
		_, err := r.undoOnce(ctx)
		if err == nil {
			return nil
		}
		if passing(err) && pause(ctx, time.Second) == nil {
			continue
		}
		return fmt.Errorf("%w: %w; by hand: %s", ErrNotUndone, err, byHand(r.Record.unproven()))
	}
}

// passing tells of an error that may pass: no connection, or a refusal as while a buffer pool is being
// resized.
func passing(err error) bool {
	if errors.Is(err, mysqld.ErrPrivilege) || errors.Is(err, mysqld.ErrAccess) {
		return false
	}
	return errors.Is(err, mysqld.ErrUnreachable) || mysqld.Number(err) != 0
}

// undoOnce sets back what can be, also where a value is another's by now, which is left and told.
func (r *Run) undoOnce(ctx context.Context) (Undone, error) {
	conn, err := mysqld.Open(ctx, r.Addr)
	if err != nil {
		return Undone{}, err
	}
	defer conn.Close()
	return undo(ctx, conn, r.Record, r.Record.unproven(), false)
}

// byHand returns the SQL that sets changes back.
func byHand(changes []Change) string {
	var list []string
	for _, c := range changes {
		list = append(list, c.backStatements()...)
	}
	return strings.Join(list, "; ") + ";"
}

func (r *Run) say(format string, args ...any) { r.Say(fmt.Sprintf(format, args...)) }

// text returns a step's changes in a line.
func text(step rules.LiveStep) string {
	var list []string
	for _, c := range step.Changes {
		list = append(list, fmt.Sprintf("%s %s -> %s", c.Name, c.Before, c.Value))
	}
	return strings.Join(list, ", ")
}
