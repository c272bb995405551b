package sampler

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/procfs"

	"david/internal/host"
	"david/internal/mysqld"
	"david/internal/result"
)

// Record holds what was read, over the measured run unless said otherwise.
type Record struct {
	Samples []result.Sample // since Start; those before Mark have a negative time
	// Counters are all status counters: their growth from Mark to Stop, by lower-case name. Questions
	// includes the sampler's own Statements, and the profiler's.
	Counters      map[string]float64
	Statements    int64
	Before, After result.Debt // at Mark and at Stop
	Evidence      Evidence
	Sampling      result.Sampling
	Profile       *result.Profile // from Mark to Stop; nil without Mark, or without Options.Schema
	Missing       []string        // values that no sample has, sorted, and why where that is known

	usage usage
}

// Evidence holds what the gates judge.
type Evidence struct {
	Steal float64 // share of the machine's CPU time given to other guests, 0 to 1
	// Busy is the share of the machine's CPU time, 0 to 1, used by neither server, client, david nor the
	// kernel's own threads, and Others who that was, the busiest first. A server on another machine is not
	// counted.
	Busy   float64
	Others []string
	// ClientCPU says how many cores the client used; ClientWait the share of the time its threads could have
	// run that they waited for a CPU, 0 to 1.
	ClientCPU  float64
	ClientWait float64
	// Throttled is the time david's own cgroup, which the client is in, was held back by a CPU quota, as a
	// share of the run, and ServerThrottled the server's own cgroup. Each CPU held back counts, up to 1.
	Throttled       float64
	ServerThrottled float64
	// Swapped is the growth of the server's memory in swap plus what the machine read back from swap, in
	// bytes.
	Swapped int64
	// ClockJump says how much more the clock on the wall advanced than the machine's steady one.
	ClockJump time.Duration
}

// usage holds what is divided by transactions. A pointer is nil where the figure is not known.
type usage struct {
	serverCPU, clientCPU, softIRQ, hostCPU, switches, readKB, writtenKB *float64
	clientShare                                                         float64 // of the load that was done when the client was last seen
	counters                                                            map[string]float64
}

// Costs gives what each of the measured run's transactions took. A client that ended before Stop was last
// seen up to a second before its end: what it used is divided by the transactions until then, by the server's
// count of questions.
//
// Fsyncs are Innodb_data_fsyncs, which holds those of the redo log too: with MySQL 9.7 and MariaDB 10.11 it
// grows by one for each fdatasync that strace sees of InnoDB, and Innodb_os_log_fsyncs is part of it. Neither
// server counts the binary log's.
func Costs(r Record, transactions int64) result.Costs {
	if transactions <= 0 {
		return result.Costs{}
	}
	n := float64(transactions)
	u := r.usage
	return result.Costs{
		ServerCPU: per(u.serverCPU, n/1e6), ClientCPU: per(u.clientCPU, n*u.clientShare/1e6), SoftIRQ: per(u.softIRQ, n/1e6), HostCPU: per(u.hostCPU, n/1e6), Switches: per(u.switches, n),
		ReadKB: per(u.readKB, n), WrittenKB: per(u.writtenKB, n),
		Network:   per(sum(known(u.counters, "bytes_received"), known(u.counters, "bytes_sent")), n),
		Fsyncs:    per(known(u.counters, "innodb_data_fsyncs"), n),
		RedoBytes: per(redo(u.counters), n),
		HitRate:   hitRate(u.counters),
	}
}

// sum adds what is known; nil where one of them is not.
func sum(a, b *float64) *float64 {
	if a == nil || b == nil {
		return nil
	}
	return pointer(*a + *b)
}

func per(v *float64, n float64) *float64 {
	if v == nil || n <= 0 {
		return nil
	}
	x := *v / n
	return &x
}

// redo returns the redo made, in bytes: how far the position in the log moved. MySQL's Innodb_os_log_written
// counts what fills up blocks as well, a quarter more with small transactions, so it is only used where there
// is no position.
func redo(counters map[string]float64) *float64 {
	for _, name := range []string{"innodb_redo_log_current_lsn", "innodb_lsn_current", "innodb_os_log_written"} {
		if v := known(counters, name); v != nil {
			return v
		}
	}
	return nil
}

// hitRate returns the share of page requests that needed no read, 0 to 1.
func hitRate(counters map[string]float64) *float64 {
	requests, reads := known(counters, "innodb_buffer_pool_read_requests"), known(counters, "innodb_buffer_pool_reads")
	if requests == nil || reads == nil || *requests <= 0 {
		return nil
	}
	rate := max(0, 1 - *reads / *requests)
	return &rate
}

// usage works out what the run used in all.
func (s *Sampler) usage() usage {
	u := usage{counters: mysqld.Delta(s.mark.status, s.final.status), clientShare: s.clientShare()}
	if s.mark.server.same(s.final.server) {
		u.serverCPU = pointer(s.final.server.cpu - s.mark.server.cpu)
	}
	if s.use.last != nil {
		u.clientCPU = pointer(s.use.cpu)
	}
	if s.mark.cpus > 0 && s.final.cpus > 0 {
		u.switches = pointer(s.final.switches - s.mark.switches)
		u.softIRQ = pointer(s.final.cpu.SoftIRQ + s.final.cpu.IRQ - s.mark.cpu.SoftIRQ - s.mark.cpu.IRQ)
		all := total(s.final.cpu) - total(s.mark.cpu)
		u.hostCPU = pointer(max(0, host.BusyTime(s.final.cpu)-host.BusyTime(s.mark.cpu)-s.busy()*all))
	}
	if s.mark.disk != nil && s.final.disk != nil {
		u.readKB = pointer(float64(s.final.disk.ReadSectors-s.mark.disk.ReadSectors) * sectorKiB)
		u.writtenKB = pointer(float64(s.final.disk.WriteSectors-s.mark.disk.WriteSectors) * sectorKiB)
	}
	return u
}

