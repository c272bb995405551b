// Package netmodel predicts what another network path does to a closed load, from what the load took over one
// path and what both paths were measured to be without it:
//
//	tps, CPU of a transaction, its round trips and bytes -> Control -> Predict(another path) -> tps, what binds it
//
// A transaction of k round trips waits k times for the path, and has the machine's CPUs handle k round trips.
// With few clients the first adds up; with many the second does, as they queue for the CPUs. Both follow from
// mean value analysis of a closed network with one station, the CPUs, or with two where client and server are on
// machines of their own, and a delay, of which a part is the other clients': M. Reiser, S. Lavenberg, "Mean-value analysis of closed multichain queuing networks", JACM 27 (1980);
// several CPUs by the approximation of A. Seidmann, "A comparison of models of automated manufacturing systems" (1987).
package netmodel

import (
	"math"
	"slices"
)

// Control is what a load took over the path that others are predicted from. Times are in microseconds.
type Control struct {
	Threads    int     // clients, each waits for an answer before it asks again
	TPS        float64 // transactions/s
	CPU        float64 // of a transaction: client, server and the kernel's handling of packets
	CPUs       float64 // that all of them share; they may be fewer than whole ones, where others take their part
	RoundTrips float64 // of a transaction, counted
	Bytes      float64 // of a transaction, both ways, counted
	Path       Path
	Partly     bool // CPU is without the server's, which so is among what is waited for
	// Far are the server's CPUs where they are another machine's: CPU and CPUs are the client's then. Zero where all share the same.
	Far Station
}

// Station is CPUs that are queued for.
type Station struct {
	CPU  float64 // of a transaction, microseconds
	CPUs float64
}

// Path is what a path was measured to be, without the load.
type Path struct {
	RTT     float64 // of a small request and its answer, microseconds
	RTTCPU  float64 // CPU time that it takes, microseconds
	Rate    float64 // bits/s of one stream
	ByteCPU float64 // CPU time that a byte more in an answer takes, microseconds; 0: not known
	ByteRTT float64 // how much later the answer is there for it, microseconds; 0: not known
	// Taken and ByteTaken are the CPU time that a round trip and a byte take from other work on busy CPUs, with what that loses by caches that are
	// not its own afterwards, microseconds; 0 Taken: neither is known.
	Taken, ByteTaken float64
	// Far is the CPU time of the far end where that is another machine's; RTTCPU, ByteCPU, Taken and ByteTaken are the near end's then.
	Far Handling
}

// Handling is the CPU time that a round trip and a byte take at one end, as Path has it.
type Handling struct{ RTTCPU, ByteCPU, Taken, ByteTaken float64 }

// near is the client's end's, or where both share their CPUs both ends'.
func (p Path) near() Handling { return Handling{p.RTTCPU, p.ByteCPU, p.Taken, p.ByteTaken} }

// handled is the CPU time that a round trip and a byte take at both ends.
func (p Path) handled() (trip, byte float64) {
	return p.RTTCPU + p.Far.RTTCPU, p.ByteCPU + p.Far.ByteCPU
}

// Bound names what a load waits for the most.
type Bound string

// The bounds.
const (
	RoundTrips Bound = "round trips" // and the server's time between them
	CPU        Bound = "CPU"
	Bandwidth  Bound = "bandwidth"
)

// Prediction is what a path is expected to give.
type Prediction struct {
	TPS   float64
	Bound Bound
}

const (
	second = 1e6 // microseconds
	// busy is the share of the CPUs from which on more clients hardly get more done.
	busy = 0.85
)

// Predict returns what the load will do over another path. The zero Prediction is that of a control which
// says too little.
func Predict(c Control, p Path) Prediction {
	if !(c.TPS > 0 && c.CPU > 0 && c.CPUs > 0 && c.Threads > 0 && c.Path.RTT > 0 && p.RTT > 0) {
		return Prediction{}
	}
	now, delay := c.stations(), fit(c)
	then := now.over(c, p)
	delay += c.others(delay) * (then.cpu()/now.cpu() - 1)
	trip, byte := c.Path.handled()
	tripThen, byteThen := p.handled()
	delay += later(c.RoundTrips*(p.RTT-c.Path.RTT), c.RoundTrips*(tripThen-trip))
	delay += later(transfer(c.Bytes, p)-transfer(c.Bytes, c.Path), c.Bytes*(byteThen-byte))
	got := Prediction{throughput(c.Threads, then, delay), RoundTrips}
	if then.full(got.TPS) {
		got.Bound = CPU
	}
	if most := p.Rate / (8 * c.Bytes); c.Bytes > 0 && p.Rate > 0 && most < got.TPS {
		got = Prediction{most, Bandwidth}
	}
	return got
}

