// Package tune decides what to try next. It is pure: it runs nothing and reads no clock.
//
//	race -> screen -> search -> prune -> confirm -> prove
//
// Plan.Next says what is next after a history: a trial, a proof, or that the tune is done. All that it knows
// follows from the record, so an interrupted tune goes on where it stopped. What is tried comes from
// internal/rules and from internal/search inside safe bounds.
package tune

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/rules"
)

// Plan says how a tune spends its budget, and what for.
type Plan struct {
	result.TunePlan
	Problem rules.Problem
	Control result.Arm // with the caps of every arm
}

// Wish holds what a plan is made from. Times are in seconds.
type Wish struct {
	Objective string  // result.ForTPS where it is empty
	Budget    float64 // for all trials and proofs
	// Time and Warmup of every trial; Time 0: as the budget allows.
	Time, Warmup int
	Rivals       []rules.Baseline // who would race, in the order in which they are left out from the end
	MaxP95       float64          // times the control's
	RecoveryMs   float64
	Seed         uint64
	Unlocked     []string
	// Slices has it measured in slices; nil: in trials, each on a fresh server.
	Slices *result.TuneSlices
	// Quick has a trial or two of everything, whatever the budget: to see a tune from its beginning to its
	// end.
	Quick bool
	// Power has the winner proved by cuts of its disk's power, whose cache this is, instead of kills.
	Power string
}

// What things take, in seconds, before the first of them was seen: a fresh server with its tables read once
// and shut down, and a kill with its load, its recovery and its checks. Trials shorter than the least tell
// more of a checkpoint's moment than of the arm.
const (
	trialCost = 12
	killCost  = 8
	// recordCost is a disk recorded under load, cutCost a cut with its recovery and checks where both are quick:
	// what does not fit into the share is left out.
	recordCost   = 20
	cutCost      = 2
	leastSeconds = 10
	mostSeconds  = 30
	mostSteady   = 900
	// levelSeconds sets the least that a checkpoint age takes to be called level (stats.Level), and what the
	// control's takes: its redo log is small. A log of several GiB takes longLevel times a measurement, or as
	// much of it as the budget allows.
	levelSeconds = 30
	longLevel    = 7
)

// The least of a tune that concludes something: the control twice and one rival, two arms in three blocks,
// and three kills.
const (
	leastRace   = 3
	leastBlocks = 3
	leastKills  = 3
	mostKills   = 20
	mostCuts    = 500
)

// Shares of the budget, the cumulative ones of what confirmation and proofs leave over: a phase may begin
// another trial up to there, so that what one does not use is the next one's.
const (
	shortShare  = 1.0 / 120 // a trial's
	steadyShare = 0.53      // of the budget: confirmation in trials; in slices it is confirmShare
	killShare   = 0.08      // of the budget: the crash proof
	raceUntil   = 0.52
	screenUntil = 0.62
	searchUntil = 0.78
)

// NewPlan divides a budget. One that is too small for a race with one rival and for its confirmation is an
// error, which says what would fit.
func NewPlan(p rules.Problem, control result.Arm, w Wish) (Plan, error) {
	plan := Plan{Problem: p, Control: control, TunePlan: result.TunePlan{Objective: cmp.Or(w.Objective, result.ForTPS), Budget: w.Budget, RaceBlocks: raceBlocks, Blocks: leastBlocks, MostBlocks: mostBlocks, MaxP95: w.MaxP95,
		RecoveryMs: w.RecoveryMs, Seed: w.Seed, Unlocked: w.Unlocked, Machine: machineOf(p)}}
	plan.Kills = int(min(mostKills, max(leastKills, killShare*w.Budget/killCost)))
	if plan.Power = w.Power; w.Power != "" {
		plan.Kills = int(min(mostCuts, max(leastKills, (killShare*w.Budget-recordCost)/cutCost)))
	}
	if w.Slices != nil {
		return plan.sliced(w)
	}
	plan.lengths(w)
	if plan.Quick = w.Quick; w.Quick {
		plan.Rivals, plan.Screens, plan.Searches, plan.Prunes = min(2, len(w.Rivals)), 2, 3, 2
		plan.RaceBlocks, plan.Blocks, plan.MostBlocks, plan.Kills = 1, leastBlocks, leastBlocks, 2
		plan.leaveOut(w.Rivals)
		return plan, nil
	}
	least := plan.reserve(1, trialCost)
	if w.Budget < leastRace*plan.Cost+least {
		return plan, fmt.Errorf("it is too short: the control twice, one rival and the confirmation of the better one take %s at least, in trials of %d s",
			minutes(leastRace*plan.Cost+least), plan.Short.Seconds)
	}
	rest := max(leastRace*plan.Cost, w.Budget-plan.reserve(plan.challengers(), trialCost))
	plan.counts(rest, len(w.Rivals))
	plan.leaveOut(w.Rivals)
	return plan, nil
}

