package live

import (
	"context"
	"errors"
	"fmt"
	"time"

	"david/internal/mysqld"
)

// lockName is the server's own lock that one david at a time holds.
const lockName = "david live tune"

// lockPatience bounds, in seconds, the wait for another david's lock: a busy server takes a moment
// to see that one that was killed is gone.
const lockPatience = 5

// The seconds after which the server ends a session that is idle. While a load is made nobody looks. From the
// first step on the session asks every two seconds: where its david lost the network or the power, the lock
// that another one needs to set the step back is free a minute later.
const (
	idleBefore = 8 * 3600
	idleAtStep = 60
)

// session is the one connection through which a server is watched and changed. It holds the server's lock, so
// that two davids do not take each other's changes for the user's. The lock ends with the connection, and the
// connection with the statement it is at: who gets the lock after a david that died knows that none of its
// statements is still to take effect.
type session struct {
	*mysqld.Single
	pool *mysqld.Conn
	ours bool // the pool is to be closed with it
}

// openSession connects and takes the lock.
func openSession(ctx context.Context, addr mysqld.Addr) (*session, error) {
	pool, err := mysqld.Open(ctx, addr)
	if err != nil {
		return nil, err
	}
	s, err := takeSession(ctx, pool)
	if err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	s.ours = true
	return s, nil
}

// takeSession takes a connection and the lock.
func takeSession(ctx context.Context, pool *mysqld.Conn) (*session, error) {
	single, err := pool.Single(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{Single: single, pool: pool}
	err = s.mayIdle(ctx, idleBefore)
	if err == nil {
		err = s.lock(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, single.Close())
	}
	return s, nil
}

func (s *session) lock(ctx context.Context) error {
	got, err := s.Pairs(ctx, fmt.Sprintf("SELECT 'got', GET_LOCK('%s', %d)", lockName, lockPatience))
	if err == nil && got["got"] != "1" {
		err = ErrBusy
	}
	return err
}

// mayIdle says after how many seconds without a statement the server ends the connection.
func (s *session) mayIdle(ctx context.Context, seconds int) error {
	return s.Exec(ctx, fmt.Sprintf("SET SESSION wait_timeout = %d", seconds))
}

// close gives the lock back. Where the connection is gone the lock is gone with it. It may be called again.
func (s *session) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	s.Rows(ctx, 1, "SELECT RELEASE_LOCK('"+lockName+"')") // fails where the connection is lost
	err := s.Single.Close()
	if s.ours {
		err = errors.Join(err, s.pool.Close())
	}
	return err
}
