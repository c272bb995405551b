package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"david/internal/process"
	"david/test/daemon"
)

// The names of what a cluster makes outside its folder: one cluster a machine.
const (
	// On a disk: /run is a small file system in memory, often without permission to execute, and databases'
	// data lie here.
	defaultDir = "/var/lib/david-e2e"

	bridgeName = "david-e2e"
	groupName  = "david-e2e"

	mostNodes = 2
)

// node is one of a cluster's, a network and a mount namespace. Its folder, below the cluster's, bears its name.
type node struct {
	Name       string `json:"name"` // also of its network namespace
	IP         string `json:"ip"`
	PodCIDR    string `json:"pod_cidr"`
	Containerd string `json:"containerd"` // its socket
}

// nodeName names the i-th node, from 0 on.
func nodeName(i int) string { return fmt.Sprintf("kn%d", i+1) }

// vethName names the link by which a node is joined to the bridge.
func vethName(node string) string { return "david-e2e-" + node }

// deviceName names the link by which a device that a node hands to its pods is joined to the bridge.
func deviceName(node string) string { return vethName(node) + "p" }

// envtestDir is the folder of an API server without a node, for each user another.
func envtestDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("david-envtest-%d", os.Geteuid()))
}

// state describes a cluster, and what it takes to end it. It is written before anything is made, so that
// whatever is killed at whatever moment, `down` knows what there can be. It lies in the cluster's folder, as
// state.json.
type state struct {
	Dir        string     `json:"dir"`
	Bin        string     `json:"bin"`
	Router     string     `json:"router,omitempty"` // the path of kube-router, where that joins the nodes
	Owner      process.ID `json:"owner,omitzero"`
	Guard      process.ID `json:"guard,omitzero"`  // takes the cluster down when the owner has ended
	Nodes      []node     `json:"nodes,omitempty"` // none: an API server only
	Network    string     `json:"network,omitempty"`
	Rate       string     `json:"rate,omitempty"`     // that each node's wire is held to; empty: to none
	HostIP     string     `json:"host_ip"`            // where the API server listens
	PodCIDR    string     `json:"pod_cidr,omitempty"` // of all nodes' pods
	Services   string     `json:"service_cidr"`
	Ports      ports      `json:"ports"`
	Kubeconfig string     `json:"kubeconfig"`
	Kubectl    string     `json:"kubectl"`
	CPUManager string     `json:"cpu_manager,omitempty"`
	Sysctls    []sysctl   `json:"sysctls,omitempty"` // as they were
	Made       []string   `json:"made,omitempty"`    // folders made outside Dir, outermost first
	Before     *system    `json:"before,omitempty"`
	Ready      bool       `json:"ready"`
}

type ports struct {
	API      int `json:"api"`
	Etcd     int `json:"etcd"`
	EtcdPeer int `json:"etcd_peer"`
}

// whole tells whether it has nodes.
func (s *state) whole() bool { return len(s.Nodes) > 0 }

func (s *state) path(parts ...string) string {
	return filepath.Join(append([]string{s.Dir}, parts...)...)
}

func (s *state) save() error { return daemon.Save(s.Dir, s) }

// loadState returns fs.ErrNotExist where there is no cluster in a folder.
func loadState(dir string) (*state, error) {
	s := &state{}
	if err := daemon.Load(dir, s); err != nil {
		return nil, err
	}
	s.Dir = dir
	return s, nil
}

// running is the state of a cluster that is up.
func running(dir string) (*state, error) {
	s, err := loadState(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !s.Ready {
		return nil, targetError{fmt.Errorf("no cluster is up in %s; start one with: cluster up", dir)}
	}
	return s, err
}

// lock keeps other `up`s and `down`s away until it is released, at the latest by this process' end: all of
// root's, as they share names, and others' of the same folder. It is on a folder that is there anyway, so
// that it leaves no file.
func lock(dir string) (release func(), err error) {
	at := filepath.Dir(dir)
	if os.Geteuid() == 0 {
		at = filepath.Dir(defaultDir)
	}
	f, err := os.Open(at)
	if err != nil {
		return nil, usageError{fmt.Errorf("the cluster's folder cannot be %s: %w", dir, err)}
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// privateFolder checks a folder for a cluster: sockets' paths are limited to 107 bytes, and nothing may be in
// it.
func privateFolder(dir string) error {
	if !filepath.IsAbs(dir) || filepath.Clean(dir) != dir || dir == "/" {
		return usageError{fmt.Errorf("the cluster's folder has to be an absolute, plain path, not %q", dir)}
	}
	if len(dir) > 60 {
		return usageError{fmt.Errorf("the cluster's folder %s is too long a path: sockets lie in it; at most 60 bytes", dir)}
	}
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usageError{fmt.Errorf("the cluster's folder cannot be %s: %w", dir, err)}
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(stat.Uid) != os.Geteuid() {
		return usageError{fmt.Errorf("%s is no folder of yours; choose another", dir)}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return usageError{fmt.Errorf("the cluster's folder cannot be %s: %w", dir, err)}
	}
	if len(entries) > 0 {
		return usageError{fmt.Errorf("%s is not empty and holds no cluster; choose another folder", dir)}
	}
	return os.Chmod(dir, 0o700)
}
