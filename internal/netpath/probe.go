package netpath

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/result"
)

// ErrNoTool marks a program that is not there.
var ErrNoTool = errors.New("is missing")

// ErrTool marks a program that could not measure a path.
var ErrTool = errors.New("the path could not be measured")

// errSilent marks a run that told nothing: others left it no CPU until its time was over, or sockperf never ended, as one of some 300 times
// it was seen to, on a path that the next run found in order.
var errSilent = fmt.Errorf("%w: nothing was told", ErrTool)

const (
	// probeSeconds is how long each of the two programs measures a path at a time.
	probeSeconds = 1
	// ProbeTakes is about how long Probe measures a path: iperf3 once, and sockperf, which takes more than two seconds to start, once alone and
	// twice beside work.
	ProbeTakes = 4*probeSeconds*time.Second + 500*time.Millisecond + 3*2300*time.Millisecond
	// probeTries are the runs of which one has to tell something.
	probeTries = 3
	// mostTaken is how many times of the CPU time that it uses a round trip may take from other work: the rest of more is what other programs
	// took meanwhile. A path through a program was seen to take 1.15 times.
	mostTaken = 2
	// probeLimit bounds one of their runs: sockperf needs half a second besides, a path that drops packets more.
	probeLimit = 15 * time.Second
	iperfPort  = "5201"
	sockPort   = "11111"
)

// Probe measures a path with iperf3 and sockperf, and with sockperf while other work is done on all CPUs, where that can be told;
// Medians sums several up. It is nil for the unix socket, which neither program goes by, and where client and server have
// CPUs of their own, which these programs would not keep to.
func (n *Net) Probe(ctx context.Context, p result.Path) (*result.PathProbe, error) {
	way := n.Way(p)
	if !Probed(p) {
		return nil, nil
	}
	probe := &result.PathProbe{Runs: 1, IRQApart: irqTimeApart()}
	alone := meters()
	if n.workable() {
		alone = alone[:2] // a long answer is asked for beside work only
	}
	for _, m := range alone {
		err := untilTold(func() error {
			got, err := n.pairOf(ctx, way, m, nil)
			if err != nil {
				return err
			}
			return m.read(got.out, got.cpu, probe)
		})
		if err != nil {
			return nil, fmt.Errorf("path %s: %w", Name(p), err)
		}
	}
	if !n.workable() {
		return probe, nil
	}
	probe.Beside = &result.BesideWork{}
	for _, of := range []struct {
		bytes int
		trip  *result.RoundTrip
	}{{result.PingBytes, &probe.Beside.Ping}, {result.AnswerBytes, &probe.Beside.Answer}} {
		if err := untilTold(func() error { return n.besideWork(ctx, way, pingOf(of.bytes), of.trip) }); err != nil {
			return nil, fmt.Errorf("path %s, beside work: %w", Name(p), err)
		}
	}
	return probe, nil
}

// Probed tells whether Probe measures a path.
func Probed(p result.Path) bool { return p.Kind != Unix && p.CPUs == "" }

// untilTold measures again where a run told nothing.
func untilTold(measure func() error) (err error) {
	for range probeTries {
		if err = measure(); !errors.Is(err, errSilent) {
			break
		}
	}
	return err
}

// besideWork measures what a round trip takes from other work. The time that the programs and the kernel use for it is not all: what
// comes after them finds caches that are theirs, and a path through more programs costs the more of that.
func (n *Net) besideWork(ctx context.Context, way Way, m meter, trip *result.RoundTrip) (err error) {
	cpus, err := usableCPUs()
	if err != nil {
		return err
	}
	w, err := startWork(cpus)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.stop()) }()
	got, err := n.pairOf(ctx, way, m, w)
	if err != nil {
		return err
	}
	if trip.RTT50, trip.CPU, err = pings(got.out, got.cpu); err != nil {
		return err
	}
	trip.Taken, err = taken(got, doneNear, len(w.workers))
	trip.Taken = plausible(*trip)
	return err
}

