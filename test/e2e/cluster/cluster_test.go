package main

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

func TestUsage(t *testing.T) {
	small := t.TempDir() // as of an API server only
	if err := (&state{Dir: small}).save(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"upp"}, exitUsage, `unknown command "upp"`},
		{[]string{"up", "--dirr", "/x"}, exitUsage, "unknown flag"},
		{[]string{"up", "now"}, exitUsage, "unknown command"},
		{[]string{"up", "--cpu-manager", "dynamic"}, exitUsage, "none or static"},
		{[]string{"up", "--nodes", "3"}, exitUsage, "1 or 2"},
		{[]string{"up", "--network", "calico"}, exitUsage, "one of bridge, ptp, vxlan, macvlan, host-device, flannel-vxlan, flannel-hostgw, kube-router"},
		{[]string{"up", "--rate", "1g; reboot"}, exitUsage, "a rate as"},
		{[]string{"load"}, exitUsage, "needs the path"},
		{[]string{"load", "--dir", "/nonexistent/x", "a.tar"}, exitTarget, "no cluster is up"},
		{[]string{"kubeconfig", "--dir", "/nonexistent/x"}, exitTarget, "no cluster is up"},
		{[]string{"leftovers", "--since", "/nonexistent/x"}, exitUsage, "no such file"},
		{[]string{"leftovers", "--since", small}, exitUsage, "does not say what there was before"},
		{[]string{"down", "--dir", "/nonexistent/x"}, 0, ""},
	} {
		var out, complaints bytes.Buffer
		code := run(context.Background(), test.args, &out, &complaints)
		if code != test.code || !strings.Contains(complaints.String(), test.says) {
			t.Errorf("%q: exit code %d, wanted %d, says %q, wanted %q", test.args, code, test.code, complaints.String(), test.says)
		}
	}
}

