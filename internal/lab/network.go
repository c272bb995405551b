package lab

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"david/internal/experiment"
	"david/internal/netpath"
	"david/internal/result"
)

// overNetwork tells whether the arms are paths to one server.
func (r Request) overNetwork() bool {
	return slices.ContainsFunc(r.Arms, func(a Arm) bool { return a.Path != (result.Path{}) })
}

// allowed refuses paths to who cannot build them, and those whose CNI plugin is not there.
func (r Request) allowed() error {
	if r.overNetwork() && os.Geteuid() != 0 {
		return refuse("network paths are built as network namespaces, which takes root; what loopback costs against the socket, david bench and david bench --tcp tell anybody")
	}
	for _, arm := range r.Arms {
		if err := netpath.Available(arm.Path, r.PluginFolders); err != nil {
			return refuse("%w, or say with --cni-path where it is", err)
		}
	}
	return nil
}

// networked builds the arms' paths, and measures one server by way of them.
func (r Request) networked(ctx context.Context, p prepared, arms []result.Arm) (store *result.Store, err error) {
	var paths []result.Path
	for _, arm := range arms {
		paths = append(paths, arm.Path)
	}
	network, err := netpath.Build(paths, r.PluginFolders...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	network.CPUs = p.facts.CPU.Usable
	if err := r.probePaths(ctx, p, network, arms); err != nil {
		return nil, err
	}
	p.shares = func(result.Arm) int { return len(arms) }
	return r.measured(ctx, p, arms, place{target: &experiment.Networked{Sandboxed: p.target, Net: network}, name: result.TargetSandbox})
}

// probePaths measures each path alone, several times in random order, and has the arms say what was seen.
// Without the programs for it there is a note instead.
func (r *Request) probePaths(ctx context.Context, p prepared, n *netpath.Net, arms []result.Arm) error {
	seen := make([][]*result.PathProbe, len(arms))
	var probed []int
	for i, arm := range arms {
		if netpath.Probed(arm.Path) {
			probed = append(probed, i)
		}
	}
	left := r.Probes * len(probed)
	for range r.Probes {
		rand.Shuffle(len(probed), func(i, k int) { probed[i], probed[k] = probed[k], probed[i] })
		for _, i := range probed {
			p.say("measuring the path %s alone; the load, whose time --budget is, begins in about %s", arms[i].Name, time.Duration(left)*netpath.ProbeTakes)
			left--
			probe, err := n.Probe(ctx, arms[i].Path)
			if errors.Is(err, netpath.ErrNoTool) {
				r.note("no path was measured alone: " + err.Error())
				return nil
			}
			if err != nil {
				return err
			}
			seen[i] = append(seen[i], probe)
		}
	}
	for i, probe := range netpath.Medians(seen) {
		arms[i].PathProbe = probe
	}
	return nil
}
