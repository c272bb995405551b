package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
)

// private are the folders that containerd, kubelet and the network plugins write to wherever they are told to
// keep their things. In the node's mount namespace each is a folder of the cluster's, so nothing of it
// appears on the machine.
var private = [...]string{"/run/containerd", "/run/netns", "/var/lib/cni", "/var/lib/kubelet", "/var/log"}

// privatePath is where one of them lies in a node's folder.
func privatePath(nodeDir, folder string) string {
	return filepath.Join(nodeDir, strings.ReplaceAll(strings.TrimPrefix(folder, "/"), "/", "-"))
}

// makeFolders makes the private folders, and on the machine those that are missing to mount them on; what was
// made is recorded first.
func (s *state) makeFolders() error {
	for _, folder := range private {
		for _, f := range []string{filepath.Dir(folder), folder} {
			if _, err := os.Lstat(f); err != nil {
				s.Made = append(s.Made, f)
			}
		}
	}
	if err := s.save(); err != nil {
		return err
	}
	folders := slices.Clone(private[:])
	for _, n := range s.Nodes {
		folders = append(folders, s.path(n.Name, "cni"))
		for _, folder := range private {
			folders = append(folders, privatePath(s.path(n.Name), folder))
		}
	}
	for _, f := range folders {
		if err := os.MkdirAll(f, 0o755); err != nil {
			return fmt.Errorf("cannot make a folder for a node: %w", err)
		}
	}
	return nil
}

// enterNode runs in a new mount namespace, in which the machine's later mounts still appear: it puts the
// private folders in place and becomes the node's first process.
func enterNode(dir string, argv []string) error {
	if err := dropVolumes(dir); err != nil {
		return err
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SHARED, ""); err != nil {
		return fmt.Errorf("cannot share the node's mounts with its pods: %w", err)
	}
	for _, folder := range private {
		if err := syscall.Mount(privatePath(dir, folder), folder, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("cannot mount the node's own %s: %w", folder, err)
		}
	}
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, argv, os.Environ())
}

// dropVolumes takes down this namespace's copies of what others have mounted of loop devices and of FUSE: where the
// machine's mounts are private, a filesystem that its owner unmounts would live on in the node, and its device with it.
// The one that the node's folder lies on stays.
func dropVolumes(dir string) error {
	volumes, err := mountinfo.GetMounts(func(m *mountinfo.Info) (skip, stop bool) {
		volume := strings.HasPrefix(m.Source, "/dev/loop") || strings.HasPrefix(m.FSType, "fuse")
		return !volume || strings.HasPrefix(dir+"/", m.Mountpoint+"/"), false
	})
	if err != nil {
		return fmt.Errorf("cannot read the node's mounts: %w", err)
	}
	for _, m := range slices.Backward(volumes) {
		// Another's may have gone meanwhile: what is no mount point any more is no error.
		if err := unmount(m.Mountpoint); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot take another's %s out of the node: %w", m.Mountpoint, err)
		}
	}
	return nil
}

// startContainerd starts containerd in namespaces of the node's own, and loads images.
func (s *state) startContainerd(ctx context.Context, n node, images []string) (pid int, err error) {
	if err := os.WriteFile(s.path(n.Name, "containerd.toml"), []byte(s.containerdConfig(n)), 0o600); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd, err := s.start("containerd-"+n.Name, "nsenter", "--net=/run/netns/"+n.Name, "unshare", "--mount", "--propagation", "slave",
		self, "node", s.path(n.Name), "containerd", "--config", s.path(n.Name, "containerd.toml"))
	if err != nil {
		return 0, err
	}
	if err := s.explain("containerd-"+n.Name, waitFor(ctx, "containerd does not answer", time.Minute, func() error {
		c, err := net.Dial("unix", n.Containerd)
		if err == nil {
			c.Close()
		}
		return err
	})); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, n.load(ctx, append([]string{s.binary("pause.tar")}, images...))
}

// load imports images into all nodes.
func (s *state) load(ctx context.Context, tars []string) error {
	for _, n := range s.Nodes {
		if err := n.load(ctx, tars); err != nil {
			return err
		}
	}
	return nil
}

