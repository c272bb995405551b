package result

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/mycnf"
)

func TestListIsNewestFirstAndResolveFinds(t *testing.T) {
	home := t.TempDir()
	root := filepath.Join(home, "experiments")
	for i, id := range []string{"tune-b", "bench-a", "tune-c"} {
		s, err := Create(filepath.Join(root, id), Experiment{Kind: "tune", Created: time.Date(2025, 1, 2, 3, i, 0, 0, time.UTC)})
		if err != nil {
			t.Fatal(err)
		}
		mustAppend(t, s, sampleTrial("x"))
	}
	if err := os.Mkdir(filepath.Join(root, "broken"), 0o755); err != nil {
		t.Fatal(err)
	}
	list, err := List(home)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range list {
		ids = append(ids, s.ID)
	}
	if got := strings.Join(ids, " "); got != "tune-c bench-a tune-b broken" {
		t.Errorf("the list is %s", got)
	}
	if list[0].Trials != 1 || list[0].Finished || list[0].Err != "" || !strings.Contains(list[3].Err, "experiment.json") {
		t.Errorf("%+v", list)
	}
	for arg, want := range map[string]string{"latest": "tune-c", "bench-a": "bench-a", filepath.Join(root, "tune-b"): "tune-b"} {
		if dir, err := Resolve(home, arg); err != nil || dir != filepath.Join(root, want) {
			t.Errorf("%s is %s, %v", arg, dir, err)
		}
	}
	// Of "latest" whoever asks for something takes the newest that has it; a name is a name.
	no := errors.New("not that one")
	only := func(id string) func(string) error {
		return func(dir string) error {
			if filepath.Base(dir) == id {
				return nil
			}
			return no
		}
	}
	if dir, err := ResolveFor(home, "latest", only("tune-b")); err != nil || filepath.Base(dir) != "tune-b" {
		t.Errorf("%s, %v", dir, err)
	}
	if dir, err := ResolveFor(home, "latest", only("broken")); !errors.Is(err, no) {
		t.Errorf("%s, %v", dir, err)
	}
	if dir, err := ResolveFor(home, "bench-a", only("tune-b")); err != nil || filepath.Base(dir) != "bench-a" {
		t.Errorf("%s, %v", dir, err)
	}
}

func TestResolveSaysWhereItLooked(t *testing.T) {
	home := t.TempDir()
	if list, err := List(home); err != nil || len(list) != 0 {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := Resolve(home, "latest"); err == nil || !strings.Contains(err.Error(), "david tune") {
		t.Error(err)
	}
	if _, err := Resolve(home, "nope"); err == nil || !strings.Contains(err.Error(), filepath.Join(home, "experiments", "nope")) {
		t.Error(err)
	}
}

func TestTrialIDTellsMeasurementsApart(t *testing.T) {
	arm := Arm{Name: "redo", Settings: []mycnf.Setting{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}}
	w, server := Workload{Name: "oltp_read_write", Threads: 4}, Server{SHA256: "00", Version: "9.7.4"}
	id := TrialID(arm, w, 1, 0, false, server, "16k")
	same := arm
	same.Title, same.Settings = "other words", []mycnf.Setting{{Name: "b", Value: "2", Reason: "why"}, {Name: "a", Value: "1"}}
	if TrialID(same, w, 1, 0, false, server, "16k") != id {
		t.Error("words or order changed the ID")
	}
	twin, more, other := arm, w, server
	twin.Name, more.Threads, other.SHA256 = "twin", 8, "01"
	seen := map[string]bool{id: true}
	for _, got := range []string{
		TrialID(twin, w, 1, 0, false, server, "16k"), TrialID(arm, more, 1, 0, false, server, "16k"), TrialID(arm, w, 2, 0, false, server, "16k"), TrialID(arm, w, 1, 1, false, server, "16k"), TrialID(arm, w, 1, 4, false, server, "16k"),
		TrialID(arm, w, 1, 0, false, other, "16k"), TrialID(arm, w, 1, 0, false, server, "4k"), TrialID(arm, w, 1, 0, true, server, "16k"), TrialID(Arm{Name: "redo"}, w, 1, 0, false, server, "16k"),
	} {
		if seen[got] || !fileName.MatchString(got) {
			t.Errorf("ID %s came twice, or is no file name", got)
		}
		seen[got] = true
	}
}
