package netpath

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// inspected is a real server that several paths lead to.
type inspected struct {
	*testing.T
	net  *Net
	port string
	tls  mysqld.TLS
}

// inspecting builds paths to a MariaDB.
func inspecting(t *testing.T, texts ...string) inspected {
	t.Helper()
	asRoot(t)
	n, _ := built(t, texts...)
	s := testserver.StartInside(t, mycnf.MariaDB, n.Server.Do, "--bind-address=0.0.0.0", "--skip-name-resolve", "--max-allowed-packet=16M")
	s.Exec("CREATE USER 'anywhere'@'%' IDENTIFIED BY 'x'")
	address := s.TCP("anywhere").Address
	return inspected{T: t, net: n, port: address[strings.LastIndexByte(address, ':')+1:]}
}

// look logs in from the client's namespace, and inspects the way to an address.
func (i inspected) look(to netip.Addr, expect func(*Visit)) (s Seen) {
	i.Helper()
	ctx := context.Background()
	port, err := strconv.ParseUint(i.port, 10, 16)
	if err != nil {
		i.Fatal(err)
	}
	v := Visit{Address: netip.AddrPortFrom(to, uint16(port))}
	err = i.net.Client.Do(func() error {
		if expect != nil {
			expect(&v)
		}
		if v.Unheard != nil {
			s, err = Inspect(ctx, v)
			return err
		}
		conn, err := mysqld.Open(ctx, mysqld.Addr{Network: "tcp", Address: v.Address.String(), User: "anywhere", Password: "x", TLS: i.tls})
		if err != nil {
			return err
		}
		defer conn.Close()
		one, err := conn.Single(ctx)
		if err != nil {
			return err
		}
		defer one.Close()
		if err := v.Ask(ctx, one); err != nil {
			return err
		}
		s, err = Inspect(ctx, v)
		return err
	})
	if err != nil {
		i.Fatal(err)
	}
	return s
}

// named tells whether something was found of a kind.
func (s Seen) named(what string) bool {
	return slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.What == what })
}

// server returns the server's address of the path with a number, from 1.
func server(id int) netip.Addr { return builder{id: byte(id)}.address(serverHost) }

// TestInspectClean: of paths as they should be nothing is found, and the links are those that carried what was
// sent.
func TestInspectClean(t *testing.T) {
	kinds := []string{Host, Routed, Bridge, Vxlan, Macvlan, UDP, "host:rate=1g"}
	i := inspecting(t, kinds...)
	for n, kind := range kinds {
		s := i.look(server(n+1), nil)
		first := s.Links[0]
		if len(s.Findings) > 0 || len(s.Unseen) > 0 || !s.Verified || first.Name != fmt.Sprintf("path%d", n+1) || s.MTU.Carried != first.MTU || s.TCP == nil || s.TLS == "" || s.Congestion == "" {
			t.Errorf("%s: %+v", kind, s)
		}
		if mtu := map[string]int{Vxlan: 1450, UDP: 1472}[kind]; first.MTU != cmp.Or(mtu, 1500) {
			t.Errorf("%s has an MTU of %d", kind, first.MTU)
		}
		if rate := map[bool]int64{true: 1e9}[kind == "host:rate=1g"]; first.Rate != rate {
			t.Errorf("%s: %d bits/s", kind, first.Rate)
		}
	}
}

