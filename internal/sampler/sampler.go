// Package sampler looks at the machine and the server once a second while a trial's load is on, and works out afterwards
// what a transaction cost, what the server owes, and what speaks for or against the trial.
//
//	Start -> (warm-up) -> Mark -> (the measured run) -> Stop -> Record
//
// Looking costs: one SHOW GLOBAL STATUS, one look at INNODB_METRICS and six small files of /proc a second. What that took of
// a core is part of the record.
package sampler

import (
	"context"
	"fmt"
	"sync"
	"time"

	"david/internal/host"
	"david/internal/mysqld"
	"david/internal/result"
)

// Options say what to look at.
type Options struct {
	Addr      mysqld.Addr
	ServerPID int        // 0 where the server is not a process of this machine
	ClientPID func() int // the load generator's; 0 while there is none
	Device    string     // block device of the data, as in /proc/diskstats; "" where it is not known
}

// Sampler looks on until it is stopped.
type Sampler struct {
	o      Options
	conn   *mysqld.Conn
	groups []string // cgroups whose quotas bind the server, or david and the client
	stop   chan struct{}
	done   chan struct{}

	mu     sync.Mutex
	shots  []snapshot
	marked int             // the shot at which the measured run began
	kernel map[int]float64 // CPU seconds of the kernel's threads at that time
	err    error
}

// Start connects to the server, takes a first look, and goes on once a second.
func Start(ctx context.Context, o Options) (*Sampler, error) {
	conn, err := mysqld.Open(ctx, o.Addr)
	if err != nil {
		return nil, err
	}
	s := &Sampler{o: o, conn: conn, stop: make(chan struct{}), done: make(chan struct{})}
	if err := s.findGroups(); err != nil {
		conn.Close()
		return nil, err
	}
	if err := s.look(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	go s.loop(context.WithoutCancel(ctx))
	return s, nil
}

// loop looks once a second; a look that takes longer delays the next one and does not pile up. It ends at the first that
// fails, whose error Stop returns.
func (s *Sampler) loop(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			if s.look(ctx) != nil {
				return
			}
		}
	}
}

// lookTimeout bounds one look at the server: a hung one must not keep david from ending the trial.
const lookTimeout = 20 * time.Second

func (s *Sampler) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	shot, err := s.snapshot(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = fmt.Errorf("cannot sample %s: %w", s.o.Addr, err)
		return s.err
	}
	s.shots = append(s.shots, shot)
	return nil
}

// Mark says that the measured run begins: costs, debts and shares are counted from here.
func (s *Sampler) Mark(ctx context.Context) error {
	if err := s.look(ctx); err != nil {
		return err
	}
	kernel, err := kernelCPU()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marked, s.kernel = len(s.shots)-1, kernel
	return err
}

// Ages returns the checkpoint ages seen so far, in bytes, about one a second. It is empty for a server that does not
// tell.
func (s *Sampler) Ages() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var ages []float64
	for _, shot := range s.shots {
		if age := shot.debt().CheckpointAge; age != nil {
			ages = append(ages, *age)
		}
	}
	return ages
}

// Stop takes a last look and returns what was seen.
func (s *Sampler) Stop(ctx context.Context) (Record, error) {
	err := s.look(ctx)
	s.Close()
	if s.err != nil {
		err = s.err
	}
	if err != nil {
		return Record{}, err
	}
	kernel, err := kernelCPU()
	if err != nil {
		return Record{}, err
	}
	return newRecord(s.o, s.shots, s.marked, grown(s.kernel, kernel)), nil
}

// Close ends the sampling without a result. It may be called after Stop.
func (s *Sampler) Close() {
	select {
	case <-s.stop:
	default:
		close(s.stop)
		<-s.done
		s.conn.Close()
	}
}

// Record is what was seen from Mark to Stop; the samples begin with the warm-up.
type Record struct {
	Samples  []result.Sample
	Seconds  float64
	Counters map[string]float64 // the server's status, last minus first
	Before   result.Debt
	After    result.Debt
	Sampling result.Sampling
	Evidence Evidence
	// Queries is how many statements the sampler itself sent, which the server counted among its Questions.
	Queries float64
	cost    totals
}

// Evidence is what speaks for or against a trial. Shares are of the machine's CPU time, or of the time, 0 to 1; NaN where they
// could not be read.
type Evidence struct {
	Steal     float64
	Others    float64       // CPU time used by neither server, client nor david
	ClientCPU float64       // cores the load generator used
	Throttled float64       // of the time: a CPU quota held the server, david or the client back
	Swapped   int64         // bytes of the server that were swapped out meanwhile
	Clock     time.Duration // the system's clock minus the monotonic one, over the run
}

// findGroups finds whose quotas to watch.
func (s *Sampler) findGroups() error {
	for _, pid := range []int{s.o.ServerPID, self} {
		if pid == 0 {
			continue
		}
		groups, err := host.CPUGroups(pid)
		if err != nil {
			return err
		}
		s.groups = append(s.groups, groups...)
	}
	return nil
}
