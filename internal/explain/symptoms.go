package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"david/internal/result"
)

// Symptom names what a connection did or waited for.
type Symptom string

// The symptoms.
const (
	ServerRan    Symptom = "server runs"
	ServerQueued Symptom = "server waits for a CPU"
	QuotaWait    Symptom = "held back by a CPU quota"
	ClientRan    Symptom = "client runs"
	ClientQueued Symptom = "client waits for a CPU"
	Between      Symptom = "between server and client"
	Reading      Symptom = "reads pages"
	Committing   Symptom = "commits"
	Writing      Symptom = "writes pages"
	FreePage     Symptom = "waits for a free page"
	RowLock      Symptom = "waits for a row lock"
	RedoRoom     Symptom = "waits for room in the redo log"
	Changing     Symptom = "waits inside the server to change"
	Looking      Symptom = "waits inside the server to read"
	Unexplained  Symptom = "unexplained"
)

// symptoms lists them in the order of a transaction's way.
func symptoms() []Symptom {
	return []Symptom{ServerRan, ServerQueued, QuotaWait, ClientRan, ClientQueued, Between, Reading, Committing, Writing, FreePage,
		RowLock, RedoRoom, Changing, Looking, Unexplained}
}

// amounts holds shares of the connections' time, by symptom.
type amounts map[Symptom]float64

// lookKind says what one look at a connection tells.
type lookKind int

const (
	unknown     lookKind = iota
	running              // or waiting for a CPU: a look cannot tell
	client               // waits for the client's next statement
	reading              // a page
	committing           // writes or syncs a log, or waits for those who do
	writing              // a page
	writerWaits          // sleeps in a statement that changes rows
	readerWaits          // sleeps in one that does not
	writerNaps           // sleeps for a set time, as those do who wait for a free page or for room in MySQL's redo log
	naps                 // the same, in another statement
	adrift               // sleeps, in which statement is not known
)

// kinds counts the looks by kind.
type kinds struct {
	count map[lookKind]float64
	all   float64
	odd   []result.State // of unknown kind
	named map[lookKind]float64
}

// look sorts the looks. Where kernel and process list could not be brought together the kernel's half is
// counted, and the list's says what those were doing of whom the kernel says only that they slept.
func look(states []result.State) kinds {
	k := kinds{count: map[lookKind]float64{}, named: map[lookKind]float64{}}
	apart := slices.ContainsFunc(states, func(s result.State) bool { return s.Kernel != "" && s.Command == "" })
	for _, s := range states {
		if s.Count <= 0 {
			continue
		}
		n := float64(s.Count)
		if apart && s.Kernel == "" {
			k.named[named(s)] += n
			continue
		}
		what := kindOf(s)
		k.count[what] += n
		k.all += n
		if what == unknown {
			k.odd = append(k.odd, s)
		}
	}
	k.spread()
	return k
}

// spread gives those that slept in an unknown statement to the kinds of sleepers whose statement is known, in
// proportion; where none is, to what the process list names, without those already known to commit.
func (k *kinds) spread() {
	weights := map[lookKind]float64{}
	for _, what := range []lookKind{committing, writerWaits, readerWaits} {
		weights[what] = k.count[what]
	}
	if weights[writerWaits]+weights[readerWaits] == 0 && len(k.named) > 0 {
		weights = k.named
		weights[committing] = max(0, weights[committing]-k.count[committing])
	}
	sum := weights[committing] + weights[writerWaits] + weights[readerWaits]
	lost := k.count[adrift]
	delete(k.count, adrift)
	if sum <= 0 {
		k.count[unknown] += lost
		return
	}
	for _, what := range []lookKind{committing, writerWaits, readerWaits} {
		k.count[what] += lost * weights[what] / sum
	}
}

// share returns what part of the looks were of that kind, 0 to 1. Without looks all is unknown.
func (k kinds) share(what lookKind) float64 {
	if k.all <= 0 {
		return map[lookKind]float64{unknown: 1}[what]
	}
	return k.count[what] / k.all
}

// drop leaves that share of all looks out, of one kind.
func (k *kinds) drop(what lookKind, share float64) {
	n := min(k.count[what], share*k.all)
	k.count[what] -= n
	k.all -= n
}

// unclear says what the looks of unknown kind were, three at most.
func (k kinds) unclear() (list []string) {
	slices.SortStableFunc(k.odd, func(x, y result.State) int { return cmp.Compare(y.Count, x.Count) })
	for _, s := range k.odd[:min(3, len(k.odd))] {
		list = append(list, fmt.Sprintf("%.1f %% of the looks: %s", 100*ratio(float64(s.Count), k.all), describe(s)))
	}
	return list
}

// describe returns a state as a reader says it.
func describe(s result.State) string {
	var words []string
	for _, w := range []string{s.Command, s.Statement, s.Stage, s.Kernel, s.File} {
		if w != "" {
			words = append(words, w)
		}
	}
	if len(words) == 0 {
		return "nothing known"
	}
	return strings.Join(words, ", ")
}

// kindOf tells what a connection did. The kernel's word counts more than the process list's, which is read a
// moment later.
func kindOf(s result.State) lookKind {
	switch {
	case s.Kernel == "running":
		return running
	case s.Kernel == "":
		return kindListed(s)
	case s.File == "socket", isOneOf(s.Kernel, "recvfrom", "recvmsg", "poll", "ppoll", "epoll_wait", "epoll_pwait"):
		return client
	case s.File == "redo", s.File == "binlog":
		return committing
	case isOneOf(s.Kernel, "pread64", "preadv", "preadv2", "read", "readv", "io_getevents", "io_uring_enter"):
		return reading
	case isOneOf(s.File, "data", "doublewrite", "undo"), s.Kernel == "io_submit":
		return writing
	case commits(s):
		return committing
	case isOneOf(s.Kernel, "nanosleep", "clock_nanosleep", "restart_syscall"):
		if writes(s) {
			return writerNaps
		}
		return naps
	case isOneOf(s.Kernel, "futex", "select", "pselect6", "sched_yield"):
		return sleeper(s)
	}
	return unknown
}

