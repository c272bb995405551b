package netpath

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"david/internal/mysqld"
)

// Visit is a server that is to be looked at from here, with what is known of it and expected of the way.
type Visit struct {
	Address netip.AddrPort
	// Talk has the server send and take at least Bytes, over a connection that is open; nil where david cannot
	// log in.
	Talk func(ctx context.Context) error
	// SeenAs is this end of that connection as the server sees it, HOST:PORT; "" where it did not say.
	SeenAs string
	Port   string // that the server says it listens at; "" where it did not say
	// Unheard says why logging in to a server that takes connections came to no end: what is larger than a few
	// hundred bytes may not come through. nil where it is not so.
	Unheard error
	TLS     string // of that connection: "TLSv1.3 (...)", "none"; "" where there is no connection
	// Others are further addresses of the same name.
	Others []netip.Addr
	// Interface and MTU are what the user expects: a link of the way, and what it carries in bytes; "" and 0 for
	// nothing.
	Interface string
	MTU       int
}

// Bytes are talked each way, so that the links' own counters tell which of them carried that.
const Bytes = 4 << 20

// Seen is what a way to a server consists of.
type Seen struct {
	Address    string     `json:"address"`
	Source     string     `json:"source"` // this end's address
	Route      string     `json:"route"`
	Links      []Link     `json:"links"`
	MTU        MTU        `json:"mtu"`
	TCP        *TCP       `json:"tcp,omitempty"`
	Congestion string     `json:"congestion_control"`
	TLS        string     `json:"tls,omitempty"`
	Conntrack  *Conntrack `json:"conntrack,omitempty"`
	KubeProxy  string     `json:"kube_proxy,omitempty"` // its mode
	Plugins    []string   `json:"plugins,omitempty"`    // network plugins whose links are here
	// Verified tells whether the links' own counters show that they carried what was talked; false where nothing
	// could be.
	Verified bool      `json:"verified"`
	Findings []Finding `json:"findings"`
	// Unseen says what could not be looked at, and why: nothing is found of that.
	Unseen []string `json:"unseen,omitempty"`
}

// TCP is what the kernel says of the connection after what was talked.
type TCP struct {
	SendMSS    uint32 `json:"send_mss"`    // bytes of a segment that this end sends
	ReceiveMSS uint32 `json:"receive_mss"` // and that the server was seen to send
	RTT        uint32 `json:"rtt_us"`      // smoothed, microseconds
	Retrans    uint32 `json:"retransmits"`
	Segments   uint32 `json:"segments"` // that this end sent, those that were sent again among them
	port       uint16
	source     netip.Addr
}

// Conntrack is how full the kernel's table of connections is.
type Conntrack struct {
	Count   int  `json:"count"`
	Max     int  `json:"max"`
	Tracked bool `json:"tracked"` // this connection is in it
}

// What findings are about.
const (
	WrongInterface = "interface"
	WrongMTU       = "mtu"
	NAT            = "nat"
	SecondNetwork  = "second network"
	Asymmetric     = "asymmetric"
	FullTable      = "conntrack"
	NoLogin        = "login"
	Stalled        = "stalled"
	Loss           = "loss"
	PodNetwork     = "pod network"
)

// Finding is something of a way that is not as it should be, or that one would not expect.
type Finding struct {
	What string `json:"what"`
	Text string `json:"text"`
}

// Inspect looks at the way to a server: what the kernel says of it, and what is seen when it is used.
func Inspect(ctx context.Context, v Visit) (s Seen, err error) {
	l, err := newLooker()
	if err != nil {
		return s, err
	}
	defer l.close()
	s = Seen{Address: v.Address.String(), TLS: v.TLS, Congestion: congestion(), Findings: []Finding{}}
	route, err := routeTo(v.Address)
	if err != nil {
		return s, err
	}
	next := net.IP(v.Address.Addr().AsSlice())
	if route.Gw != nil {
		next = route.Gw
	}
	before, err := l.counted()
	if err == nil {
		err = s.talk(ctx, v)
	}
	if err != nil {
		return s, err
	}
	after, err := l.counted()
	if err != nil {
		return s, err
	}
	if s.Links, err = l.chain(route.LinkIndex, next); err != nil { // after the talk: neighbours are known now
		return s, err
	}
	s.Source, s.Route = route.Src.String(), l.routeText(route)
	s.MTU = probeMTU(ctx, v.Address.Addr(), s.Links[0].MTU)
	s.connection(l, v.Address)
	s.cluster(l)
	flow := s.tracked(l, v.Address)
	if v.Unheard != nil {
		also := ""
		if s.MTU.Carried == 0 {
			also = "; a way that loses large packets looks like this, and whether this one does is not known: " + s.MTU.Why
		}
		s.find(NoLogin, "the server takes connections, and logging in did not come to an end: %s%s", v.Unheard, also)
	}
	s.judge(l, v, flow)
	if v.Talk != nil {
		s.verify(l, before, after)
	}
	return s, nil
}

