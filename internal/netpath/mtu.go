package netpath

import (
	"context"
	"net/netip"
	"slices"
	"time"
)

// MTU is what a path was found to carry, by packets that may not be fragmented. Sizes are of IP packets, in bytes.
type MTU struct {
	Sent    int    `json:"sent"`              // the largest that leaves here: the first link's MTU
	Carried int    `json:"carried,omitempty"` // the largest that was answered; 0: none was
	Told    bool   `json:"told,omitempty"`    // something on the way said that a larger one does not fit
	Why     string `json:"why,omitempty"`     // nothing is known
	Hops    []Hop  `json:"hops,omitempty"`    // routers, and the end where it answers
}

// pingTries are the packets of which one has to be answered.
const pingTries = 2

// probeMTU finds the largest packet that reaches an address, of those that leave here, and what each hop on the way gets.
func probeMTU(ctx context.Context, to netip.Addr, most int) (m MTU) {
	m.Sent = min(most, mostPacket) // the loopback interface has one more
	p, err := newPinger(to)
	if err != nil {
		m.Why = err.Error()
		return m
	}
	defer p.close()
	p.probe(ctx, &m)
	return m
}

// probe finds what the path carries. An end answers pings as often as they come, and packets of UDP seldom: with those the hops have to do.
func (p *pinger) probe(ctx context.Context, m *MTU) {
	if p.by == udpSocket {
		m.Hops = p.hops(ctx, m.Sent, 0)
		if i := slices.IndexFunc(m.Hops, func(h Hop) bool { return h.End }); i >= 0 {
			m.Carried, m.Told = m.Hops[i].MTU, p.told()
		} else {
			m.Why = "packets of UDP are not answered, and pings take root, or a group in net.ipv4.ping_group_range"
		}
		return
	}
	if m.Carried, m.Told = p.carried(m.Sent); m.Carried == 0 {
		m.Why = "pings are not answered"
	}
	if !p.to.IsLoopback() {
		m.Hops = p.hops(ctx, m.Sent, m.Carried)
	}
}

// carried finds the largest packet that is answered, 0 where none is, and whether something on the way told that it is.
func (p *pinger) carried(most int) (size int, told bool) {
	began := time.Now()
	if !p.carries(smallestMTU) {
		return 0, false
	}
	for wait := leastWait + waits*time.Since(began); ; wait *= waits {
		p.patience = wait
		size = p.search(most)
		p.patience = firstWait
		if size == most || wait > firstWait || !p.carries(size+1) { // it was not just slow
			return size, p.told()
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

// carries tells whether a packet of that size is answered by the end.
func (p *pinger) carries(size int) bool {
	for range pingTries {
		a, err := p.ask(usualLife, size)
		if tooLargeHere(err) || a.what == tooLarge {
			return false
		}
		if a.what == arrived {
			return true
		}
	}
	return false
}

// told tells whether a packet was said to be too large.
func (p *pinger) told() bool {
	for _, a := range p.answers {
		if a.what == tooLarge {
			return true
		}
	}
	return false
}
