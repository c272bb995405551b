package sampler

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"david/internal/result"
)

// spent holds what a thread has used since its start, in seconds.
type spent struct{ run, wait float64 }

// task describes one thread of the server; its files are kept open while it is looked at.
type task struct {
	doing, schedstat *os.File
	from, to         time.Time // when it was seen first and last
	gone             time.Time // when it was first not there any more
	spent            spent     // when it was last seen
}

// tasks reads what the server's threads do and how long they ran.
type tasks struct {
	pid    int
	calls  map[int]call
	binlog string // log_bin_basename
	doing  string // the file that tells what a thread does: "syscall", or "stat" where that may not be read
	seen   map[int]*task
	notes  notes
}

// newTasks makes sure /proc tells about the server's threads. For "syscall" the kernel asks what it asks of a
// debugger: root, or the server's own user (proc_pid_syscall(5)).
func newTasks(pid int, binlog string, n notes) *tasks {
	t := &tasks{pid: pid, calls: calls(), binlog: binlog, doing: "syscall", seen: map[int]*task{}, notes: n}
	if _, err := os.ReadFile(t.path(pid, "syscall")); err != nil {
		t.doing = "stat"
		n.add("system calls of the server's threads", fmt.Errorf("%w; david must be root, or run as the server's user", err))
	}
	return t
}

func (t *tasks) path(tid int, file string) string {
	return fmt.Sprintf("/proc/%d/task/%d/%s", t.pid, tid, file)
}

// poll reads what the threads do, and how long they ran until now.
func (t *tasks) poll(now time.Time) map[int]result.State {
	all := make(map[int]result.State, len(t.seen))
	for tid, one := range t.seen {
		if state, ok := t.state(one, now); ok {
			all[tid] = state
		}
	}
	return all
}

// add begins to look at a thread, and gives what it does.
func (t *tasks) add(tid int, now time.Time) (result.State, bool) {
	if _, known := t.seen[tid]; known || tid == 0 {
		return result.State{}, false
	}
	one := &task{from: now, to: now}
	var err error
	if one.doing, err = os.Open(t.path(tid, t.doing)); err == nil {
		one.schedstat, err = os.Open(t.path(tid, "schedstat"))
	}
	t.seen[tid] = one
	if err != nil {
		t.note(err)
		one.close()
		one.gone = now
		return result.State{}, false
	}
	return t.state(one, now)
}

// state reads one thread; not ok where it has ended.
func (t *tasks) state(one *task, now time.Time) (result.State, bool) {
	if !one.gone.IsZero() {
		return result.State{}, false
	}
	text, err := readAt(one.doing)
	if err == nil {
		err = one.use(now)
	}
	if err != nil {
		t.note(err)
		one.close()
		one.gone = now
		return result.State{}, false
	}
	return t.means(text), true
}

// use takes in how long the thread has run.
func (one *task) use(now time.Time) error {
	text, err := readAt(one.schedstat)
	if err != nil {
		return err
	}
	s, ok := parseSchedstat(text)
	if !ok {
		return fmt.Errorf("cannot read %q of %s", text, one.schedstat.Name())
	}
	one.spent, one.to = s, now
	return nil
}

// readAt reads a file of /proc anew: each is longer than none and shorter than a page.
func readAt(f *os.File) (string, error) {
	var buffer [512]byte
	n, err := f.ReadAt(buffer[:], 0)
	if n > 0 {
		return string(buffer[:n]), nil // what follows is the end of the file
	}
	return "", err
}

// means says what a thread does.
func (t *tasks) means(text string) result.State {
	if t.doing == "stat" {
		if parseRunning(text) {
			return result.State{Kernel: "running"}
		}
		return result.State{}
	}
	number, first, ok := parseSyscall(text)
	switch {
	case !ok:
		return result.State{}
	case number == callRunning:
		return result.State{Kernel: "running"}
	case number == callNone:
		return result.State{Kernel: "page fault"}
	}
	c, known := t.calls[number]
	switch {
	case !known:
		return result.State{Kernel: "call " + strconv.Itoa(number)}
	case c.on == descriptor:
		return result.State{Kernel: c.name, File: t.kind(first)}
	case c.on == socket:
		return result.State{Kernel: c.name, File: "socket"}
	}
	return result.State{Kernel: c.name}
}

// kind tells what one of the server's descriptors is. It is looked up each time, as a number is used again:
// redo and binary logs come and go.
func (t *tasks) kind(fd uint64) string {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", t.pid, fd))
	if err != nil { // closed meanwhile, if it may be read at all
		t.note(err)
		return ""
	}
	return kindOf(link, t.binlog)
}

