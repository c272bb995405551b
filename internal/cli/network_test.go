package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"

	"david/internal/mycnf"
	"david/internal/netpath"
	"david/internal/report"
	"david/internal/result"
	"david/internal/testserver"
)

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("network namespaces take root")
	}
}

// TestNetworkPaths: from another namespace, a server is looked at over a VXLAN: with and without a login, by a
// user who may not see all, and while nobody can log in.
func TestNetworkPaths(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	network, err := netpath.Build([]result.Path{{Kind: netpath.Host}, {Kind: netpath.Vxlan}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	s := testserver.StartInside(t, mycnf.MariaDB, network.Server.Do, "--bind-address=0.0.0.0", "--skip-name-resolve")
	s.Exec("CREATE USER 'anywhere'@'%' IDENTIFIED BY 'x'")
	_, port, err := net.SplitHostPort(s.TCP("anywhere").Address)
	if err != nil {
		t.Fatal(err)
	}
	here := at{home: t.TempDir(), dir: t.TempDir(), env: []string{"MYSQL_PWD=x"}}
	as := &syscall.SysProcAttr{}
	inside := func(args ...string) (out []byte, code int) {
		cmd := here.command(append([]string{"network", "paths"}, args...)...)
		cmd.Path, cmd.Dir, cmd.SysProcAttr = "/proc/self/exe", "/", as
		var text strings.Builder
		cmd.Stdout, cmd.Stderr = &text, &text
		if err := network.Client.Do(cmd.Start); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // its code says it
		return []byte(text.String()), cmd.ProcessState.ExitCode()
	}
	address := net.JoinHostPort(network.Way(result.Path{Kind: netpath.Vxlan}).Address.String(), port)
	out, code := inside("--dsn", "anywhere@tcp("+address+")/", "--json")
	var seen netpath.Seen
	if err := json.Unmarshal(out, &seen); err != nil || code != exitDone || !seen.Verified || len(seen.Findings) != 0 || seen.Links[0].MTU != 1450 {
		t.Errorf("%d, %v, %s", code, err, out)
	}
	out, code = inside(address, "--interface", "eth7", "--mtu", "1500")
	for _, want := range []string{"interface: the way is by path2, and not by eth7", "mtu: path2 has an MTU of 1450 bytes, and not of 1500", "no: --dsn has data sent"} {
		if code != exitDone || !strings.Contains(string(out), want) {
			t.Errorf("%d, without %q:\n%s", code, want, out)
		}
	}
	own, theirs := here.home, t.TempDir()
	if err := errors.Join(os.Chmod(filepath.Dir(theirs), 0o711), os.Chown(theirs, stranger, stranger)); err != nil {
		t.Fatal(err)
	}
	here.home, as = theirs, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	if out, code := inside(address); code != exitDone || !strings.Contains(string(out), "not seen ") || !strings.Contains(string(out), "kube-proxy's rules: ") {
		t.Errorf("an ordinary user: %d, %s", code, out)
	}
	here.home, as = own, &syscall.SysProcAttr{}
	s.Signal(syscall.SIGSTOP)
	out, code = inside("--dsn", "anywhere@tcp("+address+")/")
	s.Signal(syscall.SIGCONT)
	if text := string(out); code != exitDone || !strings.Contains(text, "login: ") || !strings.Contains(text, "path2: ") {
		t.Errorf("a server that does not answer: %d, %s", code, out)
	}
	for _, bad := range [][]string{{"198.18.1.193:1"}, {"--dsn", "anywhere@tcp(198.18.99.1:3306)/"}} {
		if out, code := inside(bad...); code != exitTarget {
			t.Errorf("%v: %d, %s", bad, code, out)
		}
	}
}

// TestOrdered: all of a name's addresses are named, of both families, but for localhost.
func TestOrdered(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"192.0.2.1": "192.0.2.1 []", "2001:db8::1 192.0.2.2 192.0.2.1": "192.0.2.2 [192.0.2.1 2001:db8::1]", "::1 127.0.0.1": "127.0.0.1 []"} {
		var list []netip.Addr
		for _, text := range strings.Fields(in) {
			list = append(list, netip.MustParseAddr(text))
		}
		if first, others := ordered(list); fmt.Sprint(first, others) != want {
			t.Errorf("%s: %s, not %s", in, fmt.Sprint(first, others), want)
		}
	}
}

// TestNetworkMeasure: paths are arms on one server, each measured alone besides, and nothing is left in the
// machine's own namespace.
func TestNetworkMeasure(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	here := at{home: sharedHome(t), dir: t.TempDir()}
	paths := []string{"host", "vxlan:mtu=9000"}
	if netpath.Available(result.Path{Kind: netpath.BridgeCNI}, netpath.PluginFolders()) == nil {
		paths = append(paths, netpath.BridgeCNI)
	}
	args := append([]string{"network", "measure", "--path", strings.Join(paths, ","), "--server", "mariadb", "--probes", "1", "--blocks", "3"}, small...)
	args = append(args, "--time", "1s", "--warmup", "0s", "--table-size", "500")
	out, errOut, code := here.david(t, args...)
	if code != exitDone && code != exitInvalid {
		t.Fatalf("%d\n%s\n%s", code, out, errOut)
	}
	list, err := result.List(here.home)
	if err != nil || len(list) == 0 {
		t.Fatal(err, list)
	}
	store, err := result.Open(list[0].Dir)
	if err != nil {
		t.Fatal(err)
	}
	arms, err := store.Arms()
	if err != nil {
		t.Fatal(err)
	}
	trials, err := store.Trials()
	if err != nil {
		t.Fatal(err)
	}
	if len(arms) != len(paths) || arms[1].Path != (result.Path{Kind: netpath.Vxlan, MTU: 9000}) || len(trials) != 3*len(paths) {
		t.Fatalf("%d trials, %+v", len(trials), arms)
	}
	for _, tr := range trials {
		if tr.TPS <= 0 {
			t.Errorf("%+v", tr)
		}
	}
	if _, err := exec.LookPath("sockperf"); err == nil && (arms[0].PathProbe == nil || arms[0].PathProbe.RTT50 <= 0) {
		t.Errorf("%+v", arms[0].PathProbe)
	}
	data, err := load(store)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := report.Text(&text, data); err != nil || !strings.Contains(text.String(), "round trip p50") {
		t.Errorf("%v\n%s", err, text.String())
	}
}

// TestExplainBandwidth: of a load over a path that is held to a rate, bandwidth is named first, and that it is less
// than half of what is waited for over the other path is said; its experiment runs, and is right.
func TestExplainBandwidth(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	if _, err := exec.LookPath("iperf3"); err != nil {
		t.Skip(err)
	}
	here := at{home: t.TempDir(), dir: t.TempDir()}
	args := append([]string{"network", "measure", "--path", "host,host:rate=4m", "--server", "mariadb", "--probes", "1", "--blocks", "3"}, small...)
	args = append(args, "--workload", "oltp_read_only", "--threads", "4", "--time", "3s", "--warmup", "1s", "--table-size", "2000")
	if out, errOut, code := here.david(t, args...); code != exitDone && code != exitInvalid {
		t.Fatalf("%d\n%s\n%s", code, out, errOut)
	}
	measured := newest(t, here.home, result.KindCompare)
	explained := func(more ...string) (e explained) {
		out, errOut, code := here.david(t, append([]string{"explain", "--json"}, more...)...)
		if code != exitDone && code != exitInvalid {
			t.Fatalf("%v: %d\n%s\n%s", more, code, out, errOut)
		}
		if err := json.Unmarshal([]byte(out), &e); err != nil {
			t.Fatalf("%v\n%s%s", err, out, errOut)
		}
		return e
	}
	thin := explained(measured+"/host-4Mbit", "--confirm", "--blocks", "3")
	if first := thin.Findings[0]; first.Cause != "network bandwidth" || first.Share < 0.5 || !strings.Contains(strings.Join(first.Evidence, "\n"), "the link path2 carried ") {
		t.Errorf("%s: %+v", thin.line(), first)
	}
	if c := thin.Confirmation; c.Cause != "network bandwidth" || c.Judgement != "confirmed" { // twice the rate is twice the throughput, on a busy machine too
		t.Errorf("%+v", c)
	}
	if wide := explained(measured + "/host"); strings.Contains(wide.line(), "bandwidth") {
		t.Errorf("over the wide wire: %s", wide.line())
	}
	if out, errOut, code := here.david(t, "explain", measured+"/host", "--confirm=commit/fsync"); code != exitUsage || !strings.Contains(errOut, "cannot compare two servers over one network path") {
		t.Errorf("%d, %s%s", code, out, errOut)
	}
}

// TestExplainBandwidthRemote: of a server that is not david's, too, bandwidth is named where the link that leads to it
// carries what its token bucket lets through; one connection alone gets no more, which confirms it.
func TestExplainBandwidthRemote(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	wire := result.Path{Kind: netpath.Host, Rate: 4_000_000}
	network, err := netpath.Build([]result.Path{wire})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { network.Close() })
	s := testserver.StartInside(t, mycnf.MariaDB, network.Server.Do, "--bind-address=0.0.0.0", "--skip-name-resolve")
	s.Exec("CREATE USER 'anywhere'@'%' IDENTIFIED BY 'x'")
	s.Exec("GRANT ALL ON *.* TO 'anywhere'@'%'")
	_, port, err := net.SplitHostPort(s.TCP("anywhere").Address)
	if err != nil {
		t.Fatal(err)
	}
	at := at{home: t.TempDir(), dir: t.TempDir(), env: []string{"MYSQL_PWD=x"}}
	dsn := "anywhere@tcp(" + net.JoinHostPort(network.Way(wire).Address.String(), port) + ")/"
	inside := func(args ...string) string {
		cmd := at.command(args...)
		var out, errOut strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &errOut
		if err := network.Client.Do(cmd.Start); err != nil {
			t.Fatal(err)
		}
		cmd.Wait() // its code says it
		if code := cmd.ProcessState.ExitCode(); code != exitDone && code != exitInvalid {
			t.Fatalf("%v: %d\n%s\n%s", args, code, out.String(), errOut.String())
		}
		return out.String()
	}
	inside("bench", "--dsn", dsn, "--workload", "oltp_read_only", "--threads", "4", "--tables", "2", "--table-size", "1000", "--time", "5s", "--warmup", "1s")
	var e explained
	if err := json.Unmarshal([]byte(inside("explain", "latest", "--json", "--confirm=network bandwidth", "--dsn", dsn)), &e); err != nil {
		t.Fatal(err)
	}
	evidence := strings.Join(e.Findings[0].Evidence, "\n")
	if e.Findings[0].Cause != "network bandwidth" || !strings.Contains(evidence, "the link path1 carried ") || !strings.Contains(evidence, "of the 4 Mbit/s that the link can carry") {
		t.Errorf("%s: %s", e.line(), evidence)
	}
	if c := e.Confirmation; c.Judgement != "confirmed" || !strings.Contains(c.Why, "one connection alone got ") {
		t.Errorf("%+v", c)
	}
}