// TestInspectHere: nothing is found of the way to this machine itself, by the loopback address or another.
func TestInspectHere(t *testing.T) {
	asRoot(t)
	n, _ := built(t, Host)
	for _, to := range []netip.Addr{netip.MustParseAddr("127.0.0.1"), server(1)} {
		err := n.Server.Do(func() error {
			s, err := Inspect(context.Background(), Visit{Address: netip.AddrPortFrom(to, 3306)})
			if len(s.Findings) > 0 || err == nil && (s.Links[0].Name != "lo" || s.MTU.Carried != 65535) {
				t.Errorf("%s: %+v", to, s)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// rounds is how often each fault is planted: DAVID_PLANTS, else few.
func rounds(t *testing.T) int {
	text := os.Getenv("DAVID_PLANTS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// plant is a fault of the path with a number, what is to be found of it, and what is to be said.
type plant struct {
	to         int
	what, says string
	expect     func(*Visit)
	undo       func() error
}

// TestInspectPlanted: a fault that is planted is named each time, by its kind.
func TestInspectPlanted(t *testing.T) {
	i := inspecting(t, "host:rate=1g", Host, Routed, Bridge, "host:rate=10g")
	const slow, plain, routed, bridged, fast = 1, 2, 3, 4, 5
	n := i.net
	routers, bridges := n.nodes[:2], n.nodes[2:4]
	r := rand.New(rand.NewPCG(7, uint64(os.Getpid())))
	b := builder{id: routed}
	first := b.address(clientGateway).String()
	elsewhere := netip.MustParseAddr("198.51.100.7") // nobody's
	asked := func(v *Visit) { v.Address = netip.AddrPortFrom(elsewhere, v.Address.Port()) }
	narrow := fmt.Sprintf("between hop 1 (%s) and hop 2 (%s)", first, b.address(wireServerNode))
	for name, plant := range map[string]func() plant{
		"a wire's smaller MTU, which routers tell of": func() plant {
			mtu := 576 + r.IntN(900)
			one, other := changedMTU(t, routers[0], wire, mtu), changedMTU(t, routers[1], wire, mtu)
			return plant{routed, WrongMTU, narrow + " " + strconv.Itoa(mtu) + " bytes are carried, says " + first, nil, func() error { return errors.Join(one(), other(), routesForgotten(n)) }}
		},
		"a wire's smaller MTU, which no router tells of": func() plant {
			mtu := 576 + r.IntN(900)
			undo := []func() error{changedMTU(t, routers[0], wire, mtu), changedMTU(t, routers[1], wire, mtu), speechless(t, routers[0]), speechless(t, routers[1])}
			return plant{routed, WrongMTU, narrow + " larger packets than " + strconv.Itoa(mtu) + " bytes are lost without a word", notHeard, undone(append(undo, func() error { return routesForgotten(n) })...)}
		},
		"a router's end that drops without a word": func() plant {
			node, mtu := routers[r.IntN(2)], 576+r.IntN(900)
			undo := changedMTU(t, node, wire, mtu)
			return plant{routed, WrongMTU, "", notHeard, func() error { return errors.Join(undo(), routesForgotten(n)) }}
		},
		"a bridge port that drops without a word": func() plant {
			node, mtu := bridges[r.IntN(2)], 576+r.IntN(900)
			return plant{bridged, WrongMTU, "", notHeard, changedMTU(t, node, wire, mtu)}
		},
		"not the MTU that is expected": func() plant {
			return plant{plain, WrongMTU, "", func(v *Visit) { v.MTU = 9000 }, nil}
		},
		"NAT on the way": func() plant {
			return plant{routed, NAT, "", nil, masqueraded(t, routers[r.IntN(2)])}
		},
		"NAT here": func() plant {
			return plant{routed, NAT, "", nil, masqueraded(t, n.Client)}
		},
		"the slower of two networks": func() plant {
			return plant{slow, SecondNetwork, "", nil, nil}
		},
		"two routes": func() plant {
			return plant{plain, SecondNetwork, "", nil, routedBy(t, n.Client, server(plain), 16+r.IntN(8), fmt.Sprintf("path%d", bridged))}
		},
		"an interface that is not there": func() plant {
			return plant{plain, WrongInterface, "there is no link eth7 here", func(v *Visit) { v.Interface = "eth7" }, nil}
		},
		"a client's end that takes no large packets": func() plant {
			mtu := 576 + r.IntN(900)
			undo := changedMTU(t, routers[0], pod, mtu)
			return plant{routed, WrongMTU, "between here and hop 1 (" + first + ") larger packets than " + strconv.Itoa(mtu+4) + " bytes are lost without a word", notHeard, func() error { return errors.Join(undo(), routesForgotten(n)) }}
		},
		"another interface than is expected": func() plant {
			return plant{plain, WrongInterface, "", func(v *Visit) { v.Interface = "path4" }, nil}
		},
		"a route by another interface": func() plant {
			return plant{plain, WrongInterface, "", func(v *Visit) { v.Interface = "path2" }, routedBy(t, n.Client, server(plain), 32, fmt.Sprintf("path%d", fast))}
		},
		"answers by another interface": func() plant {
			return plant{plain, Asymmetric, "", nil, routedBy(t, n.Server, builder{id: plain}.address(clientHost), 32, fmt.Sprintf("path%d", fast))}
		},
		"an address that a router translates": func() plant {
			return plant{routed, NAT, "the address is translated there", asked, undone(gated(t, n, routed, elsewhere, 32), translated(t, routers[0], elsewhere, server(routed)))}
		},
		"two default routes": func() plant {
			return plant{routed, SecondNetwork, "a route by path1 leads to", asked, undone(gated(t, n, routed, elsewhere, 0), translated(t, routers[0], elsewhere, server(routed)), slower(t, n.Client, "path1"))}
		},
		"a rule for the server's port": func() plant {
			return plant{plain, WrongInterface, "the way is by path5", func(v *Visit) { v.Interface = "path2" }, ruled(t, n.Client, i.port, server(plain), fmt.Sprintf("path%d", fast))}
		},
		"packets that are lost": func() plant { // of a veth, which carries up to 64 KiB at a time: 4 MiB are few of them
			return plant{plain, Loss, "segments had to be sent again", nil, planted(t, n.Server, nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter, drop(slices.Concat(ofProtocol(unix.IPPROTO_TCP), oneOf(8)))...)}
		},
		"segments that are clamped": func() plant {
			return plant{routed, WrongMTU, "an MSS that is clamped", nil, planted(t, routers[r.IntN(2)], nftables.ChainTypeFilter, nftables.ChainHookForward, nftables.ChainPriorityFilter, clamped(500+r.Uint32N(500))...)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			i.T = t
			for range rounds(t) {
				p := plant()
				s := i.look(server(p.to), p.expect)
				if !s.named(p.what) || !strings.Contains(fmt.Sprint(s.Findings), p.says) {
					t.Errorf("%s %s is not named: %+v", p.what, p.says, s)
				}
				if p.undo != nil {
					if err := p.undo(); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
	i.T = t
	if s := i.look(server(plain), nil); len(s.Findings) > 0 { // all was undone
		t.Errorf("%+v", s)
	}
}

// TestTunnelOverhead: a tunnel's packets are larger by an IPv6 header where its other end has such an address.
func TestTunnelOverhead(t *testing.T) {
	asRoot(t)
	n, _ := built(t, Host)
	err := n.Client.Do(func() error {
		l, err := newLooker()
		if err != nil {
			return err
		}
		defer l.close()
		for remote, want := range map[string]int{server(1).String(): 50, "2001:db8::1": 70} {
			link := &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: "tunnel"}, VxlanId: 7, Port: 4789, Group: net.ParseIP(remote)}
			if err := l.links.LinkAdd(link); err != nil {
				return err
			}
			var one Link
			if l.below(link, nil, &one); one.Tunnel.Overhead != want || one.Tunnel.Remote != remote {
				t.Errorf("%s: %+v", remote, one.Tunnel)
			}
			if err := l.links.LinkDel(link); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestInspectStalled: of a way that lets a login through and loses what is larger it is said that it does, and
// why, within seconds.
func TestInspectStalled(t *testing.T) {
	i := inspecting(t, Host)
	i.tls.Mode = "DISABLED" // no certificate, which is large
	const most = 1000
	undo := planted(t, i.net.Server, nftables.ChainTypeFilter, nftables.ChainHookInput, nftables.ChainPriorityFilter,
		drop(longer(most))...)
	s := i.look(server(1), nil)
	if text := fmt.Sprint(s.Findings); !strings.Contains(text, "256 KiB each way had not arrived after 6s") || len(text) > 1000 {
		t.Errorf("%.1000s", text)
	}
	if !s.named(Stalled) || !s.named(WrongMTU) || s.Verified || s.MTU.Carried != most {
		t.Errorf("%+v", s)
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
}

// speechless has a router not say that packets are too large.
func speechless(t *testing.T, n *Namespace) (undo func() error) {
	t.Helper()
	return planted(t, n, nftables.ChainTypeFilter, nftables.ChainHookOutput, nftables.ChainPriorityFilter, drop(ofProtocol(unix.IPPROTO_ICMP, unreachable, fragmentationNeeded))...)
}

// notHeard is of a way on which a login, whose certificate is large, does not come through.
func notHeard(v *Visit) { v.Unheard = mysqld.ErrUnreachable }

// longer matches packets of more bytes.
func longer(most uint32) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyLEN, Register: 1},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Op: expr.CmpOpGt, Register: 1, Data: binary.BigEndian.AppendUint32(nil, most)}}
}

// ofProtocol matches packets of a protocol over IP that begin with these bytes.
func ofProtocol(protocol byte, begins ...byte) []expr.Any {
	rule := []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}}}
	if len(begins) > 0 {
		rule = append(rule, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Len: uint32(len(begins))}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: begins})
	}
	return rule
}

func drop(match []expr.Any) []expr.Any { return append(match, &expr.Verdict{Kind: expr.VerdictDrop}) }

// routesForgotten has both ends forget the smaller MTUs that they were told.
func routesForgotten(n *Net) error {
	return errors.Join(n.Client.set("ipv4/route/flush", "1"), n.Server.set("ipv4/route/flush", "1"))
}

// changedMTU gives a link another MTU.
func changedMTU(t *testing.T, n *Namespace, name string, mtu int) (undo func() error) {
	t.Helper()
	link, err := n.links.LinkByName(name)
	if err == nil {
		err = n.links.LinkSetMTU(link, mtu)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return n.links.LinkSetMTU(link, link.Attrs().MTU) }
}

// routedBy adds a route to the network of so many bits that an address is in, by way of a link.
func routedBy(t *testing.T, n *Namespace, to netip.Addr, bits int, name string) (undo func() error) {
	t.Helper()
	link, err := n.links.LinkByName(name)
	if err != nil {
		t.Fatal(err)
	}
	prefix := netip.PrefixFrom(to, bits).Masked()
	_, dst, err := net.ParseCIDR(prefix.String())
	if err != nil {
		t.Fatal(err)
	}
	route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: dst, Scope: netlink.SCOPE_LINK}
	if err := n.links.RouteAdd(route); err != nil {
		t.Fatal(err)
	}
	return func() error { return n.links.RouteDel(route) }
}

// undone undoes several plants.
func undone(list ...func() error) (undo func() error) {
	return func() (err error) {
		for _, one := range list {
			err = errors.Join(err, one())
		}
		return err
	}
}

// added adds a route to a namespace.
func added(t *testing.T, n *Namespace, name string, route netlink.Route) (undo func() error) {
	t.Helper()
	link, err := n.links.LinkByName(name)
	if err == nil {
		route.LinkIndex = link.Attrs().Index
		err = n.links.RouteAdd(&route)
	}
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return n.links.RouteDel(&route) }
}

// network is that of so many bits that an address is in.
func network(to netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: netip.PrefixFrom(to, bits).Masked().Addr().AsSlice(), Mask: net.CIDRMask(bits, to.BitLen())}
}

// gated has the client reach an address by the gateway of a path.
func gated(t *testing.T, n *Net, path int, to netip.Addr, bits int) (undo func() error) {
	t.Helper()
	return added(t, n.Client, fmt.Sprintf("path%d", path), netlink.Route{Dst: network(to, bits), Gw: builder{id: byte(path)}.address(clientGateway).AsSlice()})
}

// slower adds a default route that is not taken, as it costs more.
func slower(t *testing.T, n *Namespace, name string) (undo func() error) {
	t.Helper()
	return added(t, n, name, netlink.Route{Dst: network(netip.IPv4Unspecified(), 0), Scope: netlink.SCOPE_LINK, Priority: 200})
}

// ruled has what goes to a port of an address by TCP leave by a link.
func ruled(t *testing.T, n *Namespace, port string, to netip.Addr, name string) (undo func() error) {
	t.Helper()
	const table = 77
	way := added(t, n, name, netlink.Route{Dst: network(to, 32), Scope: netlink.SCOPE_LINK, Table: table})
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	rule := netlink.NewRule()
	rule.Family, rule.Table, rule.IPProto, rule.Dport = netlink.FAMILY_V4, table, unix.IPPROTO_TCP, netlink.NewRulePortRange(uint16(number), uint16(number))
	if err := n.links.RuleAdd(rule); err != nil {
		t.Fatal(err)
	}
	return func() error { return errors.Join(n.links.RuleDel(rule), way()) }
}

// translated gives what goes to an address by a router another one.
func translated(t *testing.T, n *Namespace, from, to netip.Addr) (undo func() error) {
	t.Helper()
	return planted(t, n, nftables.ChainTypeNAT, nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest,
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: 16, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: from.AsSlice()},
		&expr.Immediate{Register: 1, Data: to.AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1})
}

// oneOf matches one of so many packets, by chance.
func oneOf(packets uint32) []expr.Any {
	return []expr.Any{&expr.Numgen{Register: 1, Modulus: packets, Type: unix.NFT_NG_RANDOM}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: make([]byte, 4)}}
}

// clamped sets what both ends say that they take of a segment.
func clamped(bytes uint32) []expr.Any {
	return append(ofProtocol(unix.IPPROTO_TCP), &expr.Immediate{Register: 1, Data: binary.BigEndian.AppendUint16(nil, uint16(bytes))},
		&expr.Exthdr{SourceRegister: 1, Type: 2, Offset: 2, Len: 2, Op: expr.ExthdrOpTcpopt})
}

// masqueraded gives what leaves a namespace by TCP another source.
func masqueraded(t *testing.T, n *Namespace) (undo func() error) {
	t.Helper()
	return planted(t, n, nftables.ChainTypeNAT, nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource,
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_TCP}},
		&expr.Masq{FullyRandom: true})
}

