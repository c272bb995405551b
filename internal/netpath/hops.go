package netpath

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Hop is a router on the way, or its end, as found by packets that live for so many hops.
type Hop struct {
	Number  int    `json:"number"`            // from 1
	Address string `json:"address,omitempty"` // "": nobody answers there
	MTU     int    `json:"mtu,omitempty"`     // the largest packet that came there, bytes; 0: not known
	Teller  string `json:"teller,omitempty"`  // the router that says that larger ones do not fit, where that was less than came to the hop before
	End     bool   `json:"end,omitempty"`     // the address that is asked for
	// Back is the largest answer of the end's that came back where larger packets reach it; 0: as large as they were sent.
	Back int `json:"back,omitempty"`
	// Either says that larger packets do not reach the end, or that its answers, which are as large, do not come back.
	Either bool `json:"either,omitempty"`
}

const (
	// mostHops of a way are looked at, hopsAtOnce at a time.
	mostHops   = 32
	hopsAtOnce = 8
	// mostSilent hops in a row and nothing more is expected behind them.
	mostSilent = 5
	// mostPairs of packets are sent until it is known whether the larger is lost, losses pairs of which have to say so.
	mostPairs, losses = 5, 2
	// rationPause is how long one waits for a router that answers so much a second: Linux once, after six answers (icmp(7), icmp_ratelimit).
	rationPause = 1100 * time.Millisecond
	// hopsTake is how long hops are looked at: routers that neither tell what fits nor answer often take the longest.
	hopsTake = 30 * time.Second
)

// hops finds who is on the way, and the largest packet of most bytes at most that gets to each: the guess, or less or more.
func (p *pinger) hops(ctx context.Context, most, guess int) []Hop {
	ctx, cancel := context.WithTimeout(ctx, hopsTake)
	defer cancel()
	list, slowest := p.routers(ctx)
	p.patience = min(firstWait, leastWait+waits*slowest)
	bound := most
	for i := range list {
		h := &list[i]
		if h.Address == "" || ctx.Err() != nil {
			continue
		}
		if h.MTU, h.Teller = p.upTo(ctx, h.Number, bound, guess); h.MTU == 0 {
			continue
		}
		if h.End && h.MTU < bound && h.Teller == "" && p.by != udpSocket {
			h.bothWays(bound, p.upToEnd(ctx, bound))
		}
		bound = min(bound, h.MTU)
	}
	return list
}

// routers finds who answers packets that live for 1, 2, 3 hops, up to the end, and how long the slowest answer took.
func (p *pinger) routers(ctx context.Context) (list []Hop, slowest time.Duration) {
	for len(list) < mostHops && ctx.Err() == nil {
		found := p.answering(ctx, len(list)+1)
		silent := 0
		for i, a := range found {
			slowest = max(slowest, a.took)
			h := Hop{Number: len(list) + 1, End: a.what == arrived}
			if silent++; a.what != silence {
				h.Address, silent = a.from.String(), 0
			}
			if list = append(list, h); h.End || a.what == refused {
				return list, slowest
			}
			if silent >= mostSilent && i == len(found)-1 {
				return heard(list), slowest
			}
		}
	}
	return heard(list), slowest
}

// heard leaves out the last hops if nobody answers there.
func heard(list []Hop) []Hop {
	for len(list) > 0 && list[len(list)-1].Address == "" {
		list = list[:len(list)-1]
	}
	return list
}

// answering sends small packets that live for first hops and more, to all that they reach at once.
func (p *pinger) answering(ctx context.Context, first int) (found [hopsAtOnce]response) {
	for try := range pingTries {
		if try > 0 { // a router may have answered too much lately
			pause(ctx, rationPause)
		}
		var numbers [hopsAtOnce]uint16 // 0: none was sent
		for i := range found {
			if found[i].what == silence {
				numbers[i], _ = p.send(first+i, smallestMTU)
			}
		}
		p.awaitEnd(&found, numbers)
		if complete(found) {
			break
		}
	}
	return found
}

// awaitEnd waits for the answers to packets of which each lives for a hop more than the one before, until all up to the end are there. Once the
// end has answered a router has some times as long as the slowest took.
func (p *pinger) awaitEnd(found *[hopsAtOnce]response, numbers [hopsAtOnce]uint16) {
	patience, slowest, ended := firstWait, time.Duration(0), false
	for began := time.Now(); time.Since(began) < patience && !complete(*found); {
		p.await(time.Millisecond, numbers[:]...)
		for i, n := range numbers {
			if found[i].what == silence {
				found[i] = p.answers[n]
			}
			slowest, ended = max(slowest, found[i].took), ended || found[i].what == arrived
		}
		if ended {
			patience = min(firstWait, leastWait+waits*slowest)
		}
	}
}

