package sampler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// profiler looks at the load's connections from Mark to Stop, over a connection of its own:
//
//	what their threads do (/proc) -> the process list -> states, by how many connections were found in them
//
// The kernel first and the process list right after; in the fraction of a millisecond between the two a
// thread can move on.
type profiler struct {
	conn   *mysqld.Single
	server setup
	list   listing
	tasks  *tasks // nil where the server's threads cannot be seen
	thread threadOfConnection
	own    []int // david's threads in the server
	schema string
	notes  notes

	stop, done chan struct{} // nil while it does not run

	// The goroutine's while it runs, its owner's otherwise.
	polls         polls
	socketThreads *socketThreads // where the process list does not tell the threads
	spent         asked          // by the goroutine
	failed        error

	before, after summary
}

// polls add up what was found.
type polls struct {
	states      map[result.State]int64
	count       int
	connections int64 // over all polls
	last, most  int   // connections at the last one, and at any
}

// setup holds what the server says of itself.
type setup struct {
	performanceSchema, threadPerConnection bool
	binlog                                 string // log_bin_basename
}

// summary holds what has been counted at Mark, or at Stop.
type summary struct {
	at                time.Time
	threads           map[int]thread
	waits, statements map[string]summaryRow
}

// notes holds what could not be looked at, and the first reason why.
type notes map[string]error

func (n notes) add(what string, err error) {
	if err != nil && n[what] == nil {
		n[what] = err
	}
}

func (n notes) list() (all []string) {
	for _, what := range slices.Sorted(maps.Keys(n)) {
		all = append(all, what+": "+n[what].Error())
	}
	return all
}

// newProfiler takes a connection out of the pool. There is no profiler without a schema to know the load by.
func newProfiler(ctx context.Context, o Options, sampler threadOfConnection) (*profiler, error) {
	if o.Schema == "" {
		return nil, nil
	}
	conn, err := o.Conn.Single(ctx)
	if err != nil {
		return nil, err
	}
	p := &profiler{conn: conn, schema: o.Schema, notes: notes{}}
	if err := p.prepare(ctx, o); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	for _, t := range []threadOfConnection{p.thread, sampler} {
		if t.ok {
			p.own = append(p.own, t.proc.PID)
		}
	}
	return p, nil
}

// prepare finds out what the server can be asked and what the kernel tells.
func (p *profiler) prepare(ctx context.Context, o Options) error {
	rows, err := p.conn.Rows(ctx, 3, "SELECT @@performance_schema, @@thread_handling, @@log_bin_basename")
	if err := p.tolerate("the server's setup", err); err != nil {
		return err
	}
	if len(rows) == 1 {
		p.server = setup{rows[0][0] == "1", rows[0][1] == "one-thread-per-connection", rows[0][2]}
	}
	if !p.server.performanceSchema {
		p.notes.add("waits and statements", errors.New("performance_schema is off"))
	}
	if err := p.choose(ctx, o); err != nil {
		return err
	}
	if o.ServerPID > 0 {
		return p.findThreads(ctx, o)
	}
	p.notes.add("threads", errors.New("the server is not a process david knows on this machine"))
	return nil
}

// choose takes the best way to the process list that the server admits.
func (p *profiler) choose(ctx context.Context, o Options) error {
	for _, l := range listings(o.Flavour, o.Schema) {
		if l.joined && !p.tellsThreads(o.Flavour) {
			continue
		}
		_, err := p.conn.Rows(ctx, l.columns, l.query)
		if err == nil {
			p.list = l
			return nil
		}
		if err := p.tolerate("process list", err); err != nil {
			return err
		}
	}
	return nil
}

// tellsThreads returns whether the process list has the thread that serves a connection.
func (p *profiler) tellsThreads(f mycnf.Flavour) bool {
	return p.server.threadPerConnection && (f == mycnf.MariaDB || p.server.performanceSchema)
}

// tolerate notes what the server itself refused, for want of a privilege or of a table; it gives other errors
// back.
func (p *profiler) tolerate(what string, err error) error {
	if mysqld.Number(err) != 0 {
		p.notes.add(what, err)
		return nil
	}
	return err
}

// findThreads finds the server's threads in /proc.
func (p *profiler) findThreads(ctx context.Context, o Options) error {
	if !p.server.threadPerConnection {
		p.notes.add("threads of connections", errors.New("the server shares threads between connections"))
	}
	p.tasks = newTasks(o.ServerPID, p.server.binlog, p.notes)
	if !p.list.joined {
		return nil
	}
	pairs, err := p.conn.Pairs(ctx, ownThread(o.Flavour))
	if err := p.tolerate("threads", err); err != nil {
		return err
	}
	if p.thread = newThread(o.ServerPID, pairs["tid"]); !p.thread.ok {
		p.tasks = nil
		p.notes.add("threads", fmt.Errorf("process %d has no thread %q, as the server says it has; it may count in another namespace", o.ServerPID, pairs["tid"]))
	}
	return nil
}

// mark takes the counts from which the measured run's are taken, and forgets what was seen before.
func (p *profiler) mark(ctx context.Context) (err error) {
	if err := p.halt(); err != nil {
		return err
	}
	p.polls, p.spent = polls{states: map[result.State]int64{}}, asked{}
	p.before, err = p.summary(ctx)
	if p.tasks == nil {
		return err
	}
	p.tasks.forget()
	if !p.list.joined && p.server.threadPerConnection {
		p.socketThreads = newSocketThreads(p.tasks, p.before.at)
	}
	return err
}

