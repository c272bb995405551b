package experiment

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"david/internal/result"
	"david/internal/stats"
)

// The limits of the gates. Where no source is named, they are chosen: well above what an undisturbed machine
// shows (a few tenths of these), well below what moves a result by more than the noise of restarts (3 %).
// What others take of the machine is noise, which the random order of blocks spreads over all arms and which
// widens their intervals: it has limits only beyond which the load was hardly there.
const (
	// Ignored errors are deadlocks and lock timeouts, which small write-heavy tables have by nature; above
	// one in a hundred the workload measures retries.
	errorShareMax = 0.01
	// Steal is CPU time the hypervisor gave to others; Design.MaxSteal takes its place.
	stealShareMax = 0.40
	// Of the machine's CPU time, what neither the server nor the client nor david nor the kernel's own
	// threads used.
	othersMax = 0.60
	// The same of a slice, which is one of many and is weighed by it.
	othersMaxSlice = 0.95
	// Above these a trial is marked as disturbed, and counts.
	stealNoted  = 0.05
	othersNoted = 0.15
	// Of the CPUs its threads could use, what the load generator used: at all of them it measures itself.
	clientBusyMax = 0.90
	// Of the measured time, what the scheduler held the server or david back for a quota that nobody asked
	// david for.
	throttledMax = 0.01
	// Between what sysbench and the server counted.
	disagreeMax = 0.01
	// The system's clock against the monotonic one.
	clockMax = 500 * time.Millisecond
	// Of the clients of a spread load, the last behind the first: one second of the series.
	lateMaxMs = 1000
	// Of the disk, and in bytes, what must be left at the end: a filling disk slows down, then fails.
	diskShareMin = 0.03
	diskMin      = 256 << 20
)

// evidence holds what was seen of a trial beside its own figures.
type evidence struct {
	sameServer bool
	// interrupted names what of the path to the server was down meanwhile.
	interrupted []string
	sameBinary  string // "" where it is, else what changed
	steal       float64
	stealMax    float64
	others      float64  // share of the machine's CPU time used by other processes; NaN where it could not be read
	othersMax   float64  // 0: the gate's own limit
	who         []string // these processes
	clientCPU   float64  // cores the load generator used; NaN where it could not be read
	clientCPUs  float64  // cores its threads could have used
	throttled   float64  // share of the time a quota held david and the client back
	asked       bool     // a CPU cap on the server was asked for
	// serverThrottled is the same of the server; NaN: not seen.
	serverThrottled float64
	swapped         int64 // bytes
	clock           time.Duration
	commits         [2]float64 // sysbench's, the server's; equal where they do not apply
	questions       [2]float64
	setUp           float64 // statements that setting up connections may take, which sysbench does not count
	rowsChecked     int
	rowsTables      int
	rowsErr         error // tables whose row count is wrong
	slice           bool  // rows are counted when the server is done with, and there are many like it
	diskFree        int64 // bytes
	diskSize        int64
	differ          []string // of the durability lock, from the base's
	ceiling         bool     // it is not held against the lock
	steady          bool     // the experiment is of steady state: drift makes a trial invalid
}

// gates judges whether a trial may count.
func gates(t result.Trial, ev evidence) []result.Gate {
	list := []result.Gate{
		gate(result.GateTransactions, t.Transactions > 0, "%d completed", t.Transactions),
		errorGate(t),
		gate(result.GateReconnects, t.Reconnects == 0, "%d connections were lost", t.Reconnects),
		gate(result.GateSameServer, ev.sameServer, "the server that was started is the one that answered at the end"),
		binaryGate(ev),
		gate(result.GateSteal, ev.steal <= ev.stealMax, "%.1f %% of the CPU time went to other guests (limit %.0f %%)", 100*ev.steal, 100*ev.stealMax),
		othersGate(ev),
		clientGate(ev),
		throttleGate(ev),
		gate(result.GateSwap, ev.swapped == 0, "%d KiB of the server were swapped out", ev.swapped>>10),
		gate(result.GateClock, ev.clock.Abs() <= clockMax, "the system's clock moved by %.3f s against the monotonic one (limit %.1f s)", ev.clock.Seconds(), clockMax.Seconds()),
		countGate(ev),
		rowsGate(ev),
		diskGate(ev),
		durabilityGate(ev),
	}
	if ev.steady {
		text, steady := drift(t)
		list = append(list, gate(result.GateSteady, steady, "%s", text))
	}
	if len(t.Clients) > 0 {
		list = append(list, clientsGate(t))
	}
	if t.Workload.Rate > 0 {
		list = append(list, queueGate(t))
	}
	if len(ev.interrupted) > 0 {
		list = append(list, gate(result.GatePath, false, "the path to the server was interrupted: %s", strings.Join(ev.interrupted, ", ")))
	}
	return list
}