// plausible is what a round trip takes from other work; 0 where other programs must have taken of it.
func plausible(trip result.RoundTrip) float64 {
	if trip.Taken > mostTaken*trip.CPU {
		return 0
	}
	return trip.Taken
}

// taken is the CPU time, in microseconds, that a round trip took from the work that was done on so many CPUs; 0 where that is not known.
func taken(got pairRun, done func(span) float64, cpus int) (float64, error) {
	each, err := each(got.out)
	return math.Max(0, lost(got.work, done)) * float64(cpus) * 1e6 * each, err
}

// each is how much of a run's time there is for each of its round trips, in seconds; 0 where there was none.
func each(out []byte) (float64, error) {
	sent, err1 := figure(out, `Total Run.*SentMessages=(\d+)`)
	seconds, err2 := figure(out, `Total Run.*RunTime=([\d.]+)`)
	if err := errors.Join(err1, err2); err != nil || sent == 0 {
		return 0, err
	}
	return seconds / sent, nil
}

// meters are what measures a path, in this order.
func meters() []meter {
	ping, answer := pingOf(result.PingBytes), pingOf(result.AnswerBytes)
	ping.read, answer.read = readRoundTrip, readAnswer
	return []meter{bandwidth(), ping, answer}
}

// meter is a program that measures a way: its server, its client for an address, and how what the client
// printed is read.
type meter struct {
	port   string
	server []string
	client func(address string) []string
	apart  bool // its ends are held to a CPU each
	read   func(out []byte, cpu time.Duration, probe *result.PathProbe) error
}

// pairRun is what a run of a measuring program's two ends gave.
type pairRun struct {
	out  []byte        // that the client printed
	cpu  time.Duration // that both and the handling of interrupts took
	far  time.Duration // what the far end took, where that is another machine; cpu is without it then
	work []span        // that was done meanwhile, where any was
}

// bandwidth measures one TCP stream to the server, as the answers of a database go the other way and a veth
// is the same in both.
func bandwidth() meter {
	return meter{port: iperfPort, server: []string{"iperf3", "-4", "-s", "-p", iperfPort}, client: func(address string) []string {
		return []string{"iperf3", "-J", "--connect-timeout", "3000", "-t", strconv.Itoa(probeSeconds), "-p", iperfPort, "-c", address}
	}, read: readBandwidth}
}

func readBandwidth(out []byte, _ time.Duration, probe *result.PathProbe) error {
	var doc struct {
		Error string
		End   struct {
			Sent struct {
				Retransmits float64
			} `json:"sum_sent"`
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		}
	}
	if err := json.Unmarshal(out, &doc); err != nil {
		return fmt.Errorf("%w: iperf3: %w", ErrTool, err)
	}
	if doc.Error != "" || !(doc.End.Received.Rate > 0) {
		return fmt.Errorf("%w: iperf3: %s", ErrTool, cmp.Or(doc.Error, "nothing arrived"))
	}
	probe.Rate, probe.Retransmits = doc.End.Received.Rate, doc.End.Sent.Retransmits
	return nil
}

// pingOf measures how long an answer takes, over TCP, and the CPU time that it takes of both ends and of the kernel.
// Request and answer are of so many bytes.
func pingOf(bytes int) meter {
	// With --uc-reuseaddr the port is free at once where the server before was ended while a slow path had not yet closed its connection.
	return meter{port: sockPort, server: []string{"sockperf", "server", "--tcp", "--uc-reuseaddr", "-i", "0.0.0.0", "-p", sockPort}, client: func(address string) []string {
		return []string{"sockperf", "ping-pong", "--tcp", "--full-rtt", "-i", address, "-p", sockPort, "-t", strconv.Itoa(probeSeconds), "-m", strconv.Itoa(bytes)}
	}, apart: true}
}

func readRoundTrip(out []byte, cpu time.Duration, probe *result.PathProbe) (err error) {
	if probe.RTT50, probe.RTTCPU, err = pings(out, cpu); err != nil {
		return err
	}
	probe.RTT99, err = figure(out, `percentile 99\.000 = *([\d.]+)`)
	return err
}

