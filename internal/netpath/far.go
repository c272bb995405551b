package netpath

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"time"

	"david/internal/result"
)

// Answer runs the measuring programs' servers where david is, until ctx is done: the far end of ProbeTo.
func Answer(ctx context.Context) (err error) {
	ended := make(chan *tool)
	for _, m := range meters()[:2] { // both ping-pongs go to one server
		var here *Namespace
		t, err := here.start(m.server)
		if err != nil {
			return err
		}
		defer t.stop()
		if err := here.listens(ctx, m.port, t); err != nil {
			return err
		}
		go func() {
			<-t.done
			select {
			case ended <- t:
			case <-ctx.Done():
			}
		}()
	}
	select {
	case t := <-ended:
		return errors.Join(t.failed(), fmt.Errorf("%w: %s ended: %s", ErrTool, t.name, said(t.out.Bytes())))
	case <-ctx.Done():
		return nil
	}
}

// AnswerPorts are the TCP ports at which Answer runs.
func AnswerPorts() (list []int) {
	for _, text := range []string{iperfPort, sockPort} {
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
	Probe result.PathProbe `json:"probe"` // the CPU time of a round trip is this end's
	Way   Seen             `json:"way"`
}

// ProbeTo measures the way from where david is to an address at which Answer runs, and looks at what it
// consists of.
func ProbeTo(ctx context.Context, to netip.Addr) (m Measured, err error) {
	m.Probe.Runs, m.Probe.IRQApart = 1, irqTimeApart()
	if err := answers(ctx, net.JoinHostPort(to.String(), sockPort)); err != nil {
		return m, err
	}
	for _, program := range meters() {
		err := untilTold(func() error {
			out, cpu, err := clientOf(ctx, program, to)
			if err != nil {
				return err
			}
			return program.read(out, cpu, &m.Probe)
		})
		if err != nil {
			return m, fmt.Errorf("the way to %s: %w", to, err)
		}
	}
	m.Way, err = Inspect(ctx, Visit{Address: netip.AddrPortFrom(to, 0), Talk: func(ctx context.Context) error { return exchange(ctx, to) }})
	return m, err
}

// exchange has iperf3 send Bytes each way, for the links' counters.
func exchange(ctx context.Context, to netip.Addr) error {
	for _, way := range [][]string{nil, {"--reverse"}} {
		m := meter{client: func(address string) []string {
			return append([]string{"iperf3", "--connect-timeout", "3000", "-n", strconv.Itoa(Bytes), "-p", iperfPort, "-c", address}, way...)
		}}
		if _, _, err := clientOf(ctx, m, to); err != nil {
			return err
		}
	}
	return nil
}

// clientOf runs a measuring program's client, and returns what it printed and the CPU time that it and the
// handling of interrupts took here.
func clientOf(ctx context.Context, m meter, to netip.Addr) (out []byte, cpu time.Duration, err error) {
	argv := m.client(to.String())
	ctx, cancel := context.WithTimeoutCause(ctx, probeLimit, fmt.Errorf("%w: %s had not ended after %s", errSilent, argv[0], probeLimit))
	defer cancel()
	apart := irqTimeApart()
	before, err := handling(apart)
	if err != nil {
		return nil, 0, err
	}
	var here *Namespace
	c, err := here.start(argv)
	if err != nil {
		return nil, 0, err
	}
	if err := c.wait(ctx); err != nil {
		return nil, 0, err
	}
	after, err := handling(apart)
	if err == nil {
		err = c.failed()
	}
	return c.out.Bytes(), c.cpu() + after - before, err
}

// answers waits until sockperf's server, which is the last to listen, does. iperf3's would take the connection
// for its client's.
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
