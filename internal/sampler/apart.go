package sampler

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"david/internal/result"
)

// apart finds the threads of the load's connections where the server does not tell them, and does not name its threads either:
// MySQL without performance_schema. They are those that were found waiting on a socket at some look, but not at Mark, when only
// others were connected, david among them.
type apart struct {
	others map[int]bool
	states map[int]map[result.State]int64 // by thread
}

// The looks of newApart, and what lies between them: a thread that has just answered is on its way back to its socket, on a busy
// machine for some milliseconds.
const (
	apartLooks = 5
	apartPause = 10 * time.Millisecond
)

// newApart looks who waits on a socket now. The thread that accepts connections has the process's number.
func newApart(t *tasks, now time.Time) *apart {
	a := &apart{others: map[int]bool{t.pid: true}, states: map[int]map[result.State]int64{}}
	for look := range apartLooks {
		if look > 0 {
			time.Sleep(apartPause)
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

// look counts what all threads but the others do. doing is what those that were seen before do.
func (a *apart) look(t *tasks, doing map[int]result.State, now time.Time) {
	for _, tid := range t.numbers() {
		state, ok := doing[tid]
		if !ok && !a.others[tid] {
			state, ok = t.add(tid, now)
		}
		if !ok {
			continue
		}
		if a.states[tid] == nil {
			a.states[tid] = map[result.State]int64{}
		}
		a.states[tid][state]++
	}
}

// load is which threads served the load's connections.
func (a *apart) load() (tids []int) {
	for tid, states := range a.states {
		for s := range states {
			if s.File == "socket" {
				tids = append(tids, tid)
				break
			}
		}
	}
	return tids
}

// cpu is how many seconds the others ran between two readings: those that wait on a socket at Mark are david's connections, and
// whoever else is connected.
func (a *apart) cpu(before, after map[int]thread) (sum float64) {
	for tid := range a.others {
		if now, there := after[tid]; there {
			sum += grown(before[tid].spent, now.spent).run
		}
	}
	return sum
}

// join adds what the threads of the load's connections did to what the process list told of the connections.
func (p *profiler) join(seen map[int]*task) (map[result.State]int64, map[int]*task) {
	states, load := maps.Clone(p.looks.states), map[int]*task{}
	tids := p.apart.load()
	for _, tid := range tids {
		load[tid] = seen[tid]
		for s, n := range p.apart.states[tid] {
			states[s] += n
		}
	}
	reason := "the server does not tell which serve the load, so system calls and process list are counted apart"
	if len(tids) != p.looks.most {
		reason += fmt.Sprintf("; of %d connections %d threads were recognised", p.looks.most, len(tids))
	}
	p.notes.add("threads of connections", errors.New(reason))
	return states, load
}
