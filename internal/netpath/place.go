package netpath

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"david/internal/result"
)

// Place says which CPUs client and server have, where a path says that these are theirs: those that david may run on, one
// half of the cores each. A core's threads stay together, and so do the cores of a package as far as that goes; of a
// single core each has half of the threads. The second half, which is the larger one, is the server's.
func Place(p result.Path) (result.Path, error) {
	if p.CPUs == "" {
		return p, nil
	}
	all, err := usableCPUs()
	if err != nil {
		return p, err
	}
	return place(p, all, coreOf)
}

func place(p result.Path, all []int, of func(cpu int) core) (result.Path, error) {
	if len(all) < 2 {
		return p, fmt.Errorf("%w: %s: david may run on one CPU here, and client and server cannot have one each", ErrInput, Name(p))
	}
	first, second := halves(all, of)
	p.ClientCPUs, p.ServerCPUs = first, second
	if p.CPUs == Together {
		p.ClientCPUs = second
	}
	return p, nil
}

// core is where a CPU is: the number of its package, and the first CPU of its core.
type core struct{ pack, first int }

// coreOf reads it; a CPU of which the kernel does not tell is a core of its own.
func coreOf(cpu int) core {
	read := func(name string, otherwise int) int {
		text, err := os.ReadFile(filepath.Join("/sys/devices/system/cpu", fmt.Sprintf("cpu%d", cpu), "topology", name))
		if err != nil {
			return otherwise
		}
		digits := strings.TrimSpace(string(text))
		if end := strings.IndexAny(digits, ",-"); end > 0 {
			digits = digits[:end]
		}
		n, err := strconv.Atoi(digits)
		if err != nil {
			return otherwise
		}
		return n
	}
	return core{read("physical_package_id", 0), read("thread_siblings_list", cpu)}
}

// halves splits CPUs between two, by cores where there are several.
func halves(all []int, of func(cpu int) core) (first, second result.CPUList) {
	threads := map[core][]int{}
	var cores []core
	for _, cpu := range all {
		at := of(cpu)
		if threads[at] == nil {
			cores = append(cores, at)
		}
		threads[at] = append(threads[at], cpu)
	}
	slices.SortFunc(cores, func(a, b core) int {
		if a.pack != b.pack {
			return a.pack - b.pack
		}
		return a.first - b.first
	})
	sorted := all // of a single core
	n := len(all) / 2
	if len(cores) > 1 {
		sorted, n = nil, 0
		for i, at := range cores {
			sorted = append(sorted, threads[at]...)
			if i < len(cores)/2 {
				n = len(sorted)
			}
		}
	}
	return result.CPUsOf(sorted[:n]), result.CPUsOf(sorted[n:])
}
