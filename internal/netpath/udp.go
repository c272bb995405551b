package netpath

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const (
	tun = "tun"
	// udpPort is that of Flannel's UDP.
	udpPort = 8285
	// udpOverhead are an IPv4 and a UDP header.
	udpOverhead = 20 + 8
	// roomFor are the bytes that a forwarder's socket takes in while it sends: packets of hundreds of connections, each of which the kernel
	// counts as 2,304 bytes. In the kernel's own 208 KiB (net.core.rmem_default) one packet of 50 found no room with 64 connections.
	roomFor = 8 << 20
	// roomTo are the packets that a tun device holds for its forwarder; the kernel's own 500 were not enough for 64 connections.
	roomTo = 5000
	// mostHeld are the packets that a delay may hold back: those of 1 ms at 10 Gbit/s, and of 100 ms at 100 Mbit/s.
	mostHeld = 1024
)

// forwarder carries packets between a node's tun device and the other node, by UDP over the wire, as a program
// in user space does: Flannel's udp, OpenVPN, a WireGuard that is not the kernel's.
type forwarder struct {
	tun   *os.File
	wire  *net.UDPConn
	delay time.Duration // that a packet is held back before it is sent
}

// userspace has each node route to the other's pods by way of a forwarder.
func (b builder) userspace() error {
	cn, sn, err := b.nodes(true)
	if err != nil {
		return err
	}
	if err := b.gateways(cn, sn); err != nil {
		return err
	}
	if err := b.forward(cn, wireClientNode, wireServerNode, serverHost); err != nil {
		return err
	}
	return b.forward(sn, wireServerNode, wireClientNode, clientHost)
}

// forward starts a node's forwarder to another node, for the pods there.
func (b builder) forward(n *Namespace, from, to, pods byte) error {
	f := &forwarder{delay: time.Duration(b.path.Delay) * time.Microsecond}
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: tun}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI, NonPersist: true, Queues: 1}
	err := n.Do(func() (err error) {
		if err = n.links.LinkAdd(link); err != nil {
			return err
		}
		f.tun = link.Fds[0]
		local, remote := net.UDPAddr{IP: b.address(from).AsSlice(), Port: udpPort}, net.UDPAddr{IP: b.address(to).AsSlice(), Port: udpPort}
		if f.wire, err = net.DialUDP("udp4", &local, &remote); err != nil {
			return err
		}
		return roomy(f.wire)
	})
	b.net.forwarders = append(b.net.forwarders, f)
	if err != nil {
		return fmt.Errorf("cannot forward packets by UDP: %w", err)
	}
	made, err := n.links.LinkByName(tun)
	if err == nil {
		err = n.links.LinkSetMTU(made, podMTU(b.path))
	}
	if err == nil {
		err = n.links.LinkSetTxQLen(made, roomTo)
	}
	if err == nil {
		err = n.up(tun)
	}
	if err == nil {
		err = n.links.RouteAdd(&netlink.Route{LinkIndex: made.Attrs().Index, Dst: b.part(pods), Scope: netlink.SCOPE_LINK})
	}
	if err != nil {
		return fmt.Errorf("cannot route by a tun device: %w", err)
	}
	f.run()
	return nil
}

// roomy gives a socket room for what arrives, past what the machine's settings allow: david is root.
func roomy(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, roomFor) })
	return errors.Join(failed, err)
}

// run carries packets both ways until close. What cannot be sent is lost, as packets are.
func (f *forwarder) run() {
	go copyPackets(f.wire.Read, f.tun.Write)
	if f.delay == 0 {
		go copyPackets(f.tun.Read, f.wire.Write)
		return
	}
	held := make(chan heldPacket, mostHeld)
	go func() {
		defer close(held)
		copyPackets(f.tun.Read, func(p []byte) (int, error) {
			select {
			case held <- heldPacket{time.Now().Add(f.delay), append([]byte{}, p...)}:
			default: // more than a real line would hold: lost
			}
			return len(p), nil
		})
	}()
	go func() {
		for p := range held {
			time.Sleep(time.Until(p.due))
			_, _ = f.wire.Write(p.bytes) // lost
		}
	}()
}

type heldPacket struct {
	due   time.Time
	bytes []byte
}

func copyPackets(from, to func([]byte) (int, error)) {
	b := make([]byte, 1<<16)
	for {
		n, err := from(b)
		if errors.Is(err, os.ErrClosed) || errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			_, _ = to(b[:n]) // what cannot be sent is lost
		}
	}
}

func (f *forwarder) close() error {
	var err error
	if f.tun != nil {
		err = f.tun.Close()
	}
	if f.wire != nil {
		err = errors.Join(err, f.wire.Close())
	}
	return err
}
