package result

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
)

func newStore(t testing.TB) *Store {
	t.Helper()
	s, err := Create(filepath.Join(t.TempDir(), "tune-20250102-150405"), Experiment{
		Kind: "tune", Created: time.Date(2025, 1, 2, 15, 4, 5, 0, time.UTC), Server: Server{Flavour: mycnf.MySQL, Version: "9.7.4"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sampleTrial(id string) Trial {
	return Trial{
		Schema: Schema, ID: id, Arm: "control", Block: 1, Workload: Workload{Name: "oltp_read_write", Threads: 4},
		Started: time.Date(2025, 1, 2, 15, 6, 0, 0, time.UTC), Seconds: 60.01, TPS: 512.5, QPS: 10250,
		Latency:   Latency{Min: 2.5, Avg: 7.8, P50: 7.3, P95: 11.24, P99: 16.1, Max: 93.2},
		Histogram: []Bucket{{7.302, 20000}, {11.24, 10750}}, Counters: map[string]float64{"Com_commit": 30750},
		Points: []Point{{Second: 1, Warm: true, TPS: 480, QPS: 9600, P95: 12.1}, {Second: 2, TPS: 512, QPS: 10240, P95: 11.2}},
		Gates:  []Gate{{Name: "rows", OK: true}},
	}
}

func mustAppend(t testing.TB, s *Store, trials ...Trial) {
	t.Helper()
	for _, trial := range trials {
		if err := s.AppendTrial(trial); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStoreGivesBackWhatItWasGiven(t *testing.T) {
	s := newStore(t)
	arm := Arm{Name: "control", Title: "the server's defaults", Settings: []mycnf.Setting{{Name: "sync_binlog", Value: "1"}}}
	finish := Finish{Ended: time.Date(2025, 1, 2, 15, 20, 0, 0, time.UTC), Best: "control", Utilisation: 0.91}
	if err := errors.Join(s.PutArm(arm), s.Finish(finish)); err != nil {
		t.Fatal(err)
	}
	mustAppend(t, s, sampleTrial("a"), sampleTrial("b"))

	s, err := Open(s.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if e := s.Experiment(); e.ID != "tune-20250102-150405" || e.Schema != Schema || e.Server.Version != "9.7.4" {
		t.Errorf("experiment: %+v", e)
	}
	arms, err := s.Arms()
	arm.Schema, arm.Order = Schema, 1
	if err != nil || !reflect.DeepEqual(arms, []Arm{arm}) {
		t.Errorf("arms: %+v, %v", arms, err)
	}
	trials, err := s.Trials()
	if err != nil || len(trials) != 2 || trials[0].Points != nil {
		t.Fatalf("trials: %+v, %v", trials, err)
	}
	trials, err = s.WithPoints(trials)
	if want := []Trial{sampleTrial("a"), sampleTrial("b")}; err != nil || !reflect.DeepEqual(trials, want) {
		t.Errorf("trials with points: %+v, %v", trials, err)
	}
	finish.Schema = Schema
	if got, ok, err := s.Finished(); got != finish || !ok || err != nil {
		t.Errorf("finish: %+v, %v, %v", got, ok, err)
	}
}

func TestArmsStayInOrder(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"control", "redo", "memory", "redo"} {
		if err := s.PutArm(Arm{Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	arms, err := s.Arms()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, a := range arms {
		names = append(names, a.Name)
	}
	if got := strings.Join(names, " "); got != "control redo memory" {
		t.Errorf("arms are %q", got)
	}
}

func TestLinesOfTrialsHoldNoPoints(t *testing.T) {
	s := newStore(t)
	mustAppend(t, s, sampleTrial("a"))
	b, err := os.ReadFile(s.path(trialsFile))
	if err != nil || strings.Contains(string(b), "points") || strings.Count(string(b), "\n") != 1 {
		t.Errorf("%v, %s", err, b)
	}
}

func TestTrialMeasuredAgainReplacesTheEarlierOne(t *testing.T) {
	s := newStore(t)
	again := sampleTrial("a")
	again.TPS = 600
	mustAppend(t, s, sampleTrial("a"), sampleTrial("b"), again)
	trials, err := s.Trials()
	if err != nil || len(trials) != 2 || trials[0].ID != "b" || trials[1].TPS != 600 {
		t.Errorf("%+v, %v", trials, err)
	}
	if _, n, err := s.Figures(); n != 1 || err != nil {
		t.Errorf("%d replaced, %v", n, err)
	}
}

func TestTornLastLineIsDroppedAndCutOff(t *testing.T) {
	for name, rest := range map[string]string{
		"half a line":            `{"schema":1,"id":"b","ar`,
		"zeros":                  "\x00\x00\x00\x00",
		"a line with a hole":     "{\"schema\":1,\x00\x00\x00\x00\"id\":\"b\"}\n",
		"a line without its \\n": `{"schema":1,"id":"b"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			mustAppend(t, s, sampleTrial("a"))
			scribble(t, s, rest)
			if trials, err := s.Trials(); err != nil || len(trials) != 1 {
				t.Fatalf("%+v, %v", trials, err)
			}
			if sum, err := summary(s.Dir()); err != nil || !sum.Torn {
				t.Errorf("%+v, %v", sum, err)
			}
			s, err := Open(s.Dir())
			if err != nil {
				t.Fatal(err)
			}
			mustAppend(t, s, sampleTrial("c"))
			trials, err := s.Trials()
			if err != nil || len(trials) != 2 || trials[1].ID != "c" {
				t.Errorf("%+v, %v", trials, err)
			}
		})
	}
}

// scribble adds to trials.jsonl behind the store's back.
func scribble(t *testing.T, s *Store, text string) {
	t.Helper()
	f, err := os.OpenFile(s.path(trialsFile), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

func TestBrokenLineInTheMiddleIsNamed(t *testing.T) {
	s := newStore(t)
	mustAppend(t, s, sampleTrial("a"))
	scribble(t, s, "{\"schema\":1,oops\n")
	mustAppend(t, s, sampleTrial("b"))
	_, err := s.Trials()
	if err == nil || !strings.Contains(err.Error(), "trials.jsonl: line 2: ") {
		t.Errorf("the error is %v", err)
	}
}

func TestOtherSchemasAreRefused(t *testing.T) {
	newer := ` was written by a newer david (schema 7, this one knows 1): update david`
	for file, read := range map[string]func(*Store) error{
		experimentFile:   func(s *Store) error { _, err := Open(s.Dir()); return err },
		finishFile:       func(s *Store) error { _, _, err := s.Finished(); return err },
		crashFile:        func(s *Store) error { _, err := s.Crash(); return err },
		proofsFile:       func(s *Store) error { _, err := s.Proofs(); return err },
		trialsFile:       func(s *Store) error { _, err := s.Trials(); return err },
		"arms/x.json":    func(s *Store) error { _, err := s.Arms(); return err },
		"points/x.jsonl": func(s *Store) error { _, err := s.points("x"); return err },
	} {
		s := newStore(t)
		for content, want := range map[string]string{
			`{"schema":7,"id":{"new":"shape"}}`: s.Dir() + newer,
			`{"schema":0}`:                      "has schema 0, this david knows 1 only",
			`{}`:                                "carries no schema",
		} {
			if err := os.WriteFile(s.path(file), []byte(content+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := read(s); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s of %s: error %v, want %q", file, content, err, want)
			}
		}
	}
}

func TestCreateRefusesAFullFolder(t *testing.T) {
	s := newStore(t)
	if _, err := Create(s.Dir(), Experiment{}); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("over an experiment: %v", err)
	}
	if _, err := Create(t.TempDir(), Experiment{}); err != nil {
		t.Errorf("in an empty folder: %v", err)
	}
}

func TestOpenSaysThatThereIsNoExperiment(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "experiment.json") {
		t.Errorf("%v", err)
	}
}

func TestNamesThatAreNoFileNamesAreRefused(t *testing.T) {
	s := newStore(t)
	for _, name := range []string{"", ".hidden", "../up", "a/b", "a b", strings.Repeat("x", 101)} {
		if s.PutArm(Arm{Name: name}) == nil {
			t.Errorf("arm %q was stored", name)
		}
		if s.AppendTrial(Trial{ID: name}) == nil {
			t.Errorf("trial %q was stored", name)
		}
	}
}

func TestFailedWriteLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	if writeFile(filepath.Join(dir, "x"), []byte("a folder cannot be replaced by a file")) == nil {
		t.Error("no error")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestLogPathLiesInTheStore(t *testing.T) {
	s := newStore(t)
	if err := os.WriteFile(s.LogPath("0a1b", "sysbench"), nil, 0o644); err != nil {
		t.Error(err)
	}
}
