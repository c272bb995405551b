package cli

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"david/internal/lab"
	"david/internal/result"
)

// An experiment that met an error before its first trial failed; one with trials, and one that was
// interrupted, did not.
func TestFailedExperiment(t *testing.T) {
	interrupted, stop := context.WithCancel(context.Background())
	stop()
	cause := codedError{exitUsage, errors.New("the server does not start")}
	for name, c := range map[string]struct {
		ctx    context.Context
		trials int
		want   string
	}{
		"failed":      {context.Background(), 0, "failed before its first trial"},
		"later":       {context.Background(), 1, "interrupted, or running"},
		"interrupted": {interrupted, 0, "interrupted, or running"},
	} {
		home := t.TempDir()
		store, err := result.Create(filepath.Join(home, "experiments", name), result.Experiment{Kind: "compare", Argv: []string{"david", name}})
		if err != nil {
			t.Fatal(err)
		}
		for range c.trials {
			if err := store.AppendTrial(result.Trial{ID: "a"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := lab.Failed(c.ctx, store, cause); exitCode(err) != exitUsage || err.Error() != cause.Error() {
			t.Errorf("%s: %v", name, err)
		}
		list, err := result.List(home)
		if err != nil || len(list) != 1 || (listed{Summary: list[0]}).said() != c.want {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
		again, err := result.Unfinished(home, "compare", "", []string{"david", name})
		if err != nil || (again == nil) != (name == "failed") {
			t.Errorf("%s: goes on with %v, %v", name, again, err)
		}
	}
}