func readAnswer(out []byte, cpu time.Duration, probe *result.PathProbe) (err error) {
	probe.AnswerRTT, probe.AnswerCPU, err = pings(out, cpu)
	return err
}

// pings reads what sockperf printed: the median of the round trips, and the CPU time of one, in microseconds.
func pings(out []byte, cpu time.Duration) (median, busy float64, err error) {
	sent, err1 := figure(out, `Total Run.*SentMessages=(\d+)`)
	median, err2 := figure(out, `percentile 50\.000 = *([\d.]+)`)
	if err := errors.Join(err1, err2); err != nil {
		return 0, 0, err
	}
	if sent == 0 {
		return 0, 0, fmt.Errorf("%w: sockperf sent nothing", errSilent)
	}
	return median, float64(cpu.Microseconds()) / sent, nil
}

// figure finds a number in what sockperf printed.
func figure(out []byte, pattern string) (float64, error) {
	m := regexp.MustCompile(pattern).FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("%w: nothing that sockperf printed is like %s", errSilent, pattern)
	}
	return strconv.ParseFloat(string(m[1]), 64)
}

// pairOf runs a server of a measuring program where the paths lead to, and its client where the path begins; beside work, where
// there is any.
func (n *Net) pairOf(ctx context.Context, way Way, m meter, w *work) (got pairRun, err error) {
	client := m.client(way.Address.String())
	ctx, cancel := context.WithTimeoutCause(ctx, probeLimit, fmt.Errorf("%w: %s had not ended after %s", errSilent, client[0], probeLimit))
	defer cancel()
	// The ends of a ping-pong that happen to share a CPU answer in a tenth of the time, and where they are changes from run to run.
	ends := [2][]int{}
	if two := twoCPUs(); m.apart && two != nil {
		ends = [2][]int{two[:1], two[1:]}
	}
	s, err := n.Server.start(m.server, ends[0]...)
	if err != nil {
		return got, err
	}
	defer s.stop()
	if err := n.Server.listens(ctx, m.port, s); err != nil {
		return got, err
	}
	apart := irqTimeApart()
	before, err := handling(apart)
	if err != nil {
		return got, err
	}
	c, err := way.From.start(client, ends[1]...)
	if err != nil {
		return got, err
	}
	defer c.stop()
	if w != nil {
		if got.work, err = observe(ctx, c, w.look); err != nil {
			return got, err
		}
	}
	if err := c.wait(ctx); err != nil {
		return got, err
	}
	s.stop()
	after, err := handling(apart)
	if err == nil {
		err = c.failed()
	}
	got.out, got.cpu = c.out.Bytes(), c.cpu()+s.cpu()+after-before
	return got, err
}

// listens waits until the program's server does. It is not connected to: iperf3 would take that for its client.
func (n *Namespace) listens(ctx context.Context, port string, s *tool) error {
	for {
		var list []*netlink.Socket
		err := n.do(func() (err error) {
			list, err = netlink.SocketDiagTCP(unix.AF_INET)
			return err
		})
		if err != nil {
			return fmt.Errorf("cannot see whether %s listens: %w", s.name, err)
		}
		if slices.ContainsFunc(list, func(k *netlink.Socket) bool {
			return k.State == netlink.TCP_LISTEN && strconv.Itoa(int(k.ID.SourcePort)) == port
		}) {
			return nil
		}
		select {
		case <-s.done:
			return fmt.Errorf("%w: %s ended: %s", ErrTool, s.name, said(s.out.Bytes()))
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// said is what a program says of its failure: a line with the word, else its last one.
func said(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(strings.ToLower(line), "error") }); i >= 0 {
		return strings.TrimSpace(lines[i])
	}
	return lines[len(lines)-1]
}

// handling reads the CPU time that handling interrupts has taken on this machine, where it is not in that of the processes, and
// david itself, which forwards the packets of one kind of path.
func handling(irqApart bool) (time.Duration, error) {
	var own unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &own); err != nil {
		return 0, err
	}
	forwarding := time.Duration(own.Utime.Nano() + own.Stime.Nano())
	if !irqApart {
		return forwarding, nil
	}
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	stat, err := proc.Stat()
	return forwarding + time.Duration((stat.CPUTotal.IRQ+stat.CPUTotal.SoftIRQ)*float64(time.Second)), err
}

