package follower

import (
	"context"

	"david/internal/mysqld"
)

// Kill ends a follower's server as a crash does.
func (r *Record) Kill() error { return r.kill() }

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