// planted gives a namespace a rule for IPv4.
func planted(t *testing.T, n *Namespace, kind nftables.ChainType, hook *nftables.ChainHook, first *nftables.ChainPriority, rule ...expr.Any) (undo func() error) {
	t.Helper()
	return plantedIn(t, n, nftables.TableFamilyIPv4, kind, hook, first, rule...)
}

func plantedIn(t *testing.T, n *Namespace, of nftables.TableFamily, kind nftables.ChainType, hook *nftables.ChainHook, first *nftables.ChainPriority, rule ...expr.Any) (undo func() error) {
	t.Helper()
	var table *nftables.Table
	change := func(do func(c *nftables.Conn)) error {
		c, err := nftables.New(nftables.WithNetNSFd(int(n.fd)))
		if err != nil {
			return err
		}
		do(c)
		return c.Flush()
	}
	err := change(func(c *nftables.Conn) {
		table = c.AddTable(&nftables.Table{Family: of, Name: fmt.Sprintf("planted%d", *hook)})
		chain := c.AddChain(&nftables.Chain{Name: "planted", Table: table, Type: kind, Hooknum: hook, Priority: first})
		c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: rule})
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() error { return change(func(c *nftables.Conn) { c.DelTable(table) }) }
}

// TestJudgeEnd: another address at the end says that a destination is translated, and a server that refuses pings does not.
func TestJudgeEnd(t *testing.T) {
	router, to, other := "10.0.0.1", "10.0.1.2", "10.0.2.2"
	for name, c := range map[string]struct {
		hops []Hop
		want bool
	}{
		"as asked for":             {[]Hop{{Number: 1, Address: router}, {Number: 2, Address: to, End: true}}, false},
		"another at the end":       {[]Hop{{Number: 1, Address: router}, {Number: 2, Address: other, End: true}}, true},
		"the address on the way":   {[]Hop{{Number: 1, Address: to}, {Number: 2, Address: to, End: true}}, true},
		"the server refuses pings": {[]Hop{{Number: 1, Address: router}, {Number: 2, Address: to}}, false},
		"nobody answers":           {[]Hop{{Number: 1}, {Number: 2, Address: to, End: true}}, false},
	} {
		s := Seen{MTU: MTU{Hops: c.hops}}
		if s.judgeEnd(Visit{Address: netip.MustParseAddrPort(to + ":3306")}); s.named(NAT) != c.want {
			t.Errorf("%s: %+v", name, s.Findings)
		}
	}
}
