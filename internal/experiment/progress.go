package experiment

import (
	"fmt"
	"time"

	"david/internal/result"
)

// Event tells one thing worth showing while an experiment runs.
type Event struct {
	Text string // what is being done, in a few words
	Step string // the same without the figures of the moment; "" where Text has none
	Line string // not empty: a result to keep on the screen
	// Trial tells that Text is a step of a trial, whose result is yet to come as a line.
	Trial bool
	Done  time.Duration // since the start
	Left  time.Duration // expected; 0 where nobody knows. It may rise: see countdown in internal/cli
	// Where this is: the phase of a tune, the arm, the round or block; none where it is of no trial.
	Phase result.Phase
	Arm   string
	Round int
	Point *result.Point // a second of load
}

// timePlan estimates the time left: trials to come, at the length the finished ones had.
type timePlan struct {
	began  time.Time
	trials int           // still to run, the present one included
	each   time.Duration // expected length of one
	since  time.Time     // start of the present one
	ends   time.Time     // of a budget, which is what is left then; zero: there is none
}

func newPlan(trials int, each time.Duration) timePlan {
	now := time.Now()
	return timePlan{began: now, since: now, trials: trials, each: each}
}

func (p *timePlan) finished(took time.Duration) {
	p.skipped()
	p.each = took
}

func (p *timePlan) skipped() {
	p.trials = max(0, p.trials-1)
	p.since = time.Now()
}

func (p *timePlan) left() time.Duration {
	if !p.ends.IsZero() {
		return max(0, time.Until(p.ends))
	}
	return max(0, time.Duration(p.trials)*p.each-time.Since(p.since))
}

func (e *Engine) emit(ev Event) {
	ev.Done, ev.Left = time.Since(e.plan.began), e.plan.left()
	e.Report(ev)
}

func (e *Engine) say(j trialJob, what string) {
	e.emitOf(j, Event{Text: fmt.Sprintf("%s: %s", label(j), what)})
}

// emitOf emits what is of one trial.
func (e *Engine) emitOf(j trialJob, ev Event) {
	ev.Trial, ev.Phase, ev.Arm, ev.Round = true, j.phase, j.arm.Name, j.block
	e.emit(ev)
}

// sayOfServer says what is done to the server. One that is not david's is neither started nor shut down.
func (e *Engine) sayOfServer(j trialJob, what string) {
	if _, theirs := e.Target.(Remote); !theirs {
		e.say(j, what)
	}
}

func (e *Engine) second(j trialJob, p result.Point) {
	phase := "measuring"
	if p.Warm {
		phase = "warming up"
	}
	step := label(j) + ": " + phase
	e.emitOf(j, Event{Step: step, Text: fmt.Sprintf("%s, %.0f tps, p95 %.1f ms", step, p.TPS, p.P95), Point: &p})
}

// label names a job as its reader would: the arm, the threads where they vary, the repeat from the second on.
func label(j trialJob) string {
	name := j.arm.Name
	if j.twin {
		name += " again"
	}
	s := fmt.Sprintf("%s, %d threads", name, j.load.Threads)
	if j.block > 1 {
		s += fmt.Sprintf(", run %d", j.block)
	}
	return s
}
