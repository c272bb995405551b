package netpath

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"david/internal/result"
)

// Net is the network of a comparison: a client's and a server's namespace, and for each path the nodes in
// between.
type Net struct {
	Client, Server *Namespace
	CPUs           float64 // that a quota leaves david; 0: all that it may run on
	nodes          []*Namespace
	ways           map[result.Path]Way
	forwarders     []*forwarder
	watch          *watch
	cni            *cni // where a path takes them
}

// Way says how a path is gone: from where, and to which of the server's addresses.
type Way struct {
	From    *Namespace
	Address netip.Addr // of the server; invalid for its unix socket
	link    string     // in the client's and the server's namespace
	nodes   []*Namespace
}

// MostPaths can be built: they are told apart by a byte of their addresses.
const MostPaths = 250

// Build builds paths. All of them lead to one server's namespace, each to an address of its own out of
// 198.18.0.0/15, which is set aside for measuring networks (RFC 2544). Paths of CNI's plugins take the folders where these are.
func Build(paths []result.Path, folders ...string) (n *Net, err error) {
	n = &Net{ways: map[result.Path]Way{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
			n = nil
		}
	}()
	if len(paths) > MostPaths {
		return n, fmt.Errorf("%w: more than %d paths", ErrInput, MostPaths)
	}
	if n.Client, err = newNamespace(); err != nil {
		return n, err
	}
	if n.Server, err = newNamespace(); err != nil {
		return n, err
	}
	if slices.ContainsFunc(paths, func(p result.Path) bool { return pluginOf(p) != "" }) {
		if n.cni, err = newCNI(folders); err != nil {
			return n, err
		}
	}
	for i, p := range paths {
		before := len(n.nodes)
		way, err := n.build(p, byte(i+1))
		if err != nil {
			return n, fmt.Errorf("cannot build the path %s: %w", Name(p), err)
		}
		way.nodes = n.nodes[before:]
		n.ways[p] = way
	}
	return n, n.watched()
}

// Way returns how one of the paths is gone.
func (n *Net) Way(p result.Path) Way { return n.ways[p] }

// Close takes the network down, once no process is in it.
func (n *Net) Close() (err error) {
	if n.watch != nil {
		close(n.watch.done)
	}
	for _, f := range n.forwarders {
		err = errors.Join(err, f.close())
	}
	if n.cni != nil {
		err = errors.Join(err, n.cni.close())
	}
	for _, ns := range append(n.nodes, n.Client, n.Server) {
		if ns != nil {
			err = errors.Join(err, ns.Close())
		}
	}
	return err
}

