package netpath

import (
	"errors"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// judge says what of the way is not as it should be.
func (s *Seen) judge(l *looker, v Visit, flow *netlink.ConntrackFlow) {
	s.judgeInterface(l, v)
	s.judgeMTU(v)
	s.judgeNAT(v, flow)
	s.judgeEnd(v)
	s.judgeLoss()
	s.judgeNetworks(l, v)
	if c := s.Conntrack; c != nil && c.Count*10 > c.Max*9 {
		s.find(FullTable, "the table of connections has %d of at most %d entries: new connections are about to be dropped (net.netfilter.nf_conntrack_max)", c.Count, c.Max)
	}
}

func (s *Seen) judgeInterface(l *looker, v Visit) {
	if v.Interface != "" && !slices.ContainsFunc(s.Links, func(k Link) bool { return k.Name == v.Interface }) {
		var names []string
		for _, k := range s.Links {
			names = append(names, k.Name)
		}
		also := ""
		if _, err := l.links.LinkByName(v.Interface); errors.As(err, new(netlink.LinkNotFoundError)) {
			also = ": there is no link " + v.Interface + " here"
		}
		s.find(WrongInterface, "the way is by %s, and not by %s%s", strings.Join(names, " over "), v.Interface, also)
	}
}

func (s *Seen) judgeMTU(v Visit) {
	first := s.Links[0]
	if v.MTU > 0 && first.MTU != v.MTU {
		s.find(WrongMTU, "%s has an MTU of %d bytes, and not of %d", first.Name, first.MTU, v.MTU)
	}
	s.judgeCarried(first)
	for i, k := range s.Links[1:] {
		above := s.Links[i]
		overhead := 0
		if above.Tunnel != nil {
			overhead = above.Tunnel.Overhead
		}
		if above.MTU+overhead > k.MTU {
			s.find(WrongMTU, "%s has an MTU of %d bytes, with %d of its own, and %s below carries %d", above.Name, above.MTU, overhead, k.Name, k.MTU)
		}
	}
	fits := first.MTU
	if s.MTU.Carried > 0 {
		fits = s.MTU.Carried
	}
	if t := s.TCP; t != nil && t.SendMSS > 0 && int(t.SendMSS)+mostHeaders < fits && fits < 60_000 {
		s.find(WrongMTU, "%s has an MTU of %d bytes, and the connection's segments have %d: the server's end, or something on the way (an MSS that is clamped), takes no more", first.Name, first.MTU, t.SendMSS)
	}
}

// mostHeaders is more than IP and TCP usually put before a segment: 20 and 32 bytes with time stamps, 40 and 32 by IPv6.
const mostHeaders = 100

// judgeCarried says where packets that leave here are too large.
func (s *Seen) judgeCarried(first Link) {
	m := s.MTU
	where := strings.Join(m.Narrow(), "; ")
	switch {
	case m.Carried == 0 && where != "":
		s.find(WrongMTU, "%s sends packets of up to %d bytes: %s", first.Name, m.Sent, where)
	case m.Carried > 0 && m.Carried < m.Sent:
		why := "and nothing says so to who sends larger ones: connections that do will stall"
		if m.Told {
			why = "larger ones are sent again as smaller"
		}
		if where != "" {
			why += "; " + where
		}
		s.find(WrongMTU, "%s sends packets of up to %d bytes, and only pings of up to %d are answered; %s", first.Name, m.Sent, m.Carried, why)
	}
}

// judgeNAT holds both ends of the connection as this end knows them against what the server and the table of
// connections say.
func (s *Seen) judgeNAT(v Visit, flow *netlink.ConntrackFlow) {
	if flow != nil {
		if r := flow.Reverse; !r.SrcIP.Equal(flow.Forward.DstIP) || r.SrcPort != flow.Forward.DstPort {
			s.find(NAT, "this machine translates %s to %s: a service's address, or a rule", v.Address, net.JoinHostPort(r.SrcIP.String(), strconv.Itoa(int(r.SrcPort))))
		}
		if r := flow.Reverse; !r.DstIP.Equal(flow.Forward.SrcIP) || r.DstPort != flow.Forward.SrcPort {
			s.find(NAT, "this machine gives its packets the source %s, for %s", net.JoinHostPort(r.DstIP.String(), strconv.Itoa(int(r.DstPort))), flow.Forward.SrcIP)
		}
	}
	if v.Port != "" && v.Port != strconv.Itoa(int(v.Address.Port())) {
		s.find(NAT, "the server listens at port %s, and %s was asked for: a service's port, a proxy or a tunnel is in between", v.Port, v.Address)
	}
	host, port, err := net.SplitHostPort(v.SeenAs)
	if err != nil || s.TCP == nil {
		return
	}
	own := netip.AddrPortFrom(s.TCP.source, s.TCP.port)
	ip, err := netip.ParseAddr(host)
	if err == nil && ip.Unmap() != own.Addr() || port != strconv.Itoa(int(own.Port())) {
		s.find(NAT, "this end is %s, and the server sees %s: the address is translated on the way, or a proxy or a tunnel is in between", own, v.SeenAs)
	}
}

// judgeEnd looks at who answers at the end of the way: another address than was asked for, or somebody behind a
// router that has that address, says that a destination is translated. It shows only where pings are translated
// as the connection is, and not where a port alone is, or the server's end is a proxy.
func (s *Seen) judgeEnd(v Visit) {
	to := v.Address.Addr().Unmap().WithZone("")
	for i, h := range s.MTU.Hops {
		at, err := netip.ParseAddr(h.Address)
		at = at.Unmap().WithZone("")
		switch {
		case err != nil:
		case h.End && at != to:
			s.find(NAT, "at the end of the way to %s answers %s, hop %d: the address is translated, or something on the way answers in its place", to, at, h.Number)
		case at == to && i < len(s.MTU.Hops)-1: // the last may be a server that refuses pings
			s.find(NAT, "hop %d has the address %s, and what answers for it is behind that: the address is translated there", h.Number, to)
		}
	}
}

// lostShare of the segments, and lostLeast of them, have to be sent again before losses are told of: a way that is
// held to a rate loses some as well, until the connection has found it.
const lostShare, lostLeast = 0.04, 50

// judgeLoss tells of packets that are lost on the way, by what had to be sent again.
func (s *Seen) judgeLoss() {
	t := s.TCP
	if t == nil || t.Retrans < lostLeast || float64(t.Retrans) < lostShare*float64(t.Segments) {
		return
	}
	s.find(Loss, "%d of %d segments had to be sent again (%.0f %%): packets are lost on the way, or it carries less than is sent", t.Retrans, t.Segments, 100*float64(t.Retrans)/float64(t.Segments))
}

// judgeNetworks finds other networks that the server could be reached by, and those that are faster than the
// one that is used.
func (s *Seen) judgeNetworks(l *looker, v Visit) {
	if len(v.Others) > 0 {
		s.find(SecondNetwork, "the name has other addresses: %s", join(v.Others))
	}
	if s.Links[0].Name == "lo" { // this machine's own address
		return
	}
	used := s.rate()
	links, err := l.links.LinkList()
	if err != nil {
		s.unseen("the other links", err)
	}
	covers, err := l.covering(v.Address.Addr(), s.Links[0].index)
	if err != nil {
		s.unseen("the routes", err)
	}
	for _, link := range links {
		a := link.Attrs()
		if a.Flags&net.FlagUp == 0 || a.Flags&net.FlagLoopback != 0 || slices.ContainsFunc(s.Links, func(k Link) bool { return k.index == a.Index }) {
			continue
		}
		rate := l.rate(link)
		switch {
		case covers[a.Index]:
			s.find(SecondNetwork, "a route by %s leads to %s as well as the one that is taken, by %s", a.Name, v.Address.Addr(), s.Links[0].Name)
		case used > 0 && rate > used && l.numbered(link):
			s.find(SecondNetwork, "%s carries %s/s, and %s, which is up, %s/s: is the traffic on the wrong network?", s.lowest().Name, RateText(used), a.Name, RateText(rate))
		}
	}
}

func join(list []netip.Addr) string {
	var texts []string
	for _, a := range list {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, ", ")
}

func (s *Seen) lowest() Link { return s.Links[len(s.Links)-1] }

// rate returns the least of the links' that are known; 0 where none is.
func (s *Seen) rate() (least int64) {
	for _, k := range s.Links {
		if k.Rate > 0 && (least == 0 || k.Rate < least) {
			least = k.Rate
		}
	}
	return least
}

// covering returns the links that have a route to an address. Default routes count only where the route that is
// taken, by this link, is one itself: most machines with a second link have one that is not meant for the server.
func (l *looker) covering(to netip.Addr, by int) (map[int]bool, error) {
	byDefault, all := map[int]bool{}, map[int]bool{}
	routes, err := l.links.RouteList(nil, int(family(to)))
	for _, r := range routes {
		links := all
		switch {
		case isDefault(r):
			links = byDefault
		case !r.Dst.Contains(to.AsSlice()):
			continue
		}
		links[r.LinkIndex] = true
		for _, hop := range r.MultiPath {
			links[hop.LinkIndex] = true
		}
	}
	if !all[by] {
		maps.Copy(all, byDefault)
	}
	return all, err
}

func isDefault(r netlink.Route) bool {
	if r.Dst == nil {
		return true
	}
	ones, _ := r.Dst.Mask.Size()
	return ones == 0
}

// numbered tells whether a link has an address that others may use.
func (l *looker) numbered(link netlink.Link) bool {
	list, err := l.links.AddrList(link, unix.AF_UNSPEC)
	return err == nil && slices.ContainsFunc(list, func(a netlink.Addr) bool { return a.IP.IsGlobalUnicast() })
}

// plugins by the links that they make.
var plugins = []struct{ prefix, name string }{
	{"cali", "Calico"}, {"vxlan.calico", "Calico (VXLAN)"}, {"tunl0", "IP in IP"}, {"flannel", "Flannel"}, {"cilium", "Cilium"}, {"lxc", "Cilium"}, {"weave", "Weave"},
	{"kube-bridge", "kube-router"}, {"dummy-kube", "kube-router"}, {"kube-ipvs", "kube-proxy"}, {"docker", "Docker"}, {"cni", "a CNI bridge"}, {"virbr", "libvirt"},
}

// cluster finds out whether this machine is a node, and how services are translated on it.
func (s *Seen) cluster(l *looker) {
	links, err := l.links.LinkList()
	if err != nil {
		s.unseen("network plugins", err)
	}
	for _, link := range links {
		for _, p := range plugins {
			if strings.HasPrefix(link.Attrs().Name, p.prefix) && !slices.Contains(s.Plugins, p.name) {
				s.Plugins = append(s.Plugins, p.name)
			}
		}
	}
	if s.KubeProxy, err = kubeProxy(slices.Contains(s.Plugins, "kube-proxy")); err != nil {
		s.unseen("kube-proxy's rules", err)
	}
}