// TestFolder: a folder with somebody's files is neither taken nor removed.
func TestFolder(t *testing.T) {
	dir := filepath.Join("/tmp", "david-cluster-test")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := privateFolder(dir); err != nil {
		t.Errorf("an empty folder is refused: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
		if err := privateFolder(dir); !errors.As(err, new(usageError)) {
			t.Errorf("another user's folder is not refused: %v", err)
		}
	}
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{dir, "relative", "/tmp/../etc", "/", "/" + strings.Repeat("long", 20)} {
		if err := privateFolder(bad); !errors.As(err, new(usageError)) {
			t.Errorf("%s is not refused: %v", bad, err)
		}
	}
	if err := down(dir, t.Logf); !errors.As(err, new(usageError)) {
		t.Errorf("down of a folder that is no cluster's: %v", err)
	}
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
}

func TestFreeNetwork(t *testing.T) {
	for _, test := range []struct {
		routes string
		n      int
	}{
		{"default via 192.0.2.1 dev eth0\n192.0.2.0/24 dev eth0\n", 250},
		{"10.250.3.0/24 via 192.0.2.7 dev eth0\n", 249},
		{"blackhole 10.250.7.7 table 5\n10.248.0.0/15 dev wg0\n", 247},
		{"10.0.0.0/8 dev tun0\n", 0},
	} {
		n, ok := freeNetwork(test.routes)
		if n != test.n || ok != (test.n != 0) {
			t.Errorf("%q: %d, wanted %d", test.routes, n, test.n)
		}
	}
}

// TestNetworks holds what joins two nodes' pods, and the list of plugins, against what they have to be.
func TestNetworks(t *testing.T) {
	for _, test := range []struct {
		network    string
		nodes      int
		joins, cni []string // lines, and what the list has
	}{
		{bridged, 1, []string{"ip route add 10.9.64.0/24 via 10.9.0.11"}, []string{`"type":"bridge"`, `"ipMasq":true`, `"subnet":"10.9.64.0/24"`, `"portmap"`}},
		{bridged, 2, []string{"ip route add 10.9.64.0/24 via 10.9.0.11", "ip -n kn1 route add 10.9.65.0/24 via 10.9.0.12"}, []string{`"ipMasq":false`, `"mtu":1500`}},
		{ptp, 2, []string{"ip route add 10.9.64.0/24 via 10.9.0.11", "ip -n kn1 route add 10.9.65.0/24 via 10.9.0.12"}, []string{`"type":"ptp"`, `"dst":"0.0.0.0/0"`}},
		{vxlan, 2, []string{"ip route add 10.9.64.0/24 via 10.9.0.11",
			"ip -n kn1 link add david-vxlan mtu 1450 address 02:da:0a:09:00:0b type vxlan id 1 dev eth0 local 10.9.0.11 dstport 4789 nolearning",
			"ip -n kn1 addr add 10.9.64.0/32 dev david-vxlan", "ip -n kn1 link set david-vxlan up",
			"ip -n kn1 neigh add 10.9.65.0 lladdr 02:da:0a:09:00:0c dev david-vxlan nud permanent", "bridge -n kn1 fdb add 02:da:0a:09:00:0c dev david-vxlan dst 10.9.0.12",
			"ip -n kn1 route add 10.9.65.0/24 via 10.9.65.0 dev david-vxlan onlink"}, []string{`"type":"bridge"`, `"mtu":1450`}},
		{flannelVXLAN, 2, []string{"ip route add 10.9.64.0/24 via 10.9.0.11"}, []string{`"type":"bridge"`, `"bridge":"cni0"`, `"ipMasq":false`, `"portmap"`}},
		{flannelHostGW, 2, []string{"ip route add 10.9.64.0/24 via 10.9.0.11"}, []string{`"type":"bridge"`, `"bridge":"cni0"`, `"ipMasq":false`, `"portmap"`}},
		{kubeRouter, 2, []string{"ip route add 10.9.64.0/24 via 10.9.0.11"}, []string{`"type":"bridge"`, `"bridge":"cni0"`, `"ipMasq":false`, `"portmap"`}},
		{macvlan, 2, nil, []string{`"type":"macvlan"`, `"master":"eth0"`, `"rangeStart":"10.9.0.64"`, `"rangeEnd":"10.9.0.127"`, `"gateway":"10.9.0.1"`, `"subnet":"10.9.0.0/24"`}},
		{hostDevice, 2, []string{"ip link add david-e2e-kn1p type veth peer name eth1 netns kn1", "ip link set david-e2e-kn1p master david-e2e up"},
			[]string{`"type":"host-device"`, `"device":"eth1"`, `"rangeStart":"10.9.0.64"`, `"rangeEnd":"10.9.0.127"`, `"gateway":"10.9.0.1"`, `"subnet":"10.9.0.0/24"`}},
	} {
		s := &state{Network: test.network, HostIP: "10.9.0.1"}
		for i := range test.nodes {
			s.Nodes = append(s.Nodes, node{Name: nodeName(i), IP: fmt.Sprintf("10.9.0.%d", 11+i), PodCIDR: fmt.Sprintf("10.9.%d.0/24", 64+i)})
		}
		if got := s.joins(s.Nodes[0]); !slices.Equal(got, test.joins) {
			t.Errorf("%s, %d nodes: %q, wanted %q", test.network, test.nodes, got, test.joins)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(s.cniConfig(s.Nodes[0], s.laid(s.Nodes[0])))); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.cni {
			if !strings.Contains(compact.String(), want) {
				t.Errorf("%s, %d nodes: no %s in %s", test.network, test.nodes, want, compact.String())
			}
		}
	}
}

// TestFlannel holds what Flannel is told, and how its answer is read.
func TestFlannel(t *testing.T) {
	for network, want := range map[string]string{
		flannelVXLAN:  `{"Backend":{"Type":"vxlan"},"EnableNFTables":true,"Network":"10.9.64.0/18"}` + "\n",
		flannelHostGW: `{"Backend":{"Type":"host-gw"},"EnableNFTables":true,"Network":"10.9.64.0/18"}` + "\n",
	} {
		if got := (&state{Network: network, PodCIDR: "10.9.64.0/18"}).flannelConfig(); got != want {
			t.Errorf("%s: %s, wanted %s", network, got, want)
		}
	}
	net, err := parseSubnet("FLANNEL_NETWORK=10.9.64.0/18\nFLANNEL_SUBNET=10.9.65.1/24\nFLANNEL_MTU=1450\nFLANNEL_IPMASQ=false\n")
	if want := (podNet{"10.9.65.0/24", 1450}); err != nil || net != want {
		t.Errorf("%+v, %v, wanted %+v", net, err, want)
	}
	for _, half := range []string{"", "FLANNEL_SUBNET=10.9.65.1/24\n", "FLANNEL_SUBNET=10.9.65.1\nFLANNEL_MTU=1450\n"} {
		if net, err := parseSubnet(half); err == nil {
			t.Errorf("%q: %+v", half, net)
		}
	}
	const program = "import (\n\t_ \"github.com/flannel-io/flannel/pkg/backend/hostgw\"\n\t_ \"github.com/flannel-io/flannel/pkg/backend/tencentvpc\"\n\t_ \"github.com/flannel-io/flannel/pkg/backend/udp\"\n)\n"
	if got, err := withoutBackends(program); err != nil || got != "import (\n\t_ \"github.com/flannel-io/flannel/pkg/backend/hostgw\"\n)\n" {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := withoutBackends("import \"fmt\"\n"); err == nil {
		t.Errorf("a main.go without the backends became %q", got)
	}
}

func TestTracking(t *testing.T) {
	for _, test := range []struct{ name, mounts, want string }{
		{"v2", "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n", "/sys/fs/cgroup"},
		{"v1", "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n", "/sys/fs/cgroup/pids"},
		{"hybrid", "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n", "/sys/fs/cgroup/pids"},
		{"neither", "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n", ""},
		{"none", "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n", ""},
	} {
		h, err := tracking(parseHierarchies(test.mounts))
		if h.mount != test.want || (err == nil) != (test.want != "") {
			t.Errorf("%s: %q, %v, wanted %q", test.name, h.mount, err, test.want)
		}
	}
}

// TestCertificates: what the authority issues is good for a server at its addresses and for clients, and for
// nobody else.
func TestCertificates(t *testing.T) {
	dir := t.TempDir()
	ca, err := newAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := ca.issue("apiserver", "kube-apiserver", "kubernetes", "10.250.0.1", "localhost"); err != nil {
		t.Fatal(err)
	}
	cert, err := readCertificate(filepath.Join(dir, "apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(ca.cert)
	for name, good := range map[string]bool{"10.250.0.1": true, "localhost": true, "10.250.0.2": false, "example.com": false} {
		_, err := cert.Verify(x509.VerifyOptions{Roots: pool, DNSName: name, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
		if (err == nil) != good {
			t.Errorf("a server at %s: %v", name, err)
		}
	}
	info, err := os.Stat(filepath.Join(dir, "apiserver.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's permissions are %v, %v", info.Mode(), err)
	}
}

func TestNodeReady(t *testing.T) {
	for text, want := range map[string]string{
		`{"status": {"conditions": [{"type": "Ready", "status": "True"}]}}`:                                             "",
		`{"status": {"conditions": [{"type": "Ready", "status": "False", "message": "cni plugin not initialized"}]}}`:   "cni plugin not initialized",
		`{"spec": {"taints": [{"key": "not-ready"}]}, "status": {"conditions": [{"type": "Ready", "status": "True"}]}}`: "the node has the taint not-ready",
		`{"status": {"conditions": [{"type": "DiskPressure", "status": "False"}]}}`:                                     "the node has not said so yet",
	} {
		got := ""
		if err := nodeReady([]byte(text)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, wanted %q", text, got, want)
		}
	}
}

func TestSince(t *testing.T) {
	before := system{Links: []string{"lo", "eth0"}, Groups: []string{"/a"}, Sysctls: []sysctl{{"vm/overcommit_memory", "0"}, {"kernel/panic", "1"}}}
	if left := before.since(before); len(left) != 0 {
		t.Errorf("nothing changed, and left over is %q", left)
	}
	after := system{Links: []string{"lo", "cni0"}, Mounts: []string{"/run/netns"}, Sysctls: []sysctl{{"vm/overcommit_memory", "1"}, {"kernel/panic", "1"}}}
	want := []string{"mount /run/netns", "link cni0", "kernel setting vm/overcommit_memory is 1 and was 0"}
	if left := after.since(before); !slices.Equal(left, want) {
		t.Errorf("left over is %q, wanted %q", left, want)
	}
	// What is written and read again compares the same.
	text, err := json.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	var again system
	if err := json.Unmarshal(text, &again); err != nil || len(after.since(again)) != len(want) {
		t.Errorf("%v: %q", err, after.since(again))
	}
}

// TestNoOwner: a process that does not run can own no cluster.
func TestNoOwner(t *testing.T) {
	if _, err := (&state{}).bringUp(t.Context(), options{owner: 1 << 30}, nil, nil); !errors.As(err, new(usageError)) {
		t.Error(err)
	}
}

// TestKeepDescriptors opens a pipe as a shell hands one over, to be inherited.
func TestKeepDescriptors(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETFD, 0); err != nil {
		t.Fatal(err)
	}
	if err := keepDescriptors(); err != nil {
		t.Fatal(err)
	}
	if flags, err := unix.FcntlInt(w.Fd(), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags %#x, %v: a daemon would hold the pipe open", flags, err)
	}
}

// TestVersion holds the version that binaries are stamped with against the one that is built.
func TestVersion(t *testing.T) {
	text, err := os.ReadFile("kube/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "require k8s.io/kubernetes v"+version+"\n") {
		t.Errorf("kube/go.mod does not require Kubernetes %s", version)
	}
}

func TestCacheKey(t *testing.T) {
	source, err := sourceFolder(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	key, err := cacheKey(context.Background(), source, recipes(), pauseSource())
	if err != nil {
		t.Fatal(err)
	}
	changed := filepath.Join(t.TempDir(), "a", "b", "c") // as deep as in the repository, for what lies beside
	if err := os.CopyFS(filepath.Join(changed, imagesFolder, "pause"), os.DirFS(filepath.Join(source, imagesFolder, "pause"))); err != nil {
		t.Fatal(err)
	}
	for _, r := range recipes() {
		if err := os.CopyFS(filepath.Join(changed, r.folder), os.DirFS(filepath.Join(source, r.folder))); err != nil {
			t.Fatal(err)
		}
	}
	if same, err := cacheKey(context.Background(), changed, recipes(), pauseSource()); err != nil || same != key {
		t.Errorf("the same source elsewhere has another key: %s, %v", same, err)
	}
	if err := os.WriteFile(filepath.Join(changed, "coredns", "go.sum"), []byte("changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if other, err := cacheKey(context.Background(), changed, recipes(), pauseSource()); err != nil || other == key {
		t.Errorf("with another go.sum the key is the same: %s, %v", other, err)
	}
}

func TestDropVolumes(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	anothers, own := t.TempDir(), t.TempDir()
	done := make(chan error)
	go func() {
		// The thread ends with the goroutine, and its mounts with it.
		runtime.LockOSThread()
		done <- func() error {
			if err := syscall.Unshare(syscall.CLONE_FS | syscall.CLONE_NEWNS); err != nil {
				return err
			}
			if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
				return err
			}
			for _, dir := range []string{anothers, own} {
				if err := syscall.Mount("/dev/loop99", dir, "tmpfs", 0, ""); err != nil {
					return err
				}
			}
			if err := dropVolumes(filepath.Join(own, "node")); err != nil {
				return err
			}
			left, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) { return m.Source != "/dev/loop99", false })
			if err == nil && (len(left) != 1 || left[0].Mountpoint != own) {
				err = fmt.Errorf("mounted are %v, wanted %s alone", left, own)
			}
			return err
		}()
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