// note notes errors other than that a thread has ended.
func (t *tasks) note(err error) {
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) {
		t.notes.add("threads of the server", err)
	}
}

// close closes all files; what was seen stays known.
func (t *tasks) close() {
	for _, one := range t.seen {
		one.close()
	}
}

// forget forgets the threads.
func (t *tasks) forget() {
	t.close()
	t.seen = map[int]*task{}
}

func (one *task) close() {
	for _, f := range []*os.File{one.doing, one.schedstat} {
		if f != nil {
			f.Close() // only ever read
		}
	}
	one.doing, one.schedstat = nil, nil
}

// thread describes one of the server's threads at one moment.
type thread struct {
	name  string // as the server calls it, 15 characters at most
	spent spent
}

// all reads every thread of the server.
func (t *tasks) all() map[int]thread {
	all := map[int]thread{}
	for _, tid := range t.numbers() {
		if one, ok := t.one(tid); ok {
			all[tid] = one
		}
	}
	return all
}

// numbers returns those of the server's threads.
func (t *tasks) numbers() (tids []int) {
	dir, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.pid))
	t.note(err)
	for _, entry := range dir {
		if tid, err := strconv.Atoi(entry.Name()); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

func (t *tasks) one(tid int) (thread, bool) {
	text, err := os.ReadFile(t.path(tid, "schedstat"))
	if err != nil {
		t.note(err)
		return thread{}, false
	}
	s, ok := parseSchedstat(string(text))
	return thread{t.name(tid), s}, ok
}

func (t *tasks) name(tid int) string {
	text, err := os.ReadFile(t.path(tid, "comm"))
	t.note(err)
	return strings.TrimSpace(string(text))
}

// The names of the kinds of threads that a server does not name itself.
const (
	loadThreads  = "connection"
	otherThreads = "other connection" // of nobody, kept for the next one, or of somebody beside the load
	davidThreads = "david"
)

// threads adds up by kind what the server's threads used from before to after. Those in load served the
// load's connections; one of them that is gone was last seen at a poll, and is taken to have gone on like
// before for half the time until it was missed. Another thread that ended in between is not counted.
func threads(before, after map[int]thread, load map[int]*task, own []int, end time.Time) []result.Threads {
	kinds := map[string]result.Threads{}
	add := func(kind string, s spent) {
		k := kinds[kind]
		kinds[kind] = result.Threads{Name: kind, Count: k.Count + 1, CPU: k.CPU + s.run, Wait: k.Wait + s.wait}
	}
	for tid, one := range after {
		kind := kindOfThread(one.name)
		if load[tid] != nil {
			kind = loadThreads
		} else if slices.Contains(own, tid) {
			kind = davidThreads
		}
		add(kind, grown(before[tid].spent, one.spent))
	}
	for tid, one := range load {
		if _, there := after[tid]; !there {
			add(loadThreads, one.whole(before[tid].spent, end))
		}
	}
	list := make([]result.Threads, 0, len(kinds))
	for _, k := range kinds {
		list = append(list, k)
	}
	slices.SortFunc(list, compareThreads)
	return list
}

// compareThreads puts the load's connections first, then those that used most.
func compareThreads(a, b result.Threads) int {
	switch {
	case a.Name == loadThreads:
		return -1
	case b.Name == loadThreads || a.CPU < b.CPU:
		return 1
	case a.CPU > b.CPU:
		return -1
	}
	return strings.Compare(a.Name, b.Name)
}

// grown tells what was used from before to after; a thread's number that was given to another counts from its
// start.
func grown(before, after spent) spent {
	if after.run < before.run || after.wait < before.wait {
		return after
	}
	return spent{after.run - before.run, after.wait - before.wait}
}

// whole tells what a thread that has ended used since before.
func (one *task) whole(before spent, end time.Time) spent {
	if one.gone.IsZero() {
		one.gone = end
	}
	s := grown(before, one.spent)
	seen := one.to.Sub(one.from).Seconds()
	if seen <= 0 {
		return s
	}
	more := 1 + one.gone.Sub(one.to).Seconds()/2/seen
	return spent{s.run * more, s.wait * more}
}

// kindOfThread returns a thread's name without its number: "ib_io_rd-3" is an "ib_io_rd".
func kindOfThread(name string) string {
	kind := strings.TrimRight(strings.TrimRight(name, "0123456789"), "-_ ")
	switch kind {
	case "":
		return name
	case "connection", "one_connection":
		return otherThreads
	}
	return kind
}
