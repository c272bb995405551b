package experiment

import (
	"errors"
	"fmt"
	"testing"

	"david/internal/result"
	"david/internal/sandbox"
)

// TestMergedArms: of arms that come to the same on the live server the first runs, where no-ops are left out.
func TestMergedArms(t *testing.T) {
	arms := func() []result.Arm {
		same := map[string]string{"a": "1", "port": "7"}
		return []result.Arm{{Name: "control", Effective: map[string]string{"a": "0"}}, {Name: "noop", Noop: true, Base: "control", Effective: map[string]string{"a": "0"}},
			{Name: "first", Base: "control", Effective: same}, {Name: "second", Base: "control", Effective: map[string]string{"a": "1", "port": "8"}},
			{Name: "third", Base: "control", Effective: same, Caps: result.Caps{CPUs: 1}}, {Name: "broken", Infeasible: "no", Base: "control"}, {Name: "unsafe", Ceiling: true, Base: "control", Effective: same}}
	}
	b := blocks{arms: arms(), design: result.Design{Control: "control", SkipNoops: true}}
	b.merge()
	for _, a := range b.arms {
		if noop := a.Name == "second" || a.Name == "noop"; a.Noop != noop {
			t.Errorf("%s: no-op is %v", a.Name, a.Noop)
		}
	}
	if b.arms[3].Base != "first" {
		t.Errorf("second is the same as %s", b.arms[3].Base)
	}
	b = blocks{arms: arms(), design: result.Design{Control: "control"}}
	if b.merge(); b.arms[3].Noop {
		t.Error("arms are merged where no-ops run")
	}
}

// TestNothingBesides: a control alone is told, not run.
func TestNothingBesides(t *testing.T) {
	b := blocks{arms: []result.Arm{{Name: "control"}}, design: result.Design{Control: "control"}}
	if err := b.feasible(); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
}

// TestMemoryError: the end of a server for want of memory is told from others.
func TestMemoryError(t *testing.T) {
	err := fmt.Errorf("trial: %w", memoryError{fmt.Errorf("%w: killed", ErrEnded)})
	if !errors.Is(err, sandbox.ErrMemory) || !errors.Is(err, ErrEnded) || errors.Is(err, ErrRefused) {
		t.Errorf("%v is of the wrong kind", err)
	}
}
