package sandbox

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/process"
)

// frozenWithin says how long a server may take to stand still: a thread that waits for the disk stops when it
// has its answer.
const frozenWithin = 10 * time.Second

// Freeze stops every thread of the server, or lets them go on, and returns when the kernel has done so. A
// frozen server keeps its memory, its connections and its caches, and does nothing.
//
// It is SIGSTOP, and not the cgroup freezer: one of version 1 holds back SIGKILL as well, so that a server
// frozen by it would outlive a david that is killed, and a server is one process, which needs no group to be
// stopped as a whole.
func (s *Server) Freeze(on bool) error { return freeze(s.PID(), on, s.Alive) }

// Freeze does the same with a guest; alive is nil while it runs. The first process of a container is stopped
// by a signal from outside of it like any other (pid_namespaces(7)).
func (g *Guest) Freeze(on bool, alive func() error) error { return freeze(g.PID(), on, alive) }

// freeze waits for the kernel until every thread stands still, or goes on; alive tells why the server ended.
func freeze(pid int, on bool, alive func() error) error {
	signal, want := unix.SIGCONT, "running"
	if on {
		signal, want = unix.SIGSTOP, "frozen"
	}
	if pid <= 0 { // kill(2) would take it for a group
		return fmt.Errorf("cannot make the server %s: its process is not known", want)
	}
	if cause := alive(); cause != nil { // its number may be another process's by now
		return cause
	}
	if err := unix.Kill(pid, signal); err != nil {
		return fmt.Errorf("cannot make the server %s: %w", want, err)
	}
	for began := time.Now(); ; time.Sleep(2 * time.Millisecond) {
		if cause := alive(); cause != nil {
			return cause
		}
		still, err := process.Still(pid)
		if err != nil {
			return fmt.Errorf("cannot see whether the server is %s: %w", want, err)
		}
		if still == on {
			return nil
		}
		if time.Since(began) > frozenWithin {
			return fmt.Errorf("the server is not %s after %s", want, frozenWithin)
		}
	}
}