// TestNetworkMeasurePlugins: where a path's CNI plugin is not there, what to install is said, and nothing is recorded.
func TestNetworkMeasurePlugins(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	here := at{home: t.TempDir(), dir: t.TempDir()}
	out, errOut, code := here.david(t, "network", "measure", "--path", "host,ptp-cni", "--cni-path", here.dir)
	if want := "ptp-cni is unavailable: there is no CNI plugin ptp in " + here.dir + "; Debian's package containernetworking-plugins has it, or say with --cni-path where it is"; code != exitUsage || !strings.Contains(errOut, want) {
		t.Errorf("%d, %s%s", code, out, errOut)
	}
	if list, err := result.List(here.home); err != nil || len(list) > 0 {
		t.Errorf("%v, %+v", err, list)
	}
}

// TestNetworkMeasureOrdinary: who is not root is told that paths take root, and what tells as much without; nothing
// is recorded.
func TestNetworkMeasureOrdinary(t *testing.T) {
	needsRoot(t) // to be somebody else
	t.Parallel()
	here := at{home: t.TempDir(), dir: t.TempDir()}
	if err := errors.Join(os.Chmod(filepath.Dir(here.home), 0o711), os.Chown(here.home, stranger, stranger)); err != nil {
		t.Fatal(err)
	}
	cmd := here.command("network", "measure", "--path", "host,vxlan")
	cmd.Path, cmd.Dir, cmd.SysProcAttr = "/proc/self/exe", "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: stranger, Gid: stranger}}
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitUsage || !strings.Contains(string(out), "which takes root; what loopback costs against the socket, david bench and david bench --tcp tell anybody") {
		t.Errorf("%d, %v, %s", code, err, out)
	}
	if list, err := result.List(here.home); err != nil || len(list) > 0 {
		t.Errorf("%v, %+v", err, list)
	}
}

