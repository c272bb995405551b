package sampler

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"david/internal/result"
)

// socketThreads finds the threads of the load's connections where the server does not tell them, and does not
// name its threads either: MySQL without performance_schema. They are those that were found waiting on a
// socket at some poll, but not at Mark, when only others were connected, david among them.
type socketThreads struct {
	others map[int]bool
	states map[int]map[result.State]int64 // by thread
}

// newSocketThreads polls several times: a thread that has just answered is on its way back to its socket, on
// a busy machine for some milliseconds.
const (
	socketPolls = 5
	socketPause = 10 * time.Millisecond
)

// newSocketThreads finds who waits on a socket now. The thread that accepts connections has the process's
// number.
func newSocketThreads(t *tasks, now time.Time) *socketThreads {
	a := &socketThreads{others: map[int]bool{t.pid: true}, states: map[int]map[result.State]int64{}}
	for i := range socketPolls {
		if i > 0 {
			time.Sleep(socketPause)
		}
		for _, tid := range t.numbers() {
			if state, _ := t.add(tid, now); state.File == "socket" {
				a.others[tid] = true
			}
		}
		t.forget()
	}
	return a
}

// poll counts what all threads but the others do. doing has what those do that were seen before.
func (s *socketThreads) poll(t *tasks, doing map[int]result.State, now time.Time) {
	for _, tid := range t.numbers() {
		state, ok := doing[tid]
		if !ok && !s.others[tid] {
			state, ok = t.add(tid, now)
		}
		if !ok {
			continue
		}
		if s.states[tid] == nil {
			s.states[tid] = map[result.State]int64{}
		}
		s.states[tid][state]++
	}
}

// load lists the threads that served the load's connections.
func (s *socketThreads) load() (tids []int) {
	for tid, states := range s.states {
		for state := range states {
			if state.File == "socket" {
				tids = append(tids, tid)
				break
			}
		}
	}
	return tids
}

// cpu sums up how many seconds the others ran between two readings: those that wait on a socket at Mark are
// david's connections, and whoever else is connected.
func (s *socketThreads) cpu(before, after map[int]thread) (sum float64) {
	for tid := range s.others {
		if now, there := after[tid]; there {
			sum += grown(before[tid].spent, now.spent).run
		}
	}
	return sum
}

// join adds what the threads of the load's connections did to what the process list told of the connections.
func (p *profiler) join(seen map[int]*task) (map[result.State]int64, map[int]*task) {
	states, load := maps.Clone(p.polls.states), map[int]*task{}
	tids := p.socketThreads.load()
	for _, tid := range tids {
		load[tid] = seen[tid]
		for s, n := range p.socketThreads.states[tid] {
			states[s] += n
		}
	}
	reason := "the server does not tell which serve the load, so system calls and process list are counted apart"
	if len(tids) != p.polls.most {
		reason += fmt.Sprintf("; of %d connections %d threads were recognised", p.polls.most, len(tids))
	}
	p.notes.add("threads of connections", errors.New(reason))
	return states, load
}
