package netpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// pinger sends packets that may not be fragmented, of any size that the first link takes and with so many hops to live, and reads
// who answers what. Pings do best: an end that knows nothing of david answers them. Where david may not send any it takes UDP, as
// tracepath does: to ports at which nothing should listen.
type pinger struct {
	fd      int
	to      netip.Addr
	by      means
	id, seq uint16
	sent    map[uint16]time.Time
	answers map[uint16]response
	// patience is how long an answer is waited for.
	patience time.Duration
}

// means are what packets a pinger sends.
type means int

const (
	pingSocket means = iota // pings of an ordinary user, of a group in net.ipv4.ping_group_range
	rawSocket               // pings of root's
	udpSocket               // UDP of anybody's
)

// response is what came for a packet.
type response struct {
	what what
	from netip.Addr    // who answered
	mtu  int           // that is said to be carried, of tooLarge; 0: nothing was said
	took time.Duration // since the packet was sent
}

type what int

const (
	silence  what = iota
	arrived       // at the end
	expired       // at a router, having come by as many hops as it had to live
	tooLarge      // for what follows
	refused       // by a router or a firewall, which lets nothing of the kind pass
)

const (
	// smallest that any IPv4 link carries (RFC 791); with an IPv6 header it has room for a ping as well.
	smallestMTU = 68
	mostPacket  = 65535
	ipHeader    = 20
	ip6Header   = 40
	icmpHeader  = 8
	// udpFirst is the port of traceroute's first packet.
	udpFirst = 33434
	// mostSent packets of a pinger have a number, and so a port, each.
	mostSent = 30_000
	// usualLife is how many hops a packet may take that is to reach the end: Linux's own.
	usualLife = 64

	// firstWait is how long the first answer may take; later ones some times as long as that did.
	firstWait = time.Second
	waits     = 4
	leastWait = 50 * time.Millisecond
)

// The types of messages (RFC 792, RFC 4443).
const (
	echoRequest, echoReply   = 8, 0
	echoRequest6, echoReply6 = 128, 129
	unreachable, unreachable6,
	tooBig6,
	exceeded, exceeded6 = 3, 1, 2, 11, 3
	fragmentationNeeded, portUnreachable, portUnreachable6 = 4, 3, 4 // codes of unreachable
)

// newPinger takes the best means that it may.
func newPinger(to netip.Addr) (p *pinger, err error) {
	for _, by := range []means{pingSocket, rawSocket, udpSocket} {
		if p, err = openPinger(to, by); err == nil {
			return p, nil
		}
	}
	return nil, err
}

func openPinger(to netip.Addr, by means) (*pinger, error) {
	p := &pinger{to: to, by: by, id: uint16(unix.Getpid()), patience: firstWait, sent: map[uint16]time.Time{}, answers: map[uint16]response{}}
	kind := unix.SOCK_DGRAM
	if by == rawSocket {
		kind = unix.SOCK_RAW
	}
	protocol := map[bool]int{false: unix.IPPROTO_ICMP, true: unix.IPPROTO_ICMPV6}[to.Is6()]
	if by == udpSocket {
		protocol = unix.IPPROTO_UDP
	}
	fd, err := unix.Socket(int(family(to)), kind|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, fmt.Errorf("cannot send packets of any size: %w", os.NewSyscallError("socket", err))
	}
	p.fd = fd
	if err := p.prepare(); err != nil {
		p.close()
		return nil, fmt.Errorf("cannot send packets that may not be fragmented: %w", err)
	}
	return p, nil
}

// prepare has the socket's packets not be fragmented, whatever smaller MTU the kernel has been told of, and its errors queued.
func (p *pinger) prepare() error {
	options := map[int]int{unix.IP_MTU_DISCOVER: unix.IP_PMTUDISC_PROBE, unix.IP_RECVERR: 1}
	if p.to.Is6() {
		options = map[int]int{unix.IPV6_MTU_DISCOVER: unix.IPV6_PMTUDISC_PROBE, unix.IPV6_RECVERR: 1, unix.IPV6_DONTFRAG: 1}
	}
	for name, value := range options {
		if err := unix.SetsockoptInt(p.fd, p.level(), name, value); err != nil {
			return os.NewSyscallError("setsockopt", err)
		}
	}
	if p.by == udpSocket { // each of its packets goes to a port of its own
		return nil
	}
	return os.NewSyscallError("connect", unix.Connect(p.fd, p.sockaddr(0)))
}

