package netpath

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// routeTo asks the kernel how a connection to an address would leave. It names protocol and port, as rules may send
// those elsewhere than pings (ip-rule(8), ipproto and dport); netlink.RouteGet cannot.
func routeTo(to netip.AddrPort) (r netlink.Route, err error) {
	address := to.Addr().Unmap()
	request := nl.NewNetlinkRequest(unix.RTM_GETROUTE, unix.NLM_F_REQUEST)
	request.AddData(&nl.RtMsg{RtMsg: unix.RtMsg{Family: family(address), Dst_len: uint8(address.BitLen())}})
	request.AddData(nl.NewRtAttr(unix.RTA_DST, address.AsSlice()))
	if to.Port() != 0 {
		request.AddData(nl.NewRtAttr(unix.RTA_IP_PROTO, []byte{unix.IPPROTO_TCP}))
		request.AddData(nl.NewRtAttr(unix.RTA_DPORT, binary.BigEndian.AppendUint16(nil, to.Port())))
	}
	answers, err := request.Execute(unix.NETLINK_ROUTE, 0)
	if err == nil && len(answers) == 0 {
		err = unix.ENETUNREACH
	}
	if err != nil {
		return r, fmt.Errorf("no route leads from here to %s: %w", to.Addr(), err)
	}
	attributes, err := nl.ParseRouteAttr(answers[0][unix.SizeofRtMsg:])
	if err != nil {
		return r, fmt.Errorf("cannot read the route to %s: %w", to.Addr(), err)
	}
	for _, a := range attributes {
		switch a.Attr.Type {
		case unix.RTA_OIF:
			r.LinkIndex = int(nl.NativeEndian().Uint32(a.Value))
		case unix.RTA_GATEWAY:
			r.Gw = net.IP(a.Value)
		case unix.RTA_PREFSRC:
			r.Src = net.IP(a.Value)
		case unix.RTA_VIA: // a gateway of the other family: two bytes of it, and its address
			if len(a.Value) > 2 {
				r.Gw = net.IP(a.Value[2:])
			}
		}
	}
	return r, nil
}