// complete tells whether all have answered up to the first at the end.
func complete(list [hopsAtOnce]response) bool {
	last := slices.IndexFunc(list[:], func(a response) bool { return a.what == arrived || a.what == refused })
	if last < 0 {
		last = len(list) - 1
	}
	return !slices.ContainsFunc(list[:last+1], func(a response) bool { return a.what == silence })
}

// upTo finds the largest packet that gets to a hop, 0 where that cannot be told, and who says that larger ones do not fit.
func (p *pinger) upTo(ctx context.Context, life, bound, guess int) (size int, teller string) {
	for size = bound; ; {
		a, known := p.reaches(ctx, life, size)
		switch {
		case !known:
			return 0, ""
		case a.what == tooLarge:
			teller = a.from.String()
			if a.mtu < smallestMTU || a.mtu >= size { // as old routers, which do not say what fits (RFC 1191)
				return p.largest(ctx, life, size, guess), teller
			}
			size = a.mtu
		case a.what == silence:
			return p.largest(ctx, life, size, guess), "" // whoever tells of a larger one does not tell of this
		default:
			return size, teller
		}
	}
}

// largest finds the largest packet that gets to a hop, of less than lost bytes; 0 where that cannot be told.
func (p *pinger) largest(ctx context.Context, life, lost, guess int) int {
	low, high := smallestMTU, lost // the first gets there, the second does not
	next := guess
	for low < high-1 {
		if next <= low || next >= high {
			next = (low + high) / 2
		}
		a, known := p.reaches(ctx, life, next)
		switch {
		case !known:
			return 0
		case a.what == silence || a.what == tooLarge:
			high = next
		default:
			low = next
		}
		next = 0
		if low == guess { // which is mostly right
			next = guess + 1
		}
	}
	return low
}

// reaches tells what becomes of a packet on its way to a hop that answers: the answer's kind is silence where it is lost. That it is lost is believed
// only where a small one sent right behind it is answered: a router does not answer more than so often.
func (p *pinger) reaches(ctx context.Context, life, size int) (a response, known bool) {
	if a, err := p.ask(life, size); err == nil && a.what != silence {
		return a, true
	}
	lost := 0
	for range mostPairs {
		large, err := p.send(life, size)
		if tooLargeHere(err) {
			return response{}, true
		}
		small, err2 := p.send(life, smallestMTU)
		if err != nil || err2 != nil || ctx.Err() != nil {
			return a, false
		}
		p.await(p.patience, large, small)
		switch {
		case p.answers[large].what != silence:
			return p.answers[large], true
		case p.answers[small].what == silence:
			pause(ctx, rationPause)
		default:
			if lost++; lost == losses {
				return response{}, true
			}
		}
	}
	return a, false
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// upToEnd sends a packet of a size to the end by UDP: what answers that is small, as a ping's answer is not. It is nil where nothing answers.
func (p *pinger) upToEnd(ctx context.Context, size int) *response {
	u, err := openPinger(p.to, udpSocket)
	if err != nil {
		return nil
	}
	defer u.close()
	u.patience = p.patience
	if a, _ := u.ask(usualLife, smallestMTU); a.what == silence {
		return nil
	}
	if a, known := u.reaches(ctx, usualLife, size); known {
		return &a
	}
	return nil
}

// bothWays says on which way packets are lost that are larger than came back, by what became of one that went there only.
func (h *Hop) bothWays(size int, there *response) {
	switch {
	case there == nil:
		h.Either = true
	case there.what == arrived:
		h.MTU, h.Back = size, h.MTU
	}
}

// String names a hop.
func (h Hop) String() string {
	if h.Address == "" {
		return fmt.Sprintf("hop %d", h.Number)
	}
	return fmt.Sprintf("hop %d (%s)", h.Number, h.Address)
}

// Narrow says in words where on the way packets that leave here are too large.
func (m MTU) Narrow() (list []string) {
	bound, before := m.Sent, "here"
	for _, h := range m.Hops {
		switch {
		case h.MTU == 0:
			continue
		case h.Back > 0:
			list = append(list, fmt.Sprintf("packets of up to %d bytes get to %s, and of its answers those of up to %d come back", bound, h, h.Back))
		case h.MTU < bound && h.Teller != "":
			list = append(list, fmt.Sprintf("between %s and %s %d bytes are carried, says %s", before, h, h.MTU, h.Teller))
		case h.MTU < bound && h.Either:
			list = append(list, fmt.Sprintf("between %s and %s, or on the way back, larger packets than %d bytes are lost without a word", before, h, h.MTU))
		case h.MTU < bound:
			list = append(list, fmt.Sprintf("between %s and %s larger packets than %d bytes are lost without a word", before, h, h.MTU))
		}
		bound, before = min(bound, h.MTU), h.String()
	}
	return list
}
