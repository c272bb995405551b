package result

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestLive: what is noted is read in pieces that join without a gap, and a record is on until its measurement ends.
func TestLive(t *testing.T) {
	home := t.TempDir()
	s, err := Create(filepath.Join(home, "experiments", "bench-1"), Experiment{})
	if err != nil {
		t.Fatal(err)
	}
	if dir, err := Running(home); dir != "" || err != nil {
		t.Errorf("%q is on, %v", dir, err)
	}
	note := func(second int) {
		t.Helper()
		if err := s.Note(Moment{At: time.Now(), Arm: "control", Point: &Point{Second: second, TPS: 100}}); err != nil {
			t.Fatal(err)
		}
	}
	note(1)
	if dir, err := Running(home); dir != s.Dir() || err != nil {
		t.Errorf("%q is on, %v", dir, err)
	}
	list, next, on, err := Moments(s.Dir(), 0)
	if err != nil || !on || len(list) != 1 || list[0].Point.Second != 1 || list[0].Next != next {
		t.Fatalf("%+v, next %d, on %v, %v", list, next, on, err)
	}
	note(2)
	note(3)
	if list, _, _, err = Moments(s.Dir(), next); err != nil || len(list) != 2 || list[0].Point.Second != 2 || list[1].Point.Second != 3 {
		t.Fatalf("%+v, %v", list, err)
	}
	if list, _, _, err = Moments(s.Dir(), -40); err != nil || len(list) != 0 {
		t.Errorf("from the middle of the last line: %+v, %v", list, err)
	}
	if err := s.Finish(Finish{}); err != nil {
		t.Fatal(err)
	}
	if dir, err := Running(home); dir != "" || err != nil {
		t.Errorf("%q is on after its end, %v", dir, err)
	}
	if list, _, on, err = Moments(s.Dir(), next); err != nil || on || len(list) != 2 {
		t.Errorf("%+v, on %v, %v", list, on, err)
	}
}

// TestLiveTorn: a line that a david which died left is passed over, and so is what is none of david's.
func TestLiveTorn(t *testing.T) {
	s, err := Create(filepath.Join(t.TempDir(), "bench-1"), Experiment{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.Dir(), liveFile)
	if err := os.WriteFile(path, []byte("rubbish\n{\"schema\":99,\"arm\":\"later\"}\n{\"schema\":1,\"ar"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Note(Moment{Arm: "control"}); err != nil {
		t.Fatal(err)
	}
	list, next, _, err := Moments(s.Dir(), 0)
	if err != nil || len(list) != 1 || list[0].Arm != "control" {
		t.Errorf("%+v, %v", list, err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != next || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, next %d, %v", info, next, err)
	}
	for _, from := range []int64{next + 1000, 1 << 62, -1 << 62} {
		if _, _, _, err := Moments(s.Dir(), from); err != nil {
			t.Errorf("from %d: %v", from, err)
		}
	}
}

// TestLiveOfOthers: a link in the place of the file is not followed.
func TestLiveOfOthers(t *testing.T) {
	s, err := Create(filepath.Join(t.TempDir(), "bench-1"), Experiment{})
	if err != nil {
		t.Fatal(err)
	}
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(s.Dir(), liveFile)); err != nil {
		t.Fatal(err)
	}
	if err := s.Note(Moment{}); err == nil {
		t.Error("noted through a link")
	}
	if text, err := os.ReadFile(victim); err != nil || string(text) != "mine" {
		t.Errorf("%q, %v", text, err)
	}
}