// kindListed tells from the process list alone. Whether a statement runs or waits it does not say.
func kindListed(s result.State) lookKind {
	switch {
	case s.Command == "Sleep":
		return client
	case commits(s):
		return committing
	}
	return unknown
}

// named returns what a connection of the process list does if it sleeps.
func named(s result.State) lookKind {
	switch {
	case s.Command == "Sleep":
		return client
	case commits(s):
		return committing
	}
	return sleeper(s)
}

// sleeper tells sleepers apart by their statement.
func sleeper(s result.State) lookKind {
	switch {
	case writes(s):
		return writerWaits
	case s.Statement != "":
		return readerWaits
	}
	return adrift
}

// writes tells whether a statement changes rows.
func writes(s result.State) bool {
	return isOneOf(s.Statement, "UPDATE", "INSERT", "DELETE", "REPLACE", "LOAD")
}

// commits tells whether a statement commits: COMMIT itself, or one that commits by itself, by its stage.
// MySQL calls it "waiting for handler commit", MariaDB "Commit", "Commit_implicit" and "Waiting for prior
// transaction to commit".
func commits(s result.State) bool {
	return s.Statement == "COMMIT" || strings.Contains(strings.ToLower(s.Stage), "commit")
}

func isOneOf(word string, words ...string) bool { return slices.Contains(words, word) }

// symptoms divides the connections' time. The kernel's and InnoDB's exact counts come first; looks divide
// what is left.
func (t dividedTrial) symptoms() (amounts, kinds) {
	if t.Trial.Profile == nil || t.total <= 0 {
		return amounts{Unexplained: 1}, kinds{}
	}
	k := look(t.Trial.Profile.States)
	k.drop(client, ratio(t.idle(), t.connectionSeconds()))
	a := amounts{}
	left := t.divideCPU(a, k)
	scale := left // what a look at one that did not run stands for
	if rest := 1 - k.share(running); rest > 0 {
		scale = left / rest
	}
	t.divideClient(a, scale*k.share(client))
	a[Reading] = scale * k.share(reading)
	a[Committing] = scale * k.share(committing)
	a[Writing] = scale * k.share(writing)
	t.divideSleep(a, scale, k)
	settle(a)
	return a, k
}

// divideCPU puts in the time threads ran and waited for a CPU, and returns what is left. What the looks saw
// of threads that could run and the kernel's counts do not hold was held back by a quota, where there is one.
func (t dividedTrial) divideCPU(a amounts, k kinds) (left float64) {
	th, ok := t.connections()
	if !ok {
		a[ServerRan] = k.share(running)
		return 1 - a[ServerRan]
	}
	ran, queued := max(0, th.CPU)/t.total, max(0, th.Wait)/t.total
	if sum := ran + queued; sum > 1 {
		ran, queued = ran/sum, queued/sum
	}
	a[ServerRan], a[ServerQueued] = ran, queued
	if t.throttled() {
		a[QuotaWait] = max(0, k.share(running)-ran-queued)
	}
	return max(0, 1-ran-queued-a[QuotaWait])
}

// divideClient divides the time in which the server waited for the client: the client ran, waited for a CPU,
// or was being reached.
func (t dividedTrial) divideClient(a amounts, waited float64) {
	c := t.Trial.Profile.Client
	a[ClientRan] = min(waited, max(0, c.CPU)/t.total)
	a[ClientQueued] = min(waited-a[ClientRan], max(0, c.Wait)/t.total)
	a[Between] = waited - a[ClientRan] - a[ClientQueued]
}

// divideSleep divides the time connections slept in statements other than commits. InnoDB counts the waits
// for row locks; a writer that sleeps while the redo log is full waits for room in it; naps while there are
// waits for free pages are those.
func (t dividedTrial) divideSleep(a amounts, scale float64, k kinds) {
	writers, readers := scale*k.share(writerWaits), scale*k.share(readerWaits)
	napping, other := scale*k.share(writerNaps), scale*k.share(naps)
	locked := min(max(0, t.Trial.Counters["innodb_row_lock_time"])/1000/t.total, writers+readers+scale*k.share(unknown))
	a[RowLock] = locked
	rest := max(0, locked-writers) // waits of locking reads, or in statements that are not known
	writers, readers = max(0, writers-locked), max(0, readers-rest)
	if t.full() {
		a[RedoRoom] = writers + napping
		writers, napping = 0, 0
	}
	if t.Trial.Counters["innodb_buffer_pool_wait_free"] > 0 {
		a[FreePage] = napping + other
		napping, other = 0, 0
	}
	a[Changing], a[Looking] = writers+napping, readers+other
}

// settle makes the amounts add up to 1: what is left over is unexplained.
func settle(a amounts) {
	sum := 0.0
	for _, s := range symptoms() {
		a[s] = max(0, a[s])
		sum += a[s]
	}
	if sum > 1 {
		for s := range a {
			a[s] /= sum
		}
		sum = 1
	}
	a[Unexplained] = max(0, a[Unexplained]+1-sum)
}

// exact tells whether a symptom was counted rather than estimated from looks.
func (t dividedTrial) exact(s Symptom) bool {
	_, ok := t.connections()
	switch s {
	case ServerRan, ServerQueued:
		return ok
	case ClientRan, ClientQueued:
		return t.Trial.Profile != nil && t.Trial.Profile.Client != (result.Threads{})
	case RowLock:
		return true
	}
	return false
}
