package follower

import (
	"context"
	"errors"
	"maps"
	"slices"

	"david/internal/mysqld"
)

// Kill ends a follower's server as a crash does.
func (r *Record) Kill() error { return r.kill() }

// PromoteUntil does some steps of what is left of a promotion once all was applied, and no more, as a david that is killed then.
func (r *Record) PromoteUntil(ctx context.Context, leader mysqld.Addr, steps int) error {
	own, err := mysqld.Open(ctx, r.addr(leader))
	if err != nil {
		return err
	}
	defer own.Close()
	for _, step := range r.freeing(ctx, r.pair(nil, own))[:steps] {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// Reconfigure has a follower's my.cnf let its server take writes, as an earlier david did first of all when it promoted one, or not.
func (r *Record) Reconfigure(open bool) error { return r.reconfigure(open) }

// EndsAfter is what is said of a follower's data, were they to hold these GTIDs of its leader's.
func (r *Record) EndsAfter(ctx context.Context, leader mysqld.Addr, since string) error {
	p, err := r.reachBoth(ctx, leader)
	if err != nil {
		return err
	}
	defer p.close()
	p.since = since
	_, err = p.end(ctx)
	return err
}

// Defined lists what binary logs say that these statements define, read so many events at a time.
func (r *Record) Defined(ctx context.Context, leader mysqld.Addr, most int, statements ...string) (names []string, err error) {
	p, err := r.reachBoth(ctx, leader)
	if err != nil {
		return nil, err
	}
	defer p.close()
	s, err := p.leader.Single(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	at, err := p.look(ctx, s)
	if err != nil {
		return nil, err
	}
	for _, text := range statements {
		if err := p.leader.Exec(ctx, text); err != nil {
			return nil, err
		}
	}
	done, err := at.past(ctx, s, most)
	if done.unlooked {
		return nil, errors.New("not all was read")
	}
	return slices.Collect(maps.Keys(done.defined)), err
}