// start begins to look, unless the process list is refused.
func (p *profiler) start(ctx context.Context) {
	if p.list.query == "" {
		return
	}
	p.stop, p.done = make(chan struct{}), make(chan struct{})
	go p.run(ctx, p.stop, p.done)
}

// run polls until it is told to stop, or the server refuses or is gone.
func (p *profiler) run(ctx context.Context, stop, done chan struct{}) {
	defer close(done)
	before := p.thread.cpu()
	defer func() { p.spent.cpu = p.thread.cpu() - before }()
	for {
		select {
		case <-stop:
			return
		case <-ctx.Done():
			return
		case <-time.After(pause(p.polls.last, rand.Float64())):
		}
		if err := p.poll(ctx); err != nil {
			p.failed = p.tolerate("process list", err)
			return
		}
	}
}

// pause returns the time until the next poll, at odd times so as not to beat with anything periodic; random
// is from 0 to 1. On a busy machine of 2 CPUs a poll of 8 or 16 connections costs david and the server 1 ms
// of CPU together, and all the rest of sampling 5 ms a second: this rate leaves both below 1 % of a core.
func pause(connections int, random float64) time.Duration {
	rate := max(1, 5/(1+float64(connections)/40))
	return time.Duration((0.5 + random) / rate * float64(time.Second))
}

// halt ends the looking, and gives the error that ended it before.
func (p *profiler) halt() error {
	if p.stop != nil {
		close(p.stop)
		<-p.done
		p.stop = nil
	}
	return p.failed
}

// finish takes the counts to which the measured run's are taken, after halt.
func (p *profiler) finish(ctx context.Context) (err error) {
	p.after, err = p.summary(ctx)
	return err
}

func (p *profiler) close() error {
	if p.tasks != nil {
		p.tasks.close()
	}
	return p.conn.Close()
}

// summary reads what is counted without looking.
func (p *profiler) summary(ctx context.Context) (s summary, err error) {
	s.at = time.Now()
	if p.tasks != nil {
		s.threads = p.tasks.all()
	}
	if !p.server.performanceSchema {
		return s, nil
	}
	waits, err := p.conn.Rows(ctx, 3, waitsQuery)
	if err := p.tolerate("waits", err); err != nil {
		return s, err
	}
	statements, err := p.conn.Rows(ctx, 6, statementsQuery(p.schema))
	if err := p.tolerate("statements", err); err != nil {
		return s, err
	}
	s.waits, s.statements = rowsOf(waits, 2), rowsOf(statements, 4)
	return s, nil
}

// poll looks at all connections once. One at which the load has none is not counted.
func (p *profiler) poll(ctx context.Context) error {
	now := time.Now()
	var doing map[int]result.State
	if p.tasks != nil {
		doing = p.tasks.poll(now)
	}
	rows, err := p.conn.Rows(ctx, p.list.columns, p.list.query)
	p.spent.wall += time.Since(now)
	p.spent.statements++
	if err != nil {
		return err
	}
	all := p.list.sessions(rows)
	p.polls.last = len(all)
	if len(all) == 0 {
		return nil
	}
	p.polls.count++
	p.polls.connections += int64(len(all))
	p.polls.most = max(p.polls.most, len(all))
	for _, s := range all {
		p.polls.states[p.found(s, doing, now)]++
	}
	if p.socketThreads != nil {
		p.socketThreads.poll(p.tasks, doing, now)
	}
	return nil
}

// found returns the state a connection was found in.
func (p *profiler) found(s loadSession, doing map[int]result.State, now time.Time) result.State {
	state, ok := doing[s.tid]
	if !ok && p.tasks != nil { // a new one
		state, _ = p.tasks.add(s.tid, now)
	}
	state.Command, state.Stage, state.Statement = s.command, s.stage, s.statement
	return state
}

// profile sums up what was found; nil before Mark.
func (p *profiler) profile(client result.Threads) *result.Profile {
	if p == nil || p.before.at.IsZero() {
		return nil
	}
	states, load := p.polls.states, map[int]*task{}
	if p.tasks != nil {
		load = p.tasks.seen
	}
	if p.socketThreads != nil {
		states, load = p.join(load)
	}
	r := &result.Profile{Looks: p.polls.count, States: sorted(states), Client: client, Missing: p.notes.list()}
	if r.Looks > 0 {
		r.Connections = float64(p.polls.connections) / float64(r.Looks)
	}
	if !p.after.at.IsZero() {
		r.Waits, r.Statements = waits(p.before.waits, p.after.waits), statements(p.before.statements, p.after.statements)
		if p.tasks != nil {
			r.Threads = threads(p.before.threads, p.after.threads, load, p.own, p.after.at)
		}
	}
	return r
}

// sorted lists the states, most often found first.
func sorted(states map[result.State]int64) (list []result.State) {
	for s, n := range states {
		s.Count = n
		list = append(list, s)
	}
	slices.SortFunc(list, func(a, b result.State) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Command, b.Command), cmp.Compare(a.Statement, b.Statement),
			cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Kernel, b.Kernel), cmp.Compare(a.File, b.File))
	})
	return list
}