func (s *Seen) find(what, format string, args ...any) {
	s.Findings = append(s.Findings, Finding{what, fmt.Sprintf(format, args...)})
}

func (s *Seen) unseen(what string, err error) {
	s.Unseen = append(s.Unseen, fmt.Sprintf("%s: %s", what, err))
}

// talk uses the connection, and finds where what is sent does not arrive. The error is what the server
// answered, or that the caller gave up.
func (s *Seen) talk(ctx context.Context, v Visit) error {
	if v.Talk == nil {
		return nil
	}
	err := v.Talk(ctx)
	if err == nil || ctx.Err() != nil || mysqld.Number(err) != 0 {
		return err
	}
	s.find(Stalled, "what is sent does not all arrive: %s", err)
	return nil
}

func congestion() string {
	b, err := os.ReadFile("/proc/sys/net/ipv4/tcp_congestion_control")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

func (l *looker) routeText(r netlink.Route) string {
	link, err := l.links.LinkByIndex(r.LinkIndex)
	if err != nil {
		return ""
	}
	text := "by " + link.Attrs().Name
	if r.Gw != nil {
		text += " to the gateway " + r.Gw.String()
	}
	return text
}

// family is the kernel's number of a kind of addresses.
func family(a netip.Addr) uint8 {
	if a.Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}

// connection notes what the kernel says of the busiest connection to an address.
func (s *Seen) connection(l *looker, to netip.AddrPort) {
	list, err := l.links.SocketDiagTCPInfo(family(to.Addr()))
	if err != nil {
		s.unseen("the connection", err)
	}
	most := uint64(0)
	for _, one := range list {
		if one.InetDiagMsg == nil || one.TCPInfo == nil {
			continue
		}
		id, info := one.InetDiagMsg.ID, one.TCPInfo
		if !id.Destination.Equal(to.Addr().AsSlice()) || id.DestinationPort != to.Port() || s.TCP != nil && info.Bytes_received < most {
			continue
		}
		source, _ := netip.AddrFromSlice(id.Source)
		most = info.Bytes_received
		s.TCP = &TCP{SendMSS: info.Snd_mss, ReceiveMSS: info.Rcv_mss, RTT: info.Rtt, Retrans: info.Total_retrans, Segments: info.Segs_out, port: id.SourcePort, source: source.Unmap()}
	}
}

// verify holds the links' counters against what was talked.
func (s *Seen) verify(l *looker, before, after map[int][2]uint64) {
	grown := func(index, way int) uint64 { return after[index][way] - before[index][way] }
	s.Verified = true
	for i, link := range s.Links {
		received, sent := grown(link.index, 0), grown(link.index, 1)
		if received >= Bytes/2 && sent >= Bytes/2 {
			continue
		}
		if s.Verified = false; i > 0 { // a tunnel's packets may be another's
			continue
		}
		for _, index := range slices.Sorted(maps.Keys(after)) {
			other, err := l.links.LinkByIndex(index)
			if err != nil || slices.ContainsFunc(s.Links, func(k Link) bool { return k.index == index }) {
				continue
			}
			if received < Bytes/2 && grown(index, 0) >= Bytes/2 && sent >= Bytes/2 {
				s.find(Asymmetric, "%d MiB were asked for by %s, and the answers came in by %s", Bytes>>20, link.Name, other.Attrs().Name)
			}
			if sent < Bytes/2 && grown(index, 1) >= Bytes/2 {
				s.find(WrongInterface, "the route says %s, and what was sent left by %s", link.Name, other.Attrs().Name)
			}
		}
	}
}

// tracked reads the table of connections, and finds this one's entry in it; nil where there is none.
func (s *Seen) tracked(l *looker, to netip.AddrPort) *netlink.ConntrackFlow {
	count, err1 := number("/proc/sys/net/netfilter/nf_conntrack_count")
	most, err2 := number("/proc/sys/net/netfilter/nf_conntrack_max")
	if errors.Join(err1, err2) != nil || most == 0 {
		return nil
	}
	s.Conntrack = &Conntrack{Count: count, Max: most}
	if s.TCP == nil {
		return nil
	}
	flows, err := l.links.ConntrackTableList(netlink.ConntrackTable, netlink.InetFamily(family(to.Addr())))
	if err != nil {
		s.unseen("the table of connections", err)
		return nil
	}
	for _, f := range flows {
		if f.Forward.Protocol == unix.IPPROTO_TCP && f.Forward.SrcPort == s.TCP.port && f.Forward.DstPort == to.Port() && f.Forward.DstIP.Equal(to.Addr().AsSlice()) {
			s.Conntrack.Tracked = true
			return f
		}
	}
	return nil
}

func number(file string) (int, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}
