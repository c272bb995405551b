// Package netpath builds network paths between a client and a server out of network namespaces, and finds out
// what a path that is there already consists of.
//
//	Parse -> Build (namespaces, links, routes) -> Way (where the client runs, where the server is) -> Close
//
// Nothing is made in the machine's own namespace, and no namespace has a name: when david ends, however it
// ends, the kernel takes down all of them that no process is in.
package netpath

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"david/internal/result"
)

// The kinds of paths.
const (
	Host     = "host"          // client and server in their nodes' own namespaces, the nodes joined by a wire
	Routed   = "routed"        // pods of two nodes that route for them: Calico without encapsulation, kube-router, host-gw
	Service  = "service"       // as routed, by an address that the client's node translates: a ClusterIP of kube-proxy's
	Bridge   = "bridge"        // pods on a bridge each, the wire a port of both
	Vxlan    = "vxlan"         // pods on a bridge each, joined by VXLAN over the wire: Flannel, Weave, Cilium
	Macvlan  = "macvlan"       // pods with a macvlan of their node's end of the wire: Multus
	UDP      = "userspace-udp" // pods whose nodes pass packets to a program, which sends them by UDP: Flannel's udp, OpenVPN
	Loopback = "loopback"      // client and server in one namespace, by 127.0.0.1
	Unix     = "unix"          // the server's socket

	BridgeCNI     = "bridge" + pluginSuffix      // as routed, the pod's link by way of a bridge, by CNI's plugin of that name
	PtpCNI        = "ptp" + pluginSuffix         // as routed, by CNI's plugin
	MacvlanCNI    = "macvlan" + pluginSuffix     // as macvlan, by CNI's plugin
	HostDeviceCNI = "host-device" + pluginSuffix // pods that have their node's end of the wire, which CNI's plugin handed to them
)

// Kinds lists the kinds of paths that david can build by itself.
func Kinds() []string {
	return []string{Host, Routed, Service, Bridge, Vxlan, Macvlan, UDP, Loopback, Unix}
}

// AllKinds are those, and the ones that take CNI's plugins.
func AllKinds() []string {
	return append(Kinds(), BridgeCNI, PtpCNI, MacvlanCNI, HostDeviceCNI)
}

// Where client and server run, of cpus=.
const (
	Apart    = "apart"    // on half of the cores each
	Together = "together" // both on the half that the server has then
)

// lacking are ways between pods that david would build where it could, and what it takes.
var lacking = map[string]string{
	"ipip": "CONFIG_NET_IPIP", "wireguard": "CONFIG_WIREGUARD", "ipvlan": "CONFIG_IPVLAN", "geneve": "CONFIG_GENEVE", "netkit": "CONFIG_NETKIT",
}

// ErrInput marks what is no path, or none that can be had here.
var ErrInput = errors.New("no such path")

const (
	wireMTU = 1500
	// vxlanOverhead are an Ethernet, an IPv4, a UDP and a VXLAN header (RFC 7348).
	vxlanOverhead = 14 + 20 + 8 + 8
	leastMTU      = 576   // that an IPv4 host must take (RFC 1122)
	mostMTU       = 65521 // of a wire such that what a macvlan or bridge adds fits into 16 bits
	mostDelay     = time.Second
	leastRate     = 1_000_000
	mostRate      = 400_000_000_000
)

// Parse reads KIND[:mtu=BYTES][:rate=BITS][:delay=TIME][:cpus=WHERE][:tls][:compressed]: vxlan:mtu=9000, host:rate=1g:tls.
func Parse(text string) (p result.Path, err error) {
	parts := strings.Split(text, ":")
	p.Kind = parts[0]
	if config, ok := lacking[p.Kind]; ok {
		return p, fmt.Errorf("%w: %s is unavailable: david does not build it, and the kernel needs %s for it", ErrInput, p.Kind, config)
	}
	if !slices.Contains(AllKinds(), p.Kind) {
		return p, fmt.Errorf("%w: %q; there are %s", ErrInput, p.Kind, strings.Join(AllKinds(), ", "))
	}
	for _, part := range parts[1:] {
		if err := option(&p, part); err != nil {
			return p, fmt.Errorf("%w: %s: %w", ErrInput, text, err)
		}
	}
	if !wired(p) && (p.MTU > 0 || p.Rate > 0) {
		return p, fmt.Errorf("%w: %s: %s has no wire whose mtu or rate could be set", ErrInput, text, p.Kind)
	}
	if p.Kind == Unix && p.TLS {
		return p, fmt.Errorf("%w: %s: a socket needs no TLS, and sysbench does none there", ErrInput, text)
	}
	return p, nil
}

