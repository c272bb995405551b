package stats

import (
	"fmt"
	"math"

	"david/internal/result"
)

// Where CPUs are short, a host that is slower for some seconds makes the server's work and the
// load generator's take longer alike, and the throughput falls as both rise. The generator does the same for
// every transaction, whatever the arm, so its CPU time per transaction says how fast the host was: throughput
// times that time, its share of the CPUs, does not change with the host. In pairs of a control with itself
// the scatter fell from 9.0 to 2.2 % so.
//
// That holds within one regime only: a client of a server that waits wakes up more often (503 against 405
// microseconds a transaction), and where the disk decides, the throughput does not follow the host. So the
// ratio is adjusted only where both arms keep the CPUs as busy and their clients took as long, on the mean,
// and where it has shown in each half of the rounds that it scatters less.

// The limits of adjusting.
const (
	// referenceSpread stands for what is not known of two arms' clients being alike, as a standard deviation:
	// six CPU-bound arms that differed by 9.4 % in throughput differed by 1.4 % in throughput times client
	// CPU.
	referenceSpread = 0.014
	// oneRegime bounds how far the logarithms of what arms use of the CPUs may be apart.
	oneRegime = 0.1
	// oneClient bounds the same of the means of their clients' time per transaction: of pairs in turn the
	// host's part of that is a few per cent.
	oneClient = 0.05
	// narrower bounds how much of the variance of the log-ratios may be left, in the odd rounds and in the
	// even ones.
	narrower = 0.5
	// leastReferred sets the fewest rounds that can show it.
	leastReferred = 6
)

// Reference says how a ratio was adjusted, beside the ratio as it was measured.
type Reference struct {
	By       By       `json:"by"`
	Ratio    float64  `json:"ratio_as_measured"`
	Interval Interval `json:"interval_as_measured"`
	// Left is the standard deviation of the adjusted log-ratios over that of those measured.
	Left float64 `json:"scatter_left"`
}

// By names what a ratio is adjusted by.
type By string

// The references.
const (
	ByClient By = "client_cpu" // the load generator's CPU time per transaction
	ByOthers By = "others"     // the share of the CPUs that others took
)

func (r Reference) what() string {
	if r.By == ByOthers {
		return "what others took of the CPUs"
	}
	return "the host's speed"
}

func (r Reference) String() string {
	how := " in each slice"
	if r.By == ByClient {
		how += " by the load generator's CPU time per transaction"
	}
	return fmt.Sprintf("as measured %.3g [%.3g, %.3g]; adjusted for %s%s, which leaves %.0f %% of the scatter", r.Ratio, r.Interval[0], r.Interval[1], r.what(), how, 100*r.Left)
}

// referred adjusts an estimate from rounds by the first reference that helps; nil where none does.
func (e Estimate) referred(rounds []Round) (Estimate, *Reference) {
	if e.posterior == nil {
		return e, nil
	}
	raw := Reference{Ratio: e.Ratio, Interval: e.Interval}
	if adjusted, left, ok := adjust(rounds); ok {
		raw.By, raw.Left = ByClient, left
		return fromReferred(adjusted), &raw
	}
	if f, left, ok := balanced(rounds, e); ok {
		raw.By, raw.Left = ByOthers, left
		return f, &raw
	}
	return e, nil
}

// client returns the logarithm of the load generator's CPU time per transaction, in microseconds, and used
// that of what server and generator use of the CPUs, in microseconds a second; ok is false where one is not
// known.
func client(t result.Trial) (own, used float64, ok bool) {
	if t.Costs.ClientCPU == nil || t.Costs.ServerCPU == nil || *t.Costs.ClientCPU <= 0 || *t.Costs.ServerCPU <= 0 || t.TPS <= 0 {
		return 0, 0, false
	}
	return math.Log(*t.Costs.ClientCPU), math.Log(t.TPS * (*t.Costs.ClientCPU + *t.Costs.ServerCPU)), true
}

// adjust returns the rounds with both arms' values times their client's CPU time per transaction, and how
// much of the scatter is left; false where that is not the same question, or does not help.
func adjust(rounds []Round) (list []Round, left float64, ok bool) {
	if len(rounds) < leastReferred {
		return nil, 0, false
	}
	apart, clients := 0.0, 0.0
	for _, r := range rounds {
		if !r.Referred {
			return nil, 0, false
		}
		apart += (r.ArmUsed - r.ControlUsed) / float64(len(rounds))
		clients += (r.ArmClient - r.ControlClient) / float64(len(rounds))
		r.Arm, r.Control, r.Speeds = r.Arm+r.ArmClient, r.Control+r.ControlClient, nil // the host's dives are in neither
		list = append(list, r)
	}
	if math.Abs(apart) > oneRegime || math.Abs(clients) > oneClient {
		return nil, 0, false
	}
	for half := range 2 {
		if !(within(list, half, 2) < narrower*within(rounds, half, 2)) { // also where each start has one round: nothing is shown
			return nil, 0, false
		}
	}
	return list, math.Sqrt(within(list, 0, 1) / within(rounds, 0, 1)), true
}

// within returns the variance of the log-ratios of every n-th round, from one on, about the mean of their
// incarnation: what a start of a server does is no noise of the host.
func within(rounds []Round, from, n int) (sum float64) {
	means, count := map[[2]int]float64{}, map[[2]int]float64{}
	of := func(r Round) [2]int { return [2]int{r.Session, r.Incarnation} }
	for i := from; i < len(rounds); i += n {
		means[of(rounds[i])] += rounds[i].Arm - rounds[i].Control
		count[of(rounds[i])]++
	}
	total := 0.0
	for i := from; i < len(rounds); i += n {
		k := of(rounds[i])
		d := rounds[i].Arm - rounds[i].Control - means[k]/count[k]
		sum, total = sum+d*d, total+1
	}
	return sum / max(1, total-float64(len(count)))
}

// referredStarts tells what starts do in units of the variance of an adjusted round: that is so small that
// they may be most of what is seen. After adjustment they were seen to move a trial by 1.6 % at most.
func referredStarts() grid {
	return grid{value: []float64{0, 0.1, 0.3, 1, 3, 10}, prior: []float64{1, 1, 1, 1, 1, 0.5}}
}

// fromReferred infers the ratio from adjusted rounds.
func fromReferred(adjusted []Round) Estimate {
	return fromRounds(adjusted, terms{referredStarts(), sessions()}).widened(referenceSpread)
}

// widened adds an independent normal doubt, as a standard deviation of the logarithm.
func (e Estimate) widened(doubt float64) Estimate {
	if e.posterior == nil {
		return e
	}
	p := posterior{weight: e.posterior.weight}
	for _, t := range e.posterior.t {
		t.Sigma = math.Hypot(t.Sigma, doubt)
		p.t = append(p.t, t)
	}
	return p.estimate(e.Rounds)
}
