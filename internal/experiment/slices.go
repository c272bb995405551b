package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/stats"
	"david/internal/workload"
)

// The rounds of an incarnation where the design leaves them open: enough of them that starting and warming up
// is not most of the time, and not so many that a start, which moves a result by itself, is tried but once or
// twice.
const (
	leastRounds = 4
	mostRounds  = 24
	// fewestStarts of each server, as what a start does is not seen in one incarnation.
	fewestStarts = 2
	// leastAdded is the time, in seconds, that a session which goes on has an incarnation for, however long
	// those before were: half of the least that --continue adds.
	leastAdded = 30
	// expectedSlice estimates what a slice is first expected to take besides its load, in seconds:
	// connecting, preparing statements, reading counters, freezing.
	expectedSlice = 1.5
	// expectedRaise estimates the same of a server's start with its tables read once, in seconds.
	expectedRaise = 10
)

// LeastSliced returns what the fewest incarnations of so many servers, and rounds of so many arms that run on them, are
// expected to take.
func LeastSliced(servers, arms int, d result.Slices, loads []result.Workload) time.Duration {
	warmup := 0
	for _, w := range loads {
		warmup = max(warmup, min(w.Warmup, expectedRaise))
	}
	raise := expectedRaise/2 + float64(warmup)/2
	round := float64(len(loads)) * (float64(d.Seconds) + expectedSlice)
	return time.Duration(float64(d.Incarnations)*(float64(servers)*raise+float64(arms)*leastRounds*round)) * time.Second
}

// sliced runs an experiment in slices: the arms' servers are up together and loaded in turn.
type sliced struct {
	*blocks
	fleet       *fleet
	began       time.Time
	spent       float64 // by earlier sessions, in seconds
	session     int
	incarnation int // the one that is on
	begun       int // incarnations, by this session
	round       int // the last that was run, over all incarnations
	rounds      int // of an incarnation
	// share is the time that one wave of the incarnation may take, in seconds.
	share float64
	// had counts the rounds each arm has had beside the control: with waves not every round is one of every
	// arm.
	had map[string]int
	// whole counts the rounds of the present wave in which an arm had a slice under every load, and ended
	// says why its server did.
	whole map[string]int
	ended map[string]error
	// idle counts the waves running in which each arm's server ended before one round was over.
	idle map[string]int
}

// mostIdle ends of an arm's server before one round is over are enough: it will end so always.
const mostIdle = 2

// RunSlices measures the arms in rounds: a round has one slice of each arm under each workload, in random
// order, on servers that stay up and are frozen while another one is loaded. After so many rounds every arm
// has a new incarnation, on a fresh clone. What does not fit into memory side by side takes turns, each
// beside the control. Rounds that the store holds are not run again; what is run now is a session of its own.
func (e *Engine) RunSlices(ctx context.Context, arms []result.Arm, loads []result.Workload) (err error) {
	e.Report = quiet(e.Report)
	b := &blocks{Engine: e, design: e.Store.Experiment().Design, arms: arms, loads: loads}
	e.plan = newPlan(0, 0) // until it is known which rounds there are
	if err := b.inspect(ctx); err != nil {
		return err
	}
	s := &sliced{blocks: b, fleet: newFleet(e), began: time.Now(), rounds: b.design.Slices.Rounds, idle: map[string]int{}}
	if err := s.resume(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.fleet.close(context.WithoutCancel(ctx))) }()
	for {
		more, err := s.more()
		if err != nil || !more {
			return err
		}
		s.incarnation++
		s.begun++
		waves := s.waves()
		s.share = s.turn(len(waves))
		for _, wave := range waves {
			if err := s.wave(ctx, wave); err != nil {
				return err
			}
		}
	}
}

// resume counts on from what the store holds.
func (s *sliced) resume() error {
	trials, err := s.Store.Trials()
	if err != nil {
		return err
	}
	for _, t := range trials {
		s.session, s.incarnation, s.round = max(s.session, t.Session), max(s.incarnation, t.Incarnation), max(s.round, t.Block)
		s.spent += t.Took()
	}
	s.had = roundsBeside(s.design.Control, trials, len(s.loads))
	s.session++
	if s.design.Budget > 0 {
		s.fleet.plan.ends = time.Now().Add(time.Duration((s.design.Budget - s.spent) * float64(time.Second)))
	}
	return nil
}

// roundsBeside counts how many rounds each arm has had under so many loads in which the control had its
// slices too. One in which its server ended is none.
func roundsBeside(control string, trials []result.Trial, loads int) map[string]int {
	type place struct {
		arm   string
		round int
	}
	had, sum := map[place]int{}, map[string]int{}
	for _, t := range trials {
		if !slices.ContainsFunc(t.Gates, func(g result.Gate) bool { return g.Name == result.GateServer }) {
			had[place{t.Arm, t.Block}]++
		}
	}
	for at, n := range had {
		if n >= loads && had[place{control, at.round}] >= loads {
			sum[at.arm]++
		}
	}
	return sum
}

// elapsed returns what all sessions have taken, in seconds.
func (s *sliced) elapsed() float64 { return s.spent + time.Since(s.began).Seconds() }