// LeastSliced sets the least budget, in seconds, of a tune in slices: below it there are trials.
const LeastSliced = 300

// longTune sets the budget, in seconds, from which on the confirmation has three incarnations.
const longTune = 1800

// sliced lays out a tune in slices. Its phases are bounded by their share of the time, not by numbers of
// trials.
func (p Plan) sliced(w Wish) (Plan, error) {
	if w.Budget < LeastSliced {
		return p, fmt.Errorf("it is too short: a tune in slices takes %s at least", minutes(LeastSliced))
	}
	s := *w.Slices
	s.Incarnations = 2
	warming := warmingShort
	if w.Budget >= longTune {
		s.Incarnations, warming = 3, warmingLong
	}
	p.Slices = &s
	p.Rivals, p.Screens, p.Searches, p.Prunes = len(w.Rivals), 2*len(groups())+2, mostSearches, mostPrunes
	p.Short = result.TuneLoad{Seconds: sliceSeconds, Warmup: sliceWarmup}
	each := confirmShare * w.Budget / float64(s.Incarnations)
	warmup := (warming*each - (1+float64(p.challengers()))*raiseCost) / float64(p.challengers())
	p.Steady = result.TuneLoad{Seconds: finalSeconds, Warmup: int(min(mostSteady, max(leastSeconds, warmup)))}
	p.Cost = raiseCost + sliceWarmup + sliceSeconds + sliceCost
	return p, nil
}

// leaveOut names those that there is no time for.
func (p *Plan) leaveOut(rivals []rules.Baseline) {
	for _, b := range rivals[min(p.Rivals, len(rivals)):] {
		p.LeftOut = append(p.LeftOut, b.Name)
	}
}

func minutes(seconds float64) string { return fmt.Sprintf("%.0fm", math.Ceil(seconds/60)) }

func machineOf(p rules.Problem) result.TuneMachine {
	return result.TuneMachine{CPUs: p.CPUs, Memory: p.Memory, FreeDisk: p.FreeDisk, Rotational: p.Rotational, WriteIOPS: p.WriteIOPS, Node: p.Node}
}

// lengths sets how long trials are: those asked for, or what the budget allows.
func (p *Plan) lengths(w Wish) {
	if w.Time > 0 {
		p.Short = result.TuneLoad{Seconds: w.Time, Warmup: w.Warmup}
		p.Steady = p.Short
	} else {
		p.Short.Seconds = int(min(mostSeconds, max(leastSeconds, shortShare*w.Budget)))
		p.Short.Warmup = max(3, p.Short.Seconds/3)
		p.Steady = p.steady(steadyShare*w.Budget/leastBlocks, p.Short.Seconds)
	}
	p.Cost = float64(p.Short.Seconds+p.Short.Warmup) + trialCost
}

// steady returns how long the confirmation measures and at most warms up, where a block may take so many
// seconds: most of the time goes to the checkpoint age of challengers with a large redo log, as a number
// before it has levelled off is none to quote.
func (p Plan) steady(block float64, least int) result.TuneLoad {
	controls, others := float64(p.controls()), float64(p.challengers())
	loads := block - (controls+others)*trialCost - controls*levelSeconds
	seconds := min(mostSteady, max(least, int(loads/(controls+others*(1+longLevel)))))
	warmup := (loads-controls*float64(seconds))/others - float64(seconds)
	return result.TuneLoad{Seconds: seconds, Warmup: int(min(longLevel*float64(seconds), max(float64(least), warmup)))}
}

// challengers returns how many arms are confirmed beside the control: the winner, and the best rival where
// there is time for it. In slices there is in what the default budget of a quarter of an hour leaves once the
// data are there.
func (p Plan) challengers() int {
	least := 900.0
	if p.Slices != nil {
		least = 780
	}
	if p.Budget < least {
		return 1
	}
	return 2
}

