package stats

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"david/internal/result"
)

// unit names what pairs come from.
func (b blocks) unit() string {
	if b.sliced {
		return "round"
	}
	return "pair"
}

// whole names what an arm and the control run in together. Rounds of slices need not hold every arm: a race
// has some up at a time.
func (b blocks) whole() string {
	if b.sliced {
		return "round"
	}
	return "block"
}

// slice returns an arm's slice of a round.
func (s *armSample) slice(round int) (result.Trial, bool) {
	for _, t := range s.valid {
		if t.Block == round {
			return t, true
		}
	}
	return result.Trial{}, false
}

// rounds returns those in which both an arm and the control have a valid slice, in their order, with the
// logarithms of a value.
func (b blocks) rounds(s *armSample, value func(result.Trial) float64) (list []Round) {
	controls, at := b.samples[b.name].logs(value), s.times()
	for block, own := range byBlock(s.logs(value)) {
		control, ok := controls[block]
		if !ok {
			continue
		}
		t, _ := s.slice(block)
		other, _ := b.samples[b.name].slice(block)
		r := Round{At: at[place(t)], Session: t.Session, Incarnation: t.Incarnation, Arm: own, Control: control, Disturbed: (taken(t) + taken(other)) / 2, Imbalance: taken(t) - taken(other)}
		if t.TPS > 0 && other.TPS > 0 {
			r.Speeds = &[2]float64{math.Log(t.TPS), math.Log(other.TPS)}
		}
		var ours, theirs bool
		r.ArmClient, r.ArmUsed, ours = client(t)
		r.ControlClient, r.ControlUsed, theirs = client(other)
		r.Referred = ours && theirs
		list = append(list, r)
	}
	return list
}

func seconds(t result.Trial) float64 { return float64(t.Started.UnixMilli()) / 1000 }

// place tells the slices of an arm apart.
func place(t result.Trial) [2]int { return [2]int{t.Block, t.Place} }

// times returns when the arm's slices began, in seconds. Where the machine's clock was set back meanwhile,
// dates go backwards from one slice of a session to the next: from there on all are moved, so that the later
// one follows the earlier one as that followed the one before it.
func (s *armSample) times() map[[2]int]float64 {
	at := make(map[[2]int]float64, len(s.valid))
	var last result.Trial
	var shift, apart float64
	for i, t := range slices.SortedStableFunc(slices.Values(s.valid), inTime) {
		if i == 0 || t.Session != last.Session {
			shift, apart = 0, 0
		} else if before := at[place(last)]; seconds(t)+shift < before {
			shift = before + max(apart, last.Took()) - seconds(t)
		} else {
			apart = seconds(t) + shift - before
		}
		at[place(t)], last = seconds(t)+shift, t
	}
	return at
}

// inTime orders the slices of an arm as they were measured, whatever their dates say.
func inTime(a, b result.Trial) int {
	return cmp.Or(cmp.Compare(a.Session, b.Session), cmp.Compare(a.Incarnation, b.Incarnation), cmp.Compare(a.Block, b.Block), cmp.Compare(a.Place, b.Place),
		a.Started.Compare(b.Started))
}

// taken returns the share of the machine's CPU time that others took.
func taken(t result.Trial) float64 {
	if t.Disturbance == nil {
		return 0
	}
	return t.Disturbance.Steal + t.Disturbance.Others
}

// infer fills in the ratio to the control by the model of slices (posterior.go).
func (b blocks) infer(r *Arm, s *armSample) {
	rounds := b.rounds(s, b.metric.Worth)
	e := FromRounds(rounds)
	if b.metric == ByThroughput && b.margin == 0 { // between transports clients differ
		e, r.Reference = e.referred(rounds)
	}
	r.Ratio, r.Interval, r.P, r.Odds = e.Ratio, e.Interval, e.P, e.Odds
	r.log = logMean{mean: math.Log(e.Ratio), posterior: e.posterior}
	sessions, incarnations := map[int]bool{}, map[[2]int]bool{}
	for _, x := range rounds {
		sessions[x.Session], incarnations[[2]int{x.Session, x.Incarnation}] = true, true
	}
	r.Sessions, r.Incarnations = len(sessions), len(incarnations)
	r.Method = fmt.Sprintf("slices: %s, %s, %s", count(len(rounds), "round"), count(r.Incarnations, "start"), count(r.Sessions, "session"))
	if r.Reference != nil {
		r.Method += ", adjusted for " + r.Reference.what()
	}
}

// slicedMean returns the geometric mean of a value over the slices, with its interval by the same model.
func (s *armSample) slicedMean(value func(result.Trial) float64) (float64, Interval) {
	var rounds []Round
	at := s.times()
	for _, t := range s.valid {
		if v := value(t); v > 0 {
			rounds = append(rounds, Round{At: at[place(t)], Session: t.Session, Incarnation: t.Incarnation, Arm: math.Log(v), Disturbed: taken(t)})
		}
	}
	e := FromRounds(rounds)
	return e.Ratio, e.Interval
}
