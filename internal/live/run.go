package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// Run describes what is to be done to a server.
type Run struct {
	Addr    mysqld.Addr
	Steps   []result.LiveStep
	Record  *Record
	Watch   time.Duration // of the traffic before the first step, and after each
	MaxP95  float64       // how much of the latency before the first step a step may make: 1.1
	Persist bool          // SET PERSIST what was kept
	// Load puts a load on the server and returns when it is even; nil: none. It is called when nobody else
	// changes the server.
	Load func(context.Context) (*Load, error)
	// Watchdog is the command line, after this program's own name, in which StandWatch runs.
	Watchdog []string
	// Say tells the user. It is not called while a step is in place that is not judged: output that nobody
	// reads, or that cannot be written, never comes before setting back.
	Say func(string)
	// Note has what was seen so far, to put on record; nil: nobody wants it. It is called before the first step and
	// after each that was kept.
	Note func(result.LiveOutcome) error

	session *session
	dog     *watchdog
}

// The ways a run ends early.
var (
	// ErrWorse says that a step made the user's traffic worse, and was set back.
	ErrWorse = errors.New("the step made the traffic worse")
	// ErrUnproven says that a step was set back because it could not be shown to be no worse.
	ErrUnproven = errors.New("the step was not shown to be no worse")
	// ErrQuiet says that there was too little traffic to judge a step by.
	ErrQuiet = errors.New("too little traffic")
	// ErrBlind says that a server shows no latency of its statements.
	ErrBlind = errors.New("the server shows no latency, so no step could be shown to be no worse")
	// ErrInterrupted says that the run was stopped from outside.
	ErrInterrupted = errors.New("interrupted")
	// ErrBusy says that another david changes the same server.
	ErrBusy = errors.New("another david is changing this server: wait for its end")
	// ErrNotUndone says that something david set is still there.
	ErrNotUndone = errors.New("not set back")
)

