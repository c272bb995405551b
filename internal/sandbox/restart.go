package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// Restart starts a server that Kill ended once more, on the data it left, with the options, the caps and the
// password of its first start. It returns once the server answers, and how long that took from the start of
// the process: its recovery included. One that does not answer within patience, or ends, is a *StartError;
// Stop removes it as any other.
func (s *Server) Restart(ctx context.Context, patience time.Duration) (time.Duration, error) {
	if _, ended := s.child.exited(); !ended {
		return 0, fmt.Errorf("cannot restart the server: process %d still runs", s.PID())
	}
	if err := s.w.journal.ended(s.PID()); err != nil {
		return 0, err
	}
	for _, name := range []string{"sock", "sock.lock", "pid"} { // the lock names a process, and another may have its number by now
		if err := os.Remove(filepath.Join(s.dir, name)); err != nil && !os.IsNotExist(err) {
			return 0, fmt.Errorf("cannot restart the server: %w", err)
		}
	}
	began := time.Now()
	if err := s.run(ctx, patience); err != nil {
		return 0, s.w.startError(s.binary.Path, s.log(), s.killed(err))
	}
	return time.Since(began), nil
}

// Log returns what the server has written to its error log since its last start.
func (s *Server) Log() ([]byte, error) {
	b, err := s.w.readLog(s.log())
	if err != nil {
		return nil, fmt.Errorf("cannot read the server's log: %w", err)
	}
	return b, nil
}
