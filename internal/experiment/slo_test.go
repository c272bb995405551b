package experiment

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"david/internal/result"
)

// served describes a server that gets at most capacity transactions/s done, each in so many ms where nothing
// waits.
type served struct {
	capacity, ms float64
	noise        float64 // standard deviation of the logarithm of a run's latency
	random       *rand.Rand
	runs         []sloProbe
}

// probe returns a percentile's latency in an M/M/1 queue: it grows as 1 / (1 - load), without bound at the
// capacity.
func (s *served) probe(rate float64) (float64, bool, error) {
	p := sloProbe{Rate: rate, LatencyMs: 1e6}
	if rate < s.capacity {
		p.LatencyMs, p.OK = s.ms/(1-rate/s.capacity), true
	}
	if s.noise > 0 {
		p.LatencyMs *= math.Exp(s.noise * s.random.NormFloat64())
	}
	s.runs = append(s.runs, p)
	return p.LatencyMs, p.OK, nil
}

func TestSearchRate(t *testing.T) {
	for _, c := range []struct {
		name             string
		closed, capacity float64
		ms, goal         float64
		highest          float64 // rate that keeps the goal; 0: none
	}{
		{"below the closed loop", 1000, 1000, 2, 20, 900},
		{"tight", 1000, 1000, 10, 11, 90},
		{"above the closed loop", 200, 1500, 2, 20, 1350},
		{"cliff at the capacity", 1000, 777, 0.001, 1000, 777},
		{"slow", 3, 3, 100, 1000, 2},
		{"one a second", 1, 1.5, 100, 1000, 1},
		{"impossible", 1000, 1000, 2, 1.9, 0},
		{"never keeps up", 1000, 1, 2, 20, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := served{capacity: c.capacity, ms: c.ms}
			rate, found, best, err := searchRate(c.closed, result.SLO{Percentile: 99, Ms: c.goal}, s.probe, defaultSLO())
			if err != nil || found != (c.highest > 0) || len(s.runs) > 12 {
				t.Fatalf("%v, found %v, %v after %d runs", rate, found, err, len(s.runs))
			}
			if found && (rate > c.highest || rate < math.Floor(c.highest/1.06) || best.Rate != rate) {
				t.Errorf("rate %v (%+v), want %v", rate, best, c.highest)
			}
			if !found && (rate != 0 || best.Rate != 16 || best.LatencyMs <= 0) { // 1,000 / 64, rounded up
				t.Errorf("rate %v, best %+v, want the lowest rate's", rate, best)
			}
		})
	}
}

// Whatever the noise, a rate that is returned has kept the goal in its confirmations, the last runs made.
func TestSearchRateIsConfirmed(t *testing.T) {
	const goal = 20
	o := defaultSLO()
	for seed := range uint64(500) {
		s := served{capacity: 1000, ms: 2, noise: 0.05 * float64(seed%20), random: rand.New(rand.NewPCG(seed, 1))}
		rate, found, best, err := searchRate(1000, result.SLO{Percentile: 99, Ms: goal}, s.probe, o)
		if err != nil || len(s.runs) > o.Probes {
			t.Fatalf("seed %d: %d runs, %v", seed, len(s.runs), err)
		}
		if !found {
			continue
		}
		worst := 0.0
		for _, r := range s.runs[len(s.runs)-o.Confirm:] {
			worst = max(worst, r.LatencyMs)
			if r.Rate != rate || !r.OK || r.LatencyMs > goal {
				t.Errorf("seed %d: %v is confirmed by %+v", seed, rate, r)
			}
		}
		if best != (sloProbe{rate, worst, true}) {
			t.Errorf("seed %d: best is %+v", seed, best)
		}
	}
}

func TestSearchRateIsNearWithLittleNoise(t *testing.T) {
	for seed := range uint64(100) {
		s := served{capacity: 1000, ms: 2, noise: 0.1, random: rand.New(rand.NewPCG(seed, 2))}
		rate, found, _, err := searchRate(1000, result.SLO{Percentile: 99, Ms: 20}, s.probe, defaultSLO())
		if err != nil || !found || rate < 700 || rate > 920 { // 900 without noise
			t.Errorf("seed %d: %v, %v, %v", seed, rate, found, err)
		}
	}
}

// A rate that passes once and never again is given up, in the end with the lowest latency seen.
func TestSearchRateStepsDown(t *testing.T) {
	var tried []float64
	probe := func(rate float64) (float64, bool, error) {
		tried = append(tried, rate)
		if len(tried) == 1 || rate <= 450 {
			return 10, true, nil
		}
		return 30, true, nil
	}
	rate, found, _, err := searchRate(1000, result.SLO{Ms: 20}, probe, defaultSLO())
	if err != nil || !found || rate > 450 || rate < 420 {
		t.Errorf("%v, %v, %v after %v", rate, found, err, tried)
	}
	tried = nil
	never := func(rate float64) (float64, bool, error) {
		tried = append(tried, rate)
		return 10 + 90*float64(len(tried)-1), true, nil
	}
	rate, found, best, err := searchRate(1000, result.SLO{Ms: 20}, never, defaultSLO())
	if err != nil || found || rate != 0 || best != (sloProbe{500, 10, true}) || len(tried) != defaultSLO().Probes {
		t.Errorf("%v, %v, %+v, %v after %d runs", rate, found, best, err, len(tried))
	}
}

