package result

import (
	"slices"
	"testing"
)

// TestCPUList: what was listed is read back.
func TestCPUList(t *testing.T) {
	for text, cpus := range map[CPUList][]int{"": nil, "3": {3}, "0,2,65": {2, 65, 0}} {
		if got := CPUsOf(cpus); got != text || got.Len() != len(cpus) {
			t.Errorf("%v: %q of %d", cpus, got, got.Len())
		}
		if got, err := text.Numbers(); err != nil || !slices.Equal(got, slices.Sorted(slices.Values(cpus))) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, bad := range []CPUList{"x", "-1", "0,", "0-1"} {
		if _, err := bad.Numbers(); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
