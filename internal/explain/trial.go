package explain

import (
	"slices"
	"strconv"
	"strings"

	"david/internal/advice"
	"david/internal/mycnf"
	"david/internal/result"
)

// dividedTrial keeps a trial with what is worked out from it once.
type dividedTrial struct {
	Input
	total  float64            // connection-seconds that are divided
	means  map[string]float64 // of the samples of the measured run
	high   float64            // share of the samples in which the redo log was nearly full
	did    amounts            // what the connections did
	looks  kinds
	disk   device
	wire   wire
	advice []advice.Finding
}

func newTrial(in Input) dividedTrial {
	t := dividedTrial{Input: in, means: means(in.Trial.Samples)}
	if in.Probed != nil && in.Limits == (Limits{}) {
		t.Limits = probed(*in.Probed)
	}
	t.total = max(0, t.connectionSeconds()-t.idle())
	t.high = t.nearlyFull()
	t.did, t.looks = t.symptoms()
	t.disk, t.wire = t.device(), t.wireUse()
	t.advice = advice.Of(Facts(t.Input)).Findings
	return t
}

// means averages each value over the samples of the measured run that have it.
func means(samples []result.Sample) map[string]float64 {
	sums, n := map[string]float64{}, map[string]float64{}
	for _, s := range samples {
		if s.At <= 0 {
			continue
		}
		for name, v := range s.Values {
			sums[name] += v
			n[name]++
		}
	}
	for name := range sums {
		sums[name] /= n[name]
	}
	return sums
}

// sum adds up the means of values; one that is missing counts as 0.
func (t dividedTrial) sum(names []string) (sum float64) {
	for _, name := range names {
		sum += t.means[name]
	}
	return sum
}

// often returns the share of the measured run's samples in which the values add up to at least least, of
// those that have the first.
func (t dividedTrial) often(least float64, names []string) float64 {
	n, high := 0.0, 0.0
	for _, s := range t.Trial.Samples {
		if _, ok := s.Values[names[0]]; s.At <= 0 || !ok {
			continue
		}
		n++
		sum := 0.0
		for _, name := range names {
			sum += s.Values[name]
		}
		if sum >= least {
			high++
		}
	}
	return ratio(high, n)
}

// connectionSeconds returns the time of all connections, whether at work or not.
func (t dividedTrial) connectionSeconds() float64 {
	n := float64(t.Trial.Workload.Threads)
	if p := t.Trial.Profile; p != nil && p.Connections > 0 {
		n = p.Connections
	}
	return n * t.Trial.Seconds
}

// idle returns the time, in connection-seconds, that connections had no transaction to do: with a rate most
// have none. It follows from how many sysbench saw at work each second.
func (t dividedTrial) idle() float64 {
	busy, n := 0.0, 0.0
	for _, p := range t.Trial.Points {
		if !p.Warm {
			busy, n = busy+float64(p.Busy), n+1
		}
	}
	if t.Trial.Workload.Rate <= 0 || busy == 0 {
		return 0
	}
	return max(0, t.connectionSeconds()-busy/n*t.Trial.Seconds)
}

// ms returns a share of the time in milliseconds a transaction.
func (t dividedTrial) ms(share float64) float64 {
	if t.Trial.Transactions <= 0 {
		return 0
	}
	return 1000 * share * t.total / float64(t.Trial.Transactions)
}

// mean returns a sampled value's.
func (t dividedTrial) mean(name string) (float64, bool) {
	v, ok := t.means[name]
	return v, ok
}

// rate returns a counter's growth a second; 0 where it is not there.
func (t dividedTrial) rate(counter string) float64 {
	return ratio(t.Trial.Counters[counter], t.Trial.Seconds)
}

// each returns a counter's growth a transaction; 0 where it is not there.
func (t dividedTrial) each(counter string) float64 {
	return ratio(t.Trial.Counters[counter], float64(t.Trial.Transactions))
}

// number returns a variable that is a number, as the live server reported it; 0 where it is not there.
func (t dividedTrial) number(variable string) float64 {
	v, err := strconv.ParseFloat(t.Arm.Effective[variable], 64)
	if err != nil { // not there, or no number: the same to those who ask
		return 0
	}
	return v
}

// on tells whether a switch is on.
func (t dividedTrial) on(variable string) bool {
	v := strings.ToUpper(t.Arm.Effective[variable])
	return v == "ON" || v == "1"
}

func (t dividedTrial) mariadb() bool { return t.Server.Flavour == mycnf.MariaDB }

// connections returns the CPU and the wait for a CPU of the threads that served the load, in seconds.
func (t dividedTrial) connections() (result.Threads, bool) {
	if t.Trial.Profile == nil {
		return result.Threads{}, false
	}
	for _, th := range t.Trial.Profile.Threads {
		if th.Name == "connection" {
			return th, true
		}
	}
	return result.Threads{}, false
}

// failed tells whether a gate of the trial did.
func (t dividedTrial) failed(name result.GateName) bool {
	return slices.ContainsFunc(t.Trial.Gates, func(g result.Gate) bool { return g.Name == name && !g.OK })
}

// detail returns what a gate saw.
func (t dividedTrial) detail(name result.GateName) string {
	for _, g := range t.Trial.Gates {
		if g.Name == name {
			return g.Detail
		}
	}
	return ""
}

// ratio returns a/b, 0 where b is not positive.
func ratio(a, b float64) float64 {
	if b <= 0 {
		return 0
	}
	return a / b
}
