package netpath

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"david/internal/result"
)

// Answer runs the measuring programs' servers where david is, until ctx is done: the far end of ProbeTo. It tells what they and
// their node do.
func Answer(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 3)
	var programs []*tool
	for _, m := range meters()[:2] { // both ping-pongs go to one server
		t, err := answer(ctx, m)
		if err != nil {
			return err
		}
		defer t.stop()
		programs = append(programs, t)
		go func() {
			<-t.done
			ended <- errors.Join(t.failed(), fmt.Errorf("%w: %s ended: %s", ErrTool, t.name, said(t.out.Bytes())))
		}()
	}
	d, err := newDesk(programs...)
	if err != nil {
		return err
	}
	d.works = true
	go func() { ended <- d.listen(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		cancel()
		return nil
	}
}

// answer starts a measuring program's server, and waits until it listens. That of a ping-pong is held to the first CPU.
func answer(ctx context.Context, m meter) (*tool, error) {
	var on []int
	if two := twoCPUs(); m.apart && two != nil {
		on = two[:1]
	}
	var here *Namespace
	t, err := here.start(m.server, on...)
	if err != nil {
		return nil, err
	}
	if err := here.listens(ctx, m.port, t); err != nil {
		t.stop()
		return nil, err
	}
	return t, nil
}

// AnswerPorts are the TCP ports at which Answer runs.
func AnswerPorts() (list []int) {
	for _, text := range []string{iperfPort, NodePort, sockPort} {
		port, err := strconv.Atoi(text)
		if err != nil {
			panic(err) // of constants
		}
		list = append(list, port)
	}
	return list
}

// Measured is what ProbeTo found.
type Measured struct {
	Probe result.PathProbe `json:"probe"`
	Way   Seen             `json:"way"`
	// Nodes is what the nodes at both ends do while nothing is sent; nil where that was not seen.
	Nodes *result.Nodes `json:"nodes,omitempty"`
	// Unworked says why what a round trip takes from other work was not measured; "" where it was.
	Unworked string `json:"unworked,omitempty"`
}

// ProbeTo measures the way from where david is to an address at which Answer runs, and looks at what it
// consists of. through says that a program on the near machine passes on what goes by it, as a balancer does, whose CPU time is to be seen, too.
func ProbeTo(ctx context.Context, to netip.Addr, through bool) (m Measured, err error) {
	for _, port := range []string{sockPort, NodePort} {
		if err := answers(ctx, net.JoinHostPort(to.String(), port)); err != nil {
			return m, err
		}
	}
	e, err := visit(ctx, to)
	if err != nil {
		return m, err
	}
	defer e.Close()
	e.through = through
	if m.Probe, err = e.probe(ctx); err != nil {
		return m, fmt.Errorf("the way to %s: %w", to, err)
	}
	m.Unworked, m.Nodes = e.unworked, e.idle
	m.Way, err = Inspect(ctx, Visit{Address: netip.AddrPortFrom(to, 0), Talk: func(ctx context.Context) error { return exchange(ctx, to) }})
	return m, err
}

// errBusy marks a run in which the nodes were looked at too seldom to tell what they do without the ping-pong and with it.
var errBusy = fmt.Errorf("%w of what the nodes do", errSilent)

// ends are both of a path between nodes, while it is measured.
type ends struct {
	*Nodes
	to        netip.Addr
	one       bool          // machine
	cpus      [2]int        // the near one's and the far one's
	through   bool          // a program on the way
	unworked  string        // why there is no work beside it
	near, far []int         // the CPUs that each end works on
	idle      *result.Nodes // nil until it is seen
}