func (n *Net) build(p result.Path, id byte) (Way, error) {
	b := builder{net: n, path: p, id: id, name: fmt.Sprintf("path%d", id)}
	way := Way{From: n.Client, Address: b.address(serverHost), link: b.name}
	switch p.Kind {
	case Unix:
		return Way{From: n.Server}, nil
	case Loopback:
		return Way{From: n.Server, Address: netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	case Host:
		return way, b.host()
	case Routed:
		_, err := b.routed()
		return way, err
	case Service:
		way.Address = b.service()
		return way, b.translated()
	case Bridge:
		return way, b.bridged()
	case Vxlan:
		return way, b.vxlan()
	case Macvlan:
		return way, b.macvlan()
	case UDP:
		return way, b.userspace()
	case BridgeCNI, PtpCNI, MacvlanCNI, HostDeviceCNI:
		return way, b.plugged()
	}
	return way, fmt.Errorf("%w: %s", ErrInput, p.Kind)
}

// The hosts of a path's /24: the ends, and the nodes in three parts of it where they route.
const (
	clientHost     = 1   // 0-63: the client's pods
	clientGateway  = 62  //
	wireClientNode = 129 // 128-191: the wire
	wireServerNode = 130 //
	serverHost     = 193 // 192-255: the server's pods
	serverGateway  = 254 //
	wholeBits      = 24
	partBits       = 26
)

// builder builds one path.
type builder struct {
	net  *Net
	path result.Path
	id   byte
	name string // of its interface in the client's and the server's namespace
}

func (b builder) address(host byte) netip.Addr { return netip.AddrFrom4([4]byte{198, 18, b.id, host}) }

// part returns the part of the path's network that a host is in.
func (b builder) part(host byte) *net.IPNet {
	mask := net.CIDRMask(partBits, 32)
	return &net.IPNet{IP: net.IP(b.address(host).AsSlice()).Mask(mask), Mask: mask}
}

// host joins both ends by the wire.
func (b builder) host() error {
	c, s := b.net.Client, b.net.Server
	return errors.Join(
		pair(c, s, b.name, b.name, mtu(b.path)),
		b.number(c, b.name, clientHost, wholeBits), b.number(s, b.name, serverHost, wholeBits),
		b.limit(c, b.name), b.limit(s, b.name))
}

// nodes makes two of them and the wire between, called wire on both, and unless it is to have none, a pod's
// link to each, called pod there.
func (b builder) nodes(pods bool) (client, server *Namespace, err error) {
	if client, err = newNamespace(); err != nil {
		return nil, nil, err
	}
	b.net.nodes = append(b.net.nodes, client)
	if server, err = newNamespace(); err != nil {
		return nil, nil, err
	}
	b.net.nodes = append(b.net.nodes, server)
	err = errors.Join(pair(client, server, wire, wire, mtu(b.path)), b.limit(client, wire), b.limit(server, wire))
	if pods {
		err = errors.Join(err, pair(b.net.Client, client, b.name, pod, podMTU(b.path)), pair(b.net.Server, server, b.name, pod, podMTU(b.path)))
	}
	return client, server, err
}

const (
	wire    = "wire"
	pod     = "pod"
	bridge  = "bridge"
	vxlan   = "vxlan"
	vxlanID = 1
	// vxlanPort is IANA's.
	vxlanPort = 4789
)

// routed has the nodes route between their pods, and returns the client's.
func (b builder) routed() (node *Namespace, err error) {
	cn, sn, err := b.nodes(true)
	if err != nil {
		return nil, err
	}
	if err := b.gateways(cn, sn); err != nil {
		return nil, err
	}
	return cn, errors.Join(
		b.route(cn, serverHost, wireServerNode), b.route(sn, clientHost, wireClientNode),
		b.route(b.net.Client, wireClientNode, clientGateway), b.route(b.net.Server, wireServerNode, serverGateway)) // where nodes translate, or complain
}

// service is an address of the server's that no interface has.
func (b builder) service() netip.Addr { return netip.AddrFrom4([4]byte{198, 19, b.id, serverHost}) }

// translated makes the server reachable by the service's address, too: the client's node replaces it by the server's
// own, with nftables and conntrack, as kube-proxy does for a ClusterIP with one endpoint.
func (b builder) translated() error {
	node, err := b.routed()
	if err != nil {
		return err
	}
	service := b.service()
	all := &net.IPNet{IP: service.AsSlice(), Mask: net.CIDRMask(32, 32)}
	if err := b.net.Client.links.RouteAdd(&netlink.Route{Dst: all, Gw: b.address(clientGateway).AsSlice()}); err != nil {
		return fmt.Errorf("cannot add a route to %s: %w", service, err)
	}
	c, err := nftables.New(nftables.WithNetNSFd(int(node.fd)))
	if err != nil {
		return fmt.Errorf("cannot reach a node's nftables: %w", err)
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "services"})
	chain := c.AddChain(&nftables.Chain{Name: "services", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookPrerouting, Priority: nftables.ChainPriorityNATDest})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: ipv4To, Len: 4},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: service.AsSlice()},
		&expr.Immediate{Register: 1, Data: b.address(serverHost).AsSlice()},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: 1},
	}})
	if err := c.Flush(); err != nil {
		return fmt.Errorf("cannot have a node translate %s: %w", service, err)
	}
	return nil
}

// ipv4To is where an IPv4 header has the address that it goes to (RFC 791).
const ipv4To = 16

