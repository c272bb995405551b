package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// flannelBackend is how Flannel is to join the nodes' pods, in its own words; "" where it does not run.
func (s *state) flannelBackend() string {
	switch s.Network {
	case flannelVXLAN:
		return "vxlan"
	case flannelHostGW:
		return "host-gw"
	}
	return ""
}

// startFlannel starts Flannel on each node as its manifest does, and has the plugins give out what it found. It
// asks the API server for a node's addresses once, so the node has to have them.
func (s *state) startFlannel(ctx context.Context, containerds []int) error {
	for i, n := range s.Nodes {
		if err := os.WriteFile(s.path(n.Name, "flannel.json"), []byte(s.flannelConfig()), 0o600); err != nil {
			return fmt.Errorf("cannot write Flannel's configuration: %w", err)
		}
		// Without masquerading, as on the networks of the same kind that this program lays: a pod is seen as itself.
		if _, err := s.start("flannel-"+n.Name, inside(containerds[i], "env", "NODE_NAME="+n.Name, s.binary("flanneld"), "--kube-subnet-mgr", "--kubeconfig-file", s.path("admin.kubeconfig"),
			"--net-config-path", s.path(n.Name, "flannel.json"), "--subnet-file", s.path(n.Name, "subnet.env"), "--iface", "eth0", "--ip-masq=false")...); err != nil {
			return err
		}
	}
	for _, n := range s.Nodes {
		var net podNet
		err := waitFor(ctx, "Flannel does not work on the node "+n.Name, time.Minute, func() error {
			text, err := os.ReadFile(s.path(n.Name, "subnet.env"))
			if errors.Is(err, fs.ErrNotExist) {
				return errors.New("it has not said its network yet")
			}
			if err == nil {
				net, err = parseSubnet(string(text))
			}
			return err
		})
		if err == nil {
			err = s.writePlugins(n, net)
		}
		if err != nil {
			return s.explain("flannel-"+n.Name, err)
		}
	}
	return nil
}

// flannelConfig is the network as Flannel wants it. Its firewall rules, which let pods' packets through, are of
// nftables, as kube-proxy's are.
func (s *state) flannelConfig() string {
	text, err := json.Marshal(map[string]any{"Network": s.PodCIDR, "EnableNFTables": true, "Backend": map[string]string{"Type": s.flannelBackend()}})
	if err != nil {
		panic(err) // of maps and strings
	}
	return string(text) + "\n"
}

// parseSubnet reads a subnet.env of Flannel's, as its plugin does, which is not among Go's modules.
func parseSubnet(text string) (podNet, error) {
	values := map[string]string{}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		values[key] = value
	}
	subnet, err := netip.ParsePrefix(values["FLANNEL_SUBNET"]) // with the bridge's address
	if err != nil {
		return podNet{}, fmt.Errorf("no network in what Flannel wrote: FLANNEL_SUBNET: %w", err)
	}
	mtu, err := strconv.Atoi(values["FLANNEL_MTU"])
	if err != nil {
		return podNet{}, fmt.Errorf("no MTU in what Flannel wrote: FLANNEL_MTU: %w", err)
	}
	return podNet{subnet.Masked().String(), mtu}, nil
}

// flannelMain makes a folder with the module in which Flannel is pinned and Flannel's own main.go, less the
// imports of the backends that flannel/tools.go leaves out.
func flannelMain(ctx context.Context, source, to string) error {
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", flannelModule)
	cmd.Dir, cmd.Env = source, append(os.Environ(), "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot find Flannel's source: %w", withStderr(err))
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return fmt.Errorf("cannot find Flannel's source: %w", err)
	}
	program, err := os.ReadFile(filepath.Join(module.Dir, "main.go"))
	if err == nil {
		err = os.CopyFS(to, os.DirFS(source))
	}
	if err != nil {
		return fmt.Errorf("cannot copy Flannel's source: %w", err)
	}
	text, err := withoutBackends(string(program))
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(to, "main.go"), []byte(text), 0o644)
}

const flannelModule = "github.com/flannel-io/flannel"

func withoutBackends(program string) (string, error) {
	for _, backend := range []string{"tencentvpc", "udp"} {
		line := "\t_ \"" + flannelModule + "/pkg/backend/" + backend + "\"\n"
		before, after, there := strings.Cut(program, line)
		if !there {
			return "", fmt.Errorf("the main.go of Flannel does not import its backend %s, which is to be left out", backend)
		}
		program = before + after
	}
	return program, nil
}
