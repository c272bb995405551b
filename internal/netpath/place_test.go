package netpath

import (
	"errors"
	"testing"

	"david/internal/result"
)

// TestPlace: client and server share no core where there are two, and no package where there are two of as many cores.
func TestPlace(t *testing.T) {
	siblings := func(cpu int) core { return core{0, cpu % 4} }     // 0 to 3, and then their second threads
	packages := func(cpu int) core { return core{cpu % 2, cpu} }   // numbered in turn
	alone := func(cpu int) core { return core{0, cpu} }            // no threads
	one := func(int) core { return core{} }                        // one core
	uneven := func(cpu int) core { return core{0, max(0, cpu-1)} } // 0 and 1 are one core, 2 another
	eight, apart := []int{0, 1, 2, 3, 4, 5, 6, 7}, result.Path{Kind: Host, CPUs: Apart}
	for name, c := range map[string]struct {
		all            []int
		of             func(int) core
		client, server result.CPUList
	}{
		"threads are numbered after all cores": {eight, siblings, "0,1,4,5", "2,3,6,7"},
		"packages are numbered in turn":        {eight, packages, "0,2,4,6", "1,3,5,7"},
		"one thread each":                      {[]int{0, 1}, alone, "0", "1"},
		"an odd number":                        {[]int{1, 3, 5}, alone, "1", "3,5"},
		"one core":                             {[]int{0, 1}, one, "0", "1"},
		"cores of other sizes":                 {[]int{0, 1, 2}, uneven, "0,1", "2"},
	} {
		p, err := place(apart, c.all, c.of)
		if err != nil || p.ClientCPUs != c.client || p.ServerCPUs != c.server {
			t.Errorf("%s: client %s, server %s, %v", name, p.ClientCPUs, p.ServerCPUs, err)
		}
	}
	both, err := place(result.Path{Kind: Host, CPUs: Together}, eight, siblings)
	if err != nil || both.ClientCPUs != "2,3,6,7" || both.ServerCPUs != both.ClientCPUs || both.ServerCPUs.Len() != 4 {
		t.Errorf("%+v, %v", both, err)
	}
	if _, err := place(apart, []int{3}, alone); !errors.Is(err, ErrInput) {
		t.Errorf("one CPU: %v", err)
	}
	if p, err := Place(result.Path{Kind: Host}); err != nil || p != (result.Path{Kind: Host}) {
		t.Errorf("nothing asked: %+v, %v", p, err)
	}
}
