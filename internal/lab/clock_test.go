package lab

import (
	"strings"
	"testing"
	"time"

	"david/internal/result"
)

// TestClockSetBack measures while the clock is set back by an hour: what the session measured is counted all
// the same, and the next experiment is told that it is not the latest.
func TestClockSetBack(t *testing.T) {
	var said strings.Builder
	l := Lab{Home: t.TempDir(), Log: &said}
	first, err := l.create(result.Experiment{ID: "one", Created: time.Now()})
	if err != nil || said.Len() > 0 {
		t.Fatalf("%v, said %q", err, said.String())
	}
	earlier := result.Trial{ID: "a", Started: time.Now(), Seconds: 7}
	if err := first.AppendTrial(earlier); err != nil {
		t.Fatal(err)
	}
	store, err := result.Open(first.Dir()) // gone on with
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Minute)
	for id, at := range map[string]time.Time{"b": time.Now(), "c": time.Now().Add(-time.Hour)} {
		if err := store.AppendTrial(result.Trial{ID: id, Started: at, Seconds: 10}); err != nil {
			t.Fatal(err)
		}
	}
	if err := finish(store, began, 0, result.Finish{}); err != nil {
		t.Fatal(err)
	}
	f, _, err := store.Finished()
	if err != nil || f.MeasureSeconds != 20 || f.Earlier == nil || *f.Earlier != 1 || f.WallSeconds < 59 || f.WallSeconds > 90 {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := l.create(result.Experiment{ID: "two", Created: time.Now().Add(-time.Hour)}); err != nil || !strings.Contains(said.String(), "stands before the date of one") {
		t.Errorf("%v, said %q", err, said.String())
	}
}
