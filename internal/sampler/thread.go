package sampler

import (
	"strconv"

	"github.com/prometheus/procfs"
)

// threadOfConnection describes the server's thread that answers the sampler; the zero value is none.
type threadOfConnection struct {
	proc procfs.Proc
	ok   bool
}

// newThread gives none where the server has no such thread: it then counts its threads in another namespace.
func newThread(pid int, tid string) threadOfConnection {
	number, err := strconv.Atoi(tid)
	if err != nil {
		return threadOfConnection{}
	}
	server, err := procfs.NewProc(pid)
	if err != nil {
		return threadOfConnection{}
	}
	proc, err := server.Thread(number)
	return threadOfConnection{proc, err == nil}
}

// cpu returns how many seconds the thread has run; 0 where that cannot be told.
func (t threadOfConnection) cpu() float64 {
	if !t.ok {
		return 0
	}
	s, err := t.proc.Schedstat()
	if err != nil { // gone with its server, which the next query tells
		return 0
	}
	return float64(s.RunningNanoseconds) / 1e9
}
