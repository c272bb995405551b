package netmodel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// control is a load of 20 round trips on 2 CPUs that has 200 transactions/s of one client: 5 ms each, of which
// 20 times 50 us are the path's.
var control = Control{Threads: 1, TPS: 200, CPU: 3000, CPUs: 2, RoundTrips: 20, Bytes: 40_000, Path: Path{RTT: 50, RTTCPU: 40, Rate: 10e9}}

// TestPredict holds predictions against figures computed by hand.
func TestPredict(t *testing.T) {
	for name, c := range map[string]struct {
		threads int
		tps     float64
		path    Path
		want    float64
		bound   Bound
	}{
		"the same path":       {1, 200, control.Path, 200, RoundTrips},
		"the same, saturated": {64, 600, control.Path, 600, CPU},
		// 20 x 50 us more: 6 ms
		"twice the round trip": {1, 200, Path{RTT: 100, RTTCPU: 40, Rate: 10e9}, 1e6 / 6000, RoundTrips},
		// 20 x 10 ms more
		"another city": {1, 200, Path{RTT: 10_050, RTTCPU: 40, Rate: 10e9}, 1e6 / 205_000, RoundTrips},
		// 40 kB at 10 Mbit/s take 32 ms, and at 10 Gbit/s 32 us: 36.968 ms
		"a thin line": {1, 200, Path{RTT: 50, RTTCPU: 40, Rate: 10e6}, 1e6 / 36_968, RoundTrips},
		// it takes no more than 10e6 / 8 / 40e3
		"a thin line, many clients": {64, 600, Path{RTT: 50, RTTCPU: 40, Rate: 10e6}, 31.25, Bandwidth},
		// round trips take 20 x 40 us more of the CPU: 2 CPUs give 2e6 / 3800, and a little less with 64 clients
		"a costly path, many clients": {64, 660, Path{RTT: 90, RTTCPU: 80, Rate: 10e9}, 524, CPU},
		// and so do 40 kB of which each byte takes 20 ns more
		"bytes that a program copies, many clients": {64, 660, Path{RTT: 50, RTTCPU: 40, Rate: 10e9, ByteCPU: 0.02}, 524, CPU},
		// what is taken from other work counts, where it is known of both: of a control that does not know it, it is not
		"a path that was seen beside work only": {64, 660, Path{RTT: 90, RTTCPU: 80, Rate: 10e9, Taken: 200, ByteTaken: 1}, 524, CPU},
		// the answers of a transaction are there 40e3 x 0.025 us later, all of it handling: 6 ms
		"bytes that come later": {1, 200, Path{RTT: 50, RTTCPU: 40, Rate: 10e9, ByteCPU: 0.025, ByteRTT: 0.025}, 1e6 / 6000, RoundTrips},
		// client and server handled them at the same time while there was no load: 7 ms
		"bytes that two CPUs handle": {1, 200, Path{RTT: 50, RTTCPU: 40, Rate: 10e9, ByteCPU: 0.05, ByteRTT: 0.025}, 1e6 / 7000, RoundTrips},
		// and so are 20 round trips of 60 us for 80 us of CPU time: 5.8 ms
		"round trips that two CPUs handle": {1, 200, Path{RTT: 60, RTTCPU: 80, Rate: 10e9}, 1e6 / 5800, RoundTrips},
		// and for many clients that is no gain
		"bytes that two CPUs handle, many clients": {64, 660, Path{RTT: 50, RTTCPU: 40, Rate: 10e9, ByteCPU: 0.02, ByteRTT: 0.01}, 524, CPU},
	} {
		load := control
		load.Threads, load.TPS = c.threads, c.tps
		got := Predict(load, c.path)
		if math.Abs(got.TPS/c.want-1) > 0.01 || got.Bound != c.bound {
			t.Errorf("%s: %+v, want %.1f, %s", name, got, c.want, c.bound)
		}
	}
	if got := Predict(Control{}, control.Path); got != (Prediction{}) {
		t.Errorf("%+v of nothing", got)
	}
}

// TestTaken: round trips that take 60 us from other work where they use 40 themselves, and bytes 20 ns, are 20 x 10 + 40e3 x 0.015 us more than the
// control's; one client waits for all of it.
func TestTaken(t *testing.T) {
	load := control
	load.Path.Taken, load.Path.ByteTaken = 50, 0.005
	path := Path{RTT: 50, RTTCPU: 40, Rate: 10e9, Taken: 60, ByteTaken: 0.02}
	if got := Predict(load, path); math.Abs(got.TPS*5800/1e6-1) > 0.001 {
		t.Errorf("one client: %+v", got)
	}
	load.Threads, load.TPS = 64, 660
	if got := Predict(load, path); math.Abs(got.TPS*3800/2e6-1) > 0.02 || got.Bound != CPU {
		t.Errorf("64 clients: %+v", got)
	}
}