// more tells whether another incarnation is to be run.
func (s *sliced) more() (bool, error) {
	if s.feasible() != nil { // all the others were killed for memory
		return false, nil
	}
	if s.design.Blocks > 0 {
		return s.fewest(s.arms) < s.design.Blocks, nil
	}
	if s.incarnation < min(fewestStarts, s.design.Slices.Incarnations) {
		return true, nil
	}
	arms, err := s.Store.Arms()
	if err != nil {
		return false, err
	}
	trials, err := s.Store.Trials()
	if err != nil {
		return false, err
	}
	if s.design.Precision > 0 && precise(stats.Compare(s.design, arms, trials), s.design.Precision) {
		s.emit(Event{Line: fmt.Sprintf("every ratio is known within ±%.3g %% after %d rounds", 100*s.design.Precision, s.round)})
		return false, nil
	}
	if s.begun == 0 && s.design.Budget-s.elapsed() >= leastAdded {
		return true, nil
	}
	if next := s.elapsed() / float64(max(1, s.incarnation)); s.elapsed()+0.7*next > s.design.Budget {
		s.emit(Event{Line: fmt.Sprintf("the budget is used up after %d rounds of %d starts", s.round, s.incarnation)})
		return false, nil
	}
	return true, nil
}

// turn returns the time, in seconds, that each of so many waves of the next incarnation may take.
func (s *sliced) turn(waves int) float64 {
	return min(s.design.Budget/float64(s.design.Slices.Incarnations), s.design.Budget-s.elapsed()) / float64(waves)
}

// waves returns the arms that run, by their place in the list, in sets that fit into memory side by side, the
// control in each.
func (s *sliced) waves() (list [][]int) {
	control := s.index(s.design.Control)
	room := s.Memory
	need := func(i int) int64 { return s.Footprint(s.arms[i]) }
	var wave []int
	left := int64(0)
	for _, i := range without(len(s.arms), control) {
		if !s.runs(s.arms[i]) {
			continue
		}
		if len(wave) > 1 && need(i) > left {
			list, wave = append(list, wave), nil
		}
		if len(wave) == 0 {
			wave, left = []int{control}, room-need(control)
		}
		wave, left = append(wave, i), left-need(i)
	}
	if len(wave) > 0 {
		list = append(list, wave)
	}
	return list
}

// wave brings up the servers of some arms, the control first, loads them in turn, and takes them down.
func (s *sliced) wave(ctx context.Context, arms []int) error {
	s.whole, s.ended = map[string]int{}, map[string]error{}
	before, began := s.round, time.Now()
	if err := s.raiseAll(ctx, arms); err != nil {
		return err
	}
	raised := time.Since(began).Seconds()
	most := s.planned(arms, raised)
	for n := range most {
		if s.design.Budget > 0 && n >= leastRounds && s.incarnation > 1 && s.elapsed() > s.design.Budget {
			break
		}
		if len(s.fleet.up) < 2 || s.fleet.up[s.design.Control] == nil {
			break
		}
		if err := s.runLoads(ctx, arms); err != nil {
			return err
		}
	}
	for _, i := range arms {
		if err := s.drop(ctx, i); err != nil {
			return err
		}
	}
	if s.round == before && len(s.ended) > 0 {
		s.round++ // the next one's slices must not take the place of what is on record of the end
	}
	return s.judge(arms)
}

