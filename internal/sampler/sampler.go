// Package sampler reads, once a second beside a trial's load, what the server, the kernel and the two
// processes did, and works out what follows from it:
//
//	/proc, cgroup, SHOW GLOBAL STATUS -> readings -> samples (one a second)
//	                                              -> costs of a transaction, debts, evidence for the gates
//
// and in the measured run, several times a second, what each of the load's connections was doing:
//
//	/proc/PID/task/TID, process list -> polls -> profile
//
// It looks and changes nothing. What looking costs is part of the record.
package sampler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// interval is the time from sample to sample. A sample that takes longer delays the next; none are made up
// for.
const interval = time.Second

// Options says what to look at.
type Options struct {
	// Conn is the server's pool; one connection is taken out of it until Stop, and another where there is a
	// Schema.
	Conn    *mysqld.Conn
	Flavour mycnf.Flavour
	// ServerPID is the server's process, 0 for a server on another machine.
	ServerPID int
	// Devices are the data's block devices as /proc/diskstats names them; none where they are not known. What
	// is said of the disk is their sum.
	Devices []string
	// Schema is the load's, by which its connections are known: those that use it. "" for no profile of them.
	Schema string
	// Serving names programs that serve the data's disk, as the daemons of a Ceph on this machine do: like the kernel's own
	// threads they work for the server, and are no strangers.
	Serving []string
}

// Sampler samples until it is stopped.
type Sampler struct {
	server   *serverReader
	kernel   *kernel
	profiler *profiler    // nil without a schema
	client   atomic.Int64 // the load generator's process; 0 while there is none

	marks  chan chan struct{} // Mark asks for a full reading; what is sent is closed when it is taken
	stop   chan struct{}
	once   sync.Once
	cancel context.CancelFunc
	done   chan struct{}

	mu   sync.Mutex
	ages []float64

	// the goroutine's, and Stop's after done
	samples []timed
	last    snapshot
	mark    snapshot // of Start until Mark
	end     snapshot // the last at which the client was seen
	final   snapshot
	use     clientUse
	err     error
}

// timed describes a sample before it is known when the measured run began.
type timed struct {
	at     time.Time
	values map[string]float64
}

// Start takes a first reading and begins to sample. Until Mark is called the measured run is taken to begin
// here. The caller must call Stop, which alone releases the connection.
func Start(ctx context.Context, o Options) (*Sampler, error) {
	server, err := newServer(ctx, o)
	if err != nil {
		return nil, err
	}
	s := &Sampler{
		server: server,
		marks:  make(chan chan struct{}), stop: make(chan struct{}), done: make(chan struct{}),
	}
	var running context.Context
	running, s.cancel = context.WithCancel(ctx)
	if err := s.prepare(running, o); err != nil {
		s.cancel()
		return nil, errors.Join(err, s.release())
	}
	go s.run(running)
	return s, nil
}

func (s *Sampler) prepare(ctx context.Context, o Options) (err error) {
	if s.kernel, err = newKernel(o); err != nil {
		return err
	}
	if s.profiler, err = newProfiler(ctx, o, s.server.thread); err != nil {
		return err
	}
	return s.begin(ctx)
}

// release gives the connections back.
func (s *Sampler) release() error {
	if s.profiler == nil {
		return s.server.close()
	}
	return errors.Join(s.server.close(), s.profiler.close())
}

// Follow names the load generator's process as soon as it runs.
func (s *Sampler) Follow(pid int) { s.client.Store(int64(pid)) }

// Mark says that the measured run begins: costs, debts and evidence count from here. It returns when the
// counters have been read, or when sampling has failed, which Stop tells.
func (s *Sampler) Mark() {
	taken := make(chan struct{})
	select {
	case s.marks <- taken:
		select {
		case <-taken:
		case <-s.done:
		}
	case <-s.done:
	}
}

// Ages gives the checkpoint ages in bytes seen so far, one a second since Start; none where the server does
// not tell.
func (s *Sampler) Ages() []float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]float64(nil), s.ages...)
}

// farewell bounds the last readings, which take milliseconds of a server that answers: one that is stopped, or waits for its
// disk, would hold david for as long as a statement may take.
const farewell = 30 * time.Second

