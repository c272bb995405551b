package netpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
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
	// mostHeld are the packets that a delay may hold back: those of 1 ms at 10 Gbit/s, and of 100 ms at 100 Mbit/s.
	mostHeld = 1024
)

// forwarder carries packets between a node's tun device and the other node, by UDP over the wire, as a program
// in user space does: Flannel's udp, OpenVPN, a WireGuard that is not the kernel's. It is one thread that waits for
// either, as theirs are: goroutines that wait by way of Go's runtime wake each other, and cost two CPUs that are busy
// anyway as much again.
type forwarder struct {
	tun, wire, stop int           // the ends, and an eventfd that run ends by: descriptors that Go's poller does not know; -1: none
	delay           time.Duration // that a packet from the tun is held back before it is sent
	held            []heldPacket  // in the order in which they are due
	done            chan struct{} // closed when run has ended; nil before it began
	ended           error         // why it did; valid after done
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
	f := &forwarder{tun: -1, wire: -1, stop: -1, delay: time.Duration(b.path.Delay) * time.Microsecond}
	link := &netlink.Tuntap{LinkAttrs: netlink.LinkAttrs{Name: tun}, Mode: netlink.TUNTAP_MODE_TUN, Flags: netlink.TUNTAP_NO_PI, NonPersist: true, Queues: 1}
	err := n.Do(func() (err error) {
		if err = n.links.LinkAdd(link); err != nil {
			return err
		}
		if f.tun, err = apartFromGo(link.Fds[0]); err != nil {
			return err
		}
		f.wire, err = udpSocket(b.address(from), b.address(to))
		return err
	})
	if err == nil {
		f.stop, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	}
	b.net.forwarders = append(b.net.forwarders, f)
	if err != nil {
		return fmt.Errorf("cannot forward packets by UDP: %w", err)
	}
	made, err := n.links.LinkByName(tun)
	if err == nil {
		err = n.links.LinkSetMTU(made, podMTU(b.path))
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
	f.done = make(chan struct{})
	go func() {
		defer close(f.done)
		f.ended = f.run()
	}()
	return nil
}

// apartFromGo makes a descriptor of a file that Go's poller does not watch, and closes the file.
func apartFromGo(f *os.File) (int, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = unix.SetNonblock(fd, true)
	}
	return fd, errors.Join(err, f.Close())
}

// udpSocket is bound to one address and connected to another, at the forwarders' port. Reads do not wait.
func udpSocket(from, to netip.Addr) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: udpPort, Addr: from.As4()}); err != nil {
		return fd, err
	}
	return fd, unix.Connect(fd, &unix.SockaddrInet4{Port: udpPort, Addr: to.As4()})
}

// heldPacket waits until it is due.
type heldPacket struct {
	due   time.Time
	bytes []byte
}

// run carries packets both ways until close. What cannot be sent is lost, as packets are.
func (f *forwarder) run() error {
	ends := []unix.PollFd{{Fd: int32(f.tun), Events: unix.POLLIN}, {Fd: int32(f.wire), Events: unix.POLLIN}, {Fd: int32(f.stop), Events: unix.POLLIN}}
	buffer := make([]byte, 1<<16)
	for {
		if _, err := unix.Ppoll(ends, f.due(), nil); err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("cannot wait for packets: %w", err)
		}
		if ends[2].Revents != 0 {
			return nil
		}
		if ends[0].Revents&(unix.POLLERR|unix.POLLNVAL) != 0 { // it would be so for ever
			return errors.New("the device tun is gone")
		}
		carry(buffer, f.wire, func(p []byte) { _, _ = unix.Write(f.tun, p) })
		carry(buffer, f.tun, f.send)
		f.release()
	}
}

// carry hands over what there is to read, most packets at a time, so that the other way gets its turn.
func carry(buffer []byte, from int, to func([]byte)) {
	const most = 64
	for range most {
		n, err := unix.Read(from, buffer)
		if err != nil || n == 0 { // EAGAIN, or that the other end refused one (ECONNREFUSED)
			return
		}
		to(buffer[:n])
	}
}

// send sends a packet over the wire, or holds it back.
func (f *forwarder) send(p []byte) {
	switch {
	case f.delay == 0:
		_, _ = unix.Write(f.wire, p)
	case len(f.held) < mostHeld: // more than a real line would hold is lost
		f.held = append(f.held, heldPacket{time.Now().Add(f.delay), append([]byte{}, p...)})
	}
}

// release sends what is due.
func (f *forwarder) release() {
	for len(f.held) > 0 && time.Until(f.held[0].due) <= 0 {
		_, _ = unix.Write(f.wire, f.held[0].bytes)
		f.held = f.held[1:]
	}
}

// due is how long to wait at most; nil for ever.
func (f *forwarder) due() *unix.Timespec {
	if len(f.held) == 0 {
		return nil
	}
	t := unix.NsecToTimespec(max(0, time.Until(f.held[0].due)).Nanoseconds())
	return &t
}

func (f *forwarder) close() (err error) {
	if f.done != nil {
		if _, err = unix.Write(f.stop, binary.NativeEndian.AppendUint64(nil, 1)); err == nil {
			<-f.done
			err = f.ended
		}
	}
	for _, fd := range []int{f.tun, f.wire, f.stop} {
		if fd >= 0 {
			err = errors.Join(err, unix.Close(fd))
		}
	}
	return err
}
