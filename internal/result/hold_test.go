package result

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestClaim: what a david writes into cannot be claimed to be removed, nor written into once it is claimed.
func TestClaim(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "one")
	s, err := Create(dir, Experiment{Kind: KindBench})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Claim(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("claimed while it is written: %v", err)
	}
	if err := s.held.Close(); err != nil { // as the end of the process does
		t.Fatal(err)
	}
	release, err := Claim(dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Finish(Finish{}); !errors.Is(err, ErrInUse) {
		t.Errorf("written while it is claimed: %v", err)
	}
	if err := release(); err != nil {
		t.Fatal(err)
	}
	if err := again.Finish(Finish{}); err != nil {
		t.Error(err)
	}
}
