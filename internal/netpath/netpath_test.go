package netpath

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"david/internal/result"
)

// asRoot skips a test that takes root.
func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
}

// built builds paths, and takes them down when the test ends.
func built(t *testing.T, texts ...string) (*Net, []result.Path) {
	t.Helper()
	var paths []result.Path
	for _, text := range texts {
		p, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	n, err := Build(paths, PluginFolders()...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n, paths
}

// listening listens in the server's namespace, accepts, and answers each connection with a byte.
func listening(t *testing.T, n *Namespace) (port string) {
	t.Helper()
	var l net.Listener
	err := n.Do(func() (err error) {
		l, err = net.Listen("tcp4", ":0")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write([]byte{1})
			c.Close()
		}
	}()
	_, port, err = net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// TestBuild: every path leads to the server, by an interface of its own, and the machine's own namespace has
// no link that it had not before.
func TestBuild(t *testing.T) {
	asRoot(t)
	n := reached(t, Host, Routed, Service, Bridge, Vxlan, "vxlan:mtu=9000", Macvlan, "host:rate=1g", UDP, "userspace-udp:delay=1ms", Loopback)
	for _, ns := range append(n.nodes, n.Client, n.Server) {
		err := ns.Do(func() error {
			if list := links(t); !slices.ContainsFunc(list, davids) {
				t.Errorf("david's own links are not told from others: %v", list)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestBuildPlugged: so does every path of CNI's plugins, with its MTU and rate, and all of it is taken back.
func TestBuildPlugged(t *testing.T) {
	asRoot(t)
	list := []string{"bridge-cni:mtu=9000", "ptp-cni:mtu=9000", "macvlan-cni:mtu=9000", "host-device-cni:mtu=9000", "host-device-cni:rate=1g"}
	for _, text := range list {
		if p, err := Parse(text); err != nil {
			t.Fatal(err)
		} else if err := Available(p, PluginFolders()); err != nil {
			t.Skip(err)
		}
	}
	n := reached(t, list...)
	for i := range list {
		name := fmt.Sprintf("path%d", i+1)
		for _, ns := range []*Namespace{n.Client, n.Server} {
			link, err := ns.links.LinkByName(name)
			if err != nil {
				t.Fatal(err)
			}
			queues, err := ns.links.QdiscList(link)
			if err != nil {
				t.Fatal(err)
			}
			held := slices.ContainsFunc(queues, func(q netlink.Qdisc) bool { return q.Type() == "tbf" })
			if limited := i == 4; held != limited || (link.Attrs().MTU == 9000) == limited {
				t.Errorf("%s: MTU %d, held to a rate: %v", list[i], link.Attrs().MTU, held)
			}
		}
	}
	if err := n.cni.close(); err != nil {
		t.Error(err)
	}
	n.cni = nil // closed
	for _, ns := range []*Namespace{n.Client, n.Server} {
		if err := ns.Do(func() error {
			if left := links(t); len(left) != 1 {
				t.Errorf("the plugins left %v", left)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestAvailable: without its plugin, or the one for addresses, a path of CNI's is unavailable, and what to install is said.
func TestAvailable(t *testing.T) {
	empty, half := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(half, "bridge"), nil, 0o700); err != nil {
		t.Fatal(err)
	}
	for missing, folders := range map[string][]string{"plugin bridge": {empty}, "plugin static": {empty, half}} {
		err := Available(result.Path{Kind: BridgeCNI}, folders)
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), missing) || !strings.Contains(err.Error(), "containernetworking-plugins") {
			t.Errorf("%v: %v", folders, err)
		}
	}
	if err := Available(result.Path{Kind: Bridge}, nil); err != nil {
		t.Error(err)
	}
}

// reached makes sure that each path leads to the server by its own interface, and that none of it is in the machine's own namespace.
func reached(t *testing.T, texts ...string) *Net {
	t.Helper()
	n, paths := built(t, texts...)
	port := listening(t, n.Server)
	seen := map[netip.Addr]bool{}
	for _, p := range paths {
		way := n.Way(p)
		var c net.Conn
		err := way.From.Do(func() (err error) {
			c, err = net.DialTimeout("tcp", net.JoinHostPort(way.Address.String(), port), 5*time.Second)
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", Name(p), err)
			continue
		}
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Errorf("%s: %v", Name(p), err)
		}
		from, _, _ := net.SplitHostPort(c.LocalAddr().String())
		c.Close()
		if own := netip.MustParseAddr(from); seen[own] || (p.Kind != Loopback && own.As4()[2] != way.Address.As4()[2]) {
			t.Errorf("%s: from %s to %s", Name(p), own, way.Address)
		} else {
			seen[own] = true
		}
	}
	if list := links(t); slices.ContainsFunc(list, davids) {
		t.Errorf("in the machine's own namespace: %v", list)
	}
	return n
}

// TestService: the server sees who came to a service's address come to its own, and the client's node has an entry of both.
func TestService(t *testing.T) {
	asRoot(t)
	n, paths := built(t, Service)
	way, port := n.Way(paths[0]), listening(t, n.Server)
	var c net.Conn
	err := way.From.Do(func() (err error) {
		c, err = net.DialTimeout("tcp", net.JoinHostPort(way.Address.String(), port), 5*time.Second)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var flows []*netlink.ConntrackFlow
	err = n.nodes[0].Do(func() (err error) {
		flows, err = netlink.ConntrackTableList(netlink.ConntrackTable, unix.AF_INET)
		return err
	})
	translated := slices.ContainsFunc(flows, func(f *netlink.ConntrackFlow) bool {
		return f.Forward.DstIP.String() == way.Address.String() && f.Reverse.SrcIP.String() == "198.18.1.193"
	})
	if err != nil || !translated {
		t.Errorf("no connection of %s is translated: %v, %v", way.Address, flows, err)
	}
}

// davids tells whether a link has one of the names that Build gives.
func davids(name string) bool {
	return slices.Contains([]string{wire, pod, bridge, vxlan, tun}, name) || strings.HasPrefix(name, "path")
}

// links names the links of the namespace that the calling thread is in.
func links(t *testing.T) (names []string) {
	t.Helper()
	list, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range list {
		names = append(names, link.Attrs().Name)
	}
	return names
}

// TestInterrupted: what went down of a path is named, and where the kernel's word of it was lost no path counts
// as whole any more.
func TestInterrupted(t *testing.T) {
	asRoot(t)
	n, paths := built(t, Host, Bridge)
	link, err := n.Client.links.LinkByName("path1")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := errors.Join(n.Client.links.LinkSetDown(link), n.Client.links.LinkSetUp(link)); err != nil {
			t.Fatal(err)
		}
	}
	heard := func(p result.Path, want string) {
		t.Helper()
		var list []string
		for end := time.Now().Add(time.Minute); !slices.ContainsFunc(list, func(s string) bool { return strings.Contains(s, want) }); time.Sleep(10 * time.Millisecond) {
			if list = append(list, n.Interrupted(p)...); time.Now().After(end) {
				t.Fatalf("%v without %q", list, want)
			}
		}
	}
	heard(paths[0], "path1")
	if list := n.Interrupted(paths[1]); len(list) > 0 {
		t.Errorf("of the path that was left alone: %v", list)
	}
	n.watch.mu.Lock() // nobody listens on from the next link that goes down, until the kernel's queue is full
	if err := n.Client.links.LinkSetDown(link); err != nil {
		t.Error(err)
	}
	for i := range 2000 {
		if err := n.Client.links.LinkSetMTU(link, 1400+i%2); err != nil {
			t.Error(err)
		}
	}
	n.watch.mu.Unlock()
	heard(paths[1], "no longer watched")
	if list := n.Interrupted(paths[1]); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

// namespaces counts the network namespaces that this process holds open: what others have, comes and goes.
func namespaces(t *testing.T) int {
	t.Helper()
	seen := map[string]bool{}
	names, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if to, err := os.Readlink(name); err == nil && strings.HasPrefix(to, "net:") {
			seen[to] = true
		}
	}
	return len(seen)
}

// TestClose: a network that is taken down leaves no namespace open.
func TestClose(t *testing.T) {
	asRoot(t)
	before := namespaces(t)
	n, err := Build([]result.Path{{Kind: Vxlan}, {Kind: Macvlan}})
	if err != nil {
		t.Fatal(err)
	}
	if during := namespaces(t); during != before+6 {
		t.Errorf("%d namespaces, %d before", during, before)
	}
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	if after := namespaces(t); after != before {
		t.Errorf("%d namespaces, %d before", after, before)
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]result.Path{
		"host":                     {Kind: Host},
		"service:mtu=9000":         {Kind: Service, MTU: 9000},
		"vxlan:mtu=9000":           {Kind: Vxlan, MTU: 9000},
		"routed:rate=1g:tls":       {Kind: Routed, Rate: 1e9, TLS: true},
		"host:rate=2.5g":           {Kind: Host, Rate: 25e8},
		"macvlan:mtu=1500:rate=1m": {Kind: Macvlan, MTU: 1500, Rate: 1e6},
		"loopback:tls":             {Kind: Loopback, TLS: true},
		"host:compressed":          {Kind: Host, Compressed: true},
		"host:cpus=apart":          {Kind: Host, CPUs: Apart},
		"unix:cpus=together":       {Kind: Unix, CPUs: Together},
		"userspace-udp:delay=1ms":  {Kind: UDP, Delay: 1000},
		"bridge-cni:mtu=9000":      {Kind: BridgeCNI, MTU: 9000},
		"host-device-cni":          {Kind: HostDeviceCNI},
	} {
		if got, err := Parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "carrier-pigeon", "bandwidth-cni", "-cni", "ipip", "wireguard", "host:mtu=1", "host:mtu=70000", "host:mtu=x", "host:rate=", "host:rate=0", "host:rate=-1g",
		"host:rate=1e300g", "host:rate=NaNg", "host:loss=1", "unix:tls", "unix:mtu=1500", "loopback:rate=1g", "host:tls=1", "host:compressed=0", "host:delay=1ms", "userspace-udp:delay=2s", "userspace-udp:delay=1", "host:cpus", "host:cpus=", "host:cpus=1", "host:cpus=apart:cpus=together"} {
		if got, err := Parse(text); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

// TestProbe: a wire that is held to a rate is seen to have it, a path through more hops takes longer, and
// nothing of the programs is left.
func TestProbe(t *testing.T) {
	asRoot(t)
	n, paths := built(t, "host:rate=100m", "userspace-udp:delay=2ms", Unix)
	probes := map[string]*result.PathProbe{}
	for _, p := range paths {
		probe, err := n.Probe(context.Background(), p)
		if errors.Is(err, ErrNoTool) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", Name(p), probe)
		probes[p.Kind] = probe
	}
	if probes[Unix] != nil {
		t.Errorf("a socket has %+v", probes[Unix])
	}
	if rate := probes[Host].Rate; !(rate > 10e6 && rate < 120e6) { // less on a busy machine
		t.Errorf("%.0f bits/s over a wire of 100 Mbit/s", rate)
	}
	if h := probes[Host]; !(h.RTT50 > 0 && probes[UDP].RTT50 > 4000 && h.RTT50 < probes[UDP].RTT50 && h.RTT99 >= h.RTT50 && h.RTTCPU > 0) {
		t.Errorf("host %+v, 4 ms away %+v", h, probes[UDP])
	}
	if h, far := probes[Host].Beside, probes[UDP].Beside; n.workable() && !(h.Ping.RTT50 > 0 && h.Ping.CPU > 0 && h.Answer.RTT50 > 0 && h.Answer.RTT50 < far.Answer.RTT50 && far.Ping.RTT50 > 4000) {
		t.Errorf("beside work: host %+v, 4 ms away %+v", h, far)
	}
}

// TestProbeBlocked: of a program whose port a firewall blocks it is said that it could not measure the path, within
// the time that a probe may take, and neither of its ends is left.
func TestProbeBlocked(t *testing.T) {
	asRoot(t)
	for _, program := range []string{"iperf3", "sockperf"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	n, paths := built(t, Host)
	port, err := strconv.Atoi(iperfPort)
	if err != nil {
		t.Fatal(err)
	}
	undo := planted(t, n.Server, nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binary.BigEndian.AppendUint16(nil, uint16(port))},
		&expr.Verdict{Kind: expr.VerdictDrop})
	began := time.Now()
	_, err = n.Probe(context.Background(), paths[0])
	if !errors.Is(err, ErrTool) || !strings.Contains(err.Error(), "path host: ") || !strings.Contains(err.Error(), "iperf3") || time.Since(began) > probeLimit {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if _, err := n.Probe(context.Background(), paths[0]); err != nil { // the port is free again
		t.Error(err)
	}
}

// TestProbeAfterAbrupt: that a server of sockperf was ended in the midst of a run keeps the next from nothing.
func TestProbeAfterAbrupt(t *testing.T) {
	asRoot(t)
	n, paths := built(t, Host)
	ctx, cancel := context.WithTimeout(t.Context(), 2700*time.Millisecond) // sockperf waits for two seconds before it begins
	defer cancel()
	if _, err := n.pairOf(ctx, n.Way(paths[0]), pingOf(result.PingBytes), nil); errors.Is(err, ErrNoTool) {
		t.Skip(err)
	} else if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("it had ended before it was to: %v", err)
	}
	if _, err := n.pairOf(t.Context(), n.Way(paths[0]), pingOf(result.PingBytes), nil); err != nil {
		t.Error(err)
	}
}

func TestMedian(t *testing.T) {
	got := Medians([][]*result.PathProbe{
		{{RTT50: 3, Rate: 10}, {RTT50: 1, Rate: 30}, {RTT50: 2, Rate: 20}},
		nil,
		{{RTT50: 6, Rate: 5}, {RTT50: 2, Rate: 15}, {RTT50: 5, Rate: 10}}, // twice as long and half as much in two of three rounds
	})
	if first := got[0]; first.Runs != 3 || first.RTT50 != 2 || first.Rate != 20 || first.RTTCPU != 0 {
		t.Errorf("%+v", first)
	}
	if third := got[2]; got[1] != nil || third.RTT50 != 4 || third.Rate != 10 {
		t.Errorf("%v, %+v", got[1], third)
	}
	if got := Medians([][]*result.PathProbe{{{RTT50: 3}, {RTT50: 1}}, {{RTT50: 4}}}); got[0].RTT50 != 2 || got[1].RTT50 != 4 {
		t.Errorf("%+v, %+v", got[0], got[1])
	}
	beside := func(us float64) *result.PathProbe {
		return &result.PathProbe{RTT50: 1, Beside: &result.BesideWork{Ping: result.RoundTrip{RTT50: 1, CPU: 1, Taken: us}}}
	}
	got = Medians([][]*result.PathProbe{{beside(50), beside(0), beside(60), beside(50)}, {beside(100), beside(100), beside(0), beside(110)}, {beside(0), beside(0), beside(0), beside(0)}})
	if got[0].Beside.Ping.Taken != 50 || got[1].Beside.Ping.Taken < 104.9 || got[1].Beside.Ping.Taken > 105.1 || got[2].Beside.Ping.Taken != 0 {
		t.Errorf("what was not seen is no figure: %+v, %+v, %+v", got[0].Beside, got[1].Beside, got[2].Beside)
	}
	for text, want := range map[string]bool{"CONFIG_IRQ_TIME_ACCOUNTING=y\n": true, "# CONFIG_IRQ_TIME_ACCOUNTING is not set\n": false, "CONFIG_TICK_CPU_ACCOUNTING=y\n": false, "": true} {
		if got := irqTimeIn(strings.NewReader(text)); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
