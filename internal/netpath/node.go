package netpath

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"david/internal/host"
)

// NodePort is the TCP port at which ServeNode and Answer tell what their node does.
const NodePort = "11112"

// Node is what the machine at one end of a path has done since it started.
type Node struct {
	Boot   string  `json:"boot"` // names the machine since then: two nodes that have the same are one
	CPUs   int     `json:"cpus"`
	Usable []int   `json:"usable"` // the CPUs that david may use there
	Quota  float64 `json:"quota,omitempty"`
	// Busy is the CPU time of all that ran there, in seconds, and Interrupts that of interrupts, where the kernel keeps it apart.
	Busy       float64 `json:"busy_s"`
	Interrupts float64 `json:"interrupts_s"`
	Apart      bool    `json:"irq_time_apart"`
	Programs   float64 `json:"programs_s"` // of the measuring programs' servers that david runs there
	Done       float64 `json:"done"`       // of the work beside them
}

// desk tells what the node that david is on does.
type desk struct {
	proc     procfs.FS
	fixed    Node
	programs []*tool
	works    bool       // it has work done there for who asks
	working  sync.Mutex // held while it is: for one at a time
}

// newDesk tells of these programs, too.
func newDesk(programs ...*tool) (*desk, error) {
	d := &desk{programs: programs}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil, fmt.Errorf("cannot tell this machine from others: %w", err)
	}
	if d.proc, err = procfs.NewDefaultFS(); err != nil {
		return nil, fmt.Errorf("cannot see what this machine does: %w; is /proc mounted?", err)
	}
	d.fixed.Boot, d.fixed.Apart = strings.TrimSpace(string(boot)), irqTimeApart()
	if d.fixed.Quota, err = host.CPULimit(os.Getpid()); err != nil {
		return nil, err
	}
	d.fixed.Usable, err = usableCPUs()
	return d, err
}

