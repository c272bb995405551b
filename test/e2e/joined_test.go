package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// joinedNode is a Node object, as far as Flannel has to do with it.
type joinedNode struct {
	Metadata struct {
		Name        string
		Annotations map[string]string
	}
	Spec struct{ PodCIDR string }
}

// joined makes sure that it is Flannel that joins the nodes' pods: by what it says of itself on the Node objects, and what its backend has
// made of that on the other node. That pods reach each other by it is for what is measured between them.
func (a across) joined(t *testing.T) {
	t.Helper()
	var nodes struct{ Items []joinedNode }
	if err := json.Unmarshal([]byte(a.kubectl(t, "get", "nodes", "-o", "json")), &nodes); err != nil || len(nodes.Items) != 2 {
		t.Fatalf("%d nodes, %v", len(nodes.Items), err)
	}
	backend := map[string]string{"flannel-vxlan": "vxlan", "flannel-hostgw": "host-gw"}[a.network]
	for i, n := range nodes.Items {
		if n.annotation("backend-type") != backend || n.annotation("kube-subnet-manager") != "true" || net.ParseIP(n.annotation("public-ip")) == nil {
			t.Errorf("%s: Flannel's annotations are %q, wanted those of %s", n.Metadata.Name, n.Metadata.Annotations, backend)
		}
		eventually(t, 30*time.Second, func() error {
			if backend == "vxlan" {
				return n.tunnels(nodes.Items[1-i])
			}
			return n.routes(nodes.Items[1-i])
		})
	}
}

func (n joinedNode) annotation(name string) string {
	return n.Metadata.Annotations["flannel.alpha.coreos.com/"+name]
}

const flannelLink = "flannel.1"

// tunnels is nil where a node's packets for another's pods go through Flannel's VXLAN, to the node that says it is at the other end.
func (n joinedNode) tunnels(other joinedNode) error {
	h, err := n.network()
	if err != nil {
		return err
	}
	defer h.Close()
	link, err := h.LinkByName(flannelLink)
	if err != nil {
		return err
	}
	vxlan, ok := link.(*netlink.Vxlan)
	if !ok || vxlan.VxlanId != 1 || vxlan.MTU != 1450 || vxlan.HardwareAddr.String() != n.mac() {
		return fmt.Errorf("%s: %s is %+v, and %q at the Node", n.Metadata.Name, flannelLink, link, n.annotation("backend-data"))
	}
	gateway, _, err := net.ParseCIDR(other.Spec.PodCIDR)
	if err != nil {
		return err
	}
	ends, err := h.NeighList(vxlan.Index, netlink.FAMILY_V4)
	if err != nil || len(ends) != 1 || !ends[0].IP.Equal(gateway) || ends[0].HardwareAddr.String() != other.mac() {
		return fmt.Errorf("%s: at the other end of %s are %v, %v", n.Metadata.Name, flannelLink, ends, err)
	}
	return n.way(h, other, gateway, flannelLink)
}

// mac is what the node says of its end of the VXLAN.
func (n joinedNode) mac() string {
	var data struct{ VtepMAC string }
	if json.Unmarshal([]byte(n.annotation("backend-data")), &data) != nil {
		return ""
	}
	return data.VtepMAC
}

// routes is nil where a node's packets for another's pods go to that node over the wire, without a VXLAN.
func (n joinedNode) routes(other joinedNode) error {
	h, err := n.network()
	if err != nil {
		return err
	}
	defer h.Close()
	if _, err := h.LinkByName(flannelLink); !errors.As(err, &netlink.LinkNotFoundError{}) {
		return fmt.Errorf("%s has a link %s: %v", n.Metadata.Name, flannelLink, err)
	}
	return n.way(h, other, net.ParseIP(other.annotation("public-ip")), "eth0")
}

// network is the node's network, to ask.
func (n joinedNode) network() (*netlink.Handle, error) {
	ns, err := netns.GetFromName(n.Metadata.Name)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	return netlink.NewHandleAt(ns)
}

// way is nil where the node's only route to another's pods is by a gateway on a link.
func (n joinedNode) way(h *netlink.Handle, other joinedNode, gateway net.IP, through string) error {
	_, pods, err := net.ParseCIDR(other.Spec.PodCIDR)
	if err != nil {
		return err
	}
	link, err := h.LinkByName(through)
	if err != nil {
		return err
	}
	ways, err := h.RouteListFiltered(netlink.FAMILY_V4, &netlink.Route{Dst: pods}, netlink.RT_FILTER_DST)
	if err != nil || len(ways) != 1 || !ways[0].Gw.Equal(gateway) || ways[0].LinkIndex != link.Attrs().Index {
		return fmt.Errorf("%s: to %s by %s: %v, %v; wanted by %s on %s", n.Metadata.Name, pods, other.Metadata.Name, ways, err, gateway, through)
	}
	return nil
}
