package netpath

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Link is one of the links that a path takes on this machine, from the one that the route names down.
type Link struct {
	Name     string   `json:"name"`
	Kind     string   `json:"kind"` // "device" for a network card, "veth", "bridge", "vxlan", ...
	Driver   string   `json:"driver,omitempty"`
	MTU      int      `json:"mtu"`
	Rate     int64    `json:"bits_per_second,omitempty"` // of the card as it is linked, or of a token bucket on it; 0: not known
	Offloads []string `json:"offloads,omitempty"`        // that are on: TSO, GSO, GRO, ...
	XDP      bool     `json:"xdp,omitempty"`             // an eBPF program is attached
	Tunnel   *Tunnel  `json:"tunnel,omitempty"`
	// Elsewhere says that it goes on in another network namespace, where david does not look.
	Elsewhere bool `json:"elsewhere,omitempty"`
	index     int
}

// Tunnel says how a link packs its packets into others.
type Tunnel struct {
	ID       int    `json:"id,omitempty"`
	Port     int    `json:"port,omitempty"`
	Remote   string `json:"remote,omitempty"`
	Overhead int    `json:"overhead"` // bytes
}

// offloads by the kernel's name (net/ethtool/common.c).
var offloads = []struct{ feature, name string }{
	{"tx-tcp-segmentation", "TSO"}, {"tx-generic-segmentation", "GSO"}, {"rx-gro", "GRO"}, {"rx-lro", "LRO"}, {"tx-checksum-ip-generic", "tx-checksum"}, {"rx-checksum", "rx-checksum"},
}

// looker looks at the links of david's own namespace.
type looker struct {
	links *netlink.Handle
	cards *ethtool.Ethtool
}

func newLooker() (*looker, error) {
	links, err := netlink.NewHandle()
	if err != nil {
		return nil, fmt.Errorf("cannot ask the kernel for its links: %w", err)
	}
	cards, err := ethtool.NewEthtool()
	if err != nil {
		links.Close()
		return nil, fmt.Errorf("cannot ask the kernel for its network cards: %w", err)
	}
	return &looker{links, cards}, nil
}

func (l *looker) close() {
	l.links.Close()
	l.cards.Close()
}

// wireguardOverhead are an IPv4 and a UDP header, and 32 bytes of its own.
const wireguardOverhead = ipHeader + 8 + 32

// mostLinks of a path on one machine are enough: a tunnel over a VLAN of a bond of a bridge has five.
const mostLinks = 12

// chain follows a path from the link that the route to an address names down to what carries it.
func (l *looker) chain(index int, next net.IP) (list []Link, err error) {
	for len(list) < mostLinks {
		link, err := l.links.LinkByIndex(index)
		if err != nil {
			return list, fmt.Errorf("cannot look at link %d: %w", index, err)
		}
		one := l.describe(link)
		below, address := l.below(link, next, &one)
		list = append(list, one)
		if below == 0 || slices.ContainsFunc(list, func(k Link) bool { return k.index == below }) {
			return list, nil
		}
		index, next = below, address
	}
	return list, nil
}

func (l *looker) describe(link netlink.Link) Link {
	a := link.Attrs()
	one := Link{Name: a.Name, Kind: link.Type(), MTU: a.MTU, XDP: a.Xdp != nil && a.Xdp.Attached, Rate: l.rate(link), index: a.Index}
	one.Driver, _ = l.cards.DriverName(a.Name) // the loopback interface has none, tunnels may have none
	if on, err := l.cards.Features(a.Name); err == nil {
		for _, o := range offloads {
			if on[o.feature] {
				one.Offloads = append(one.Offloads, o.name)
			}
		}
	}
	return one
}

// rate returns what a link carries at most, in bits/s: what a token bucket lets through, else the card's speed.
// What virtual links say is no speed: a veth has 10 Gbit/s.
func (l *looker) rate(link netlink.Link) int64 {
	if list, err := l.links.QdiscList(link); err == nil {
		for _, q := range list {
			if tbf, ok := q.(*netlink.Tbf); ok {
				return int64(tbf.Rate) * 8
			}
		}
	}
	if kind := link.Type(); kind != "device" && kind != "bond" {
		return 0
	}
	speed, err := l.cards.CmdGet(&ethtool.EthtoolCmd{}, link.Attrs().Name) // GetLinkSettings prints
	if err != nil || speed >= 1<<31 {                                      // not known
		return 0
	}
	return int64(speed) * 1_000_000
}

