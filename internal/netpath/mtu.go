package netpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// MTU is what a path was found to carry, by pings that may not be fragmented. Sizes are of IP packets, in bytes.
type MTU struct {
	Sent    int    `json:"sent"`              // the largest that leaves here: the first link's MTU
	Carried int    `json:"carried,omitempty"` // the largest that was answered; 0: none was
	Told    bool   `json:"told,omitempty"`    // something on the way said that a larger one does not fit
	Why     string `json:"why,omitempty"`     // nothing is known
}

const (
	// smallest that any IPv4 link carries (RFC 791).
	smallestMTU = 68
	mostPacket  = 65535
	ipHeader    = 20
	ip6Header   = 40
	// firstWait is how long the first answer may take; later ones some times as long as that did.
	firstWait = time.Second
	waits     = 4
	leastWait = 50 * time.Millisecond
	pingTries = 2
)

// probeMTU finds the largest packet that reaches an address, of those that leave here.
func probeMTU(to netip.Addr, most int) (m MTU) {
	most = min(most, mostPacket) // the loopback interface has one more
	m.Sent = most
	p, err := newPinger(to)
	if err != nil {
		m.Why = err.Error()
		return m
	}
	defer unix.Close(p.fd)
	began := time.Now()
	if !p.carries(smallestMTU) {
		m.Why = "pings are not answered"
		return m
	}
	for wait := leastWait + waits*time.Since(began); ; wait *= waits {
		p.patience = wait
		m.Carried = p.search(most)
		p.patience = firstWait
		if m.Carried == most || wait > firstWait || !p.carries(m.Carried+1) { // it was not just slow
			m.Told = p.told
			return m
		}
	}
}

// search finds the largest packet that is carried.
func (p *pinger) search(most int) int {
	if p.carries(most) {
		return most
	}
	low, high := smallestMTU, most // the first is carried, the second is not
	for low < high-1 {
		if middle := (low + high) / 2; p.carries(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// pinger sends pings that may not be fragmented, of any size that the first link takes.
type pinger struct {
	fd   int
	raw  bool // its answers have an IP header
	id   uint16
	seq  uint16
	told bool // a packet was said to be too large
	// patience is how long an answer is waited for.
	patience time.Duration
}

func newPinger(to netip.Addr) (*pinger, error) {
	if !to.Is4() {
		return nil, errors.New("david probes the MTU of IPv4 only")
	}
	p := &pinger{id: uint16(unix.Getpid()), patience: firstWait}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		p.raw = true
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	}
	if err != nil {
		return nil, fmt.Errorf("pings take root, or a group in net.ipv4.ping_group_range: %w", err)
	}
	p.fd = fd
	err = errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_PROBE),
		unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_RECVERR, 1),
		unix.Connect(fd, &unix.SockaddrInet4{Addr: to.As4()}))
	if err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("cannot ping: %w", err)
	}
	return p, nil
}

// carries tells whether a packet of that size is answered.
func (p *pinger) carries(size int) bool {
	t := unix.NsecToTimeval(p.patience.Nanoseconds())
	if err := unix.SetsockoptTimeval(p.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &t); err != nil {
		return false
	}
	for range pingTries {
		p.seq++
		err := unix.Send(p.fd, p.request(size-ipHeader), 0)
		if errors.Is(err, unix.EMSGSIZE) {
			p.drain()
			return false
		}
		if err == nil && p.answered() {
			return true
		}
	}
	return false
}

// request is an ICMP echo request (RFC 792).
func (p *pinger) request(size int) []byte {
	b := make([]byte, size)
	b[0] = 8
	binary.BigEndian.PutUint16(b[4:], p.id)
	binary.BigEndian.PutUint16(b[6:], p.seq)
	sum := uint32(0)
	for i := 0; i+1 < len(b[:8]); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	binary.BigEndian.PutUint16(b[2:], ^uint16(sum))
	return b
}

// answered waits for the answer to the last request.
func (p *pinger) answered() bool {
	b := make([]byte, 1<<16)
	for {
		n, err := unix.Read(p.fd, b)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			if errors.Is(err, unix.EMSGSIZE) {
				p.told = true
			}
			p.drain()
			return false
		}
		reply := b[:n]
		if p.raw && n >= ipHeader {
			reply = reply[min(n, int(reply[0]&0xf)*4):]
		}
		if len(reply) >= 8 && reply[0] == 0 && binary.BigEndian.Uint16(reply[6:]) == p.seq && (!p.raw || binary.BigEndian.Uint16(reply[4:]) == p.id) {
			return true
		}
	}
}

// drain empties the queue of errors, which would be told of the next packet else.
func (p *pinger) drain() {
	b := make([]byte, 512)
	for {
		if _, _, _, _, err := unix.Recvmsg(p.fd, b, b, unix.MSG_ERRQUEUE|unix.MSG_DONTWAIT); err != nil {
			return
		}
	}
}