// raiseAll brings the servers up, the control's first: without it the others have nothing to stand beside.
func (s *sliced) raiseAll(ctx context.Context, arms []int) error {
	for n, i := range arms {
		if n == 1 && s.fleet.up[s.design.Control] == nil {
			break
		}
		if err := s.raise(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

// runLoads runs a round of every load.
func (s *sliced) runLoads(ctx context.Context, arms []int) error {
	s.round++
	took := map[int]int{}
	for l := range s.loads {
		tps, err := s.runRound(ctx, arms, l)
		if err != nil {
			return err
		}
		for i := range tps {
			took[i]++
		}
	}
	s.count(took)
	return nil
}

// count counts a round for the arms that had a slice under every load in it.
func (s *sliced) count(took map[int]int) {
	control := took[s.index(s.design.Control)] == len(s.loads)
	for i, n := range took {
		if n < len(s.loads) {
			continue
		}
		s.whole[s.arms[i].Name]++
		if control {
			s.had[s.arms[i].Name]++
		}
	}
}

// judge excludes the arms whose servers ended before one round was over, twice running: they would be started
// for ever. Without the control there is no experiment.
func (s *sliced) judge(arms []int) error {
	for _, i := range arms {
		name := s.arms[i].Name
		why := s.ended[name]
		if s.whole[name] > 0 {
			s.idle[name] = 0
		} else if why != nil {
			s.idle[name]++
		}
		if s.idle[name] < mostIdle || !s.runs(s.arms[i]) {
			continue
		}
		why = fmt.Errorf("its server ended before one round was over, %d starts running: %w", mostIdle, why)
		if name == s.design.Control {
			return fmt.Errorf("nothing can be compared with the control, %s: %w", name, why)
		}
		if err := s.exclude(s.sliceJob(i, 0), why); err != nil {
			return err
		}
	}
	return nil
}

// planned returns how many rounds a wave has: as the design says, or what its share of the budget leaves
// beside bringing the servers up, which took so many seconds.
func (s *sliced) planned(wave []int, raised float64) int {
	if s.design.Blocks > 0 {
		each := (s.design.Blocks + s.design.Slices.Incarnations - 1) / s.design.Slices.Incarnations
		var own []result.Arm
		for _, i := range wave[1:] {
			own = append(own, s.arms[i])
		}
		return max(1, min(each, s.design.Blocks-s.fewest(own)))
	}
	if s.rounds > 0 {
		return s.rounds
	}
	round := float64(len(wave)*len(s.loads)) * (float64(s.design.Slices.Seconds) + expectedSlice)
	return min(mostRounds, max(leastRounds, int((s.share-raised)/round)))
}

// fewest returns how many rounds the arm has had, of those that run, that has had the fewest, the control not
// counted.
func (s *sliced) fewest(arms []result.Arm) int {
	least := math.MaxInt
	for _, a := range arms {
		if a.Name != s.design.Control && s.runs(a) {
			least = min(least, s.had[a.Name])
		}
	}
	return least
}

func (s *sliced) sliceJob(i, load int) trialJob {
	j := s.job(s.round, load, 0, blockCell{arm: i})
	j.incarnation, j.session = s.incarnation, s.session
	j.load.Seconds = s.design.Slices.Seconds
	return j
}

// raise brings up an arm's server. One that does not come up takes no part in this incarnation; for want of
// memory, in none.
func (s *sliced) raise(ctx context.Context, i int) error {
	j := s.sliceJob(i, 0)
	j.block = s.round + 1 // that it ended must not take the place of its slice of the last round
	began := time.Now()
	err := s.fleet.raise(ctx, j)
	return s.spoilt(j, err, began)
}

// spoilt makes of a server's end what the comparison needs to know of it: an arm other than the control that
// is killed for memory cannot be run, and a server that ended is on record as an invalid slice.
func (s *sliced) spoilt(j trialJob, err error, began time.Time) error {
	switch {
	case err == nil:
		return nil
	case j.base != nil && errors.Is(err, sandbox.ErrMemory), j.base != nil && errors.Is(err, workload.ErrRows):
		return errors.Join(s.abandon(j), s.exclude(j, err))
	case errors.Is(err, ErrEnded), errors.Is(err, workload.ErrQueueFull):
		s.ended[j.arm.Name] = err
		_, storeErr := s.failed(j, result.GateServer, err, began)
		return errors.Join(s.abandon(j), storeErr)
	}
	return err
}

// abandon ends what is left of an arm's server.
func (s *sliced) abandon(j trialJob) error {
	st := s.fleet.up[j.arm.Name]
	if st == nil {
		return nil
	}
	delete(s.fleet.up, j.arm.Name)
	return st.end(context.Background())
}

// runRound loads each of the servers that are up once, in an order that follows from the seed and the round.
// It returns the throughput of those that had a slice.
func (s *sliced) runRound(ctx context.Context, arms []int, load int) (map[int]float64, error) {
	order := slices.Clone(arms)
	r := rand.New(rand.NewPCG(s.design.Seed, uint64(s.round)<<32|uint64(load)))
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	tps, valid := map[int]float64{}, map[int]bool{}
	for place, i := range order {
		j := s.sliceJob(i, load)
		j.place = place + 1
		if s.fleet.up[j.arm.Name] == nil {
			continue
		}
		began := time.Now()
		t, err := s.fleet.slice(ctx, s.fleet.up[j.arm.Name], j)
		if err := s.spoilt(j, err, began); err != nil {
			return nil, err
		}
		if t != nil {
			tps[i] = t.TPS
			ok, _ := t.Valid()
			valid[i] = ok
		}
	}
	s.emit(Event{Line: s.roundLine(arms, load, tps, valid)})
	return tps, nil
}

// roundLine returns what the screen keeps of a round.
func (s *sliced) roundLine(arms []int, load int, tps map[int]float64, valid map[int]bool) string {
	var parts []string
	control := tps[arms[0]]
	for _, i := range arms {
		part := fmt.Sprintf("%s %.0f tps", s.arms[i].Name, tps[i])
		switch {
		case tps[i] > 0 && !valid[i]:
			part += " (invalid)"
		case i != arms[0] && valid[arms[0]] && control > 0 && tps[i] > 0:
			part += fmt.Sprintf(" (%.2fx)", tps[i]/control)
		}
		parts = append(parts, part)
	}
	head := fmt.Sprintf("round %d", s.round)
	if len(s.loads) > 1 {
		head += fmt.Sprintf(", %d threads", s.loads[load].Threads)
	}
	return head + ": " + strings.Join(parts, ", ")
}

// drop ends an arm's server after its last slice.
func (s *sliced) drop(ctx context.Context, i int) error {
	return s.spoilt(s.sliceJob(i, 0), s.fleet.drop(ctx, s.arms[i].Name), time.Now())
}