// gateways makes each node the router of its pod, which knows the way to the other pod by it.
func (b builder) gateways(cn, sn *Namespace) error {
	for _, err := range []error{
		cn.set("ipv4/ip_forward", "1"), sn.set("ipv4/ip_forward", "1"),
		b.number(cn, wire, wireClientNode, partBits), b.number(sn, wire, wireServerNode, partBits),
		b.number(cn, pod, clientGateway, partBits), b.number(sn, pod, serverGateway, partBits),
		b.number(b.net.Client, b.name, clientHost, partBits), b.number(b.net.Server, b.name, serverHost, partBits),
		b.route(b.net.Client, serverHost, clientGateway), b.route(b.net.Server, clientHost, serverGateway),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

// bridged has the wire and the pod's link as ports of a bridge on each node.
func (b builder) bridged() error {
	cn, sn, err := b.nodes(true)
	if err != nil {
		return err
	}
	return errors.Join(switched(cn, pod, wire), switched(sn, pod, wire), b.ends())
}

// vxlan has a VXLAN to the other node and the pod's link as ports of a bridge on each node.
func (b builder) vxlan() error {
	cn, sn, err := b.nodes(true)
	if err != nil {
		return err
	}
	err = errors.Join(b.number(cn, wire, wireClientNode, partBits), b.number(sn, wire, wireServerNode, partBits),
		b.tunnel(cn, wireClientNode, wireServerNode), b.tunnel(sn, wireServerNode, wireClientNode))
	if err != nil {
		return err
	}
	return errors.Join(switched(cn, pod, vxlan), switched(sn, pod, vxlan), b.ends())
}

// macvlan gives each pod a macvlan of its node's end of the wire.
func (b builder) macvlan() error {
	cn, sn, err := b.nodes(false)
	if err != nil {
		return err
	}
	return errors.Join(b.lend(cn, b.net.Client), b.lend(sn, b.net.Server), b.ends())
}

// ends gives both pods their addresses where they are in one network.
func (b builder) ends() error {
	return errors.Join(b.number(b.net.Client, b.name, clientHost, wholeBits), b.number(b.net.Server, b.name, serverHost, wholeBits))
}

// pair joins two namespaces by a veth pair, which is up.
func pair(a, b *Namespace, nameA, nameB string, mtu int) error {
	link := netlink.NewVeth(netlink.LinkAttrs{Name: nameA, MTU: mtu, TxQLen: -1})
	link.PeerName, link.PeerNamespace, link.PeerMTU = nameB, netlink.NsFd(b.fd), uint32(mtu)
	if err := a.links.LinkAdd(link); err != nil {
		return fmt.Errorf("cannot make a veth pair: %w", err)
	}
	return errors.Join(a.up(nameA), b.up(nameB))
}

// switched makes two links ports of a bridge.
func switched(n *Namespace, ports ...string) error {
	first, err := n.links.LinkByName(ports[0])
	if err != nil {
		return err
	}
	br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge, MTU: first.Attrs().MTU, TxQLen: -1}}
	if err := n.links.LinkAdd(br); err != nil {
		return fmt.Errorf("cannot make a bridge: %w", err)
	}
	for _, name := range ports {
		port, err := n.links.LinkByName(name)
		if err == nil {
			err = n.links.LinkSetMaster(port, br)
		}
		if err != nil {
			return fmt.Errorf("cannot make %s a port of a bridge: %w", name, err)
		}
	}
	return n.up(bridge)
}

// tunnel makes a VXLAN over the wire.
func (b builder) tunnel(n *Namespace, from, to byte) error {
	under, err := n.links.LinkByName(wire)
	if err != nil {
		return err
	}
	link := &netlink.Vxlan{LinkAttrs: netlink.LinkAttrs{Name: vxlan, MTU: podMTU(b.path), TxQLen: -1}, VxlanId: vxlanID, VtepDevIndex: under.Attrs().Index,
		SrcAddr: b.address(from).AsSlice(), Group: b.address(to).AsSlice(), Port: vxlanPort, Learning: true}
	if err := n.links.LinkAdd(link); err != nil {
		return fmt.Errorf("cannot make a vxlan: %w", err)
	}
	return n.up(vxlan)
}

// lend makes a macvlan of the wire's end, and moves it to a pod.
func (b builder) lend(node, pod *Namespace) error {
	under, err := node.links.LinkByName(wire)
	if err != nil {
		return err
	}
	link := &netlink.Macvlan{LinkAttrs: netlink.LinkAttrs{Name: b.name, ParentIndex: under.Attrs().Index, Namespace: netlink.NsFd(pod.fd), TxQLen: -1},
		Mode: netlink.MACVLAN_MODE_BRIDGE}
	if err := node.links.LinkAdd(link); err != nil {
		return fmt.Errorf("cannot make a macvlan: %w", err)
	}
	return pod.up(b.name)
}

// number gives an interface an address.
func (b builder) number(n *Namespace, name string, host byte, bits int) error {
	link, err := n.links.LinkByName(name)
	if err == nil {
		err = n.links.AddrAdd(link, &netlink.Addr{IPNet: &net.IPNet{IP: b.address(host).AsSlice(), Mask: net.CIDRMask(bits, 32)}})
	}
	if err != nil {
		return fmt.Errorf("cannot give %s an address: %w", name, err)
	}
	return nil
}

// route has a namespace reach the part of the network that a host is in by way of a gateway.
func (b builder) route(n *Namespace, to, gateway byte) error {
	part := b.part(to)
	if err := n.links.RouteAdd(&netlink.Route{Dst: part, Gw: b.address(gateway).AsSlice()}); err != nil {
		return fmt.Errorf("cannot add a route to %s: %w", part, err)
	}
	return nil
}

// limit holds what leaves by an interface to the path's rate. The bucket takes a millisecond's worth, and two
// full segments at least.
func (b builder) limit(n *Namespace, name string) error {
	if b.path.Rate == 0 {
		return nil
	}
	link, err := n.links.LinkByName(name)
	if err != nil {
		return err
	}
	bytes := uint64(b.path.Rate) / 8
	burst := max(bytes/1000, 2*64<<10)
	q := &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: link.Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT},
		Rate: bytes, Buffer: netlink.Xmittime(bytes, uint32(burst)), Limit: uint32(burst + bytes/100)}
	if err := n.links.QdiscAdd(q); err != nil {
		return fmt.Errorf("cannot hold %s to a rate: %w", name, err)
	}
	return nil
}