// tool is a measuring program that runs; it dies with david.
type tool struct {
	name string
	cmd  *exec.Cmd
	out  bytes.Buffer
	done chan struct{} // closed when it has ended
	err  error         // how; valid after done
}

// start starts a program in the namespace, nil for david's own, as an ordinary user, on the CPUs that it is held to.
func (n *Namespace) start(argv []string, on ...int) (*tool, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return nil, fmt.Errorf("%s %w: apt-get install %s", argv[0], ErrNoTool, argv[0])
	}
	who, err := account.Find()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, argv[1:]...)
	cmd.Env, cmd.SysProcAttr = []string{"LC_ALL=C"}, &syscall.SysProcAttr{Credential: who.Credential()}
	return launch(n, cmd, on...)
}

// launch starts a command in the namespace, nil for david's own, on the CPUs that it is held to, and keeps what it prints.
func launch(n *Namespace, cmd *exec.Cmd, on ...int) (*tool, error) {
	t := &tool{name: filepath.Base(cmd.Args[0]), cmd: cmd, done: make(chan struct{})}
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &t.out, &t.out
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the signal is tied to the thread that forks
		defer runtime.UnlockOSThread()
		err := heldTo(on, func() error { return n.do(t.cmd.Start) })
		started <- err
		if err == nil {
			t.err = t.cmd.Wait()
			close(t.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("cannot start %s: %w", t.name, err)
	}
	return t, nil
}

// heldTo calls fn on a thread that is held to CPUs, as what it starts is then; to no other than before where none is named.
func heldTo(cpus []int, fn func() error) (err error) {
	if len(cpus) == 0 {
		return fn()
	}
	var before, held unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		return fmt.Errorf("cannot see on which CPUs this thread may run: %w", err)
	}
	for _, cpu := range cpus {
		held.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &held); err != nil {
		return fmt.Errorf("cannot hold a program to CPUs %v: %w", cpus, err)
	}
	return errors.Join(fn(), unix.SchedSetaffinity(0, &before))
}

// twoCPUs are the first two that this process may run on; none where there is one only.
func twoCPUs() []int {
	list, err := usableCPUs()
	if err != nil || len(list) < 2 {
		return nil
	}
	return list[:2]
}

// wait waits for the program's end, and ends it where there is no more time.
func (t *tool) wait(ctx context.Context) error {
	select {
	case <-t.done:
		return nil
	case <-ctx.Done():
		t.stop()
		return context.Cause(ctx)
	}
}

// failed says how a program that has ended failed; nil where it did not.
func (t *tool) failed() error {
	if t.err == nil {
		return nil
	}
	return fmt.Errorf("%w: %s: %w: %s", ErrTool, t.name, t.err, said(t.out.Bytes()))
}

// stop ends the program and waits for its end.
func (t *tool) stop() {
	select {
	case <-t.done:
	default:
		_ = syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL) // where it ended meanwhile there is nothing to do
		<-t.done
	}
}

// cpu is what it used, once it has ended.
func (t *tool) cpu() time.Duration {
	return t.cmd.ProcessState.UserTime() + t.cmd.ProcessState.SystemTime()
}

