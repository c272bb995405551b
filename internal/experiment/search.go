package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"david/internal/result"
	"david/internal/stats"
	"david/internal/workload"
)

// Search looks for the highest rate of an open loop that keeps the experiment's goal for the latency, and
// returns what the experiment's finish says of it: how it ended, and a sentence, which begins with the rate
// where one was found. The closed loop with the same threads is measured first. Runs that the store holds
// already are not repeated: the search comes to the same questions again.
func (e *Engine) Search(ctx context.Context, arm result.Arm, load result.Workload) (end result.Finish, err error) {
	e.Report = quiet(e.Report)
	s, err := e.newSearch(arm, load)
	if err != nil {
		return end, err
	}
	closed, err := s.undisturbed(ctx, 0)
	if err != nil {
		return end, err
	}
	if s.arm.Effective != nil { // not where the run came from the store, which has it
		if err := e.Store.PutArm(*s.arm); err != nil {
			return end, err
		}
	}
	o := defaultSLO()
	o.Least = least(s.goal, load.Seconds)
	if closed.TPS > 0 && closed.TPS < o.Least {
		end.RateSearch = &result.RateSearch{Outcome: result.RateUnjudged}
		end.Best = fmt.Sprintf("No rate can be judged: %s; %s", s.beside(closed), s.floor(closed.TPS))
		return end, nil
	}
	rate, found, best, err := searchRate(closed.TPS, s.goal, func(rate float64) (float64, bool, error) { return s.probe(ctx, rate) }, o)
	if err != nil {
		return end, err
	}
	if found {
		end.RateSearch = &result.RateSearch{Outcome: result.RateFound, TPS: rate}
		end.Best = fmt.Sprintf("%.0f transactions/s keep %s: %s at worst in %d runs that confirmed it (%s)", rate, s.wanted(), millis(best.LatencyMs), o.Confirm, s.beside(closed))
		return end, nil
	}
	end.RateSearch = &result.RateSearch{Outcome: result.RateNone}
	end.Best = fmt.Sprintf("No rate keeps %s: the best seen was %s at %.0f transactions/s (%s)", s.wanted(), millis(best.LatencyMs), best.Rate, s.beside(closed))
	if s.stopped(o) {
		end.Best += "; " + s.floor(closed.TPS)
	}
	return end, nil
}

// beside returns what the closed loop did.
func (s *rateSession) beside(closed result.Trial) string {
	return fmt.Sprintf("closed loop with %d threads: %.0f at %s %s", s.load.Threads, closed.TPS, s.percentile(), millis(stats.Percentile(closed.Histogram, s.goal.Percentile)))
}

func (s *rateSession) percentile() string { return fmt.Sprintf("p%g", s.goal.Percentile) }

func (s *rateSession) wanted() string {
	return fmt.Sprintf("%s at or below %s ms", s.percentile(), strconv.FormatFloat(s.goal.Ms, 'f', -1, 64))
}

// millis formats a latency: three digits, or all before the point.
func millis(ms float64) string {
	if ms >= 100 {
		return fmt.Sprintf("%.0f ms", ms)
	}
	return fmt.Sprintf("%.3g ms", ms)
}

// least returns the rate, in transactions/s, below which a run of so many seconds says nothing about the
// goal's percentile: fewer than ten transactions would lie above it, and which they are is luck.
func least(goal result.SLO, seconds int) float64 {
	const noise = 1e-6 // of 100 - 99.9
	return math.Round(1000/((100-goal.Percentile)*float64(seconds))/noise) * noise
}

// stopped tells whether the search ended since the next lower rate could not have been judged.
func (s *rateSession) stopped(o sloOptions) bool {
	lowest, probes := math.Inf(1), 0
	for rate, n := range s.runs {
		if rate > 0 {
			lowest, probes = min(lowest, rate), probes+n
		}
	}
	return probes < o.Probes && min(lowest-1, lowest*(1-o.Tolerance)) < o.Least
}