func option(p *result.Path, text string) (err error) {
	name, value, given := strings.Cut(text, "=")
	if given && (name == "tls" || name == "compressed") {
		return fmt.Errorf("%s takes no value", name)
	}
	switch name {
	case "mtu":
		if p.MTU, err = strconv.Atoi(value); err != nil || p.MTU < leastMTU || p.MTU > mostMTU {
			return fmt.Errorf("%q is no MTU from %d to %d bytes", value, leastMTU, mostMTU)
		}
	case "rate":
		if p.Rate, err = rate(value); err != nil || p.Rate < leastRate || p.Rate > mostRate {
			return fmt.Errorf("%q is no rate from 1m to 400g, in bits a second", value)
		}
	case "delay":
		d, err := time.ParseDuration(value)
		if err != nil || p.Kind != UDP || d < time.Microsecond || d > mostDelay {
			return fmt.Errorf("%q is no delay from 1us to %s, of %s", value, mostDelay, UDP)
		}
		p.Delay = d.Microseconds()
	case "cpus":
		if value != Apart && value != Together || p.CPUs != "" {
			return fmt.Errorf("%q is not one cpus=%s, nor one cpus=%s", text, Apart, Together)
		}
		p.CPUs = value
	case "tls":
		p.TLS = true
	case "compressed":
		p.Compressed = true
	default:
		return fmt.Errorf("%q is none of mtu=BYTES, rate=BITS (1g), delay=TIME (1ms), cpus=apart, cpus=together, tls, compressed", text)
	}
	return nil
}

// rate reads 100m or 10g.
func rate(text string) (int64, error) {
	unit := map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9}
	factor := 1.0
	if text != "" && unit[text[len(text)-1]] > 0 {
		factor, text = unit[text[len(text)-1]], text[:len(text)-1]
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0 && v*factor < math.MaxInt64) {
		return 0, fmt.Errorf("%q is no rate", text)
	}
	return int64(v * factor), nil
}

// Name returns a path as Parse reads it, but with dashes: a name of an arm.
func Name(p result.Path) string {
	name := p.Kind
	if p.MTU > 0 {
		name += fmt.Sprintf("-mtu%d", p.MTU)
	}
	if p.Rate > 0 {
		name += "-" + strings.ReplaceAll(RateText(p.Rate), " ", "")
	}
	if p.Delay > 0 {
		name += fmt.Sprintf("-%dus", p.Delay)
	}
	if p.CPUs != "" {
		name += "-" + p.CPUs
	}
	if p.TLS {
		name += "-tls"
	}
	if p.Compressed {
		name += "-compressed"
	}
	return name
}

// RateText says a rate in bits a second in words: "10 Gbit".
func RateText(bits int64) string {
	if bits >= 1e9 {
		return fmt.Sprintf("%.4g Gbit", float64(bits)/1e9)
	}
	return fmt.Sprintf("%.4g Mbit", float64(bits)/1e6)
}

// Title says what a path is.
func Title(p result.Path) string {
	text := map[string]string{
		Host:     "the nodes' own network: one wire",
		Routed:   "pods whose nodes route: veth, wire, veth",
		Service:  "pods whose nodes route, the server by an address that the client's node translates",
		Bridge:   "pods on bridges that the wire joins",
		Vxlan:    fmt.Sprintf("pods on bridges joined by VXLAN over the wire, inner MTU %d", podMTU(p)),
		Macvlan:  "pods with a macvlan of the wire's end",
		UDP:      "pods whose nodes have a program send their packets by UDP",
		Loopback: "127.0.0.1 within one namespace",
		Unix:     "the server's unix socket",

		BridgeCNI:     "pods whose nodes route, each on a bridge of its node's: CNI's plugin bridge",
		PtpCNI:        "pods whose nodes route: CNI's plugin ptp",
		MacvlanCNI:    "pods with a macvlan of the wire's end: CNI's plugin macvlan",
		HostDeviceCNI: "pods that were handed the wire's end: CNI's plugin host-device",
	}[p.Kind]
	if wired(p) {
		text += fmt.Sprintf("; the wire's MTU %d", mtu(p))
	}
	if p.Rate > 0 {
		text += ", held to " + RateText(p.Rate) + "/s"
	}
	if p.Delay > 0 {
		text += fmt.Sprintf(", each packet held back for %s", time.Duration(p.Delay)*time.Microsecond)
	}
	if p.CPUs != "" {
		text += ", " + map[string]string{Apart: "client and server on half of the CPUs each", Together: "client and server on the same half of the CPUs"}[p.CPUs]
		if p.ServerCPUs != "" {
			text += fmt.Sprintf(" (%s, %s)", p.ClientCPUs, p.ServerCPUs)
		}
	}
	if p.TLS {
		text += ", TLS"
	}
	if p.Compressed {
		text += ", compressed"
	}
	return text
}

func wired(p result.Path) bool { return p.Kind != Loopback && p.Kind != Unix }

// mtu returns the wire's, and podMTU that of the client's and the server's ends, in bytes.
func mtu(p result.Path) int {
	if p.MTU > 0 {
		return p.MTU
	}
	return wireMTU
}

func podMTU(p result.Path) int {
	switch p.Kind {
	case Vxlan:
		return mtu(p) - vxlanOverhead
	case UDP:
		return mtu(p) - udpOverhead
	}
	return mtu(p)
}
