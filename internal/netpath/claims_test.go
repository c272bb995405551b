package netpath

import (
	"net/netip"
	"strings"
	"testing"
)

// TestHold: what a cluster says agrees, does not, or cannot be seen from here.
func TestHold(t *testing.T) {
	node, pod := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.244.1.7")
	tunnelled := Seen{Route: "by flannel.1 to the gateway 10.244.1.0", Links: []Link{{Name: "flannel.1", Kind: Vxlan, Tunnel: &Tunnel{Remote: "10.0.0.1"}}, {Name: "eth0"}}, Plugins: []string{"Flannel"}, KubeProxy: "nftables"}
	away := Seen{Route: "by eth0 to the gateway 192.0.2.1", Links: []Link{{Name: "eth0"}}}
	all := Claims{Node: "n1", NodeAddresses: []netip.Addr{node}, PodCIDRs: []string{"10.244.1.0/24"}, Plugins: []string{"Flannel"}, Encapsulation: "vxlan", KubeProxy: "nftables"}
	wrongMode, host := all, all
	wrongMode.KubeProxy = "ipvs"
	host.HostNetwork = true
	for name, c := range map[string]struct {
		claims Claims
		seen   Seen
		pod    netip.Addr
		here   bool
		want   string // a letter for each: agrees, not, unknown
	}{
		"by the tunnel":                {all, tunnelled, pod, false, "a a a a a"},
		"from afar":                    {all, away, pod, false, "a u u u u"},
		"on its own node":              {all, tunnelled, pod, true, "a a a a"},
		"another mode of kube-proxy's": {wrongMode, tunnelled, pod, false, "a a a a n"},
		"an address of another plugin": {all, tunnelled, netip.MustParseAddr("172.16.0.9"), false, "u a a a a"},
		"in the node's network":        {host, away, node, true, "a a u u"},
		"said to be, and not so":       {host, away, pod, true, "n a u u"},
		"nothing is said":              {Claims{Node: "n1"}, away, pod, false, "u"},
	} {
		var got []string
		for _, h := range c.claims.hold(c.seen, c.pod, c.here) {
			switch {
			case h.Agrees == nil:
				got = append(got, "u")
			case *h.Agrees:
				got = append(got, "a")
			default:
				got = append(got, "n")
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s, want %s: %+v", name, text, c.want, c.claims.hold(c.seen, c.pod, c.here))
		}
	}
}