func (n node) load(ctx context.Context, tars []string) error {
	for _, tar := range tars {
		if _, err := os.Stat(tar); err != nil {
			return usageError{fmt.Errorf("cannot load an image: %w", err)}
		}
		if _, err := output(ctx, "ctr", "--address", n.Containerd, "--namespace", "k8s.io", "images", "import", tar); err != nil {
			return fmt.Errorf("cannot load the image %s: %w", tar, err)
		}
	}
	return nil
}

// containerdConfig keeps everything in the node's folder; containerd 2 reads this form, too.
func (s *state) containerdConfig(n node) string {
	return fmt.Sprintf(`version = 2
root = %q
state = %q
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs"]
[grpc]
  address = %q
[plugins."io.containerd.internal.v1.opt"]
  path = %q
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:e2e"
  # Without CAP_SYS_RESOURCE no process can be made less likely to be killed than its parent, and runc would give up.
  restrict_oom_score_adj = %t
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      SystemdCgroup = false
`, s.path(n.Name, "containerd"), s.path(n.Name, "containerd-state"), n.Containerd, s.path(n.Name, "opt"), !hasCapability(24),
		s.binary("cni"), s.path(n.Name, "cni"))
}

// hasCapability tells whether this process has a capability, by its number in linux/capability.h.
func hasCapability(number uint) bool {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(text), "CapEff:")
	line, _, _ := strings.Cut(after, "\n")
	set, err := strconv.ParseUint(strings.TrimSpace(line), 16, 64)
	return err == nil && set&(1<<number) != 0
}

// startKubelet starts kubelet, kube-proxy and, on the first node, CoreDNS in the namespaces of containerd. With
// Flannel the node's network plugins come later.
func (s *state) startKubelet(n node, containerd int) error {
	for file, text := range map[string]string{
		"kubelet.yaml": s.kubeletConfig(n), "proxy.yaml": s.proxyConfig(n), "Corefile": s.corefile(),
		"resolv.conf": "nameserver " + s.Nodes[0].IP + "\n",
	} {
		if err := os.WriteFile(s.path(n.Name, file), []byte(text), 0o600); err != nil {
			return fmt.Errorf("cannot write the node's configuration: %w", err)
		}
	}
	if s.flannelBackend() == "" {
		if err := s.writePlugins(n, s.laid(n)); err != nil {
			return err
		}
	}
	type program struct {
		name string
		argv []string
	}
	programs := []program{
		{"kubelet", []string{s.binary("kubelet"), "--config", s.path(n.Name, "kubelet.yaml"), "--kubeconfig", s.path("kubelet-" + n.Name + ".kubeconfig"),
			"--root-dir", "/var/lib/kubelet", "--hostname-override", n.Name, "--node-ip", n.IP}},
		{"proxy", []string{s.binary("kube-proxy"), "--config", s.path(n.Name, "proxy.yaml")}},
	}
	if n == s.Nodes[0] {
		programs = append(programs, program{"coredns", []string{s.binary("coredns"), "-conf", s.path(n.Name, "Corefile")}})
	}
	for _, p := range programs {
		if _, err := s.start(p.name+"-"+n.Name, inside(containerd, p.argv...)...); err != nil {
			return err
		}
	}
	return nil
}

// inside is a command in the network and the mounts of a node, which are its containerd's.
func inside(containerd int, argv ...string) []string {
	return append([]string{"nsenter", "--net", "--mount", "--target", strconv.Itoa(containerd)}, argv...)
}

// writePlugins gives a node's pods their network: from now on kubelet can be ready.
func (s *state) writePlugins(n node, net podNet) error {
	if err := os.WriteFile(s.path(n.Name, "cni", "10-pods.conflist"), []byte(s.cniConfig(n, net)), 0o600); err != nil {
		return fmt.Errorf("cannot write the node's network plugins: %w", err)
	}
	return nil
}