func (p *pinger) close() { unix.Close(p.fd) }

func (p *pinger) level() int {
	if p.to.Is6() {
		return unix.IPPROTO_IPV6
	}
	return unix.IPPROTO_IP
}

func (p *pinger) sockaddr(port int) unix.Sockaddr {
	if p.to.Is4() {
		return &unix.SockaddrInet4{Addr: p.to.As4(), Port: port}
	}
	to := &unix.SockaddrInet6{Addr: p.to.As16(), Port: port}
	if link, err := net.InterfaceByName(p.to.Zone()); err == nil { // of an address that only a link knows
		to.ZoneId = uint32(link.Index)
	}
	return to
}

// header is what of a packet an IP header takes.
func (p *pinger) header() int {
	if p.to.Is6() {
		return ip6Header
	}
	return ipHeader
}

// send sends a packet of a size, IP header and all, and returns its number. The error is syscall.EMSGSIZE where this machine's own link does not
// take it.
func (p *pinger) send(life, size int) (number uint16, err error) {
	limit := unix.IP_TTL
	if p.to.Is6() {
		limit = unix.IPV6_UNICAST_HOPS
	}
	if err := unix.SetsockoptInt(p.fd, p.level(), limit, life); err != nil {
		return 0, os.NewSyscallError("setsockopt", err)
	}
	if p.seq == mostSent {
		return 0, errors.New("too many packets were sent")
	}
	p.seq++
	body := p.body(size - p.header())
	for range 4 { // an error that came for an earlier packet is told of this one
		p.read()
		p.sent[p.seq] = time.Now()
		if p.by == udpSocket {
			err = unix.Sendto(p.fd, body, 0, p.sockaddr(udpFirst+int(p.seq)))
		} else {
			err = unix.Send(p.fd, body, 0)
		}
		if err == nil || errors.Is(err, syscall.ENOBUFS) { // it is lost, as where a veth's other end takes none so large
			return p.seq, nil
		}
	}
	return 0, os.NewSyscallError("send", err)
}

// body is an echo request (RFC 792, RFC 4443), or what follows a UDP header. The kernel has the checksum of all but a raw socket's.
func (p *pinger) body(size int) []byte {
	if p.by == udpSocket {
		return make([]byte, size-icmpHeader) // a UDP header is as long
	}
	b := make([]byte, size)
	b[0] = echoRequest
	if p.to.Is6() {
		b[0] = echoRequest6
	}
	binary.BigEndian.PutUint16(b[4:], p.id)
	binary.BigEndian.PutUint16(b[6:], p.seq)
	if p.to.Is4() {
		binary.BigEndian.PutUint16(b[2:], checksum(b[:icmpHeader])) // the rest is zero
	}
	return b
}

func checksum(b []byte) uint16 {
	sum := uint32(0)
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return ^uint16(sum)
}