// TestNetworkMeasureKilled kills david at a random moment of a measurement; after the next david command no process and
// no namespace of it is left. DAVID_KILLS=50 does so 50 times, and compares the machine's own links, routes and tables
// of nftables before and after: run it alone.
func TestNetworkMeasureKilled(t *testing.T) {
	needsRoot(t)
	t.Parallel()
	kills, alone := 1, false
	if n, err := strconv.Atoi(os.Getenv("DAVID_KILLS")); err == nil {
		kills, alone = n, true
	}
	before := plumbing(t)
	for range kills {
		killedMeasuring(t)
	}
	if after := plumbing(t); alone && after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// killedPaths are those that david builds in more than one way, and where CNI's plugins are here one of each.
func killedPaths() []string {
	list := []string{netpath.Host, netpath.Routed, netpath.Vxlan, netpath.Service, netpath.UDP}
	for _, kind := range netpath.AllKinds()[len(netpath.Kinds()):] {
		if netpath.Available(result.Path{Kind: kind}, netpath.PluginFolders()) == nil {
			list = append(list, kind)
		}
	}
	return list
}

func killedMeasuring(t *testing.T) {
	t.Helper()
	here := at{home: sharedHome(t), dir: t.TempDir()}
	cmd, seen := here.spawn(t, append([]string{"network", "measure", "--path", strings.Join(killedPaths(), ","), "--server", "mariadb",
		"--probes", strconv.Itoa(rand.IntN(2)), "--blocks", "3"}, small...)...)
	moment := time.Duration(rand.IntN(20_000)) * time.Millisecond
	time.Sleep(moment)
	spaces, children := spacesOf(t, cmd.Process.Pid), childrenOf(t, cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	cmd.Wait() // it was killed
	t.Logf("killed after %s, with %d namespaces", moment, len(spaces))
	if _, errOut, code := here.david(t, "list"); code != exitDone {
		t.Errorf("killed after %s: %d, %s\n%s", moment, code, errOut, seen)
	}
	for space := range spaces {
		for end := time.Now().Add(30 * time.Second); len(within(t, space)) > 0; time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("killed after %s: processes %v are still in %s after 30 s", moment, within(t, space), space)
			}
		}
	}
	for end := time.Now().Add(30 * time.Second); len(children) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("killed after %s: its processes %v are still there", moment, children)
		}
		children = slices.DeleteFunc(children, func(child string) bool {
			_, err := os.Stat("/proc/" + child)
			return err != nil
		})
	}
	for _, left := range leftByKilled(here.home) {
		t.Errorf("killed after %s: left behind: %s", moment, left)
	}
}