// floor says below which rate nothing can be judged, and how long a trial must be to judge a tenth of the
// closed loop's throughput (transactions/s), or at least half the rate.
func (s *rateSession) floor(closed float64) string {
	seconds := max(2*float64(s.load.Seconds), math.Ceil(least(s.goal, 1)/(closed/10)))
	return fmt.Sprintf("rates below %.0f/s cannot be judged in trials of %d s: %s needs ten transactions above it; give --time %.0fs",
		math.Ceil(least(s.goal, s.load.Seconds)), s.load.Seconds, s.percentile(), seconds)
}

// ErrDisturbed marks a search that was given up as its runs were disturbed: nothing is concluded.
var ErrDisturbed = errors.New("a run was disturbed")

// rateSession carries a search for a rate under way, and knows the runs on record.
type rateSession struct {
	*Engine
	arm  *result.Arm
	load result.Workload
	goal result.SLO
	runs map[float64]int // of each rate so far
	done map[string]result.Trial
}

func (e *Engine) newSearch(arm result.Arm, load result.Workload) (*rateSession, error) {
	trials, err := e.Store.Trials()
	if err != nil {
		return nil, err
	}
	s := &rateSession{Engine: e, arm: &arm, load: load, goal: *e.Store.Experiment().Design.SLO, runs: map[float64]int{}, done: map[string]result.Trial{}}
	for _, t := range trials {
		s.done[t.ID] = t
	}
	e.plan = newPlan(max(1, 10-len(trials)), expected(load)) // most searches take about 10 runs
	return s, nil
}

// run runs the workload at a rate, 0 being the closed loop, or takes the run from the store, where it is
// known.
func (s *rateSession) run(ctx context.Context, rate float64) (t result.Trial, known bool, err error) {
	s.runs[rate]++
	j := trialJob{arm: s.arm, block: s.runs[rate], load: s.load}
	j.load.Rate = rate
	if t, ok := s.done[s.id(j)]; ok {
		s.plan.skipped()
		return t, true, nil
	}
	began := time.Now()
	ran, err := s.Engine.run(ctx, j)
	if errors.Is(err, workload.ErrQueueFull) {
		ran, err = s.failed(j, result.GateQueue, err, began)
	}
	if err != nil {
		return t, false, err
	}
	s.emit(Event{Line: searchLine(j, *ran, s.goal)})
	return *ran, false, nil
}

// missed returns the gates that fail when a rate is too high; any other says that the run was disturbed and
// tells nothing about the rate.
func missed() []result.GateName {
	return []result.GateName{result.GateQueue, result.GateErrors, result.GateSteady, result.GateTransactions, result.GateReconnects, result.GateServer}
}

// undisturbed runs a rate, once more where the run was disturbed; ErrDisturbed where that one was too.
// Disturbed runs of an earlier session do not count: it was given up for them, and this one is to be calmer.
func (s *rateSession) undisturbed(ctx context.Context, rate float64) (t result.Trial, err error) {
	for fresh := 0; fresh < 2; {
		var known bool
		if t, known, err = s.run(ctx, rate); err != nil {
			return t, err
		}
		if !known {
			fresh++
		}
		i := slices.IndexFunc(t.Gates, func(g result.Gate) bool { return !g.OK && !slices.Contains(missed(), g.Name) })
		if i < 0 {
			return t, nil
		}
		err = fmt.Errorf("%w twice: %s: %s", ErrDisturbed, t.Gates[i].Name, t.Gates[i].Detail)
	}
	return t, err
}

// probe returns what searchRate asks.
func (s *rateSession) probe(ctx context.Context, rate float64) (ms float64, ok bool, err error) {
	t, err := s.undisturbed(ctx, rate)
	if err != nil {
		return 0, false, err
	}
	if ok, _ = t.Valid(); len(t.Histogram) == 0 {
		return math.Inf(1), false, nil
	}
	return stats.Percentile(t.Histogram, s.goal.Percentile), ok, nil
}

func searchLine(j trialJob, t result.Trial, goal result.SLO) string {
	offered := "closed loop"
	if j.load.Rate > 0 {
		offered = fmt.Sprintf("%.0f transactions/s offered", j.load.Rate)
	}
	line := fmt.Sprintf("%s: %.1f done, p%g %.2f ms", offered, t.TPS, goal.Percentile, stats.Percentile(t.Histogram, goal.Percentile))
	if ok, failed := t.Valid(); !ok {
		line += ", invalid: " + failed[0]
	}
	return line
}