// await waits until all of these packets are answered, for so long at most.
func (p *pinger) await(patience time.Duration, numbers ...uint16) {
	for end := time.Now().Add(patience); ; {
		p.read()
		missing := false
		for _, n := range numbers {
			missing = missing || p.answers[n].what == silence
		}
		left := time.Until(end)
		if !missing || left <= 0 {
			return
		}
		fds := []unix.PollFd{{Fd: int32(p.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(fds, int(left.Milliseconds())+1); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// ask sends one packet and waits for its answer.
func (p *pinger) ask(life, size int) (response, error) {
	number, err := p.send(life, size)
	if err != nil {
		return response{}, err
	}
	p.await(p.patience, number)
	return p.answers[number], nil
}

// read takes in what has come.
func (p *pinger) read() {
	b, control := make([]byte, 512), make([]byte, 512)
	for {
		n, c, _, from, err := unix.Recvmsg(p.fd, b, control, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT)
		if err != nil {
			break
		}
		p.complained(b[:n], control[:c], from)
	}
	for {
		n, from, err := unix.Recvfrom(p.fd, b, unix.MSG_DONTWAIT)
		if err != nil { // nothing more, or what the queue has said
			return
		}
		p.replied(b[:n], from)
	}
}

// replied notes what the end sent.
func (p *pinger) replied(b []byte, from unix.Sockaddr) {
	if p.by == udpSocket { // somebody listens there after all
		p.note(udpNumber(from), response{what: arrived, from: p.to})
		return
	}
	if p.by == rawSocket && p.to.Is4() && len(b) >= ipHeader {
		b = b[min(len(b), int(b[0]&0xf)*4):]
	}
	reply := byte(echoReply)
	if p.to.Is6() {
		reply = echoReply6
	}
	if len(b) >= icmpHeader && b[0] == reply && p.own(b) {
		p.note(binary.BigEndian.Uint16(b[6:]), response{what: arrived, from: p.to})
	}
}

// own tells whether an echo message is of this pinger: the kernel does that for all but raw sockets.
func (p *pinger) own(b []byte) bool {
	return p.by != rawSocket || binary.BigEndian.Uint16(b[4:]) == p.id
}

// complained notes an error that came for a packet: b is what the packet had after its IP header, as far as whoever complains sent it back;
// of UDP what followed that header, too.
func (p *pinger) complained(b, control []byte, to unix.Sockaddr) {
	a, ok := complaint(control)
	if !ok {
		return
	}
	number := udpNumber(to)
	if p.by != udpSocket {
		if len(b) < icmpHeader || !p.own(b) {
			return
		}
		number = binary.BigEndian.Uint16(b[6:])
	}
	if a.what == refused && a.from == p.to { // by the end's own firewall
		a.what = arrived
	}
	p.note(number, a)
}

func udpNumber(a unix.Sockaddr) uint16 {
	switch a := a.(type) {
	case *unix.SockaddrInet4:
		return uint16(a.Port - udpFirst)
	case *unix.SockaddrInet6:
		return uint16(a.Port - udpFirst)
	}
	return 0
}

// note keeps the first answer to a packet.
func (p *pinger) note(number uint16, a response) {
	sent, ok := p.sent[number]
	if !ok || p.answers[number].what != silence {
		return
	}
	a.took = time.Since(sent)
	p.answers[number] = a
}

// complaint reads the control message of an error (ip(7), IP_RECVERR): struct sock_extended_err, and the address of who sent it.
func complaint(control []byte) (a response, ok bool) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return a, false
	}
	for _, m := range messages {
		of4 := m.Header.Level == unix.IPPROTO_IP && m.Header.Type == unix.IP_RECVERR
		of6 := m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_RECVERR
		if b := m.Data; (of4 || of6) && len(b) >= extendedErr {
			a.what = meaning(b[4], b[5], b[6])
			if a.what == tooLarge {
				a.mtu = int(binary.NativeEndian.Uint32(b[8:]))
			}
			a.from = offender(b[extendedErr:])
			return a, a.what != silence
		}
	}
	return a, false
}

// extendedErr is the size of struct sock_extended_err: errno, origin, type, code, a byte, info, data.
const extendedErr = 16

// meaning of a message of ICMP, or of ICMPv6.
func meaning(origin, kind, code byte) what {
	switch {
	case origin == unix.SO_EE_ORIGIN_ICMP && kind == exceeded, origin == unix.SO_EE_ORIGIN_ICMP6 && kind == exceeded6:
		return expired
	case origin == unix.SO_EE_ORIGIN_ICMP && kind == unreachable && code == fragmentationNeeded, origin == unix.SO_EE_ORIGIN_ICMP6 && kind == tooBig6:
		return tooLarge
	case origin == unix.SO_EE_ORIGIN_ICMP && kind == unreachable && code == portUnreachable, origin == unix.SO_EE_ORIGIN_ICMP6 && kind == unreachable6 && code == portUnreachable6:
		return arrived
	case origin == unix.SO_EE_ORIGIN_ICMP || origin == unix.SO_EE_ORIGIN_ICMP6:
		return refused
	}
	return silence // this machine's own
}

// offender reads the struct sockaddr_in or sockaddr_in6 that follows.
func offender(b []byte) (a netip.Addr) {
	if len(b) < 8 {
		return a
	}
	switch of := binary.NativeEndian.Uint16(b); {
	case of == unix.AF_INET:
		a, _ = netip.AddrFromSlice(b[4:8])
	case of == unix.AF_INET6 && len(b) >= 24:
		a, _ = netip.AddrFromSlice(b[8:24])
	}
	return a.Unmap()
}

// tooLargeHere tells whether this machine's own link does not take a packet.
func tooLargeHere(err error) bool { return errors.Is(err, syscall.EMSGSIZE) }