// twin tells whether the control is confirmed twice in each block, so that the noise is measured there too:
// where there is time, and where nobody knows beforehand how great it is, as of a p99.
func (p Plan) twin() bool { return p.Budget >= 3600 || p.Objective == result.ForP99 }

// controls returns how many of a block's trials of the confirmation are the control's.
func (p Plan) controls() int {
	if p.twin() {
		return 2
	}
	return 1
}

// reserve returns what confirming so many challengers and proving one take, in seconds, where a server's
// start and end take overhead.
func (p Plan) reserve(challengers int, overhead float64) float64 {
	control := float64(p.controls()) * (float64(p.Steady.Seconds+min(p.Steady.Warmup, levelSeconds)) + overhead)
	others := float64(challengers) * (float64(p.Steady.Seconds+p.Steady.Warmup) + overhead)
	return float64(p.Blocks)*(control+others) + p.CrashSeconds() + trialCost
}

// CrashSeconds returns what the crash proof may take, in seconds. Cuts of the power take their share whole.
func (p Plan) CrashSeconds() float64 {
	if p.Power != "" {
		return max(recordCost+leastKills*killCost, killShare*p.Budget)
	}
	return float64(p.Kills) * killCost
}

// counts sets how many trials each phase has at most. Trials that take less than they were expected to leave
// time for more, up to twice as many.
func (p *Plan) counts(rest float64, rivals int) {
	fit := func(share float64) int { return int(share * rest / p.Cost) }
	p.Rivals = min(rivals, max(1, fit(raceUntil)-2))
	p.Screens = upToTwice(fit(screenUntil-raceUntil), len(groups())+1)
	p.Searches = upToTwice(fit(searchUntil-screenUntil), mostSearches)
	p.Prunes = upToTwice(fit(1-searchUntil), mostPrunes)
}

// mostSearches and mostPrunes are the most trials of these phases, whatever the budget: more gain nothing
// that could be told from noise.
const (
	mostSearches = 60
	mostPrunes   = 40
)

// upToTwice returns 0 where not even an incumbent and one other trial fit.
func upToTwice(n, most int) int {
	if n < 2 {
		return 0
	}
	return min(2*n, most)
}

// ownFirst returns the order in which rivals are left out, from the end, where the time is short: david's
// rules and those that are known to be strong stay longest.
func ownFirst(list []rules.Baseline) []rules.Baseline {
	order := []string{"david-rules", "david-2025", "dedicated-8.4", "dedicated-8.0", "percona-pxc", "mysqltuner", "moco", "bitpoke", "rds-8.0", "kubeblocks", "percona-ps", "random"}
	rank := func(b rules.Baseline) int {
		if i := slices.Index(order, b.Name); i >= 0 {
			return i
		}
		return len(order)
	}
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b rules.Baseline) int { return rank(a) - rank(b) })
	return list
}

// Rivals returns the arms of a race: baselines that differ from the control, upon the user's own settings,
// strongest first.
func Rivals(control result.Arm, list []rules.Baseline) []rules.Baseline {
	var kept []rules.Baseline
	for _, b := range ownFirst(list) {
		if rules.Fingerprint(rules.Merge(control.Settings, b.Settings)) != rules.Fingerprint(control.Settings) {
			kept = append(kept, b)
		}
	}
	return kept
}

// Lineup returns the arms that a plan's race begins with, the control first.
func (p Plan) Lineup(rivals []rules.Baseline) []result.Arm {
	arms := []result.Arm{p.Control}
	for _, b := range rivals[:min(p.Rivals, len(rivals))] {
		arms = append(arms, p.arm(b.Name, b.Title+alsoKnown(b.Also), result.Race, p.Control, b.Settings))
	}
	return arms
}

func alsoKnown(names []string) string {
	text := ""
	for i, n := range names {
		if i == 0 {
			text = "; the same as "
		} else {
			text += ", "
		}
		text += n
	}
	return text
}

// arm makes an arm of its base and further settings.
func (p Plan) arm(name, title string, phase result.Phase, base result.Arm, changes []mycnf.Setting) result.Arm {
	return result.Arm{Name: name, Title: title, Phase: phase, Base: base.Name, Caps: p.Control.Caps, Changes: changes, Settings: rules.Merge(base.Settings, changes)}
}
