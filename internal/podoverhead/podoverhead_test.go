package podoverhead

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"david/internal/result"
	"david/internal/sandbox"
)

var update = flag.Bool("update", false, "write the golden files anew")

func sample(pod result.Pod) podSpec {
	pod.Image, pod.Node = "mysql:8.4", "worker-1"
	return podSpec{name: "server-1", namespace: "david-podtax-1", pod: pod, caps: result.Caps{CPUs: 2, Memory: 4<<30 + 1}, command: []string{"/usr/sbin/mysqld"},
		args: []string{"--no-defaults", "--init-connect=SET @a='$(HOME)'"}, folders: []sandbox.Folder{{Source: "/run/david-1/2", Path: "/run/david-1/2"}, {Source: "/data/3", Path: "/run/david-1/data/3"}},
		uid: 999, gid: 998, lasts: time.Hour}
}

// TestPods holds the pods against what is on file: go test ./internal/podoverhead -update writes it anew.
func TestPods(t *testing.T) {
	for name, pod := range map[string]result.Pod{"guaranteed": {QoS: Guaranteed}, "besteffort": {QoS: BestEffort}, "hostnetwork": {QoS: Guaranteed, HostNetwork: true}} {
		got, err := json.MarshalIndent(sample(pod).object(), "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, '\n')
		path := filepath.Join("testdata", name+".json")
		if *update {
			if err := os.WriteFile(path, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s differs; go test -update writes it anew. Got:\n%s", path, got)
		}
	}
}

// TestQuality: only a Guaranteed pod has limits, and its requests are the same.
func TestQuality(t *testing.T) {
	c := sample(result.Pod{QoS: Guaranteed}).object().Spec.Containers[0]
	if r := c.Resources; r.Limits.Cpu().String() != "2" || r.Limits.Memory().Value() != 4<<30 || !r.Requests.Cpu().Equal(*r.Limits.Cpu()) || !r.Requests.Memory().Equal(*r.Limits.Memory()) {
		t.Errorf("%+v", r)
	}
	if c.Args[1] != "--init-connect=SET @a='$$(HOME)'" {
		t.Errorf("the kubelet would replace a variable in %q", c.Args[1])
	}
	c = sample(result.Pod{QoS: BestEffort}).object().Spec.Containers[0]
	if len(c.Resources.Limits)+len(c.Resources.Requests) > 0 {
		t.Errorf("%+v", c.Resources)
	}
}

func node(name, address string, ready corev1.ConditionStatus) corev1.Node {
	return corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name + ".host"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: name}, {Type: corev1.NodeInternalIP, Address: address}},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

func TestPick(t *testing.T) {
	a, b, down := node("a", "10.0.0.1", corev1.ConditionTrue), node("b", "10.0.0.2", corev1.ConditionTrue), node("down", "10.0.0.3", corev1.ConditionFalse)
	for _, c := range []struct {
		what       string
		nodes      []corev1.Node
		name, host string
		here       []string
		want, err  string
	}{
		{"by name", []corev1.Node{a, b}, "b", "x", nil, "b", ""},
		{"by address", []corev1.Node{a, b}, "", "a", []string{"127.0.0.1", "10.0.0.2"}, "b", ""},
		{"by the host's name", []corev1.Node{a, b}, "", "b", []string{"127.0.0.1"}, "b", ""},
		{"by the host's label", []corev1.Node{a, b}, "", "b.host", nil, "b", ""},
		{"the only one", []corev1.Node{a}, "", "x", nil, "a", ""},
		{"none is this", []corev1.Node{a, b}, "", "x", nil, "", "none of a, b has an address or the name of this machine (x)"},
		{"unknown", []corev1.Node{a, b}, "c", "x", nil, "", "no node c; it has a, b"},
		{"not ready", []corev1.Node{a, down}, "down", "x", nil, "", "down is not ready"},
		{"no nodes", nil, "", "x", nil, "", "has no nodes"},
	} {
		n, err := pick(c.nodes, c.name, c.host, c.here)
		switch {
		case c.err == "" && (err != nil || n.Name != c.want):
			t.Errorf("%s: %s, %v", c.what, n.Name, err)
		case c.err != "" && (!errors.Is(err, ErrNode) || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %s", c.what, err, c.err)
		}
	}
}

func TestTowardsItself(t *testing.T) {
	if got, err := towards("127.0.0.1"); err != nil || got != "127.0.0.1" {
		t.Errorf("%q, %v", got, err)
	}
	list, err := addresses()
	if err != nil || !slices.Contains(list, "127.0.0.1") {
		t.Errorf("%q, %v", list, err)
	}
}

func TestLimited(t *testing.T) {
	caps := result.Caps{CPUs: 2, Memory: 1<<30 + 5}
	guaranteed, free := result.Arm{Caps: caps, Pod: result.Pod{QoS: Guaranteed}}, result.Arm{Pod: result.Pod{QoS: BestEffort}}
	for _, c := range []struct {
		arm    result.Arm
		cpus   float64
		memory int64
		err    string
	}{
		{guaranteed, 2, 1 << 30, ""},
		{guaranteed, 0, 1 << 30, "limited to 0, not 2"},
		{guaranteed, 1.5, 1 << 30, "limited to 1.5, not 2"},
		{guaranteed, 2, 0, "memory is limited to 0 bytes"},
		{guaranteed, 2, 2 << 30, "memory is limited to 2147483648 bytes"},
		{free, 0, 24 << 30, ""}, // what all pods together may have
	} {
		err := limited(c.arm, c.cpus, c.memory)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestFolderOfAnImage(t *testing.T) {
	for id, want := range map[string]string{
		"sha256:0123456789abcdef0123": "0123456789abcdef", "localhost/mysql@sha256:fedcba98765432100000": "fedcba9876543210", "odd": "odd",
	} {
		if got := folderOf(id); got != want {
			t.Errorf("%s: %s, want %s", id, got, want)
		}
	}
}

// TestCopyRoot copies a tree with all that may stand in it, and nothing that is mounted there.
func TestCopyRoot(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, dir := range []string{"usr/sbin", "usr/lib", "etc"} {
		if err := os.MkdirAll(filepath.Join(from, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for file, mode := range map[string]os.FileMode{"usr/sbin/mysqld": 0o755, "usr/lib/private": 0o600, "etc/shadow": 0o600} {
		if err := os.WriteFile(filepath.Join(from, file), []byte(file), mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"lib": "usr/lib", "usr/sbin/mariadbd": "mysqld", "usr/lib/away": "/etc/shadow"} {
		if err := os.Symlink(target, filepath.Join(from, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyRoot(from, to); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "usr/sbin/mariadbd")); err != nil || string(b) != "usr/sbin/mysqld" {
		t.Errorf("%q, %v", b, err)
	}
	if info, err := os.Stat(filepath.Join(to, "usr/sbin/mysqld")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(to, "lib/private")); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("not readable for the servers' user: %v, %v", info, err)
	}
	if target, err := os.Readlink(filepath.Join(to, "usr/lib/away")); err != nil || target != "/etc/shadow" {
		t.Errorf("a link is copied as it is: %q, %v", target, err)
	}
	if _, err := os.Stat(filepath.Join(to, "etc")); !os.IsNotExist(err) {
		t.Error("what no server needs was copied")
	}
	if err := copyRoot("/dev", t.TempDir()); err != nil { // has none of the folders
		t.Error(err)
	}
}

// TestContained: an image that names a process of the machine's for its own does not have the machine's files
// copied.
func TestContained(t *testing.T) {
	if err := contained(os.Getpid()); err == nil || !strings.Contains(err.Error(), "one of this machine's") {
		t.Errorf("got %v", err)
	}
	if err := contained(1 << 30); err == nil || !strings.Contains(err.Error(), "cannot find") {
		t.Errorf("got %v", err)
	}
}
