package workload

import (
	"math"
	"reflect"
	"testing"
	"time"

	"david/internal/result"
)

func TestShare(t *testing.T) {
	w := result.Workload{Threads: 11, Rate: 100, Name: "x"}
	threads, rate := 0, 0.0
	for i := range 3 {
		s := share(w, i, 3)
		threads, rate = threads+s.Threads, rate+s.Rate
		if s.Threads < 3 || s.Threads > 4 || s.Name != "x" || s.Rate != math.Trunc(s.Rate) {
			t.Errorf("client %d has %+v", i, s)
		}
	}
	if threads != 11 || rate != 100 {
		t.Errorf("the shares are %d threads and a rate of %g", threads, rate)
	}
	if err := Spreadable(w, 11); err != nil {
		t.Error(err)
	}
	for _, w := range []result.Workload{{Threads: 3}, {Threads: 8, Rate: 3}} {
		if Spreadable(w, 4) == nil {
			t.Errorf("%+v was spread over 4 clients", w)
		}
	}
}

// TestMerge holds the merged trial against what a single client would have counted.
func TestMerge(t *testing.T) {
	at := time.Unix(1000, 0)
	a := clientPart{"lead", at.Add(30 * time.Millisecond), result.Trial{Workload: result.Workload{Threads: 2}, Seconds: 2.01, TPS: 10, QPS: 200, Transactions: 20, Queries: 400, Errors: 1,
		Latency: result.Latency{Min: 1, Avg: 2, Max: 9, P95: 5}, Histogram: []result.Bucket{{Ms: 1, Count: 10}, {Ms: 4, Count: 10}},
		Points: []result.Point{{Second: 1, TPS: 10, QPS: 200, P95: 4}, {Second: 2, TPS: 10, QPS: 200, P95: 4}}}}
	b := clientPart{"worker", at, result.Trial{Workload: result.Workload{Threads: 1}, Seconds: 2.00, TPS: 30, QPS: 600, Transactions: 60, Queries: 1200, Reconnects: 2,
		Latency: result.Latency{Min: 0.5, Avg: 4, Max: 7, P95: 6}, Histogram: []result.Bucket{{Ms: 4, Count: 50}, {Ms: 7, Count: 10}},
		Points: []result.Point{{Second: 1, TPS: 30, QPS: 600, P95: 8}, {Second: 2}, {Second: 3, TPS: 1}}}}
	w := result.Workload{Threads: 3, Seconds: 2}
	got := merge(w, []clientPart{a, b})
	if got.TPS != 40 || got.QPS != 800 || got.Transactions != 80 || got.Queries != 1600 || got.Errors != 1 || got.Reconnects != 2 || got.Seconds != 2.01 || got.Workload != w {
		t.Errorf("%+v", got)
	}
	if want := []result.Bucket{{Ms: 1, Count: 10}, {Ms: 4, Count: 60}, {Ms: 7, Count: 10}}; !reflect.DeepEqual(got.Histogram, want) {
		t.Errorf("the histogram is %v, want %v", got.Histogram, want)
	}
	if want := (result.Latency{Min: 0.5, Avg: 3.5, P50: 4, P95: 7, P99: 7, Max: 9}); got.Latency != want {
		t.Errorf("the latency is %+v, want %+v", got.Latency, want)
	}
	if want := []result.Point{{Second: 1, TPS: 40, QPS: 800, P95: 7}, {Second: 2, TPS: 10, QPS: 200, P95: 4}}; !reflect.DeepEqual(got.Points, want) {
		t.Errorf("the points are %+v, want %+v", got.Points, want)
	}
	if want := []result.Client{{Name: "lead", Threads: 2, LateMs: 30, TPS: 10, Transactions: 20, P95: 5}, {Name: "worker", Threads: 1, TPS: 30, Transactions: 60, P95: 6}}; !reflect.DeepEqual(got.Clients, want) {
		t.Errorf("the clients are %+v, want %+v", got.Clients, want)
	}
}

// TestMergeNothing has clients that got nothing done.
func TestMergeNothing(t *testing.T) {
	got := merge(result.Workload{}, []clientPart{{}, {}})
	if got.Latency != (result.Latency{}) || got.TPS != 0 || len(got.Points) != 0 {
		t.Errorf("%+v", got)
	}
}
