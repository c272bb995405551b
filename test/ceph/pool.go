package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"david/internal/ceph"
)

// pools are those that every cluster has, with as many copies at most as it has OSDs.
func pools() []ceph.Pool {
	return []ceph.Pool{{Name: "replicas-2", Replicas: 2, PGs: 64}, {Name: "replicas-3", Replicas: 3, PGs: 64}}
}

// makePools makes those that the cluster has OSDs for. Each goes on with one copy less than it has.
func (s *state) makePools(ctx context.Context) error {
	// Few and small OSDs are filled evenly only where their placement groups are: writes wait once one OSD is full.
	for name, value := range map[string]string{"upmap_max_deviation": "1", "sleep_interval": "5"} {
		if err := s.cluster().Ask(ctx, "config", "set", "mgr", "mgr/balancer/"+name, value); err != nil {
			return err
		}
	}
	for _, p := range pools() {
		p.Replicas = min(p.Replicas, s.OSDs)
		pgs := strconv.Itoa(p.PGs)
		err := s.cluster().Ask(ctx, "osd", "pool", "create", p.Name, pgs, pgs, "replicated", "--size", strconv.Itoa(p.Replicas), "--autoscale-mode", "off")
		if err != nil {
			return err
		}
	}
	return s.awaitPools(ctx)
}

// awaitPools waits until the cluster tells of the room in its pools, which its manager counts some seconds later.
func (s *state) awaitPools(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, p := range pools() {
		for {
			free, err := s.cluster().Free(ctx, p.Name)
			if err == nil && free > 0 {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the cluster tells of no room in pool %s: %w", p.Name, errors.Join(ctx.Err(), err))
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	return nil
}
