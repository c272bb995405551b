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

// TestReplacements: blocks that were disturbed are run anew where equivalence is looked for, half as many as
// planned at most, and nowhere else. The twin tells the noise, and a disturbed one costs no pair.
func TestReplacements(t *testing.T) {
	b := blocks{arms: []result.Arm{{Name: "control"}, {Name: "pod", Base: "control"}, {Name: "other", Base: "control"}},
		design: result.Design{Control: "control", Blocks: 4, Margin: 0.03}, done: map[string]result.Trial{}}
	run := func(block int, arms string) { // capitals are disturbed
		for _, arm := range arms {
			name := map[rune]string{'c': "control", 't': "control", 'p': "pod", 'o': "other"}[arm|32]
			b.done[fmt.Sprint(len(b.done))] = result.Trial{Arm: name, Block: block, Twin: arm|32 == 't', Gates: []result.Gate{{Name: "steal", OK: arm >= 'a'}}}
		}
	}
	blocks := func() (n int) {
		for n = 1; ; n++ {
			if more, err := b.more(n); err != nil || !more {
				return n - 1
			}
		}
	}
	for i, next := range []struct {
		arms string
		want int
		why  string
	}{
		{"ctpo", 4, "nothing was disturbed"},
		{"cTpo", 4, "a twin was"},
		{"ctPo", 5, "a pod was"},
		{"ctpO", 5, "each arm was, once"},
		{"CTpo", 6, "the control was, twice"},
		{"ctPo", 6, "half as many as were planned are replaced already"},
	} {
		run(i+1, next.arms)
		if n := blocks(); n != next.want {
			t.Errorf("%d blocks, not %d, where %s", n, next.want, next.why)
		}
	}
	b.design.Margin = 0
	if n := blocks(); n != 4 {
		t.Errorf("%d blocks of a comparison", n)
	}
}
