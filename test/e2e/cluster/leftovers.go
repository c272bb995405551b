package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/test/daemon"
)

// sysctl is a kernel setting and its value.
type sysctl struct {
	Name  string `json:"name"` // below /proc/sys
	Value string `json:"value"`
}

// changed are the settings kubelet changes for the whole machine.
var changed = [...]string{"kernel/keys/root_maxbytes", "kernel/keys/root_maxkeys", "kernel/panic", "kernel/panic_on_oops", "vm/overcommit_memory", "vm/panic_on_oom"}

// system is all that a cluster could leave behind on a machine, processes and its own folder aside.
type system struct {
	Mounts     []string `json:"mounts"`
	Namespaces []string `json:"namespaces"` // named network namespaces
	Links      []string `json:"links"`
	Routes     []string `json:"routes"`
	Firewall   []string `json:"firewall"` // rules of nftables, and of iptables' old kind
	Groups     []string `json:"groups"`   // control groups that kubelet or this program would make
	Folders    []string `json:"folders"`  // that kubelet and the network plugins use
	Sysctls    []sysctl `json:"sysctls"`
}

// snapshot reads the system for a cluster in a folder. What an ordinary user may not see, this program could
// not have made.
func snapshot(dir string) (system, error) {
	s := system{}
	if os.Geteuid() != 0 {
		return s, nil
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return s, err
	}
	s.Mounts = clusterMounts(string(mounts), dir)
	for _, ask := range []struct {
		into *[]string
		argv []string
	}{
		{&s.Links, []string{"ip", "-o", "link", "show"}},
		{&s.Routes, []string{"ip", "-o", "route", "show", "table", "all"}},
		{&s.Firewall, []string{"nft", "--stateless", "list", "ruleset"}},
	} {
		out, err := output(context.Background(), ask.argv...)
		if err != nil {
			return s, err
		}
		*ask.into = append(*ask.into, strings.Split(strings.TrimSpace(out), "\n")...)
	}
	s.Links = linkNames(s.Links)
	s.Firewall = append(s.Firewall, legacyTables()...)
	s.Namespaces = list("/run/netns")
	s.Groups = clusterGroups()
	// Not /run/containerd: any other containerd on the machine writes to it, and the node cannot, having its
	// own.
	for _, folder := range []string{"/run/netns", "/var/lib/cni", "/var/lib/kubelet", "/var/log/pods", "/var/log/containers"} {
		s.Folders = append(s.Folders, below(folder)...)
	}
	s.Sysctls = readSysctls()
	return s, nil
}

// clusterMounts are the mount points that a node could have made, by where they are or what they show. Others
// come and go.
func clusterMounts(mounts, dir string) (found []string) {
	for line := range strings.Lines(mounts) {
		f := strings.Fields(line)
		if len(f) < 3 {
			continue
		}
		is := func(prefix string) bool { return strings.HasPrefix(f[1], prefix) }
		if is("/run/netns") || is("/var/lib/kubelet") || strings.Contains(line, dir+"/") {
			found = append(found, f[1])
		}
	}
	return found
}

// linkNames takes the names out of `ip -o link`: its other columns count, or change by themselves.
func linkNames(lines []string) (names []string) {
	for _, line := range lines {
		if f := strings.Fields(line); len(f) > 1 {
			name, _, _ := strings.Cut(strings.TrimSuffix(f[1], ":"), "@")
			names = append(names, name)
		}
	}
	return names
}

// legacyTables are the tables of iptables' old kind that exist, which nft does not show.
func legacyTables() (tables []string) {
	for _, file := range []string{"/proc/net/ip_tables_names", "/proc/net/ip6_tables_names"} {
		text, _ := os.ReadFile(file) // missing where the old kind is
		for _, name := range strings.Fields(string(text)) {
			tables = append(tables, filepath.Base(file)+" "+name)
		}
	}
	return tables
}

func clusterGroups() (found []string) {
	for _, h := range hierarchies() {
		for _, name := range []string{groupName, "kubepods"} {
			found = append(found, below(filepath.Join(h.mount, name))...)
		}
	}
	return found
}

// below are a folder and all that is in it.
func below(folder string) (found []string) {
	_ = filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && (e.IsDir() || !strings.HasPrefix(path, "/sys/")) {
			found = append(found, path)
		}
		return nil // what is not there is not left over
	})
	return found
}

func list(folder string) (names []string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func readSysctls() (values []sysctl) {
	for _, name := range changed {
		if text, err := os.ReadFile("/proc/sys/" + name); err == nil {
			values = append(values, sysctl{name, strings.TrimSpace(string(text))})
		}
	}
	return values
}

// restoreSysctls sets back what differs.
func restoreSysctls(saved []sysctl) error {
	now := readSysctls()
	for _, s := range saved {
		if slices.Contains(now, s) {
			continue
		}
		if err := os.WriteFile("/proc/sys/"+s.Name, []byte(s.Value), 0o644); err != nil {
			return fmt.Errorf("cannot set %s back to %s: %w", s.Name, s.Value, err)
		}
	}
	return nil
}

// since lists what is there now and was not before, a line for each.
func (s system) since(before system) (left []string) {
	for _, kind := range []struct {
		name        string
		now, before []string
	}{
		{"mount", s.Mounts, before.Mounts}, {"network namespace", s.Namespaces, before.Namespaces}, {"link", s.Links, before.Links},
		{"route", s.Routes, before.Routes}, {"firewall rule", s.Firewall, before.Firewall}, {"control group", s.Groups, before.Groups},
		{"file", s.Folders, before.Folders},
	} {
		for _, thing := range kind.now {
			if strings.TrimSpace(thing) != "" && !slices.Contains(kind.before, thing) {
				left = append(left, kind.name+" "+strings.TrimSpace(thing))
			}
		}
	}
	for _, was := range before.Sysctls {
		if i := slices.IndexFunc(s.Sysctls, func(x sysctl) bool { return x.Name == was.Name }); i >= 0 && s.Sysctls[i].Value != was.Value {
			left = append(left, fmt.Sprintf("kernel setting %s is %s and was %s", was.Name, s.Sysctls[i].Value, was.Value))
		}
	}
	return left
}

// leftovers lists what a cluster in a folder left: its processes, the folder, and what differs from before;
// where that is nil, only what bears the cluster's names can be told from what is somebody else's.
func leftovers(dir string, before *system) (left []string, err error) {
	for _, p := range ours(dir) {
		left = append(left, daemon.Describe(p))
	}
	if _, err := os.Lstat(dir); err == nil {
		left = append(left, "folder "+dir)
	}
	now, err := snapshot(dir)
	if err != nil {
		return nil, err
	}
	if before != nil {
		return append(left, now.since(*before)...), nil
	}
	if !ownsNames(dir) { // another cluster's
		return left, nil
	}
	for _, line := range now.since(system{}) {
		if strings.Contains(line, groupName) || strings.HasSuffix(line, "network namespace "+nodeName) {
			left = append(left, line)
		}
	}
	return left, nil
}