// visit finds out what can be measured to an address at which Answer runs.
func visit(ctx context.Context, to netip.Addr) (*ends, error) {
	nodes, err := Both(ctx, to.String())
	if err != nil {
		return nil, err
	}
	now, err := nodes.Read()
	if err != nil {
		return nil, errors.Join(err, nodes.Close())
	}
	e := &ends{Nodes: nodes, to: to, one: now.One(), cpus: [2]int{now.Near.CPUs, now.Far.CPUs}, near: now.Near.Usable, far: now.Far.Usable}
	e.unworked = cmp.Or(unworkable(now.Near.Usable, now.Near.Quota), unworkable(now.Far.Usable, now.Far.Quota))
	if e.one && e.unworked == "" {
		// Work gives way at once to what is of its own container only, so that each end has its own where it is held to.
		e.far = e.far[:1]
		e.near = slices.DeleteFunc(slices.Clone(e.near), func(cpu int) bool { return cpu == e.far[0] })
	}
	return e, nil
}

// probe measures the path as Net.Probe does.
func (e *ends) probe(ctx context.Context) (p result.PathProbe, err error) {
	p.Runs, p.IRQApart, p.Partly = 1, e.here.fixed.Apart, e.through
	if !e.one {
		p.Far = &result.PathEnd{}
	}
	alone := meters()
	if e.unworked == "" {
		alone = alone[:2] // a long answer is asked for beside work only
	}
	all := 1.0 // the CPU time of a round trip, over what the measuring programs themselves took of it
	for i, m := range alone {
		err := untilTold(func() error { return e.alone(ctx, m, i, &p, &all) })
		if err != nil && !errors.Is(err, errBusy) { // what was measured stands, without that
			return p, err
		}
	}
	if e.unworked != "" {
		return p, nil
	}
	p.Beside = &result.BesideWork{}
	if p.Far != nil {
		p.Far.Beside = &result.BesideWork{}
	}
	for i, bytes := range []int{result.PingBytes, result.AnswerBytes} {
		if err := untilTold(func() error { return e.beside(ctx, pingOf(bytes), i, &p, all) }); err != nil {
			return p, fmt.Errorf("beside work: %w", err)
		}
	}
	return p, nil
}

// alone runs the meter of this number, and fills in what it tells. Of a program on the way it sees how busy the machine is.
func (e *ends) alone(ctx context.Context, m meter, number int, p *result.PathProbe, all *float64) error {
	got, err := e.pair(ctx, m, nil, nil)
	if err != nil {
		return err
	}
	if err := m.read(got.out, got.cpu, p); err != nil || !m.apart {
		return err
	}
	used, far := &p.RTTCPU, func(end *result.PathEnd) *float64 { return &end.RTTCPU }
	if number == 2 {
		used, far = &p.AnswerCPU, func(end *result.PathEnd) *float64 { return &end.AnswerCPU }
	}
	if p.Far != nil {
		if _, *far(p.Far), err = pings(got.out, got.far); err != nil {
			return err
		}
	}
	rest, busy, ok := levels(got.work, busyNear)
	if !ok {
		return errBusy
	}
	e.rests(got, rest)
	if !e.through {
		return nil
	}
	time, err := each(got.out)
	whole := max(*used, (busy-rest)*1e6*time)
	*all, p.Partly, *used = whole / *used, false, whole
	return err
}

// rests keeps what the nodes do while nothing is sent.
func (e *ends) rests(got pairRun, near float64) {
	e.idle = &result.Nodes{Near: result.NodeFacts{CPUs: float64(e.cpus[0]), Idle: near}}
	if far, _, ok := levels(got.work, busyFar); ok && !e.one {
		e.idle.Far = &result.NodeFacts{CPUs: float64(e.cpus[1]), Idle: far}
	}
}

// beside measures the round trip of this number beside work at both ends.
func (e *ends) beside(ctx context.Context, m meter, number int, p *result.PathProbe, all float64) error {
	got, err := e.pair(ctx, m, e.near, e.far)
	if err != nil {
		return err
	}
	of := func(b *result.BesideWork) *result.RoundTrip { return []*result.RoundTrip{&b.Ping, &b.Answer}[number] }
	near, workers := of(p.Beside), len(e.near)
	if near.RTT50, near.CPU, err = pings(got.out, got.cpu); err != nil {
		return err
	}
	near.CPU *= all
	if e.one {
		workers += len(e.far)
	} else {
		far := of(p.Far.Beside)
		if _, far.CPU, err = pings(got.out, got.far); err != nil {
			return err
		}
		if far.Taken, err = taken(got, doneFar, len(e.far)); err != nil {
			return err
		}
		far.Taken = plausible(*far)
	}
	near.Taken, err = taken(got, doneNear, workers)
	near.Taken = plausible(*near)
	return err
}