// Medians sums up the probes of several paths, each by its rounds: seen[path][round], nil for a path without any. A path's figures
// are medians of their ratios to the first path's in the same round, as the machine's own speed moves between rounds; times the
// first path's medians.
func Medians(seen [][]*result.PathProbe) (all []*result.PathProbe) {
	for i, list := range seen {
		if len(list) == 0 {
			all = append(all, nil)
			continue
		}
		p := &result.PathProbe{Runs: len(list), IRQApart: list[0].IRQApart}
		var retransmits []float64 // 0 is a figure
		for _, one := range list {
			retransmits = append(retransmits, one.Retransmits)
		}
		p.Retransmits = median(retransmits)
		figures := probed()
		if !slices.ContainsFunc(list, func(p *result.PathProbe) bool { return p.Beside == nil }) {
			p.Beside = &result.BesideWork{}
			figures = append(figures, probedBeside(func(p *result.PathProbe) *result.BesideWork { return p.Beside })...)
		}
		figures = append(figures, probedFar(p, list)...)
		for _, of := range figures {
			*of(p) = known(list, func(p *result.PathProbe) float64 { return *of(p) })
			if first := seen[0]; i > 0 && len(first) == len(list) && (p.Beside == nil) == (all[0].Beside == nil) && (p.Far == nil) == (all[0].Far == nil) {
				round := -1
				share := known(list, func(p *result.PathProbe) float64 { round++; return *of(p) / *of(first[round]) })
				if base := *of(all[0]); share > 0 && base > 0 {
					*of(p) = share * base
				}
			}
		}
		all = append(all, p)
	}
	return all
}

// probed are the figures of a probe, and probedBeside those of what one has beside work.
func probed() []func(*result.PathProbe) *float64 {
	return []func(*result.PathProbe) *float64{
		func(p *result.PathProbe) *float64 { return &p.Rate }, func(p *result.PathProbe) *float64 { return &p.RTT50 },
		func(p *result.PathProbe) *float64 { return &p.RTT99 }, func(p *result.PathProbe) *float64 { return &p.RTTCPU },
		func(p *result.PathProbe) *float64 { return &p.AnswerRTT }, func(p *result.PathProbe) *float64 { return &p.AnswerCPU },
	}
}

func probedBeside(of func(*result.PathProbe) *result.BesideWork) (list []func(*result.PathProbe) *float64) {
	for _, trip := range []func(*result.PathProbe) *result.RoundTrip{
		func(p *result.PathProbe) *result.RoundTrip { return &of(p).Ping }, func(p *result.PathProbe) *result.RoundTrip { return &of(p).Answer },
	} {
		list = append(list, func(p *result.PathProbe) *float64 { return &trip(p).RTT50 }, func(p *result.PathProbe) *float64 { return &trip(p).CPU },
			func(p *result.PathProbe) *float64 { return &trip(p).Taken })
	}
	return list
}

// probedFar are those of a far end that is another machine, for which it makes room in p, where all of the list have it.
func probedFar(p *result.PathProbe, list []*result.PathProbe) (figures []func(*result.PathProbe) *float64) {
	if slices.ContainsFunc(list, func(p *result.PathProbe) bool { return p.Far == nil }) {
		return nil
	}
	p.Far = &result.PathEnd{}
	figures = append(figures, func(p *result.PathProbe) *float64 { return &p.Far.RTTCPU }, func(p *result.PathProbe) *float64 { return &p.Far.AnswerCPU })
	if p.Beside != nil && !slices.ContainsFunc(list, func(p *result.PathProbe) bool { return p.Far.Beside == nil }) {
		p.Far.Beside = &result.BesideWork{}
		figures = append(figures, probedBeside(func(p *result.PathProbe) *result.BesideWork { return p.Far.Beside })...)
	}
	return figures
}

// known is the median of a figure over the probes, asked in their order, that measured it: a figure that was not is 0, and a ratio with
// one 0, infinite or no number. It is 0 where none did.
func known(list []*result.PathProbe, of func(*result.PathProbe) float64) float64 {
	var values []float64
	for _, p := range list {
		if v := of(p); v > 0 && !math.IsInf(v, 1) {
			values = append(values, v)
		}
	}
	if len(values) == 0 {
		return 0
	}
	return median(values)
}

func median(values []float64) float64 {
	slices.Sort(values)
	return (values[(len(values)-1)/2] + values[len(values)/2]) / 2
}