// stations are the client's CPUs and the server's, or those that both share.
type stations []Station

func (c Control) stations() stations {
	list := stations{{c.CPU, c.CPUs}}
	if c.Far.CPUs > 0 {
		list = append(list, c.Far)
	}
	return list
}

// over is what a transaction takes of them over another path than the control's: at least a tenth.
func (list stations) over(c Control, p Path) (then stations) {
	ends := [][2]Handling{{c.Path.near(), p.near()}, {c.Path.Far, p.Far}}
	for i, s := range list {
		s.CPU = math.Max(s.CPU+c.more(ends[i][0], ends[i][1]), 0.1*s.CPU)
		then = append(then, s)
	}
	return then
}

// cpu is what a transaction takes of all of them.
func (list stations) cpu() (sum float64) {
	for _, s := range list {
		sum += s.CPU
	}
	return sum
}

// full tells whether so many transactions/s keep one of them busy.
func (list stations) full(tps float64) bool {
	return slices.ContainsFunc(list, func(s Station) bool { return tps*s.CPU > busy*s.CPUs*second })
}

// more is how much more CPU time a transaction takes at one end of a path than at that of the control's, in microseconds: what is taken
// from a server and a client that are at work, where that was measured of both paths, else what the path uses.
func (c Control) more(now, then Handling) float64 {
	if then.Taken > 0 && now.Taken > 0 {
		return c.RoundTrips*(then.Taken-now.Taken) + c.Bytes*(then.ByteTaken-now.ByteTaken)
	}
	return c.RoundTrips*(then.RTTCPU-now.RTTCPU) + c.Bytes*(then.ByteCPU-now.ByteCPU)
}

// others is how much of a delay is the other clients': for one of n, (n-1)/n of what the path does not explain. They hold locks, and threads
// hand over to threads while a CPU idles; that lasts as long as their transactions take CPU time, and so takes longer where
// those take more. The rest is waited for alone, as by a single client: a commit's flush. Both shares are rules of thumb, which
// docs/network.md holds against measurements.
func (c Control) others(delay float64) float64 {
	if c.Partly {
		return 0
	}
	trip, byte := c.Path.handled()
	path := c.RoundTrips*math.Max(0, c.Path.RTT-trip) + math.Max(0, transfer(c.Bytes, c.Path)-c.Bytes*byte)
	n := float64(c.Threads)
	return math.Max(0, delay-path) * (n - 1) / n
}

// later is how much longer a client waits besides the CPU time of another path, of so much more time and CPU time that a round trip or its
// bytes take there: between nothing and all of the time. What CPUs that had nothing else to do handled at the same time is no time
// saved in a load that keeps them busy.
func later(time, cpu float64) float64 {
	return math.Max(math.Min(0, time), math.Min(math.Max(0, time), time-cpu))
}

// transfer is how long a transaction's bytes are on their way, in microseconds: as an answer's were seen to be, and no less than the line
// takes.
func transfer(bytes float64, p Path) float64 {
	line := 0.0
	if p.Rate > 0 {
		line = 8 * bytes / p.Rate * second
	}
	return math.Max(line, bytes*p.ByteRTT)
}

// fit finds the delay, in microseconds, with which the control's throughput is what it was. It is negative
// where client and server work at the same time.
func fit(c Control) float64 {
	list := c.stations()
	low, high := -list.cpu(), float64(c.Threads)*second/c.TPS
	for range 60 {
		middle := (low + high) / 2
		if throughput(c.Threads, list, middle) > c.TPS {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// throughput returns the transactions/s of so many clients, each of which needs CPU time of every station and waits
// for delay besides.
func throughput(clients int, list stations, delay float64) float64 {
	alone := 0.0 // what a transaction takes of the stations while it is the only one, but for what several CPUs do at once
	for _, s := range list {
		alone += s.CPU / s.CPUs
		delay += s.CPU * (s.CPUs - 1) / s.CPUs
	}
	delay = math.Max(delay, -0.9*alone)
	waiting, rate := make([]float64, len(list)), 0.0
	for n := 1; n <= clients; n++ {
		took, all := make([]float64, len(list)), delay
		for i, s := range list {
			took[i] = s.CPU / s.CPUs * (1 + waiting[i])
			all += took[i]
		}
		rate = float64(n) / all
		for i := range list {
			waiting[i] = rate * took[i]
		}
	}
	return rate * second
}
