package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// ownsNames tells whether what bears the cluster's names on this machine (links, control groups, a network
// namespace) belongs to the cluster in a folder. The bridge says so in its alias: it is made first and
// removed last.
func ownsNames(dir string) bool {
	if owner := namesOwner(); owner != "" {
		return owner == dir
	}
	if s, err := loadState(dir); err == nil {
		return s.Node != ""
	}
	return dir == defaultDir
}

// namesOwner is the folder of the cluster that has the names, or empty.
func namesOwner() string {
	alias, err := os.ReadFile("/sys/class/net/" + bridgeName + "/ifalias")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(alias))
}

// chooseAddresses finds a /16 that no route of the machine touches: 10.N.0.0/24 joins host and node,
// 10.N.1.0/24 are the pods', 10.N.128.0/17 the services'.
func (s *state) chooseAddresses(ctx context.Context) error {
	routes, err := output(ctx, "ip", "-o", "-4", "route", "show", "table", "all")
	if err != nil {
		return err
	}
	n, ok := freeNetwork(routes)
	if !ok {
		return targetError{errors.New("no free network for the cluster: something is routed in each of 10.200.0.0/16 to 10.250.0.0/16")}
	}
	s.HostIP = fmt.Sprintf("10.%d.0.1", n)
	s.NodeIP = fmt.Sprintf("10.%d.0.11", n)
	s.PodCIDR = fmt.Sprintf("10.%d.1.0/24", n)
	s.Services = fmt.Sprintf("10.%d.128.0/17", n)
	return nil
}

// freeNetwork is the N of a 10.N.0.0/16 that overlaps no route but those to everywhere.
func freeNetwork(routes string) (int, bool) {
	var taken []netip.Prefix
	for line := range strings.Lines(routes) {
		for _, field := range strings.Fields(line) {
			prefix, err := netip.ParsePrefix(field)
			if addr, addrErr := netip.ParseAddr(field); addrErr == nil && err != nil {
				prefix, err = addr.Prefix(addr.BitLen())
			}
			if err == nil && prefix.Bits() > 0 {
				taken = append(taken, prefix)
			}
		}
	}
candidates:
	for n := 250; n >= 200; n-- {
		network := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(n), 0, 0}), 16)
		for _, t := range taken {
			if network.Overlaps(t) {
				continue candidates
			}
		}
		return n, true
	}
	return 0, false
}

// serviceIP is the first address of the services' network, which Kubernetes gives to its own API.
func (s *state) serviceIP() string {
	return netip.MustParsePrefix(s.Services).Addr().Next().String()
}

// makeNetwork makes the bridge, the node's namespace and the pair of links between them. The host reaches
// pods and services through the node; nothing of the host's own firewall or forwarding is touched.
func (s *state) makeNetwork(ctx context.Context) error {
	for _, words := range []string{
		"link add " + bridgeName + " type bridge",
		"link set " + bridgeName + " alias " + s.Dir,
		"addr add " + s.HostIP + "/24 dev " + bridgeName,
		"link set " + bridgeName + " up",
		"netns add " + nodeName,
		"link add " + vethName + " type veth peer name eth0 netns " + nodeName,
		"link set " + vethName + " master " + bridgeName + " up",
		"-n " + nodeName + " link set lo up",
		"-n " + nodeName + " addr add " + s.NodeIP + "/24 dev eth0",
		"-n " + nodeName + " link set eth0 up",
		"-n " + nodeName + " route add default via " + s.HostIP,
		"route add " + s.PodCIDR + " via " + s.NodeIP,
		"route add " + s.Services + " via " + s.NodeIP,
	} {
		if _, err := output(ctx, append([]string{"ip"}, strings.Fields(words)...)...); err != nil {
			return fmt.Errorf("cannot make the node's network: %w", err)
		}
	}
	_, err := output(ctx, "nsenter", "--net=/run/netns/"+nodeName, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	return err
}

// removeNetwork removes what makeNetwork made; the bridge comes last, as it says whose all of it is.
func removeNetwork(ctx context.Context) error {
	var errs []error
	remove := func(there string, words ...string) {
		if _, err := os.Lstat(there); err != nil {
			return
		}
		if _, err := output(ctx, append([]string{"ip"}, words...)...); err != nil {
			if _, gone := os.Lstat(there); gone == nil {
				errs = append(errs, err)
			}
		}
	}
	remove("/sys/class/net/"+vethName, "link", "delete", vethName)
	remove("/run/netns/"+nodeName, "netns", "delete", nodeName)
	remove("/sys/class/net/"+bridgeName, "link", "delete", bridgeName)
	return errors.Join(errs...)
}

// freePort is one nobody listens at on an address: the wanted one, or any other.
func freePort(ip string, wanted int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(ip, fmt.Sprint(wanted)))
	if err != nil && wanted != 0 {
		l, err = net.Listen("tcp", net.JoinHostPort(ip, "0"))
	}
	if err != nil {
		return 0, fmt.Errorf("cannot find a free port on %s: %w", ip, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