// pair runs a measuring program's client, held to the second CPU as its server is to the first, beside work on these CPUs of the near and the
// far end, none for none.
func (e *ends) pair(ctx context.Context, m meter, near, far []int) (got pairRun, err error) {
	argv := m.client(e.to.String())
	ctx, cancel := context.WithTimeoutCause(ctx, probeLimit, fmt.Errorf("%w: %s had not ended after %s", errSilent, argv[0], probeLimit))
	defer cancel()
	var w *work
	if len(near) > 0 {
		if w, err = startWork(near); err != nil {
			return got, err
		}
		defer func() { err = errors.Join(err, w.stop()) }()
	}
	defer func() { // the far end's work
		_, stopped := e.Nodes.far.ask(nil)
		err = errors.Join(err, stopped)
	}()
	at := func() (p Pair, err error) {
		if p.Far, err = e.Nodes.far.ask(far); err == nil {
			p.Near, err = e.here.read(w)
		}
		return p, err
	}
	before, err := at()
	if err != nil {
		return got, err
	}
	handled, err := handling(before.Near.Apart)
	if err != nil {
		return got, err
	}
	var on []int
	if two := twoCPUs(); m.apart && two != nil {
		on = two[1:]
	}
	var here *Namespace
	c, err := here.start(argv, on...)
	if err != nil {
		return got, err
	}
	defer c.stop()
	if m.apart {
		got.work, err = observe(ctx, c, func() (l look, err error) {
			p, err := at()
			if l = (look{done: p.Near.Done, busy: [2]float64{p.Near.Busy, p.Far.Busy}}); e.one {
				l.done += p.Far.Done
			} else {
				l.far = p.Far.Done
			}
			return l, err
		})
		if err != nil {
			return got, err
		}
	}
	if err := c.wait(ctx); err != nil {
		return got, err
	}
	after, err := at()
	if err != nil {
		return got, err
	}
	handledThen, err := handling(before.Near.Apart)
	if err == nil {
		err = c.failed()
	}
	got.out, got.cpu = c.out.Bytes(), c.cpu()+handledThen-handled
	programs := seconds(after.Far.Programs - before.Far.Programs)
	if e.one {
		got.cpu += programs
	} else {
		got.far = programs + seconds(after.Far.Interrupts-before.Far.Interrupts)
	}
	return got, err
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// exchange has iperf3 send Bytes each way, for the links' counters.
func exchange(ctx context.Context, to netip.Addr) error {
	for _, way := range [][]string{nil, {"--reverse"}} {
		m := meter{client: func(address string) []string {
			return append([]string{"iperf3", "--connect-timeout", "3000", "-n", strconv.Itoa(Bytes), "-p", iperfPort, "-c", address}, way...)
		}}
		if err := clientOf(ctx, m, to); err != nil {
			return err
		}
	}
	return nil
}

// clientOf runs a measuring program's client.
func clientOf(ctx context.Context, m meter, to netip.Addr) error {
	argv := m.client(to.String())
	ctx, cancel := context.WithTimeoutCause(ctx, probeLimit, fmt.Errorf("%w: %s had not ended after %s", errSilent, argv[0], probeLimit))
	defer cancel()
	var here *Namespace
	c, err := here.start(argv)
	if err != nil {
		return err
	}
	if err := c.wait(ctx); err != nil {
		return err
	}
	return c.failed()
}

// answers waits until somebody listens. iperf3's server would take the connection for its client's.
func answers(ctx context.Context, address string) error { return Await(ctx, address, probeLimit) }

// Await waits until a TCP connection to HOST:PORT can be made, for so long at most: the host's name may not be known yet.
func Await(ctx context.Context, address string, patience time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("nothing answered at %s for %s", address, patience))
	defer cancel()
	for {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %w", ErrTool, context.Cause(ctx), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
