package lab

import (
	"context"
	"errors"
	"os"
	"slices"

	"david/internal/experiment"
	"david/internal/netpath"
	"david/internal/result"
)

// overNetwork tells whether the arms are paths to one server.
func (r Request) overNetwork() bool {
	return slices.ContainsFunc(r.Arms, func(a Arm) bool { return a.Path != (result.Path{}) })
}

// networked builds the arms' paths, and measures one server by way of them.
func (r Request) networked(ctx context.Context, p prepared, arms []result.Arm) (store *result.Store, err error) {
	if os.Geteuid() != 0 {
		return nil, refuse("network paths are built as network namespaces, which takes root; david compare --tcp and david compare, as anybody, measure loopback and the socket")
	}
	var paths []result.Path
	for _, arm := range arms {
		paths = append(paths, arm.Path)
	}
	network, err := netpath.Build(paths)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, network.Close()) }()
	p.share = int64(len(arms))
	return r.measured(ctx, p, arms, place{target: &experiment.Networked{Sandboxed: p.target, Net: network}, name: result.TargetSandbox})
}
