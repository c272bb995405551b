package netpath

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"david/internal/result"
)

// Wire is the link by which a client reaches a server, and what it has carried since it was made.
type Wire struct {
	Link    string
	Rate    int64 // it carries at most, bits/s; 0: not known
	In, Out uint64
}

// Wire reads the client's link of a path. It is nil for the socket.
func (n *Net) Wire(p result.Path) (*Wire, error) {
	way := n.Way(p)
	if !way.Address.IsValid() {
		return nil, nil
	}
	return wireTo(way.From.links, way.Address, func(netlink.Link, net.IP) (int64, error) { return p.Rate, nil })
}

// WireTo reads the link by which david's own namespace reaches an address. What it carries at most is what the
// least of the links below it does that say so.
func WireTo(to netip.Addr) (*Wire, error) {
	l, err := newLooker()
	if err != nil {
		return nil, err
	}
	defer l.close()
	return wireTo(l.links, to, func(first netlink.Link, next net.IP) (int64, error) {
		list, err := l.chain(first.Attrs().Index, next)
		return (&Seen{Links: list}).rate(), err
	})
}

func wireTo(links *netlink.Handle, to netip.Addr, rate func(first netlink.Link, next net.IP) (int64, error)) (*Wire, error) {
	routes, err := links.RouteGet(to.AsSlice())
	if err == nil && len(routes) == 0 {
		err = errors.New("there is no route")
	}
	if err != nil {
		return nil, fmt.Errorf("cannot tell by which link %s is reached: %w", to, err)
	}
	link, err := links.LinkByIndex(routes[0].LinkIndex)
	if err != nil {
		return nil, fmt.Errorf("cannot look at the link by which %s is reached: %w", to, err)
	}
	next := net.IP(to.AsSlice())
	if routes[0].Gw != nil {
		next = routes[0].Gw
	}
	w := &Wire{Link: link.Attrs().Name}
	if s := link.Attrs().Statistics; s != nil {
		w.In, w.Out = s.RxBytes, s.TxBytes
	}
	w.Rate, err = rate(link, next)
	return w, err
}
