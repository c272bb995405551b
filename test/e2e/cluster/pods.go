package main

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// The ways in which a node's pods are joined to each other, and to other nodes' pods.
const (
	bridged = "bridge"  // a bridge on each node, routes between the nodes, as also Flannel's host-gw has it
	ptp     = "ptp"     // a veth pair for each pod, routes on the node and between the nodes
	vxlan   = "vxlan"   // a bridge on each node, between the nodes a VXLAN laid as Flannel lays it
	macvlan = "macvlan" // for each pod a macvlan of the node's end of the wire: no way to its own node
	// hostDevice is a second end of the wire on each node, as a network card of its own, which the plugin hands to a pod: the next pod
	// of that node gets it when the one before has ended.
	hostDevice = "host-device"

	flannelVXLAN  = "flannel-vxlan"  // a bridge on each node, between the nodes what Flannel makes with its backend vxlan
	flannelHostGW = "flannel-hostgw" // a bridge on each node, between the nodes what Flannel makes with its backend host-gw
	kubeRouter    = "kube-router"    // a bridge on each node, between the nodes the routes that kube-router tells by BGP
)

func networks() []string {
	return []string{bridged, ptp, vxlan, macvlan, hostDevice, flannelVXLAN, flannelHostGW, kubeRouter}
}

// rates are some of those that tc reads.
var rates = regexp.MustCompile(`^[1-9][0-9]{0,5}[mg]bit$`)

func (o options) checkNetwork() error {
	switch {
	case o.nodes < 1 || o.nodes > mostNodes:
		return usageError{fmt.Errorf("--nodes %d: 1 or %d", o.nodes, mostNodes)}
	case !slices.Contains(networks(), o.network):
		return usageError{fmt.Errorf("--network %s: one of %s", o.network, strings.Join(networks(), ", "))}
	case o.rate != "" && !rates.MatchString(o.rate):
		return usageError{fmt.Errorf("--rate %s: a rate as 100mbit or 1gbit", o.rate)}
	}
	return nil
}

const (
	podDevice = "eth1" // on its node
	vxlanLink = "david-vxlan"
	wireMTU   = 1500
	// vxlanMTU is the wire's without an Ethernet, an IPv4, a UDP and a VXLAN header (RFC 7348).
	vxlanMTU = wireMTU - 14 - 20 - 8 - 8
)

// joins are the commands that make a node's pods reach, and be reached by, the host's and the other nodes'.
// Pods with a macvlan or a device of the node's are in the wire's own network.
func (s *state) joins(n node) (list []string) {
	switch s.Network {
	case macvlan:
		return nil
	case hostDevice:
		return []string{"ip link add " + deviceName(n.Name) + " type veth peer name " + podDevice + " netns " + n.Name,
			"ip link set " + deviceName(n.Name) + " master " + bridgeName + " up"}
	}
	on := func(command, words string, args ...any) {
		list = append(list, command+" -n "+n.Name+" "+fmt.Sprintf(words, args...))
	}
	list = append(list, "ip route add "+n.PodCIDR+" via "+n.IP)
	if s.Network == vxlan {
		on("ip", "link add %s mtu %d address %s type vxlan id 1 dev eth0 local %s dstport 4789 nolearning", vxlanLink, vxlanMTU, n.tunnelMAC(), n.IP)
		on("ip", "addr add %s/32 dev %s", n.tunnelIP(), vxlanLink)
		on("ip", "link set %s up", vxlanLink)
	}
	for _, other := range s.Nodes {
		switch {
		case other == n, s.joinedByOthers(): // they do it, when they run
		case s.Network == vxlan: // who is at the other end is told, and never asked for
			on("ip", "neigh add %s lladdr %s dev %s nud permanent", other.tunnelIP(), other.tunnelMAC(), vxlanLink)
			on("bridge", "fdb add %s dev %s dst %s", other.tunnelMAC(), vxlanLink, other.IP)
			on("ip", "route add %s via %s dev %s onlink", other.PodCIDR, other.tunnelIP(), vxlanLink)
		default:
			on("ip", "route add %s via %s", other.PodCIDR, other.IP)
		}
	}
	return list
}

// tunnelIP is the node's own address in the VXLAN: the first of its pods'.
func (n node) tunnelIP() string { return netip.MustParsePrefix(n.PodCIDR).Addr().String() }

// tunnelMAC is a private one, of the node's address.
func (n node) tunnelMAC() string {
	ip := netip.MustParseAddr(n.IP).As4()
	return fmt.Sprintf("02:da:%02x:%02x:%02x:%02x", ip[0], ip[1], ip[2], ip[3])
}

// podNet is what a node's pods have in common.
type podNet struct {
	subnet string
	mtu    int
}

// laid is the network of a node's pods where this program lays it.
func (s *state) laid(n node) podNet {
	if s.Network == vxlan {
		return podNet{n.PodCIDR, vxlanMTU}
	}
	return podNet{n.PodCIDR, wireMTU}
}

// cniConfig is the list of plugins that gives a node's pods their network. Only pods of a single node are
// hidden behind its address from those outside: between nodes a pod is to be seen as itself.
func (s *state) cniConfig(n node, net podNet) string {
	type object = map[string]any
	span := object{"subnet": net.subnet}
	if s.inWire() {
		span = object{"subnet": s.wire().String(), "gateway": s.HostIP, "rangeStart": s.wireHost(n, 64), "rangeEnd": s.wireHost(n, 127)}
	}
	plugin := object{"type": s.Network, "mtu": net.mtu, "ipam": object{"type": "host-local", "ranges": [][]object{{span}}, "routes": []object{{"dst": "0.0.0.0/0"}}}}
	switch s.Network {
	case bridged, vxlan, flannelVXLAN, flannelHostGW, kubeRouter:
		plugin["type"] = bridged
		plugin["bridge"], plugin["isGateway"], plugin["hairpinMode"], plugin["ipMasq"] = "cni0", true, true, len(s.Nodes) == 1
	case macvlan:
		plugin["master"], plugin["mode"] = "eth0", "bridge"
	case hostDevice: // with the MTU that it has
		plugin["device"] = podDevice
		delete(plugin, "mtu")
	}
	plugins := []object{plugin}
	if !s.inWire() {
		plugins = append(plugins, object{"type": "portmap", "capabilities": object{"portMappings": true}})
	}
	text, err := json.MarshalIndent(object{"cniVersion": "1.0.0", "name": "david-e2e", "plugins": plugins}, "", " ")
	if err != nil {
		panic(err) // of maps, strings and numbers
	}
	return string(text) + "\n"
}

// inWire tells whether the pods are in the wire's own network.
func (s *state) inWire() bool { return s.Network == macvlan || s.Network == hostDevice }

// wire is the network that joins host and nodes.
func (s *state) wire() netip.Prefix {
	return netip.PrefixFrom(netip.MustParseAddr(s.HostIP), 24).Masked()
}

// wireHost is an address of the wire's that is a node's to give: its host, moved by 64 for each node.
func (s *state) wireHost(n node, host int) string {
	ip := s.wire().Addr().As4()
	ip[3] = byte(host + 64*slices.Index(s.Nodes, n))
	return netip.AddrFrom4(ip).String()
}