// plumbing lists the links, routes and tables of nftables of the machine's own network namespace.
func plumbing(t *testing.T) string {
	t.Helper()
	links, err1 := netlink.LinkList()
	routes, err2 := netlink.RouteList(nil, netlink.FAMILY_ALL)
	tables, err3 := (&nftables.Conn{}).ListTables()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, l := range links {
		list = append(list, "link "+l.Attrs().Name)
	}
	for _, r := range routes {
		list = append(list, "route "+r.String())
	}
	for _, table := range tables {
		list = append(list, "table "+table.Name)
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

// spacesOf returns the network namespaces, besides this test's, that a process and its children are in or hold open.
func spacesOf(t *testing.T, pid int) map[string]bool {
	t.Helper()
	spaces := spacesBelow(t, pid)
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	own := machinesSpace(t)
	for _, file := range open {
		if space, err := os.Readlink(file); err == nil && strings.HasPrefix(space, "net:[") && space != own {
			spaces[space] = true
		}
	}
	return spaces
}

// machinesSpace returns the network namespace that the tests were started in. It is asked of the process that started them: /proc/self
// tells the one of the first thread, which a parallel test may have taken into another.
func machinesSpace(t *testing.T) string {
	t.Helper()
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", os.Getppid()))
	if err != nil {
		t.Fatal(err)
	}
	return space
}

// spacesBelow returns the network namespaces of a process's children that are not this test's.
func spacesBelow(t *testing.T, pid int) map[string]bool {
	t.Helper()
	own := machinesSpace(t)
	spaces := map[string]bool{}
	for _, child := range childrenOf(t, pid) {
		if space, err := os.Readlink("/proc/" + child + "/ns/net"); err == nil && space != own {
			spaces[space] = true
		}
	}
	return spaces
}

// childrenOf returns the pids of a process's children.
func childrenOf(t *testing.T, pid int) (list []string) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if b, err := os.ReadFile(file); err == nil {
			list = append(list, strings.Fields(string(b))...)
		}
	}
	return list
}