func pointer(v float64) *float64 { return &v }

// clientShare returns how much of the load, 0 to 1, the server had been asked when the client was last seen.
func (s *Sampler) clientShare() float64 {
	all := s.final.status["questions"] - s.mark.status["questions"]
	if s.use.last == nil || all <= 0 {
		return 0
	}
	return min(1, max(0, (s.use.questions-s.mark.status["questions"])/all))
}

// evidence works out what the gates judge.
func (s *Sampler) evidence() Evidence {
	wall := s.final.at.Sub(s.mark.at)
	e := Evidence{
		Steal:     host.StealShare(times(s.mark.cpu), times(s.final.cpu)),
		ClientCPU: s.use.cores(), ClientWait: s.use.wait(),
		ClockJump: s.final.at.Round(0).Sub(s.mark.at.Round(0)) - wall, // Round drops the steady clock
		Swapped:   int64(max(0, s.final.vm["pswpin"]-s.mark.vm["pswpin"])) * int64(os.Getpagesize()),
	}
	if s.mark.server.same(s.final.server) {
		e.Swapped += int64(max(0, s.final.server.swap-s.mark.server.swap))
	}
	if seconds := wall.Seconds(); seconds > 0 {
		e.Throttled = min(1, max(0, s.final.own-s.mark.own)/seconds)
		e.ServerThrottled = min(1, max(0, s.final.group-s.mark.group)/seconds)
	}
	e.Busy = s.busy()
	e.Others = s.others(wall.Seconds())
	return e
}

func times(c procfs.CPUStat) host.CPUTimes {
	return host.CPUTimes{Total: total(c), Steal: c.Steal}
}

// busy returns the share of the CPU time that strangers used while the client was seen. Interrupts are
// nobody's.
func (s *Sampler) busy() float64 {
	used := func(c procfs.CPUStat) float64 { return c.User + c.Nice + c.System }
	end := s.end
	if s.use.last == nil { // no client at all
		end = s.final
	}
	all := total(end.cpu) - total(s.mark.cpu)
	if all <= 0 {
		return 0
	}
	strange := used(end.cpu) - used(s.mark.cpu) - (end.david - s.mark.david) - s.use.cpu - s.kernelThreads()
	if s.mark.server.same(end.server) {
		strange -= end.server.cpu - s.mark.server.cpu
	}
	return min(1, max(0, strange/all))
}

// grown gives every process with the CPU seconds it used between Mark and Stop.
func (s *Sampler) grown() []processStat {
	var all []processStat
	for pid, p := range s.final.processes {
		if old, ok := s.mark.processes[pid]; ok && old.same(&p) {
			p.cpu -= old.cpu
		}
		all = append(all, p)
	}
	return all
}

// kernelThreads sums up what the kernel's own threads used: those that serve a loop device or write back
// pages work for the server.
func (s *Sampler) kernelThreads() (sum float64) {
	for _, p := range s.grown() {
		if p.kernel {
			sum += p.cpu
		}
	}
	return sum
}

// others names the strangers that used a twentieth of a core or more, the busiest first, five at most. One
// that ended before Stop is not among them.
func (s *Sampler) others(seconds float64) (list []string) {
	all := s.grown()
	slices.SortFunc(all, func(a, b processStat) int { return int(1000 * (b.cpu - a.cpu)) })
	for _, p := range all {
		mine := p.kernel || p.pid == os.Getpid() || p.same(s.final.server) || p.same(s.use.last)
		if cores := p.cpu / seconds; !mine && cores >= 0.05 && len(list) < 5 {
			list = append(list, fmt.Sprintf("%s (process %d): %.2f cores", p.name, p.pid, cores))
		}
	}
	return list
}

// sampling sums up what looking cost.
func (s *Sampler) sampling() result.Sampling {
	c := result.Sampling{}
	for _, one := range s.samples {
		if one.at.After(s.mark.at) {
			c.Samples++
		}
	}
	seconds := s.final.at.Sub(s.mark.at).Seconds()
	if seconds <= 0 {
		return c
	}
	c.DavidCPU = (s.final.david - s.mark.david) / seconds
	own := asked{wall: s.final.asked.wall - s.mark.asked.wall, cpu: s.final.asked.cpu - s.mark.asked.cpu}
	c.ServerCPU = (own.seconds() + s.looking().seconds()) / seconds
	if p := s.profiler; p != nil && p.socketThreads != nil { // neither thread is known, but those that are not the load's are
		c.ServerCPU = p.socketThreads.cpu(p.before.threads, p.after.threads) / seconds
	}
	return c
}

// looking sums up what the profiler asked.
func (s *Sampler) looking() asked {
	if s.profiler == nil {
		return asked{}
	}
	return s.profiler.spent
}

// missing names the values that no sample has, and what the server or the kernel refused.
func (s *Sampler) missing() (list []string) {
	seen := map[string]bool{}
	for _, one := range s.samples {
		for name := range one.values {
			seen[name] = true
		}
	}
	for _, name := range names() {
		if !seen[name] {
			list = append(list, name)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(s.kernel.notes)) {
		list = append(list, what+": "+s.kernel.notes[what].Error())
	}
	return append(list, s.server.notes...)
}
