// Package netmodel predicts what another network path does to a closed load, from what the load took over one
// path and what both paths were measured to be without it:
//
//	tps, CPU of a transaction, its round trips and bytes -> Control -> Predict(another path) -> tps, what binds it
//
// A transaction of k round trips waits k times for the path, and has the machine's CPUs handle k round trips.
// With few clients the first adds up; with many the second does, as they queue for the CPUs. Both follow from
// mean value analysis of a closed network with one station, the CPUs, and a delay, of which a part is the other
// clients': M. Reiser, S. Lavenberg, "Mean-value analysis of closed multichain queuing networks", JACM 27 (1980);
// several CPUs by the approximation of A. Seidmann, "A comparison of models of automated manufacturing systems" (1987).
package netmodel

import "math"

// Control is what a load took over the path that others are predicted from. Times are in microseconds.
type Control struct {
	Threads    int     // clients, each waits for an answer before it asks again
	TPS        float64 // transactions/s
	CPU        float64 // of a transaction: client, server and the kernel's handling of packets
	CPUs       float64 // that all of them share
	RoundTrips float64 // of a transaction, counted
	Bytes      float64 // of a transaction, both ways, counted
	Path       Path
	Partly     bool // CPU is without the server's, which so is among what is waited for
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
	delay := fit(c)
	cpu := math.Max(c.CPU+c.more(p), 0.1*c.CPU)
	delay += c.others(delay) * (cpu/c.CPU - 1)
	delay += later(c.RoundTrips*(p.RTT-c.Path.RTT), c.RoundTrips*(p.RTTCPU-c.Path.RTTCPU))
	delay += later(transfer(c.Bytes, p)-transfer(c.Bytes, c.Path), c.Bytes*(p.ByteCPU-c.Path.ByteCPU))
	got := Prediction{throughput(c.Threads, c.CPUs, cpu, delay), RoundTrips}
	if got.TPS*cpu > busy*c.CPUs*second {
		got.Bound = CPU
	}
	if most := p.Rate / (8 * c.Bytes); c.Bytes > 0 && p.Rate > 0 && most < got.TPS {
		got = Prediction{most, Bandwidth}
	}
	return got
}

// more is how much more CPU time a transaction takes over a path than over the control's, in microseconds: what is taken from a
// server and a client that are at work, where that was measured of both paths, else what the path uses.
func (c Control) more(p Path) float64 {
	if p.Taken > 0 && c.Path.Taken > 0 {
		return c.RoundTrips*(p.Taken-c.Path.Taken) + c.Bytes*(p.ByteTaken-c.Path.ByteTaken)
	}
	return c.RoundTrips*(p.RTTCPU-c.Path.RTTCPU) + c.Bytes*(p.ByteCPU-c.Path.ByteCPU)
}

// others is how much of a delay is the other clients': for one of n, (n-1)/n of what the path does not explain. They hold locks, and threads
// hand over to threads while a CPU idles; that lasts as long as their transactions take CPU time, and so takes longer where
// those take more. The rest is waited for alone, as by a single client: a commit's flush. Both shares are rules of thumb, which
// docs/network.md holds against measurements.
func (c Control) others(delay float64) float64 {
	if c.Partly {
		return 0
	}
	path := c.RoundTrips*math.Max(0, c.Path.RTT-c.Path.RTTCPU) + math.Max(0, transfer(c.Bytes, c.Path)-c.Bytes*c.Path.ByteCPU)
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
	low, high := -c.CPU, float64(c.Threads)*second/c.TPS
	for range 60 {
		middle := (low + high) / 2
		if throughput(c.Threads, c.CPUs, c.CPU, middle) > c.TPS {
			low = middle
		} else {
			high = middle
		}
	}
	return (low + high) / 2
}

// throughput returns the transactions/s of so many clients, each of which needs cpu microseconds of one of the
// CPUs and waits for delay besides.
func throughput(clients int, cpus, cpu, delay float64) float64 {
	queued := cpu / cpus
	delay = math.Max(delay+cpu*(cpus-1)/cpus, -0.9*queued)
	waiting, rate := 0.0, 0.0
	for n := 1; n <= clients; n++ {
		took := queued * (1 + waiting)
		rate = float64(n) / (delay + took)
		waiting = rate * took
	}
	return rate * second
}