// within returns the processes in a network namespace.
func within(t *testing.T, space string) (list []string) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && at == space {
			list = append(list, link)
		}
	}
	return list
}

// TestNetworkRefused: what is no path is refused before anything is looked for.
func TestNetworkRefused(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	for _, args := range [][]string{
		{"--path", "host"}, {"--path", "host,pigeon"}, {"--path", "host,wireguard"}, {"--path", "host,host"}, {"--path", "host,unix:tls"}, {"--tcp"}, {"--trials"}, {"--probes", "-1"},
	} {
		if out, errOut, code := david(t, home, append([]string{"network", "measure"}, args...)...); code != exitUsage {
			t.Errorf("%v: %d, %s%s", args, code, out, errOut)
		}
	}
	for text, want := range map[string]string{
		"host":                      "name two or more paths",
		"pigeon":                    `"pigeon"; there are host, `,
		"host:mtu=10":               `"10" is no MTU`,
		"host:mtu=1500,host":        "host:mtu=1500 and host are the same path: name it once",
		"vxlan,host,vxlan:mtu=1500": "vxlan and vxlan:mtu=1500 are the same path",
	} {
		if _, err := pathArms(strings.Split(text, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, without %q", text, err, want)
		}
	}
	if arms, err := pathArms([]string{"host", "host:mtu=9000", "host:tls", "unix", "loopback"}); err != nil || len(arms) != 5 {
		t.Errorf("paths that differ: %v, %v", arms, err)
	}
	var many []string
	for i := range netpath.MostPaths + 1 {
		many = append(many, fmt.Sprintf("host:mtu=%d", 1000+i))
	}
	if _, err := pathArms(many); err == nil {
		t.Errorf("%d paths, which are not built, are not refused", len(many))
	}
	for _, args := range [][]string{{}, {"a", "b"}, {"host:3306", "--dsn", "x@tcp(host)/"}, {"--dsn", "x@unix(/run/sock)/"}, {"host:3306", "--mtu", "-1"}, {"127.0.0.1:port"},
		{"--pod", "db"}, {"--pod", "db/x", "host:3306"}, {"--pod", "db/x", "--dsn", "x@tcp(host)/"}, {"--pod", "db/x", "--pod-port", "-1"}, {"--pod", "db/x", "--kubeconfig", "nowhere"}, {"host:3306", "--context", "x"}} {
		if out, errOut, code := david(t, home, append([]string{"network", "paths"}, args...)...); code != exitUsage {
			t.Errorf("%v: %d, %s%s", args, code, out, errOut)
		}
	}
}

// TestConnectNowhere: where no route leads to a server, no server is said to be silent.
func TestConnectNowhere(t *testing.T) {
	_, err := connect(t.Context(), netip.MustParseAddrPort("255.255.255.255:3306"))
	if err == nil || !strings.Contains(err.Error(), "no route leads there") || !strings.Contains(err.Error(), "ip route get 255.255.255.255") {
		t.Error(err)
	}
}
