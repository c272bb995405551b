package sampler

import (
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"david/internal/result"
)

// clientUse adds up what the load generator used since the mark. It has usually ended when the last reading
// is taken, so what counts is the last time it was seen, and how far the load had come by then.
type clientUse struct {
	last      *processStat
	threads   map[int]procfs.ProcSchedstat
	cpu       float64 // seconds
	ran       float64 // ns, of its threads
	waited    float64 // ns they were runnable and no CPU ran them
	most      int     // threads at once; at the last look some may have ended
	from, to  time.Time
	questions float64 // the server's counter when it was last seen
}

// add takes in a reading at which the client ran. A process or thread that was not there before counts from
// its start.
func (u *clientUse) add(r snapshot) {
	same := u.last.same(r.client)
	if u.last == nil {
		u.from = born(*r.client, r.at)
	}
	u.cpu += r.client.cpu
	if same {
		u.cpu -= u.last.cpu
	}
	for tid, now := range r.threads {
		var then procfs.ProcSchedstat
		if same {
			then = u.threads[tid]
		}
		u.ran += float64(now.RunningNanoseconds) - float64(then.RunningNanoseconds)
		u.waited += float64(now.WaitingNanoseconds) - float64(then.WaitingNanoseconds)
	}
	u.most = max(u.most, len(r.threads))
	u.last, u.threads, u.to, u.questions = r.client, r.threads, r.at, r.status["questions"]
}

// cores returns how many CPUs the client used, 0 where it was not seen for long enough.
func (u *clientUse) cores() float64 {
	if s := u.to.Sub(u.from).Seconds(); s > 0 {
		return u.cpu / s
	}
	return 0
}

// wait returns the share of the time its threads could have run that they waited for a CPU, 0 to 1.
func (u *clientUse) wait() float64 {
	if u.ran+u.waited <= 0 {
		return 0
	}
	return u.waited / (u.ran + u.waited)
}

// used sums up what the client's threads used until its end, of which that share was done when it was last
// seen.
func (u *clientUse) used(share float64) result.Threads {
	if u.last == nil || share <= 0 {
		return result.Threads{}
	}
	return result.Threads{Name: u.last.name, Count: u.most, CPU: u.ran / 1e9 / share, Wait: u.waited / 1e9 / share}
}

// born returns when a process started, which its clock ticks since the machine's start tell
// (proc_pid_stat(5)).
func born(p processStat, now time.Time) time.Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil { // cannot fail with a clock the kernel has
		return now
	}
	const tick = time.Second / 100 // USER_HZ, on all platforms MySQL runs on
	age := time.Duration(t.Nano()) - time.Duration(p.born)*tick
	return now.Add(-max(0, age))
}
