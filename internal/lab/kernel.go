package lab

import (
	"slices"

	"david/internal/kernel"
	"david/internal/result"
)

// overKernel tells whether the arms are kernel settings under servers that are alike.
func (r Request) overKernel() bool {
	return slices.ContainsFunc(r.Arms, func(a Arm) bool { return len(a.Kernel) > 0 }) && !slices.ContainsFunc(r.Arms, func(a Arm) bool {
		return a.Cnf != "" || a.Server != "" || a.Baseline != "" || len(a.Sets) > 0 || a.More != nil || a.Settings != nil || a.Ceiling || a.Layout != nil ||
			a.ClientCPUs != 0 || a.Caps != r.Arms[0].Caps || a.Pod != r.Arms[0].Pod
	})
}

// onItsOwn tells whether an arm takes a server of its own: it has a kernel setting that counts when a server starts.
func onItsOwn(a result.Arm) bool { return atStart(a.Kernel) }

func atStart(settings []result.KernelSetting) bool {
	return slices.ContainsFunc(settings, func(s result.KernelSetting) bool { return kernel.AtStart(s.Name) })
}

// servers is how many servers the arms run on.
func (r Request) servers() int {
	if r.overNetwork() {
		return 1
	}
	if !r.overKernel() {
		return len(r.Arms)
	}
	own := 0
	for _, a := range r.Arms {
		if atStart(a.Kernel) {
			own++
		}
	}
	return min(own+1, len(r.Arms))
}

// together tells of an arm how many have its server.
func together(arms []result.Arm) func(result.Arm) int {
	n := 0
	for _, a := range arms {
		if !onItsOwn(a) {
			n++
		}
	}
	return func(a result.Arm) int {
		if onItsOwn(a) {
			return 1
		}
		return n
	}
}