// Stop takes a last reading, ends the sampling and gives the record. Where the server went away, does not answer for
// half a minute, or ctx ended first, it gives an error, with what had been seen until then.
func (s *Sampler) Stop(ctx context.Context) (Record, error) {
	s.once.Do(func() { close(s.stop) })
	ctx, cancel := context.WithTimeoutCause(ctx, farewell, fmt.Errorf("the server gives no answer for %s", farewell))
	defer cancel()
	select {
	case <-s.done:
	case <-ctx.Done():
		s.cancel()
		<-s.done
		s.err = errors.Join(context.Cause(ctx), s.err)
	}
	s.cancel()
	if err := errors.Join(s.halt(), s.release()); s.err == nil {
		s.err = err
	}
	if s.err != nil {
		return s.record(), fmt.Errorf("cannot sample the trial to its end: %w", s.err)
	}
	return s.record(), nil
}

// run samples until it is told to stop or a query fails.
func (s *Sampler) run(ctx context.Context) {
	defer close(s.done)
	tick := time.NewTicker(interval) // drops what a slow receiver misses, so samples never pile up
	defer tick.Stop()
	for s.err == nil {
		select {
		case <-tick.C:
			s.err = s.sample(ctx)
		case taken := <-s.marks:
			if s.err = s.restart(ctx); s.err == nil {
				close(taken)
			}
			tick.Reset(interval)
		case <-s.stop:
			s.err = s.finish(ctx)
			return
		case <-ctx.Done():
			s.err = context.Cause(ctx)
		}
	}
}

// restart begins the measured run. The profiler's counts are taken around the reading, so that what it asks
// for them is no part of the run.
func (s *Sampler) restart(ctx context.Context) error {
	if s.profiler == nil {
		return s.begin(ctx)
	}
	if err := s.profiler.mark(ctx); err != nil {
		return err
	}
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.profiler.start(ctx)
	return nil
}

// halt ends the profiler's polls.
func (s *Sampler) halt() error {
	if s.profiler == nil {
		return nil
	}
	return s.profiler.halt()
}

// begin takes the reading that costs are counted from.
func (s *Sampler) begin(ctx context.Context) error {
	r, err := s.read(ctx, true)
	if err != nil {
		return err
	}
	s.keepLong(r)
	s.use = clientUse{last: r.client, threads: r.threads, from: r.at, to: r.at, questions: r.status["questions"]}
	s.mark, s.last, s.final, s.end = r, r, r, r
	return nil
}

// sample takes one reading and makes a sample of what changed since the last.
func (s *Sampler) sample(ctx context.Context) error {
	r, err := s.read(ctx, false)
	if err != nil {
		return err
	}
	s.see(r)
	s.keep(r)
	return nil
}

// see takes in what the client has used, while there is one.
func (s *Sampler) see(r snapshot) {
	if r.client != nil {
		s.use.add(r)
		s.end = r
	}
}

// finish takes the last reading, which Counters and Costs count to.
func (s *Sampler) finish(ctx context.Context) error {
	if err := s.halt(); err != nil {
		return err
	}
	r, err := s.read(ctx, true)
	if err != nil {
		return err
	}
	s.see(r)
	s.keepLong(r)
	s.final = r
	if s.profiler == nil {
		return nil
	}
	return s.profiler.finish(ctx)
}

// keepLong makes a sample only where a good part of a second has passed: a rate over a few milliseconds is
// noise.
func (s *Sampler) keepLong(r snapshot) {
	if !s.last.at.IsZero() && r.at.Sub(s.last.at) >= interval/2 {
		s.keep(r)
	}
}

func (s *Sampler) keep(r snapshot) {
	values := values(s.last, r)
	s.samples = append(s.samples, timed{r.at, values})
	if age, ok := values["innodb.checkpoint_age_bytes"]; ok {
		s.mu.Lock()
		s.ages = append(s.ages, age)
		s.mu.Unlock()
	}
	s.last, s.final = r, r
}

// read takes one reading: the kernel first, since the server's answer can take long under load. A full one
// has all status counters and looks at every process.
func (s *Sampler) read(ctx context.Context, full bool) (snapshot, error) {
	r := s.kernel.read(int(s.client.Load()), full)
	var err error
	if r.status, err = s.server.read(ctx, full); err != nil {
		return snapshot{}, err
	}
	r.asked = s.server.asked
	return r, nil
}

// record makes the record of what was read.
func (s *Sampler) record() Record {
	u := s.usage()
	r := Record{
		Counters: u.counters, Statements: s.final.asked.statements - s.mark.asked.statements + s.looking().statements,
		Before: debt(s.mark.status), After: debt(s.final.status),
		Evidence: s.evidence(), Sampling: s.sampling(), Missing: s.missing(),
		Profile: s.profiler.profile(s.use.used(u.clientShare)), usage: u,
	}
	for _, one := range s.samples {
		r.Samples = append(r.Samples, result.Sample{At: one.at.Sub(s.mark.at).Seconds(), Values: one.values})
	}
	return r
}
