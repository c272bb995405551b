package podoverhead

import (
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// ErrNode marks a node that cannot be measured on.
var ErrNode = errors.New("cannot measure on this node")

// Node describes the node david runs on.
type Node struct {
	Name    string
	Address string // its internal one
	Here    string // the address of this machine that a process listens on: Address, where this machine has it
	Facts   string // what runs it, in a line
}

// FindNode picks the node named, or where name is "" the one that is this machine: by its address, its host
// name, or as the only one there is. That it is this machine indeed, the first pod shows.
func FindNode(nodes []corev1.Node, name string) (Node, error) {
	here, err := addresses()
	if err != nil {
		return Node{}, err
	}
	host, err := os.Hostname()
	if err != nil {
		return Node{}, fmt.Errorf("cannot read the machine's name: %w", err)
	}
	picked, err := pick(nodes, name, host, here)
	if err != nil {
		return Node{}, err
	}
	n := Node{Name: picked.Name, Address: address(picked)}
	if n.Address == "" {
		return n, fmt.Errorf("%w: %s has no internal address", ErrNode, n.Name)
	}
	i := picked.Status.NodeInfo
	n.Facts = fmt.Sprintf("node %s: kubelet %s, %s, kernel %s, %s CPUs and %s of memory allocatable", n.Name, i.KubeletVersion, i.ContainerRuntimeVersion,
		i.KernelVersion, picked.Status.Allocatable.Cpu(), picked.Status.Allocatable.Memory())
	n.Here, err = towards(n.Address)
	return n, err
}

// pick finds the node among all of them.
func pick(nodes []corev1.Node, name, host string, here []string) (corev1.Node, error) {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	of := func(match func(corev1.Node) bool) int { return slices.IndexFunc(nodes, match) }
	i := -1
	switch {
	case len(nodes) == 0:
		return corev1.Node{}, fmt.Errorf("%w: the cluster has no nodes", ErrNode)
	case name != "":
		if i = of(func(n corev1.Node) bool { return n.Name == name }); i < 0 {
			return corev1.Node{}, fmt.Errorf("%w: the cluster has no node %s; it has %s", ErrNode, name, strings.Join(names, ", "))
		}
	default:
		if i = of(func(n corev1.Node) bool { return slices.Contains(here, address(n)) }); i < 0 {
			i = of(func(n corev1.Node) bool { return n.Name == host || n.Labels[corev1.LabelHostname] == host })
		}
		if i < 0 && len(nodes) == 1 {
			i = 0
		}
		if i < 0 {
			return corev1.Node{}, fmt.Errorf("%w: none of %s has an address or the name of this machine (%s): run david on a node, and name it with --node", ErrNode, strings.Join(names, ", "), host)
		}
	}
	if !isReady(nodes[i]) {
		return corev1.Node{}, fmt.Errorf("%w: %s is not ready", ErrNode, nodes[i].Name)
	}
	return nodes[i], nil
}

func isReady(n corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

func address(n corev1.Node) string {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return a.Address
		}
	}
	return ""
}

// addresses lists those of this machine.
func addresses() (list []string, err error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("cannot read the machine's addresses: %w", err)
	}
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok {
			list = append(list, ip.IP.String())
		}
	}
	return list, nil
}

// towards finds the address of this machine from which it reaches another one: that one itself where it is
// its own. Nothing is sent.
func towards(other string) (string, error) {
	c, err := net.Dial("udp", net.JoinHostPort(other, "9"))
	if err != nil {
		return "", fmt.Errorf("cannot find the way to the node's address %s: %w", other, err)
	}
	defer c.Close()
	host, _, err := net.SplitHostPort(c.LocalAddr().String())
	return host, err
}