// Do watches the traffic, waits where there is too little, and goes through the steps until one makes it
// worse, or is not shown to be no worse. Each change is recorded before it is made. Steps that were kept stay
// whatever happens to a later one; a step that was not, because of the traffic, an interruption or a lost
// connection, is set back, for which Do tries to reach the server for two minutes. Where david dies meanwhile
// a watchdog does.
func (r *Run) Do(ctx context.Context) (out result.LiveOutcome, err error) {
	out.Steps = []result.LiveStepOutcome{}
	if r.session, err = openSession(ctx, r.Addr); err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, r.session.close()) }()
	meter, err := openMeter(ctx, r.session, r.Record.Server.Flavour)
	if err != nil {
		return out, err
	}
	load, end, err := r.begin(ctx)
	if err != nil {
		return out, unchanged(ctx, err)
	}
	defer func() { err = errors.Join(err, end()) }()
	meter.loaded(load)
	before, err := r.before(ctx, meter, &out)
	if err == nil {
		err = r.note(out)
	}
	if err != nil {
		return out, unchanged(ctx, err)
	}
	if err := r.guard(ctx); err != nil {
		return out, unchanged(ctx, err)
	}
	defer func() { err = errors.Join(err, r.unguard(err)) }()
	for _, step := range r.Steps {
		one, err := r.step(ctx, meter, step, before)
		out.Steps = append(out.Steps, one)
		if err == nil {
			err = r.note(out)
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// before watches the traffic before the first step.
func (r *Run) before(ctx context.Context, meter *meter, out *result.LiveOutcome) (w result.LiveWindow, err error) {
	out.Sight = meter.Sight
	if !out.Sight.P95 && !out.Sight.Mean && r.Load == nil {
		return w, fmt.Errorf("%w: start it with performance_schema=ON, or use --load", ErrBlind)
	}
	r.say("watching the traffic for %s, to know what it is like before", r.Watch.Round(time.Second))
	if w, _, err = r.watch(ctx, meter, nil); err != nil {
		return w, err
	}
	out.Before = &w
	for _, doubt := range r.doubts(w) {
		out.Sight.Notes = append(out.Sight.Notes, doubt)
		r.say("%s", doubt)
	}
	return w, ctx.Err()
}

// guard starts the watchdog, and from then on the server soon ends a session that nobody moves.
func (r *Run) guard(ctx context.Context) (err error) {
	if err := r.session.mayIdle(ctx, idleAtStep); err != nil {
		return err
	}
	r.dog, err = r.startWatchdog(ctx)
	return err
}

// unguard ends the watchdog, unless the run's end, be it a panic, has left it something to do.
func (r *Run) unguard(end error) error {
	if len(r.Record.unproven()) == 0 {
		return r.dog.dismiss()
	}
	r.dog.abandon()
	if passing(end) {
		r.say("a watchdog, process %d, tries to set it back for %s more; then: %s", r.dog.pid(), watchFor, r.Record.command())
	}
	return nil
}

// doubts says what the window before the first step does not let the guard see.
func (r *Run) doubts(before result.LiveWindow) (list []string) {
	watch := r.Watch.Round(time.Second)
	if before.Uneven > r.MaxP95 {
		list = append(list, fmt.Sprintf("the traffic is uneven: before the first step p95 differed %.2fx between the two halves of %s, so a step may be set back that did no harm; a longer --watch helps", before.Uneven, watch))
	}
	return list
}

// unchanged returns the error of a run that ended before its first step.
func unchanged(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		err = interrupted(ctx, cmp.Or(err, ctx.Err()))
	}
	return fmt.Errorf("nothing was changed: %w", err)
}

// interrupted returns the error of a run that was stopped from outside, with what stopped it where that is
// known.
func interrupted(ctx context.Context, err error) error {
	if why := context.Cause(ctx); why != ctx.Err() {
		return fmt.Errorf("%w: %w: %w", ErrInterrupted, why, err)
	}
	return fmt.Errorf("%w: %w", ErrInterrupted, err)
}

// step makes a step's changes, watches the traffic, and keeps them or sets them back.
func (r *Run) step(ctx context.Context, meter *meter, step result.LiveStep, before result.LiveWindow) (result.LiveStepOutcome, error) {
	out := result.LiveStepOutcome{Name: step.Name}
	r.say("step %s: %s\n  by hand it is set back with: %s", step.Name, text(step), byHand(planned(step)))
	cause := r.attempt(ctx, meter, step, before, &out)
	if cause == nil {
		out.Kept = true
		r.say("step %s is kept: %s", step.Name, seen(before, *out.Traffic))
		return out, nil
	}
	err := r.undo(ctx)
	if ctx.Err() != nil {
		cause = interrupted(ctx, cause)
	}
	out.Why, out.Undone = cause.Error(), len(r.Record.unproven()) == 0
	if err != nil {
		return out, fmt.Errorf("step %s: %w", step.Name, errors.Join(cause, err))
	}
	r.say("step %s is set back: %v", step.Name, cause)
	return out, fmt.Errorf("step %s was set back: %w", step.Name, cause)
}

// attempt makes a step's changes, watches the traffic, and keeps them. Until it returns nothing is said.
func (r *Run) attempt(ctx context.Context, meter *meter, step result.LiveStep, before result.LiveWindow, out *result.LiveStepOutcome) error {
	if err := r.apply(ctx, step); err != nil {
		return err
	}
	now, why, err := r.watch(ctx, meter, &before)
	out.Traffic = &now
	switch {
	case why != "":
		return fmt.Errorf("%w: %s", ErrWorse, why)
	case err != nil:
		return err
	}
	return r.keep(ctx)
}

// planned returns the changes of a step that is still to be made, the last one first.
func planned(step result.LiveStep) (list []Change) {
	for _, c := range slices.Backward(step.Changes) {
		list = append(list, Change{Name: c.Name, Before: c.Before})
	}
	return list
}

// apply records each change and makes it.
func (r *Run) apply(ctx context.Context, step result.LiveStep) error {
	if err := cmp.Or(ctx.Err(), r.dog.alive()); err != nil {
		return err
	}
	for _, c := range step.Changes {
		if err := r.change(ctx, step.Name, c); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// change records one change and makes it.
func (r *Run) change(ctx context.Context, step string, c result.LiveChange) error {
	v, err := variables(ctx, r.session, c.Name)
	if err != nil {
		return err
	}
	if v[c.Name] != c.Before {
		return fmt.Errorf("%s is %s by now, and was %s when the plan was made: somebody else changes this server", c.Name, v[c.Name], c.Before)
	}
	n := len(r.Record.changes) + 1
	if err := r.Record.note(recordLine{N: n, Event: intended, Step: step, Name: c.Name, Before: c.Before, After: c.Value}); err != nil {
		return err
	}
	effective, err := r.set(ctx, "GLOBAL", c.Name, c.Value)
	if effective != "" { // also one that was not asked for: it is david's doing
		err = errors.Join(err, r.Record.note(recordLine{N: n, Event: done, After: effective}))
	}
	return err
}

// set is not interrupted: a statement that was cut off could still take effect after it was set back.
func (r *Run) set(ctx context.Context, scope, name, value string) (string, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 4*settle)
	defer cancel()
	return set(ctx, r.session, scope, name, value)
}

// keep persists the changes of a step where that was asked for, and puts on record that they stay. Where
// somebody else has changed one meanwhile, what was watched was not the step.
func (r *Run) keep(ctx context.Context) error {
	changes := r.Record.unproven()
	var lines []recordLine
	for _, c := range changes {
		v, err := variables(ctx, r.session, c.Name)
		if err != nil {
			return err
		}
		if v[c.Name] != c.After {
			return fmt.Errorf("%s is %s by now, and david set %s: somebody else changes this server", c.Name, v[c.Name], c.After)
		}
		lines = append(lines, recordLine{N: c.N, Event: kept})
	}
	for _, c := range changes {
		if err := r.persist(ctx, c); err != nil {
			return err
		}
	}
	return r.Record.note(lines...)
}

// persist has a change outlive a restart, where that was asked for.
func (r *Run) persist(ctx context.Context, c Change) error {
	if !r.Persist {
		return nil
	}
	old, err := persisted(ctx, r.session, c.Name)
	if err != nil {
		return err
	}
	if err := r.Record.note(recordLine{N: c.N, Event: persisting, Persisted: old}); err != nil {
		return err
	}
	_, err = r.set(ctx, "PERSIST", c.Name, c.After)
	return err
}

// reconnectFor says how long a server is waited for that has a change to be set back.
const reconnectFor = 2 * time.Minute

// undo sets back what was not kept, also after an interruption, and reconnects for it. Where that is not
// possible the error has the statements that do it.
func (r *Run) undo(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reconnectFor)
	defer cancel()
	return setBack(ctx, r.Addr, r.session, r.Record)
}

// setBack sets back what was not kept, again and again until it is done or the context ends: through the
// session while that holds, then through others.
func setBack(ctx context.Context, addr mysqld.Addr, s *session, r *Record) error {
	for len(r.unproven()) > 0 {
		err := setBackOnce(ctx, addr, s, r)
		switch {
		case len(r.unproven()) == 0:
			return err
		case s != nil: // it may be lost
			s = nil
		case !passing(err) || pause(ctx, time.Second) != nil:
			return fmt.Errorf("%w: %w; by hand: %s", ErrNotUndone, err, byHand(r.unproven()))
		}
	}
	return nil
}

// setBackOnce sets back what can be, also where a value is another's by now, which is left and told. A
// session that it opened, or that fails, gives its lock back.
func setBackOnce(ctx context.Context, addr mysqld.Addr, s *session, r *Record) (err error) {
	opened := s == nil
	if opened {
		if s, err = openSession(ctx, addr); err != nil {
			return err
		}
	}
	var u Undone
	err = u.undo(ctx, s, r, r.unproven(), false)
	if opened || len(r.unproven()) > 0 {
		err = errors.Join(err, s.close())
	}
	return err
}

// passing tells of an error that may pass: no connection, another david, or a refusal as while a buffer pool
// is being resized.
func passing(err error) bool {
	if errors.Is(err, mysqld.ErrPrivilege) || errors.Is(err, mysqld.ErrAccess) {
		return false
	}
	return errors.Is(err, mysqld.ErrUnreachable) || errors.Is(err, mysqld.ErrDeadline) || errors.Is(err, ErrBusy) || errors.Is(err, errSettling) || mysqld.Number(err) != 0
}

// byHand returns the SQL that sets changes back.
func byHand(changes []Change) string {
	var list []string
	for _, c := range changes {
		list = append(list, c.backStatements()...)
	}
	return strings.Join(list, "; ") + ";"
}

func (r *Run) note(out result.LiveOutcome) error {
	if r.Note == nil {
		return nil
	}
	return r.Note(out)
}

func (r *Run) say(format string, args ...any) { r.Say(fmt.Sprintf(format, args...)) }

// text returns a step's changes in a line.
func text(step result.LiveStep) string {
	var list []string
	for _, c := range step.Changes {
		list = append(list, fmt.Sprintf("%s %s -> %s", c.Name, mycnf.AsWritten(c.Name, c.Before), c.Value))
	}
	return strings.Join(list, ", ")
}