// usableCPUs are those that this process may run on.
func usableCPUs() (list []int, err error) {
	var may unix.CPUSet
	if err := unix.SchedGetaffinity(0, &may); err != nil {
		return nil, fmt.Errorf("cannot see on which CPUs david may run: %w", err)
	}
	for cpu := 0; len(list) < may.Count(); cpu++ {
		if may.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// read reads the node, and how much of the work, nil for none, was done.
func (d *desk) read(w *work) (Node, error) {
	n := d.fixed
	stat, err := d.proc.Stat()
	if err != nil {
		return n, fmt.Errorf("cannot see what this machine does: %w", err)
	}
	n.CPUs, n.Busy = len(stat.CPU), host.BusyTime(stat.CPUTotal)
	if n.Apart {
		n.Interrupts = stat.CPUTotal.IRQ + stat.CPUTotal.SoftIRQ
	}
	for _, t := range d.programs {
		used, err := running(d.proc, t.cmd.Process.Pid)
		if err != nil {
			return n, fmt.Errorf("cannot see what %s uses: %w", t.name, err)
		}
		n.Programs += used
	}
	if w != nil {
		n.Done = w.done()
		return n, w.failed()
	}
	return n, nil
}

// running is the CPU time in seconds that a program's threads have used.
func running(proc procfs.FS, pid int) (seconds float64, err error) {
	threads, err := proc.AllThreads(pid)
	if err != nil {
		return 0, err
	}
	for _, thread := range threads {
		if s, err := thread.Schedstat(); err == nil { // it may have ended
			seconds += float64(s.RunningNanoseconds) / 1e9
		}
	}
	return seconds, nil
}

// ServeNode tells who asks at NodePort what the node does that david is on, until ctx is done.
func ServeNode(ctx context.Context) error {
	d, err := newDesk()
	if err != nil {
		return err
	}
	return d.listen(ctx)
}

func (d *desk) listen(ctx context.Context) error {
	l, err := net.Listen("tcp", ":"+NodePort)
	if err != nil {
		return fmt.Errorf("cannot tell of this node: %w", err)
	}
	return d.serve(ctx, l)
}

func (d *desk) serve(ctx context.Context, l net.Listener) error {
	defer context.AfterFunc(ctx, func() { l.Close() })()
	var visits sync.WaitGroup
	defer visits.Wait()
	for {
		conn, err := l.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot tell of this node: %w", err)
		}
		visits.Go(func() {
			defer context.AfterFunc(ctx, func() { conn.Close() })()
			defer conn.Close()
			d.visited(conn)
		})
	}
}

// nodeQuestion says on which CPUs work is to be done from now on; it ends with the connection.
type nodeQuestion struct {
	Work []int `json:"work"`
}

type nodeAnswer struct {
	Node Node   `json:"node"`
	Err  string `json:"error,omitempty"`
}

// visited answers the questions of one connection.
func (d *desk) visited(conn net.Conn) {
	var w *work
	defer func() { d.work(&w, nil) }()
	in, out := json.NewDecoder(io.LimitReader(conn, mostAsked)), json.NewEncoder(conn)
	for {
		var q nodeQuestion
		if in.Decode(&q) != nil {
			return
		}
		var a nodeAnswer
		err := d.work(&w, q.Work)
		if err == nil {
			a.Node, err = d.read(w)
		}
		if err != nil {
			a.Err = err.Error()
		}
		if out.Encode(a) != nil {
			return
		}
	}
}

// mostAsked bounds what one connection may ask, in bytes: a port of a load balancer may be everybody's.
const mostAsked = 1 << 20

// work begins or ends the work.
func (d *desk) work(w **work, cpus []int) (err error) {
	switch {
	case len(cpus) == 0 && *w != nil:
		err = (*w).stop()
		*w = nil
		d.working.Unlock()
	case len(cpus) == 0 || *w != nil:
	case !d.works || len(cpus) > len(d.fixed.Usable):
		err = errors.New("no work is done here")
	case !d.working.TryLock():
		err = errors.New("work is done here for another")
	default:
		if *w, err = startWork(cpus); err != nil {
			d.working.Unlock()
		}
	}
	return err
}

// Beside is a connection to who tells of the node at the other end of a path.
type Beside struct {
	address string
	conn    net.Conn
	in      *json.Decoder
	out     *json.Encoder
}

// nodePatience is how long an answer may take: it comes from a process that runs only where others leave it a CPU.
const nodePatience = 10 * time.Second

// VisitNode connects to an address at which ServeNode or Answer runs.
func VisitNode(ctx context.Context, address string) (*Beside, error) {
	conn, err := (&net.Dialer{Timeout: nodePatience}).DialContext(ctx, "tcp", net.JoinHostPort(address, NodePort))
	if err != nil {
		return nil, fmt.Errorf("cannot see the node at %s: %w", address, err)
	}
	return &Beside{address, conn, json.NewDecoder(conn), json.NewEncoder(conn)}, nil
}

// Read asks what the node has done.
func (b *Beside) Read() (Node, error) { return b.ask(nil) }

func (b *Beside) ask(work []int) (n Node, err error) {
	var a nodeAnswer
	if err = b.conn.SetDeadline(time.Now().Add(nodePatience)); err == nil {
		err = b.out.Encode(nodeQuestion{work})
	}
	if err == nil {
		err = b.in.Decode(&a)
	}
	if err == nil && a.Err != "" {
		err = errors.New(a.Err)
	}
	if err != nil {
		return n, fmt.Errorf("cannot see the node at %s: %w", b.address, err)
	}
	return a.Node, nil
}

// Close ends the connection, and the work that it asked for.
func (b *Beside) Close() error { return b.conn.Close() }

// Nodes reads the nodes at both ends of a path: the one that david is on, and that of who answers.
type Nodes struct {
	here *desk
	far  *Beside
}

// Both connects to an address at which ServeNode runs.
func Both(ctx context.Context, address string) (*Nodes, error) {
	here, err := newDesk()
	if err != nil {
		return nil, err
	}
	far, err := VisitNode(ctx, address)
	if err != nil {
		return nil, err
	}
	return &Nodes{here, far}, nil
}

// Pair is both nodes at one moment.
type Pair struct{ Near, Far Node }

// One tells whether they are one machine.
func (p Pair) One() bool { return p.Near.Boot == p.Far.Boot }

// Read reads them.
func (n *Nodes) Read() (p Pair, err error) {
	if p.Far, err = n.far.Read(); err != nil {
		return p, err
	}
	p.Near, err = n.here.read(nil)
	return p, err
}

// Close ends the connection.
func (n *Nodes) Close() error { return n.far.Close() }

// Busy is the CPU time in seconds that the near machine spent from one reading to another, and the far one where it is another.
func (p Pair) Busy(after Pair) (near, far float64) {
	if near = after.Near.Busy - p.Near.Busy; !p.One() {
		far = after.Far.Busy - p.Far.Busy
	}
	return near, far
}
