package result

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"

	"david/internal/input"
)

// filled is a store with so many trials of a usual size.
func filled(t *testing.T, n int) *Store {
	s := newStore(t)
	for i := range n {
		mustAppend(t, s, realistic(fmt.Sprintf("t%d", i)))
	}
	return s
}

func TestFigures(t *testing.T) {
	s := filled(t, 3)
	mustAppend(t, s, realistic("t1"))
	trials, replaced, err := s.Figures()
	if err != nil || len(trials) != 3 || replaced != 1 {
		t.Fatalf("%d trials, %d replaced, %v", len(trials), replaced, err)
	}
	for _, lean := range trials {
		if lean.Counters != nil || lean.Samples != nil || len(lean.Points) != 75 || len(lean.Histogram) != 200 {
			t.Errorf("%s has %d counters, %d points", lean.ID, len(lean.Counters), len(lean.Points))
		}
		full, err := s.Full(lean)
		if err != nil || full.ID != lean.ID || len(full.Counters) != len(realistic("").Counters) || len(full.Points) != 75 {
			t.Errorf("%s in full: %s with %d counters, %v", lean.ID, full.ID, len(full.Counters), err)
		}
	}
	if _, err := s.Full(Trial{ID: "none"}); err == nil {
		t.Error("a trial that is not there was read")
	}
}

func TestRoomIsKept(t *testing.T) {
	dir := filled(t, 5).Dir()
	for bytes, want := range map[int64]error{1 << 20: nil, 20_000: ErrRoom} {
		s, err := OpenWithin(dir, bytes)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Figures(); !errors.Is(err, want) {
			t.Errorf("within %d bytes: %v", bytes, err)
		}
	}
}

// TestLargeTrialsLeaveNothing: what decoding a large trial takes is given back before the next is read, also by a collector of
// garbage that is late.
func TestLargeTrialsLeaveNothing(t *testing.T) { // not parallel: the collector is that of the process
	store := newStore(t)
	line := `{"schema":1,"id":"a","arm":"control","clients":[` + strings.Repeat("{},", 50_000) + "{}]}\n"
	if err := errors.Join(os.WriteFile(store.path(trialsFile), []byte(strings.Repeat(line, 6)), 0o644), os.WriteFile(store.path("points/a.jsonl"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	s, err := OpenWithin(store.Dir(), 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	trials, _, err := s.Figures()
	runtime.ReadMemStats(&after)
	if grew := int64(after.HeapAlloc-before.HeapAlloc) >> 20; err != nil || grew > 32 {
		t.Errorf("%d MiB after %d trials, %v", grew, len(trials), err)
	}
}

// A store's files may be anything where others made them.
func TestStoreOfPipesAndDevices(t *testing.T) {
	for _, file := range []string{experimentFile, finishFile, crashFile, proofsFile, trialsFile, "arms/x.json", "points/a.jsonl", "points/a.samples.jsonl"} {
		for kind, put := range map[string]func(path string) error{
			"pipe":    func(path string) error { return syscall.Mkfifo(path, 0o644) },
			"device":  func(path string) error { return os.Symlink("/dev/zero", path) },
			"endless": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o644), os.Truncate(path, 1<<40)) },
		} {
			s := newStore(t)
			mustAppend(t, s, sampleTrial("a"))
			path := s.path(file)
			if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
				t.Fatal(err)
			}
			if err := put(path); err != nil {
				t.Fatal(err)
			}
			if err := readAll(s.Dir()); !errors.Is(err, input.ErrKind) && !strings.Contains(fmt.Sprint(err), "longer") {
				t.Errorf("%s that is a %s: %v", file, kind, err)
			}
		}
	}
}

// readAll reads all of a store.
func readAll(dir string) error {
	s, err := Open(dir)
	if err != nil {
		return err
	}
	_, err1 := s.Arms()
	_, _, err2 := s.Finished()
	_, err3 := s.Crash()
	_, err4 := s.Proofs()
	trials, _, err5 := s.Figures()
	for _, t := range trials {
		_, err := s.Full(t)
		err5 = errors.Join(err5, err)
	}
	return errors.Join(err1, err2, err3, err4, err5)
}

func TestLatestOfANewerDavid(t *testing.T) {
	home := t.TempDir()
	dir := filepath.Join(home, "experiments", "tune-1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, experimentFile), []byte(`{"schema":7}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Resolve(home, "latest"); err == nil || !strings.Contains(err.Error(), "update david") {
		t.Errorf("the error is %v", err)
	}
}
