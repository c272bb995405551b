package result

import (
	"path/filepath"
	"testing"
	"time"
)

// TestGoOn gives experiments that have ended more time: they count as interrupted, and their own command goes
// on with them.
func TestGoOn(t *testing.T) {
	home := t.TempDir()
	make := func(id string, d Design) *Store {
		s, err := Create(filepath.Join(home, "experiments", id), Experiment{Kind: Kind(id), Created: time.Now(), Argv: []string{"david", id}, Design: d})
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
	compare := make("compare", Design{Blocks: 6, Precision: 0.02, Slices: &Slices{Seconds: 5, Incarnations: 2}})
	tune := make("tune", Design{Tune: &TunePlan{Budget: 900, Slices: &TuneSlices{Incarnations: 2}}})
	for _, s := range []*Store{compare, tune} {
		if err := s.GoOn(600); err != nil {
			t.Fatal(err)
		}
	}
	if d := compare.Experiment().Design; d.Blocks != 0 || d.Precision != 0 || d.Budget != 620 {
		t.Errorf("%+v", d)
	}
	if p := tune.Experiment().Design.Tune; p.Budget != 1500 || p.Slices.Incarnations != 3 {
		t.Errorf("%+v", p)
	}
	for _, kind := range []Kind{KindCompare, KindTune} {
		s, err := Unfinished(home, kind, "", []string{"david", string(kind)})
		if err != nil || s == nil {
			t.Fatalf("%s: %v, %v", kind, s, err)
		}
	}
	if err := compare.GoOn(1); err == nil {
		t.Error("what has not ended was given more time")
	}
}

// TestBack takes time back that nothing came of; what was measured since, or has ended, stays.
func TestBack(t *testing.T) {
	s, err := Create(filepath.Join(t.TempDir(), "x"), Experiment{Kind: KindCompare, Created: time.Now(), Design: Design{Blocks: 6, Slices: &Slices{Seconds: 5, Incarnations: 2}}})
	if err != nil {
		t.Fatal(err)
	}
	before, f := s.Experiment(), Finish{Ended: time.Now(), Best: "x"}
	if err := s.Finish(f); err != nil {
		t.Fatal(err)
	}
	for _, measured := range []bool{false, true} {
		if err := s.GoOn(60); err != nil {
			t.Fatal(err)
		}
		if measured {
			if err := s.AppendTrial(Trial{Arm: "control", ID: "1"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Back(before, f, 0); err != nil {
			t.Fatal(err)
		}
		got, finished, err := s.Finished()
		if err != nil || finished == measured || finished && got.Best != "x" || (s.Experiment().Design.Blocks == 6) == measured {
			t.Errorf("measured %v: finished %v, %+v, %v", measured, finished, s.Experiment().Design, err)
		}
	}
}
