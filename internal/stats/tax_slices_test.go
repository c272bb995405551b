package stats

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"david/internal/result"
)

// TestTaxOfSlices judges a pod that is 10 % slower, and one that is the same, by rounds of slices.
func TestTaxOfSlices(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var trials []result.Trial
	for round := range 30 {
		for i, arm := range []string{"process", "slow", "same"} {
			tps := []float64{1000, 900, 1000}[i] * math.Exp(0.01*r.NormFloat64())
			cpu := 1e6 / tps
			trials = append(trials, result.Trial{Arm: arm, Block: round + 1, Incarnation: 1 + round/5, Session: 1, Started: time.Unix(int64(20*round+6*i), 0), TPS: tps,
				Transactions: 5000, Latency: result.Latency{P95: 4e3 / tps, P99: 6e3 / tps}, Costs: result.Costs{ServerCPU: &cpu}})
		}
	}
	d := result.Design{Control: "process", Margin: 0.03, Slices: &result.Slices{Seconds: 5, Incarnations: 6}}
	c := Compare(d, []result.Arm{{Name: "process"}, {Name: "slow"}, {Name: "same"}}, trials)[0]
	for _, a := range c.Arms {
		if a.Name == "process" {
			continue
		}
		want, ratio := Equivalent, 1.0
		if a.Name == "slow" {
			want, ratio = Slower, 0.9
		}
		e := a.Tax.Throughput
		if e.Verdict != want || e.N != 30 || !(e.Interval95[0] < ratio && ratio < e.Interval95[1]) || e.Interval90[0] < e.Interval95[0] {
			t.Errorf("%s: %+v", a.Name, e)
		}
		if p := a.Tax.P95; p.Pairs != 30 || math.Abs(p.Ratio*ratio-1) > 0.03 || !(p.Interval[0] < p.Ratio) {
			t.Errorf("%s: p95 %+v", a.Name, p)
		}
		if (a.Name == "slow") != e.Beyond() {
			t.Errorf("%s: beyond the margin: %v", a.Name, e.Beyond())
		}
	}
}

// TestDivesOfLatencies: in a tenth of the rounds the machine stalls both arms, which shows as high latencies.
// The ratio of the latencies is to be known as well as if only calm rounds had a say, and better than by all
// alike.
func TestDivesOfLatencies(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var trials []result.Trial
	for round := range 40 {
		for i, arm := range []string{"process", "pod"} {
			tps := 1000 * math.Exp(0.01*r.NormFloat64())
			if round%10 == 3 {
				tps /= 3 * math.Exp(0.5*r.NormFloat64())
			}
			trials = append(trials, result.Trial{Arm: arm, Block: round + 1, Incarnation: 1 + round/10, Session: 1, Started: time.Unix(int64(20*round+6*i), 0), TPS: tps,
				Transactions: 5000, Latency: result.Latency{P95: 4e3 / tps, P99: 6e3 / tps}})
		}
	}
	d := result.Design{Control: "process", Margin: 0.03, Slices: &result.Slices{Seconds: 5, Incarnations: 4}}
	a := Compare(d, []result.Arm{{Name: "process"}, {Name: "pod"}}, trials)[0].Arms[1]
	speed, latency := a.Tax.Throughput.Interval95.width(), a.Tax.P95.Interval.width()
	if !(latency < 1.1*speed) {
		t.Errorf("the latencies' interval is %.4f wide, the throughput's %.4f, of the same rounds", latency, speed)
	}
}

// TestLatencyIntervalsOfSlices: rounds that follow each other are no independent observations of a latency,
// nor are those of one start. Its interval has to reach as far as the throughput's.
func TestLatencyIntervalsOfSlices(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	var trials []result.Trial
	for round := range 24 {
		start := []float64{-0.06, 0.07, 0.01}[round/8]
		for _, arm := range []string{"control", "x"} {
			tps := 1000 * math.Exp(start+0.02*r.NormFloat64())
			trials = append(trials, result.Trial{Arm: arm, Block: round + 1, Incarnation: 1 + round/8, Session: 1, Started: time.Unix(int64(15*round), 0), TPS: tps,
				Transactions: 5000, Latency: result.Latency{P95: 4e3 / tps, P99: 6e3 / tps}})
		}
	}
	d := result.Design{Control: "control", Slices: &result.Slices{Seconds: 5, Incarnations: 3}}
	a := Compare(d, []result.Arm{{Name: "control"}, {Name: "x"}}, trials)[0].Arms[1]
	for i, got := range []Interval{a.P95Interval, a.P99Interval} {
		if want := []float64{4e3, 6e3}[i] / a.TPSInterval[1]; !(got[0] < 1.001*want) {
			t.Errorf("the interval %d begins at %.4f ms, want %.4f as the throughput's ends at %.1f", i, got[0], want, a.TPSInterval[1])
		}
	}
}
