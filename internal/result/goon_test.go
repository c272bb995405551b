package result

import (
	"path/filepath"
	"testing"
	"time"
)

// TestGoOn gives experiments that have ended more time. Until something more is stored they are on disk as
// they were, so that a session that is killed before that leaves no trace; then they have not ended any more.
func TestGoOn(t *testing.T) {
	home := t.TempDir()
	for _, kind := range []Kind{KindCompare, KindTune} {
		s := ended(t, home, kind)
		if err := s.GoOn(600); err != nil {
			t.Fatal(err)
		}
		checkGiven(t, s.Experiment().Design, 620, 1500)
		left, err := Open(s.Dir())
		if err != nil {
			t.Fatal(err)
		}
		if _, finished, err := left.Finished(); err != nil || !finished {
			t.Errorf("%s: before its first slice finished is %v, %v", kind, finished, err)
		}
		if d := left.Experiment().Design; kind == KindCompare && d.Blocks != 6 || kind == KindTune && d.Tune.Budget != 900 {
			t.Errorf("%s: on disk before its first slice: %+v", kind, d)
		}
		if err := s.AppendTrial(Trial{Arm: "control", ID: "2"}); err != nil {
			t.Fatal(err)
		}
		again, err := Unfinished(home, kind, "", []string{"david", string(kind)})
		if err != nil || again == nil {
			t.Fatalf("%s: after its first slice: %v, %v", kind, again, err)
		}
		checkGiven(t, again.Experiment().Design, 620, 1500)
		if err := s.GoOn(1); err == nil {
			t.Errorf("%s: what has not ended was given more time", kind)
		}
	}
}

// TestGoOnTwice adds to the time of a session that came to nothing: each is given what it is given, once.
func TestGoOnTwice(t *testing.T) {
	s := ended(t, t.TempDir(), KindCompare)
	if err := s.GoOn(600); err != nil {
		t.Fatal(err)
	}
	again, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.GoOn(60); err != nil {
		t.Fatal(err)
	}
	if err := again.Finish(Finish{Ended: time.Now(), Best: "x"}); err != nil {
		t.Fatal(err)
	}
	last, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	f, finished, err := last.Finished()
	if err != nil || !finished || f.Best != "x" || last.Experiment().Design.Budget != 80 {
		t.Errorf("finished %v, %+v, %+v, %v", finished, f, last.Experiment().Design, err)
	}
}

// ended is an experiment in slices that has ended, with one trial of 20 s.
func ended(t *testing.T, home string, kind Kind) *Store {
	t.Helper()
	d := Design{Blocks: 6, Precision: 0.02, Slices: &Slices{Seconds: 5, Incarnations: 2}}
	if kind == KindTune {
		d = Design{Tune: &TunePlan{Budget: 900, Slices: &TuneSlices{Incarnations: 2}}}
	}
	s, err := Create(filepath.Join(home, "experiments", string(kind)), Experiment{Kind: kind, Created: time.Now(), Argv: []string{"david", string(kind)}, Design: d})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AppendTrial(Trial{Arm: "control", ID: "1", Seconds: 5, Warmed: 15}); err != nil {
		t.Fatal(err)
	}
	if err := s.Finish(Finish{Ended: time.Now()}); err != nil {
		t.Fatal(err)
	}
	return s
}

// checkGiven looks at what a design has after it was given more time: a compare, or a tune.
func checkGiven(t *testing.T, d Design, compare, tune float64) {
	t.Helper()
	if p := d.Tune; p != nil {
		if p.Budget != tune || p.Slices.Incarnations != 3 {
			t.Errorf("%+v", p)
		}
	} else if d.Blocks != 0 || d.Precision != 0 || d.Budget != compare {
		t.Errorf("%+v", d)
	}
}