func gate(name result.GateName, ok bool, format string, args ...any) result.Gate {
	return result.Gate{Name: name, OK: ok, Detail: fmt.Sprintf(format, args...)}
}

func errorGate(t result.Trial) result.Gate {
	share := 0.0
	if t.Transactions > 0 {
		share = float64(t.Errors) / float64(t.Transactions)
	}
	return gate(result.GateErrors, share <= errorShareMax, "%d deadlocks and lock timeouts in %d transactions (limit %.0f %%)", t.Errors, t.Transactions, 100*errorShareMax)
}

func binaryGate(ev evidence) result.Gate {
	if ev.sameBinary != "" {
		return gate(result.GateSameBinary, false, "%s", ev.sameBinary)
	}
	return gate(result.GateSameBinary, true, "the server's binary and its data are those the experiment began with")
}

func othersGate(ev evidence) result.Gate {
	if math.IsNaN(ev.others) {
		return gate(result.GateOthers, true, "not seen: which process the server is, is not known")
	}
	who := ""
	if len(ev.who) > 0 {
		who = ": " + strings.Join(ev.who, ", ")
	}
	limit := othersMax
	if ev.slice {
		limit = othersMaxSlice
	}
	limit = cmp.Or(ev.othersMax, limit)
	return gate(result.GateOthers, !(ev.others > limit), "%.1f %% of the machine's CPU time was used by processes that are neither the server, the client nor david (limit %.0f %%)%s",
		100*ev.others, 100*limit, who)
}

func clientGate(ev evidence) result.Gate {
	share := ev.clientCPU / ev.clientCPUs
	return gate(result.GateClientCPU, !(share > clientBusyMax), "the load generator used %.2f of the %.4g CPUs its threads could use (limit %.0f %%)",
		ev.clientCPU, ev.clientCPUs, 100*clientBusyMax)
}

// clientsGate judges a spread load by when its clients began: what one does alone is not what was asked for.
func clientsGate(t result.Trial) result.Gate {
	last := t.Clients[0]
	for _, c := range t.Clients {
		if c.LateMs > last.LateMs {
			last = c
		}
	}
	return gate(result.GateClients, last.LateMs <= lateMaxMs, "%d clients began together, %s last, %.0f ms after the first (limit %d ms)", len(t.Clients), last.Name, last.LateMs, lateMaxMs)
}

// throttleGate lets a quota pass that david was asked for.
func throttleGate(ev evidence) result.Gate {
	if math.IsNaN(ev.serverThrottled) {
		return gate(result.GateThrottling, ev.throttled <= throttledMax, "a CPU quota held the client back for %.1f %% of the time (limit %.0f %%); the server's is not seen: which process it is, is not known",
			100*ev.throttled, 100*throttledMax)
	}
	detail := fmt.Sprintf("a CPU quota held the server back for %.1f %% of the time, the client for %.1f %% (limit %.0f %%)",
		100*ev.serverThrottled, 100*ev.throttled, 100*throttledMax)
	if ev.asked {
		return gate(result.GateThrottling, ev.throttled <= throttledMax, "%s; the server's is a cap that was asked for", detail)
	}
	return gate(result.GateThrottling, max(ev.throttled, ev.serverThrottled) <= throttledMax, "%s", detail)
}

// countGate holds sysbench's counts against the server's own, over exactly the measured run.
func countGate(ev evidence) result.Gate {
	worst := 0.0
	for _, pair := range [][2]float64{ev.commits, ev.questions} {
		if pair[0] > 0 {
			worst = max(worst, (math.Abs(pair[1]-pair[0])-ev.setUp)/pair[0])
		}
	}
	return gate(result.GateCounters, worst <= disagreeMax, "sysbench counted %.0f commits and %.0f queries, the server %.0f and %.0f (limit %.0f %% apart, besides connecting)",
		ev.commits[0], ev.questions[0], ev.commits[1], ev.questions[1], 100*disagreeMax)
}