// TestTwoMachines: what client and server take of machines of their own adds up for one client; many are held up by the busier machine, and a
// path that costs more at the idle one is no slower for them.
func TestTwoMachines(t *testing.T) {
	load := control
	load.CPU, load.Far = 1000, Station{2000, 2}
	load.Path.RTTCPU, load.Path.Far.RTTCPU = 20, 20
	near := Path{RTT: 60, RTTCPU: 30, Rate: 10e9, Far: Handling{RTTCPU: 20}}
	far := Path{RTT: 60, RTTCPU: 20, Rate: 10e9, Far: Handling{RTTCPU: 30}}
	for _, p := range []Path{near, far} { // 20 x 10 us more
		if got := Predict(load, p); math.Abs(got.TPS*5200/1e6-1) > 0.001 || got.Bound != RoundTrips {
			t.Errorf("one client: %+v", got)
		}
	}
	load.Threads, load.TPS = 64, 990 // of 1000 that the server's CPUs give
	if got := Predict(load, near); math.Abs(got.TPS/990-1) > 0.03 || got.Bound != CPU {
		t.Errorf("64 clients, more at their machine: %+v", got)
	}
	if got := Predict(load, far); math.Abs(got.TPS*2200/2e6-1) > 0.03 || got.Bound != CPU {
		t.Errorf("64 clients, more at the server's: %+v", got)
	}
	load.Path.Far.Taken, far.Far.Taken = 20, 60 // which is known of the far end alone
	if got := Predict(load, far); math.Abs(got.TPS*2800/2e6-1) > 0.03 {
		t.Errorf("64 clients, taken from the server's: %+v", got)
	}
}

// TestBack: from the slower path the faster one is predicted as it was.
func TestBack(t *testing.T) {
	for _, path := range []Path{{RTT: 60, RTTCPU: 80, Rate: 10e9}, {RTT: 1050, RTTCPU: 50, Rate: 1e9}, {RTT: 70, RTTCPU: 50, Rate: 10e9, ByteCPU: 0.05, ByteRTT: 0.025}} {
		slow := control
		slow.TPS, slow.Path = Predict(control, path).TPS, path
		slow.CPU += 20*(path.RTTCPU-control.Path.RTTCPU) + 40_000*path.ByteCPU
		if got := Predict(slow, control.Path); math.Abs(got.TPS/200-1) > 0.001 {
			t.Errorf("%+v: %+v, want 200", path, got)
		}
	}
}

// TestOthers: of 4 clients' waiting, three quarters of what the path does not explain are in proportion to the CPU time; of one's nothing is.
func TestOthers(t *testing.T) {
	load := control
	if got := load.others(fit(load)); got != 0 {
		t.Errorf("one client waits %v us for others", got)
	}
	load.Threads, load.TPS = 4, 500
	delay, path := fit(load), 20*10+32. // of the bytes at 10 Gbit/s
	if got := load.others(delay); !(got > 0) || math.Abs(got/(0.75*(delay-path))-1) > 1e-9 {
		t.Errorf("4 clients wait %v us for others, of %v", got, delay)
	}
	costly := Path{RTT: 90, RTTCPU: 80, Rate: 10e9}
	whole := Predict(load, costly)
	load.Partly = true
	if partly := Predict(load, costly); !(whole.TPS < partly.TPS) {
		t.Errorf("%v with all of the CPU time seen, %v with a part", whole, partly)
	}
}

// TestLater: from one path to another is as far as back, and less than nothing to tell makes no leap.
func TestLater(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		time, cpu := 200*r.Float64()-100, 200*r.Float64()-100
		got := later(time, cpu)
		if got != -later(-time, -cpu) || got*time < 0 || math.Abs(got) > math.Abs(time) {
			t.Fatalf("%v of %v and %v", got, time, cpu)
		}
		if near := later(time+0.001, cpu-0.001); math.Abs(near-got) > 0.0021 {
			t.Fatalf("%v of %v and %v, %v beside", got, time, cpu, near)
		}
	}
	for _, c := range [][3]float64{{60, 40, 20}, {40, 60, 0}, {0, 60, 0}, {40, -1, 40}, {-60, -40, -20}, {-40, 1, -40}} {
		if got := later(c[0], c[1]); got != c[2] {
			t.Errorf("%v of %v and %v, want %v", got, c[0], c[1], c[2])
		}
	}
}

// TestThroughput: no client waits for another where there is one, and many cannot pass the CPUs.
func TestThroughput(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		cpus, cpu, delay := float64(1+r.IntN(8)), 100+5000*r.Float64(), 20_000*r.Float64()
		if one := throughput(1, stations{{cpu, cpus}}, delay); math.Abs(one*(cpu+delay)/second-1) > 1e-9 {
			t.Fatalf("%v of %v and %v", one, cpu, delay)
		}
		last := 0.0
		for _, n := range []int{1, 2, 8, 64, 1024} {
			x := throughput(n, stations{{cpu, cpus}}, delay)
			if x < last*0.999999 || x > cpus*second/cpu*1.000001 || x > float64(n)*second/(cpu+delay)*1.000001 {
				t.Fatalf("%v with %d clients on %v CPUs, %v and %v", x, n, cpus, cpu, delay)
			}
			last = x
		}
	}
}
