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
		return s.whole()
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

// chooseAddresses finds a /16 that no route of the machine touches: 10.N.0.0/24 joins host and nodes,
// 10.N.64.0/18 are the pods', a /24 for each node, 10.N.128.0/17 the services'.
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
	for i := range s.Nodes {
		s.Nodes[i].IP = fmt.Sprintf("10.%d.0.%d", n, 11+i)
		s.Nodes[i].PodCIDR = fmt.Sprintf("10.%d.%d.0/24", n, 64+i)
	}
	s.PodCIDR = fmt.Sprintf("10.%d.64.0/18", n)
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

// makeNetwork makes the bridge, which is the wire between the nodes, and the nodes' namespaces, each joined to
// it by a pair of links. The host reaches pods through their node, services through the first; nothing of the
// host's own firewall or forwarding is touched, as packets that a bridge passes on are not forwarded.
func (s *state) makeNetwork(ctx context.Context) error {
	err := lines(ctx,
		"ip link add "+bridgeName+" type bridge",
		"ip link set "+bridgeName+" alias "+s.Dir,
		"ip addr add "+s.HostIP+"/24 dev "+bridgeName,
		"ip link set "+bridgeName+" up")
	for _, n := range s.Nodes {
		if err == nil {
			err = s.makeNode(ctx, n)
		}
	}
	if err == nil {
		err = lines(ctx, "ip route add "+s.Services+" via "+s.Nodes[0].IP)
	}
	return err
}

// makeNode makes a node's namespace, with its link to the bridge, its routes, and what joins its pods to the
// other nodes'.
func (s *state) makeNode(ctx context.Context, n node) error {
	err := lines(ctx, append([]string{
		"ip netns add " + n.Name,
		"ip link add " + vethName(n.Name) + " type veth peer name eth0 netns " + n.Name,
		"ip link set " + vethName(n.Name) + " master " + bridgeName + " up",
		"ip -n " + n.Name + " link set lo up",
		"ip -n " + n.Name + " addr add " + n.IP + "/24 dev eth0",
		"ip -n " + n.Name + " link set eth0 up",
		"ip -n " + n.Name + " route add default via " + s.HostIP,
	}, s.joins(n)...)...)
	if err == nil && s.Rate != "" { // each way at the end that sends, with the bucket of david network measure
		const bucket = " root tbf rate %s burst 256kb latency 20ms"
		err = lines(ctx, fmt.Sprintf("tc qdisc add dev %s"+bucket, vethName(n.Name), s.Rate), fmt.Sprintf("tc -n %s qdisc add dev eth0"+bucket, n.Name, s.Rate))
		if err == nil && s.Network == hostDevice { // the pod's end would lose it when it is handed over
			err = lines(ctx, fmt.Sprintf("tc qdisc add dev %s"+bucket, deviceName(n.Name), s.Rate))
		}
	}
	if err == nil {
		_, err = output(ctx, "nsenter", "--net=/run/netns/"+n.Name, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	}
	return err
}

// lines runs commands of the network, their words parted by spaces.
func lines(ctx context.Context, list ...string) error {
	for _, words := range list {
		if _, err := output(ctx, strings.Fields(words)...); err != nil {
			return fmt.Errorf("cannot make the nodes' network: %w", err)
		}
	}
	return nil
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
	for i := range mostNodes {
		name := nodeName(i)
		for _, link := range []string{vethName(name), deviceName(name)} {
			remove("/sys/class/net/"+link, "link", "delete", link)
		}
		remove("/run/netns/"+name, "netns", "delete", name)
	}
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