func TestSearchRateErrors(t *testing.T) {
	broken := errors.New("server gone")
	calls := 0
	probe := func(float64) (float64, bool, error) { calls++; return 0, true, broken }
	if _, found, _, err := searchRate(1000, result.SLO{Ms: 20}, probe, defaultSLO()); !errors.Is(err, broken) || found || calls != 1 {
		t.Errorf("found %v, %v after %d runs", found, err, calls)
	}
	for _, c := range [][2]float64{{0, 20}, {-1, 20}, {math.NaN(), 20}, {math.Inf(1), 20}, {1000, 0}, {1000, math.NaN()}} {
		if _, found, _, err := searchRate(c[0], result.SLO{Ms: c[1]}, probe, defaultSLO()); err == nil || found {
			t.Errorf("%v: found %v, %v", c, found, err)
		}
	}
}

// A search that ended at the floor below which nothing can be judged says so; one that ended elsewhere does
// not.
func TestSearchFloor(t *testing.T) {
	s := rateSession{goal: result.SLO{Percentile: 99.9, Ms: 1e-4}, load: result.Workload{Threads: 4, Seconds: 20}}
	o := defaultSLO()
	if o.Least = least(s.goal, 20); o.Least != 500 {
		t.Fatalf("least %v", o.Least)
	}
	for _, c := range []struct {
		runs map[float64]int
		want bool
	}{
		{map[float64]int{0: 1, 600: 1, 500: 1}, true},
		{map[float64]int{0: 1, 600: 1, 515: 2}, true},
		{map[float64]int{0: 1, 4000: 1, 600: 2}, false},
		{map[float64]int{0: 1, 600: o.Probes - 1, 500: 1}, false}, // given up for their number
	} {
		if s.runs = c.runs; s.stopped(o) != c.want {
			t.Errorf("%v: %v", c.runs, !c.want)
		}
	}
	if got := s.floor(2000); got != "rates below 500/s cannot be judged in trials of 20 s: p99.9 needs ten transactions above it; give --time 50s" {
		t.Error(got)
	}
	if got := s.wanted(); got != "p99.9 at or below 0.0001 ms" {
		t.Error(got)
	}
	for ms, want := range map[float64]string{1234.5: "1234 ms", 38.94: "38.9 ms", 0.0001: "0.0001 ms"} {
		if got := millis(ms); got != want {
			t.Errorf("%v: %s", ms, got)
		}
	}
}

// A closed loop too slow for any rate to be judged ends the search: the engine has no server to run another
// rate on.
func TestSearchBelowTheFloor(t *testing.T) {
	load := result.Workload{Name: "oltp_read_write", Threads: 4, Seconds: 20}
	store, err := result.Create(filepath.Join(t.TempDir(), "slow"), result.Experiment{Workloads: []result.Workload{load},
		Design: result.Design{SLO: &result.SLO{Percentile: 99.9, Ms: 20}}})
	if err != nil {
		t.Fatal(err)
	}
	e, arm := &Engine{Store: store}, result.Arm{Name: "control"}
	closed := result.Trial{ID: e.id(trialJob{arm: &arm, block: 1, load: load}), Arm: "control", Block: 1, Workload: load, TPS: 400, Transactions: 8000,
		Histogram: []result.Bucket{{Ms: 10, Count: 8000}}}
	if err := store.AppendTrial(closed); err != nil {
		t.Fatal(err)
	}
	got, err := e.Search(context.Background(), arm, load)
	const want = "No rate can be judged: closed loop with 4 threads: 400 at p99.9 10 ms; rates below 500/s cannot be judged in trials of 20 s: " +
		"p99.9 needs ten transactions above it; give --time 250s"
	if err != nil || got.Best != want || got.SearchEnd().Outcome != result.RateUnjudged {
		t.Errorf("%+v, %v", got, err)
	}
}

// noServer describes a target on which nothing starts.
type noServer struct{ error }

func (n noServer) Begin(context.Context, result.Arm, result.Workload, string) (Session, error) {
	return nil, n.error
}

// TestDisturbedSearchGoesOn: a search that was given up for two disturbed runs measures that rate again in
// its next session, and does not end for what is on record.
func TestDisturbedSearchGoesOn(t *testing.T) {
	store, err := result.Create(filepath.Join(t.TempDir(), "x"), result.Experiment{Schema: result.Schema, ID: "x", Design: result.Design{SLO: &result.SLO{Percentile: 95, Ms: 20}}})
	if err != nil {
		t.Fatal(err)
	}
	asked := errors.New("a server was asked for")
	e := &Engine{Store: store, Target: noServer{asked}, Report: func(Event) {}}
	arm, load := result.Arm{Name: "control"}, result.Workload{Name: "oltp_read_write", Threads: 1, Seconds: 1}
	for block := 1; block <= 2; block++ {
		disturbed := result.Trial{ID: e.id(trialJob{arm: &arm, block: block, load: load}), Gates: []result.Gate{{Name: "steal"}}}
		if err := store.AppendTrial(disturbed); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.newSearch(arm, load)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.undisturbed(t.Context(), 0); !errors.Is(err, asked) {
		t.Errorf("got %v, want a third run", err)
	}
}
