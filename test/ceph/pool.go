package main

import (
	"context"
	"strconv"

	"david/internal/ceph"
)

// pools are those that every cluster has, with as many copies at most as it has OSDs.
func pools() []ceph.Pool {
	return []ceph.Pool{{Name: "replicas-2", Replicas: 2, PGs: 64}, {Name: "replicas-3", Replicas: 3, PGs: 64}}
}

// makePools makes those that the cluster has OSDs for. Each goes on with one copy less than it has.
func (s *state) makePools(ctx context.Context) error {
	for _, p := range pools() {
		p.Replicas = min(p.Replicas, s.OSDs)
		pgs := strconv.Itoa(p.PGs)
		err := s.cluster().Ask(ctx, "osd", "pool", "create", p.Name, pgs, pgs, "replicated", "--size", strconv.Itoa(p.Replicas), "--autoscale-mode", "off")
		if err != nil {
			return err
		}
	}
	return nil
}
