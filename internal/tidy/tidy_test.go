package tidy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"david/internal/home"
	"david/internal/result"
)

// TestPlan: the oldest experiments go until the rest fit, those in use and a running server's changes stay, and
// nothing goes that was not asked for.
func TestPlan(t *testing.T) {
	t.Parallel()
	dir, now := t.TempDir(), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, id := range []string{"newest", "middle", "changed", "oldest"} {
		record(t, dir, id, now.Add(-time.Duration(i)*24*time.Hour))
	}
	inUse := result.Experiment{Kind: result.KindBench, Created: now.Add(-47 * time.Hour)}
	busy, err := result.Create(filepath.Join(dir, "experiments", "busy"), inUse)
	if err != nil {
		t.Fatal(err)
	}
	defer runtime.KeepAlive(busy) // a store that nobody holds is let go by the garbage collector, and its lock with it
	if err := os.WriteFile(filepath.Join(dir, "experiments", "changed", "changes.jsonl"), []byte("what david cannot read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	names := func(w Wish) string {
		f, err := Open(context.Background(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		w.Now = now
		items, notes, err := f.Plan(w)
		if err != nil {
			t.Fatal(err)
		}
		var list []string
		for _, item := range items {
			list = append(list, item.Name)
		}
		for _, note := range notes {
			list = append(list, "-"+strings.Fields(note)[0])
		}
		return strings.Join(list, " ")
	}
	one := size(t, dir, "oldest")
	for _, c := range []struct {
		wish Wish
		want string
	}{
		{Wish{Experiments: -1}, ""},
		{Wish{OlderThan: 60 * time.Hour, Experiments: -1}, "oldest"},
		{Wish{OlderThan: time.Hour, Experiments: -1}, "oldest middle -changed -busy"},
		{Wish{Experiments: 1 << 40}, ""},
		{Wish{Experiments: 0}, "oldest middle newest -changed -busy"},
		{Wish{Experiments: 0, Free: 1}, "oldest -changed -busy"},
		{Wish{Experiments: 0, Free: one + 1}, "oldest middle -changed -busy"},
	} {
		if got := names(c.wish); got != c.want {
			t.Errorf("%+v: %q, want %q", c.wish, got, c.want)
		}
	}
}

// record makes an experiment that nobody is at work on.
func record(t *testing.T, home, id string, created time.Time) {
	t.Helper()
	dir := filepath.Join(home, "experiments", id)
	text := fmt.Sprintf(`{"schema": 1, "id": %q, "kind": "bench", "created": %q}`, id, created.Format(time.RFC3339))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "experiment.json"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "trials.jsonl"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func size(t *testing.T, dir, id string) int64 {
	t.Helper()
	n, err := home.Allocated(filepath.Join(experiments(dir), id))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
