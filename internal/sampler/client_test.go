package sampler

import (
	"testing"
	"time"

	"github.com/prometheus/procfs"
)

// TestClientThatEnds: at its last look a client's threads may have ended, and it had them all the same.
func TestClientThatEnds(t *testing.T) {
	at := time.Now()
	threads := func(n int, ran uint64) map[int]procfs.ProcSchedstat {
		all := map[int]procfs.ProcSchedstat{}
		for i := range n {
			all[i] = procfs.ProcSchedstat{RunningNanoseconds: ran}
		}
		return all
	}
	client := &processStat{pid: 7, born: 1, name: "sysbench"}
	var u clientUse
	u.add(snapshot{at: at, client: client, threads: threads(5, 1e9)})
	u.add(snapshot{at: at.Add(time.Second), client: client, threads: threads(1, 2e9)})
	if got := u.used(1); got.Count != 5 || got.CPU != 6 {
		t.Errorf("%+v; want 5 threads that ran for 6 s", got)
	}
}
