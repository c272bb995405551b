package spec

import (
	"math"
	"time"

	"david/internal/result"
)

// Planned is a trial to be run.
type Planned struct {
	Block    int // 1, 2, ...
	Workload result.Workload
	Arm      string
	Twin     bool    // the control's second run
	Seconds  float64 // it will take, see Overhead
}

// Overhead of a trial, in seconds beyond warming up and measuring, as expected: cloning the data, starting
// the server, reading the tables once, shutting down.
const Overhead = 8.0

// Trials lists what will be run, block by block; the order within a block is drawn when it is run. With a
// budget it is as many blocks as fit; a precision may be reached sooner, and no-ops may be left out.
func (s Spec) Trials() []Planned {
	var list []Planned
	for block := 1; block <= s.planned(); block++ {
		list = append(list, s.block(block)...)
	}
	return list
}

func (s Spec) block(n int) []Planned {
	var list []Planned
	for _, w := range s.Workloads() {
		for _, a := range s.Arms {
			p := Planned{Block: n, Workload: w, Arm: a.Name, Seconds: float64(w.Seconds+w.Warmup) + Overhead}
			list = append(list, p)
			if a.Name == s.Control {
				p.Twin = true
				list = append(list, p)
			}
		}
	}
	return list
}

// BlockSeconds estimates the length of one block.
func (s Spec) BlockSeconds() float64 {
	return float64(s.blockTrials()) * (float64(s.Time.seconds()+s.Warmup.seconds()) + Overhead)
}

// blockTrials counts the trials of a block: every arm, and the control's twin, under every workload.
func (s Spec) blockTrials() int {
	n := 0
	for _, l := range s.Loads {
		n += len(l.Threads)
	}
	return n * (len(s.Arms) + 1)
}

// planned returns the most blocks that are run.
func (s Spec) planned() int {
	if s.Blocks > 0 {
		return s.Blocks
	}
	return max(1, int(math.Floor(time.Duration(s.Budget).Seconds()/s.BlockSeconds())))
}
