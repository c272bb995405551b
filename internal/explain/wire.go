package explain

import (
	"fmt"

	"david/internal/result"
)

// Kinds of paths of david network measure that have no wire.
const (
	pathSocket   = "unix"
	pathLoopback = "loopback"
)

// wireFull is the share of what the way to the server can carry from which on it is what is waited for: the
// headers of small packets are not counted everywhere.
const wireFull = 0.85

// wire says how full the way between server and client is, in the fuller of its directions.
type wire struct {
	full  bool
	out   bool    // the fuller direction is from the client
	used  float64 // bits/s; 0: not known
	limit float64 // bits/s; 0: not known
	seen  string  // what says so; "" where either is not known
}

// wireUse compares what the way carried with the least of what it can: the rate that it is held to, one stream of
// iperf3, the network card's.
func (t dividedTrial) wireUse() (w wire) {
	if !t.networked() {
		return w
	}
	by, where := "", "the way"
	limit := func(bits float64, what string) {
		if bits > 0 && (w.limit == 0 || bits < w.limit) {
			w.limit, by = bits, what
		}
	}
	limit(float64(t.Arm.Path.Rate), "that the path is held to")
	if p := t.Arm.PathProbe; p != nil {
		limit(p.Rate, "that one stream of iperf3 got of it alone")
	}
	in, out := 8*t.rate("bytes_sent"), 8*t.rate("bytes_received") // as the server counts them, without headers
	if seen := t.Trial.Wire; seen != nil {
		limit(float64(seen.Rate), "that the link can carry")
		in, out, where = seen.In, seen.Out, "the link "+seen.Link
	}
	to := "to"
	if w.used = in; out > in {
		w.out, w.used, to = true, out, "from"
	}
	if w.used <= 0 || w.limit <= 0 {
		return w
	}
	w.full = w.used >= wireFull*w.limit
	w.seen = fmt.Sprintf("%s carried %s/s %s the client, %.0f %% of the %s/s %s", where, bits(w.used), to, 100*w.used/w.limit, bits(w.limit), by)
	return w
}

// bits says so many of them.
func bits(n float64) string {
	for _, u := range []struct {
		name string
		of   float64
	}{{"Gbit", 1e9}, {"Mbit", 1e6}} {
		if n >= u.of {
			return fmt.Sprintf("%.3g %s", n/u.of, u.name)
		}
	}
	return fmt.Sprintf("%.3g kbit", n/1e3)
}

func (t dividedTrial) sayBandwidth(n *notes) {
	n.add("%s", t.wire.seen)
	if v := t.Trial.Costs.Network; v != nil {
		n.add("%.1f KiB a transaction both ways, as the server counts them", *v/1024)
	}
	t.sayWay(n)
}

// wider changes what the way can carry, where david made it.
func (t dividedTrial) wider(share float64) Confirm {
	p := t.Arm.Path
	switch {
	case p.Rate > 0:
		p.Rate *= 2
		return Confirm{Question: say("is it faster over a path that is held to %s/s?", bits(float64(p.Rate))), Path: &p, Expect: Faster, Ratio: gain(share, 0.5)}
	case t.Arm.Pod != (result.Pod{}): // a cluster's network
	case p.Kind != "" && p.Kind != pathSocket && p.Kind != pathLoopback && t.wire.used > 0:
		p.Rate = max(leastRate, int64(fewer*t.wire.used))
		return Confirm{Question: say("is it slower over a path that is held to %s/s, %.0f %% of what it carried?", bits(float64(p.Rate)), 100*fewer), Path: &p,
			Expect: Slower, Ratio: gain(share, 1/fewer)}
	}
	return Confirm{Question: "does one connection alone get no more of the way than the load took?", Expect: Faster, Ratio: gain(share, 0.5)}
}

// Used says how much of the way to the server a load took in the fuller of its directions, in bits/s, and whether
// that is the one from the client.
func Used(in Input) (bits float64, out bool) {
	w := newTrial(in).wire
	return w.used, w.out
}

// Alone confirms or refutes network bandwidth on a server of which nothing may be changed: where one connection
// that does nothing but send gets hardly more of the way than the load took, the way is full.
func Alone(f Finding, in Input, alone float64) Confirmation {
	c := Confirmation{Cause: f.Cause, Share: f.Share, Supposed: f.Supposed, Question: f.Confirm.Question, Expect: "as much as the load took", Expected: 1}
	used, _ := Used(in)
	part := ratio(used, alone)
	c.Outcome = Outcome{Ratio: part, Interval: [2]float64{part, part}, Pairs: 1}
	c.Why = fmt.Sprintf("one connection alone got %s/s, the load took %s/s", bits(alone), bits(used))
	c.Judgement = judgePart(c.Outcome)
	return c
}

// leastRate is that of a path of david network measure, bits/s.
const leastRate = 1_000_000