// kubeletConfig changes kubelet's defaults only where the machine or the folder demands it: what is measured
// in the cluster is to be what others have.
func (s *state) kubeletConfig(n node) string {
	text := fmt.Sprintf(`apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: %s
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: %q}}
authorization: {mode: Webhook}
tlsCertFile: %q
tlsPrivateKeyFile: %q
containerRuntimeEndpoint: %q
cgroupDriver: cgroupfs
cgroupRoot: /%s/%s
cgroupsPerQOS: true
failCgroupV1: false
failSwapOn: false
clusterDNS: [%s]
clusterDomain: cluster.local
resolvConf: %q
cpuManagerPolicy: %s
# Images come from tars: one that is removed could not be pulled again. And a full disk of the machine's is not our business.
imageGCHighThresholdPercent: 100
evictionHard: {memory.available: 50Mi, nodefs.available: 1%%, imagefs.available: 1%%, nodefs.inodesFree: 1%%}
`, n.IP, s.path("pki", "ca.crt"), s.path("pki", "kubelet-"+n.Name+".crt"), s.path("pki", "kubelet-"+n.Name+".key"), "unix://"+n.Containerd, groupName, n.Name,
		s.Nodes[0].IP, s.path(n.Name, "resolv.conf"), s.CPUManager)
	if s.CPUManager == "static" {
		text += "reservedSystemCPUs: \"0\"\n" // without a reservation kubelet refuses to start
	}
	return text
}

// proxyConfig leaves the limits of connection tracking alone: they are the machine's.
func (s *state) proxyConfig(n node) string {
	return fmt.Sprintf(`apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
hostnameOverride: %s
clusterCIDR: %s
clientConnection: {kubeconfig: %q}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`, n.Name, s.PodCIDR, s.path("proxy.kubeconfig"))
}

// corefile: CoreDNS is in the first node's network, where port 53 is free whatever runs on the machine.
func (s *state) corefile() string {
	return fmt.Sprintf(`.:53 {
  bind %s
  errors
  cache 5
  kubernetes cluster.local in-addr.arpa {
    kubeconfig %s e2e
    ttl 1
  }
}
`, s.Nodes[0].IP, s.path("admin.kubeconfig"))
}

// tellNodes tells each node its pods' addresses as soon as it has said its name.
func (s *state) tellNodes(ctx context.Context) error {
	a, err := s.api()
	if err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if err := s.explain("kubelet-"+n.Name, waitFor(ctx, "there is no node "+n.Name, 2*time.Minute, func() error {
			_, err := a.do(ctx, http.MethodPatch, "/api/v1/nodes/"+n.Name, fmt.Sprintf(`{"spec": {"podCIDR": %[1]q, "podCIDRs": [%[1]q]}}`, n.PodCIDR))
			return err
		})); err != nil {
			return err
		}
	}
	return nil
}

// waitNodes waits until the nodes are ready, and pods can be made: they need the default account of their
// namespace.
func (s *state) waitNodes(ctx context.Context) error {
	a, err := s.api()
	if err != nil {
		return err
	}
	for _, n := range s.Nodes {
		if err := s.explain("kubelet-"+n.Name, waitFor(ctx, "the node "+n.Name+" is not ready", 2*time.Minute, func() error {
			text, err := a.get(ctx, "/api/v1/nodes/"+n.Name)
			if err != nil {
				return err
			}
			if err := nodeReady(text); err != nil {
				return err
			}
			_, err = a.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default")
			return err
		})); err != nil {
			return err
		}
	}
	return nil
}

// nodeReady reads a node's object: the reason it gives where it is not ready.
func nodeReady(text []byte) error {
	var node struct {
		Spec   struct{ Taints []struct{ Key string } }
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	if err := json.Unmarshal(text, &node); err != nil {
		return err
	}
	for _, c := range node.Status.Conditions {
		if c.Type == "Ready" {
			if c.Status != "True" {
				return errors.New(c.Message)
			}
			if len(node.Spec.Taints) > 0 {
				return fmt.Errorf("the node has the taint %s", node.Spec.Taints[0].Key)
			}
			return nil
		}
	}
	return errors.New("the node has not said so yet")
}
