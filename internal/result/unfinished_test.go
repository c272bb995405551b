package result

import (
	"path/filepath"
	"testing"
	"time"
)

// TestUnfinishedLadder: the tune of an older david, a ladder of steps, is not gone on with; one in phases is.
func TestUnfinishedLadder(t *testing.T) {
	for _, plan := range []*TunePlan{nil, {}} {
		home, argv := t.TempDir(), []string{"david", "tune"}
		e := Experiment{Schema: Schema, ID: "tune-1", Kind: "tune", Created: time.Now(), Argv: argv, Design: Design{Tune: plan}}
		if _, err := Create(filepath.Join(home, "experiments", e.ID), e); err != nil {
			t.Fatal(err)
		}
		if old, err := Unfinished(home, "tune", "", argv); err != nil || (old != nil) != (plan != nil) {
			t.Errorf("with plan %v: %v, %v", plan, old, err)
		}
	}
}
