package netpath

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"david/internal/result"
)

// TestMain is also the work that a test's david starts of itself.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == WorkCommand {
		cpu, err := strconv.Atoi(os.Args[2])
		if err == nil {
			err = Work(cpu)
		}
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestTaken: half of the work on two CPUs, not done while 20,000 round trips a second were, is 50 us of each.
func TestTaken(t *testing.T) {
	got := pairRun{out: []byte("sockperf: [Total Run] RunTime=2.000 sec; Warm up time=400 msec; SentMessages=40000; ReceivedMessages=39999\n")}
	got.work = slices.Concat(slices.Repeat([]span{{done: 300}}, 20), slices.Repeat([]span{{client: 0.4, done: 150}}, 10))
	if us, err := taken(got, doneNear, 2); err != nil || us < 49.9 || us > 50.1 {
		t.Errorf("%v, %v", us, err)
	}
	if _, err := taken(pairRun{}, doneNear, 2); err == nil {
		t.Error("taken by nothing")
	}
}

// TestLost: what was done while the client neither rested nor worked is not counted.
func TestLost(t *testing.T) {
	spans := func(n int, client, done float64) []span {
		return slices.Repeat([]span{{client: client, done: done}}, n)
	}
	for name, c := range map[string]struct {
		list []span
		want float64
	}{
		"a third":           {slices.Concat(spans(20, 0, 300), spans(1, 0.01, 1), spans(9, 0.4, 200)), 1.0 / 3},
		"nothing":           {slices.Concat(spans(20, 0, 300), spans(9, 0.4, 300)), 0},
		"no rest":           {spans(20, 0.4, 300), 0},
		"no load":           {spans(20, 0, 300), 0},
		"hardly any of one": {slices.Concat(spans(20, 0, 300), spans(2, 0.4, 200)), 0},
	} {
		if got := lost(c.list, doneNear); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestBesideWork: a path through a program takes more from other work than one wire, and more for long answers.
func TestBesideWork(t *testing.T) {
	asRoot(t)
	if !(&Net{}).workable() {
		t.Skip("one CPU, or many: what a round trip takes from other work cannot be told")
	}
	host, through := result.Path{Kind: Host}, result.Path{Kind: UDP}
	n, err := Build([]result.Path{host, through})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	for range 3 { // other tests may leave the work nothing
		var seen []*result.PathProbe
		for _, p := range []result.Path{host, through} {
			probe, err := n.Probe(t.Context(), p)
			if errors.Is(err, ErrNoTool) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, probe)
		}
		if a, b := seen[0].Beside, seen[1].Beside; a.Ping.Taken > 0 && b.Ping.Taken > a.Ping.Taken && b.Answer.Taken > b.Ping.Taken {
			return
		}
		t.Logf("by one wire %+v, through a program %+v", seen[0].Beside, seen[1].Beside)
	}
	t.Error("a path through a program was never seen to take more from other work than one wire, or long answers than short ones")
}
