package netpath

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
)

// Claims are what a cluster says of the way to a pod.
type Claims struct {
	Node          string
	NodeAddresses []netip.Addr
	HostNetwork   bool
	PodCIDRs      []string
	Plugins       []string
	Encapsulation string // of Flannel: vxlan, host-gw, udp
	KubeProxy     string
}

// Held is something that a cluster says, held against what is seen from here.
type Held struct {
	Said string `json:"said"`
	Seen string `json:"seen"`
	// Agrees is nil where it cannot be seen from here.
	Agrees *bool `json:"agrees,omitempty"`
}

// HoldAgainst holds what a cluster says of a pod at an address against what is seen of the way there. What disagrees is found, too.
func (s *Seen) HoldAgainst(c Claims, pod netip.Addr) (list []Held, err error) {
	l, err := newLooker()
	if err != nil {
		return nil, err
	}
	defer l.close()
	own, err := l.links.AddrList(nil, netlink.FAMILY_ALL)
	if err != nil {
		return nil, err
	}
	here := slices.ContainsFunc(own, func(a netlink.Addr) bool {
		ip, _ := netip.AddrFromSlice(a.IP)
		return slices.Contains(c.NodeAddresses, ip.Unmap())
	})
	list = c.hold(*s, pod, here)
	for _, h := range list {
		if h.Agrees != nil && !*h.Agrees {
			s.find(PodNetwork, "the cluster says: %s; seen: %s", h.Said, h.Seen)
		}
	}
	return list, nil
}

// hold is HoldAgainst, told whether this machine is the pod's node.
func (c Claims) hold(s Seen, pod netip.Addr, here bool) (list []Held) {
	add := func(said, seen string, agrees bool) { list = append(list, Held{said, seen, &agrees}) }
	unknown := func(said, seen string) { list = append(list, Held{Said: said, Seen: seen}) }
	if c.HostNetwork {
		at := slices.Contains(c.NodeAddresses, pod)
		add("the pod is in the own network of node "+c.Node, map[bool]string{true: "its address is the node's", false: "its address is none of the node's"}[at], at)
	} else if len(c.PodCIDRs) > 0 {
		inside := slices.ContainsFunc(c.PodCIDRs, func(text string) bool {
			p, err := netip.ParsePrefix(text)
			return err == nil && p.Contains(pod)
		})
		said := "node " + c.Node + " has " + strings.Join(c.PodCIDRs, ", ") + " for its pods"
		if inside {
			add(said, pod.String()+" is of it", true)
		} else {
			unknown(said, pod.String()+" is not: a network plugin that gives addresses of its own")
		}
	}
	if toNode := "the pod is on node " + c.Node; here {
		add(toNode, "this machine is that node", true)
	} else if text := s.byNode(c.NodeAddresses); text != "" {
		add(toNode, text, true)
	} else {
		unknown(toNode, "the way names none of its addresses: "+s.Route)
	}
	if c.Encapsulation == Vxlan && !here && !c.HostNetwork {
		i := slices.IndexFunc(s.Links, func(k Link) bool { return k.Tunnel != nil && k.Kind == Vxlan })
		if i < 0 {
			unknown("Flannel carries packets by vxlan", "the way from here takes no vxlan: "+s.Route)
		} else {
			add("Flannel carries packets by vxlan", "the way takes "+s.Links[i].Name, true)
		}
	}
	for _, name := range c.Plugins {
		seen := slices.ContainsFunc(s.Plugins, func(have string) bool { return strings.HasPrefix(have, name) })
		if said := "the network plugin is " + name; seen {
			add(said, "its links are here", true)
		} else {
			unknown(said, "none of its links are here, as on no machine but a node")
		}
	}
	if said := "kube-proxy's mode is " + c.KubeProxy; c.KubeProxy != "" && s.KubeProxy != "" {
		add(said, s.KubeProxy+" is", c.KubeProxy == s.KubeProxy)
	} else if c.KubeProxy != "" {
		unknown(said, "no rules of kube-proxy's are here, as on no machine but a node")
	}
	return list
}

// byNode tells how the way leads to one of a node's addresses; "" where it is not seen to.
func (s Seen) byNode(addresses []netip.Addr) string {
	for _, a := range addresses {
		switch text := a.String(); {
		case strings.HasSuffix(s.Route, " to the gateway "+text):
			return "the route's gateway is its " + text
		case slices.ContainsFunc(s.Links, func(k Link) bool { return k.Tunnel != nil && k.Tunnel.Remote == text }):
			return "the tunnel's other end is its " + text
		case slices.ContainsFunc(s.MTU.Hops, func(h Hop) bool { return h.Address == text }):
			return "its " + text + " is a hop on the way"
		case strings.HasPrefix(s.Address, text+":") || strings.HasPrefix(s.Address, "["+text+"]:"):
			return "its address is what was asked for"
		}
	}
	return ""
}