// below finds the link that carries another one, and the address that it has to reach; 0 where there is none
// in this namespace.
func (l *looker) below(link netlink.Link, next net.IP, one *Link) (index int, address net.IP) {
	a := link.Attrs()
	switch t := link.(type) {
	case *netlink.Vxlan:
		one.Tunnel = &Tunnel{ID: t.VxlanId, Port: t.Port, Overhead: vxlanOverhead}
		return l.outer(a.Index, next, t.Group, one.Tunnel)
	case *netlink.Geneve:
		one.Tunnel = &Tunnel{ID: int(t.ID), Port: int(t.Dport), Overhead: vxlanOverhead}
		return l.outer(a.Index, next, t.Remote, one.Tunnel)
	case *netlink.Iptun:
		one.Tunnel = &Tunnel{Overhead: ipHeader}
		return l.outer(a.Index, next, t.Remote, one.Tunnel)
	case *netlink.Wireguard:
		one.Tunnel = &Tunnel{Overhead: wireguardOverhead}
		return 0, nil
	case *netlink.Bridge:
		return l.port(a.Index, next), next
	case *netlink.Veth:
		one.Elsewhere = true
		return 0, nil
	}
	if a.ParentIndex != 0 && a.ParentIndex != a.Index { // macvlan, ipvlan, vlan
		if one.Elsewhere = a.NetNsID >= 0; one.Elsewhere {
			return 0, nil
		}
		return a.ParentIndex, next
	}
	return 0, nil
}

// outer finds the link that a tunnel's packets to an inner address leave by: to the other end that its
// forwarding table has for the neighbour, else to its only one.
func (l *looker) outer(index int, next, only net.IP, t *Tunnel) (int, net.IP) {
	remote := only
	if mac := l.neighbour(index, next); mac != nil {
		table, err := l.links.NeighList(index, unix.AF_BRIDGE)
		for _, e := range table {
			if err == nil && bytes.Equal(e.HardwareAddr, mac) && e.IP != nil {
				remote = e.IP
			}
		}
	}
	if remote == nil || remote.IsUnspecified() {
		return 0, nil
	}
	t.Remote = remote.String()
	if remote.To4() == nil {
		t.Overhead += ip6Header - ipHeader
	}
	routes, err := l.links.RouteGet(remote)
	if err != nil || len(routes) == 0 {
		return 0, nil
	}
	if gw := routes[0].Gw; gw != nil {
		remote = gw
	}
	return routes[0].LinkIndex, remote
}

// port finds the port of a bridge that an address is behind; 0 where that is not known.
func (l *looker) port(bridge int, next net.IP) int {
	mac := l.neighbour(bridge, next)
	links, err := l.links.LinkList()
	if err != nil || mac == nil {
		return 0
	}
	for _, link := range links {
		if link.Attrs().MasterIndex != bridge {
			continue
		}
		table, err := l.links.NeighList(link.Attrs().Index, unix.AF_BRIDGE)
		for _, e := range table {
			if err == nil && bytes.Equal(e.HardwareAddr, mac) {
				return link.Attrs().Index
			}
		}
	}
	return 0
}

// neighbour returns the hardware address that an address has on a link; nil where that is not known.
func (l *looker) neighbour(index int, next net.IP) net.HardwareAddr {
	list, err := l.links.NeighList(index, unix.AF_UNSPEC)
	for _, n := range list {
		if err == nil && n.IP.Equal(next) && len(n.HardwareAddr) > 0 {
			return n.HardwareAddr
		}
	}
	return nil
}

// counted returns the bytes that every link has received and sent, by its number.
func (l *looker) counted() (map[int][2]uint64, error) {
	list, err := l.links.LinkList()
	if err != nil {
		return nil, fmt.Errorf("cannot read the links' counters: %w", err)
	}
	all := map[int][2]uint64{}
	for _, link := range list {
		if s := link.Attrs().Statistics; s != nil {
			all[link.Attrs().Index] = [2]uint64{s.RxBytes, s.TxBytes}
		}
	}
	if len(all) == 0 {
		return nil, errors.New("the kernel counts nothing of its links")
	}
	return all, nil
}
