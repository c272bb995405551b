package sampler

import (
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What /proc/PID/task/TID/syscall says in place of a call's number (proc_pid_syscall(5)).
const (
	callRunning = -2 // "running": it runs or waits for a CPU
	callNone    = -1 // it sleeps without having called: in a page fault
)

// parseSyscall reads /proc/PID/task/TID/syscall: the number of the call a thread sleeps in, and the call's
// first argument.
func parseSyscall(text string) (number int, first uint64, ok bool) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return 0, 0, false
	}
	if fields[0] == "running" {
		return callRunning, 0, true
	}
	number, err := strconv.Atoi(fields[0])
	if err != nil || number < callNone {
		return 0, 0, false
	}
	if number == callNone {
		return number, 0, true
	}
	if len(fields) < 2 {
		return 0, 0, false
	}
	first, err = strconv.ParseUint(fields[1], 0, 64)
	return number, first, err == nil
}

// parseRunning tells from /proc/PID/task/TID/stat whether a thread runs or waits for a CPU. Its name, in
// brackets, can hold anything.
func parseRunning(stat string) bool {
	return strings.HasPrefix(stat[strings.LastIndexByte(stat, ')')+1:], " R ")
}

// parseSchedstat reads /proc/PID/task/TID/schedstat: the seconds a thread ran, and those it could have run
// and waited for a CPU (https://docs.kernel.org/scheduler/sched-stats.html).
func parseSchedstat(text string) (spent, bool) {
	fields := strings.Fields(text)
	if len(fields) != 3 {
		return spent{}, false
	}
	run, err := strconv.ParseUint(fields[0], 10, 64)
	if err != nil {
		return spent{}, false
	}
	wait, err := strconv.ParseUint(fields[1], 10, 64)
	if err != nil {
		return spent{}, false
	}
	return spent{run: float64(run) / 1e9, wait: float64(wait) / 1e9}, true
}

// call describes a system call: its name, and what it is made on.
type call struct {
	name string
	on   callTarget
}

// callTarget says where to find what a call is made on.
type callTarget int

const (
	nothing    callTarget = iota
	descriptor            // its first argument is one
	socket                // a connection's thread polls nothing but its socket
)

// calls returns the system calls a server's threads are found in, by their number on this architecture.
func calls() map[int]call {
	all := oldCalls()
	for number, name := range map[int]string{
		unix.SYS_READ: "read", unix.SYS_WRITE: "write", unix.SYS_READV: "readv", unix.SYS_WRITEV: "writev",
		unix.SYS_PREAD64: "pread64", unix.SYS_PWRITE64: "pwrite64", unix.SYS_PREADV: "preadv", unix.SYS_PWRITEV: "pwritev",
		unix.SYS_PREADV2: "preadv2", unix.SYS_PWRITEV2: "pwritev2", unix.SYS_FSYNC: "fsync", unix.SYS_FDATASYNC: "fdatasync",
		unix.SYS_SYNC_FILE_RANGE: "sync_file_range", unix.SYS_FALLOCATE: "fallocate", unix.SYS_FTRUNCATE: "ftruncate",
		unix.SYS_LSEEK: "lseek", unix.SYS_CLOSE: "close", unix.SYS_FCNTL: "fcntl", unix.SYS_FLOCK: "flock",
		unix.SYS_RECVFROM: "recvfrom", unix.SYS_RECVMSG: "recvmsg", unix.SYS_SENDTO: "sendto", unix.SYS_SENDMSG: "sendmsg",
		unix.SYS_SHUTDOWN: "shutdown", unix.SYS_ACCEPT: "accept", unix.SYS_ACCEPT4: "accept4",
	} {
		all[number] = call{name, descriptor}
	}
	for number, name := range map[int]string{
		unix.SYS_FUTEX: "futex", unix.SYS_NANOSLEEP: "nanosleep", unix.SYS_CLOCK_NANOSLEEP: "clock_nanosleep",
		unix.SYS_RESTART_SYSCALL: "restart_syscall", unix.SYS_SCHED_YIELD: "sched_yield", unix.SYS_IO_GETEVENTS: "io_getevents",
		unix.SYS_IO_SUBMIT: "io_submit", unix.SYS_IO_URING_ENTER: "io_uring_enter", unix.SYS_EPOLL_PWAIT: "epoll_pwait",
		unix.SYS_MMAP: "mmap", unix.SYS_MUNMAP: "munmap", unix.SYS_MADVISE: "madvise", unix.SYS_MPROTECT: "mprotect", unix.SYS_BRK: "brk",
		unix.SYS_OPENAT: "openat", unix.SYS_UNLINKAT: "unlinkat", unix.SYS_RENAMEAT2: "renameat2", unix.SYS_CLONE: "clone",
		unix.SYS_RT_SIGTIMEDWAIT: "rt_sigtimedwait",
	} {
		all[number] = call{name, nothing}
	}
	all[unix.SYS_PPOLL] = call{"ppoll", socket}
	return all
}

// kindOf tells what a descriptor is from where /proc/PID/fd points; log is log_bin_basename, "" without a
// binary log.
func kindOf(link, log string) string {
	path, deleted := strings.CutSuffix(link, " (deleted)")
	base, ext := filepath.Base(path), filepath.Ext(path)
	switch {
	case strings.HasPrefix(link, "socket:"):
		return "socket"
	case deleted, strings.HasPrefix(base, "ibtmp"), ext == ".ibt", strings.HasPrefix(base, "#sql"):
		return "temporary" // both servers delete a temporary file as soon as it is open
	case strings.HasPrefix(base, "#ib_redo"), strings.HasPrefix(base, "ib_logfile"):
		return "redo"
	case ext == ".dblwr", ext == ".bdblwr":
		return "doublewrite"
	case ext == ".ibu", undo(base):
		return "undo"
	case ext == ".ibd", strings.HasPrefix(base, "ibdata"):
		return "data"
	case log != "" && numbered(base, filepath.Base(log)):
		return "binlog"
	}
	return "other"
}

// undo tells undo tablespaces apart: undo_001 (MySQL), undo001 (MariaDB).
func undo(base string) bool { return numbered(base, "undo") }

// numbered tells whether a file's name is that stem and a number: "binlog" and "binlog.000012", and MariaDB's
// InnoDB-based "binlog-000012.ibb".
func numbered(base, stem string) bool {
	rest, ok := strings.CutPrefix(base, stem)
	rest = strings.Trim(strings.TrimSuffix(rest, ".ibb"), "._-")
	n, err := strconv.ParseUint(rest, 10, 64)
	return ok && err == nil && n < math.MaxUint64
}