// drift says how far throughput moved within the measured time, and whether it was steady.
func drift(t result.Trial) (text string, steady bool) {
	var tps []float64
	for _, p := range t.Points {
		if !p.Warm {
			tps = append(tps, p.TPS)
		}
	}
	change, significant := stats.Drift(tps)
	return fmt.Sprintf("throughput changed by %+.1f %% from the first half of the measured time to the second (limit %.0f %%, where it is significant)",
		100*(math.Exp(change)-1), 100*stats.MaxDrift), !(significant && math.Abs(change) > stats.MaxDrift)
}

// disturbance returns what others took of the machine.
func disturbance(ev evidence) *result.Disturbance {
	d := result.Disturbance{Steal: ev.steal, Others: ev.others}
	if math.IsNaN(d.Others) {
		d.Others = 0
	}
	return &d
}

// doubts returns the warnings of noise, which does not make a trial invalid.
func doubts(t result.Trial, ev evidence) (list []result.Warning) {
	if d := disturbance(ev); d.Steal > stealNoted || d.Others > othersNoted {
		list = append(list, result.Warning{Kind: result.Disturbed,
			Text: fmt.Sprintf("other guests took %.1f %% of the CPU time, other processes %.1f %%", 100*d.Steal, 100*d.Others)})
	}
	if text, steady := drift(t); !steady && !ev.steady {
		list = append(list, result.Warning{Kind: result.Unsteady, Text: text})
	}
	return list
}

func rowsGate(ev evidence) result.Gate {
	if ev.rowsErr != nil {
		return gate(result.GateRows, false, "%v", ev.rowsErr)
	}
	if ev.slice {
		return gate(result.GateRows, true, "counted when the server has had its last slice")
	}
	return gate(result.GateRows, true, "%d of %d tables counted after the run", ev.rowsChecked, ev.rowsTables)
}

// nearlyFull judges a filesystem by what is free of its size, in bytes.
func nearlyFull(free, size int64) bool {
	return free < diskMin || float64(free) < diskShareMin*float64(size)
}

func diskGate(ev evidence) result.Gate {
	if ev.diskSize == 0 {
		return gate(result.GateDisk, true, "not seen: the server is not one of this machine")
	}
	return gate(result.GateDisk, !nearlyFull(ev.diskFree, ev.diskSize), "%d MiB of %d MiB are free on the data's filesystem (at least %.0f %% and %d MiB)", ev.diskFree>>20, ev.diskSize>>20, 100*diskShareMin, diskMin>>20)
}

// durabilityGate judges what of the durability lock differs between an arm and the one it is compared with:
// speed that one of them bought with lost data is no speed.
func durabilityGate(ev evidence) result.Gate {
	if ev.ceiling {
		return gate(result.GateDurability, true, "a ceiling, unsafe on purpose: held against no lock, and no contender")
	}
	if len(ev.differ) > 0 {
		return gate(result.GateDurability, false, "not the control's: %s", strings.Join(ev.differ, ", "))
	}
	return gate(result.GateDurability, true, "the lock's settings are the control's")
}

// queueGate judges an open loop by its seconds where it was long enough for that, and always by what was left
// undone.
func queueGate(t result.Trial) result.Gate {
	if left := t.Workload.Rate*t.Seconds - float64(t.Transactions); left > undoneMax(t.Workload.Rate*t.Seconds) {
		return gate(result.GateQueue, false, "offered %.6g/s, reached %.6g/s: the queue grows", math.Round(t.Workload.Rate), math.Round(t.TPS))
	}
	var queue []int64
	for _, p := range t.Points {
		if !p.Warm {
			queue = append(queue, p.Queue)
		}
	}
	growing, seen := stats.Growing(queue, t.Workload.Rate)
	return gate(result.GateQueue, !growing, "%s", seen)
}

// undoneMax returns how many of so many transactions offered may be left undone: a tenth, or what chance
// alone may hold back of random arrivals, four times the square root of their number. Of fewer than a hundred
// nothing is said.
func undoneMax(offered float64) float64 {
	if offered < 100 {
		return math.Inf(1)
	}
	return max(offered/10, 4*math.Sqrt(offered))
}
