// Package process names processes beyond the reuse of their numbers, so that what is done to one later is
// done to the very one.
package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ID names a process beyond the reuse of its number: by its start time in clock ticks since boot, field 22 of
// /proc/PID/stat (proc(5)), and by the file it executes and its cgroups, for those that have them recorded.
type ID struct {
	PID    int    `json:"pid"`
	Start  uint64 `json:"start"`
	Exe    string `json:"exe,omitempty"`
	Cgroup string `json:"cgroup,omitempty"`
}

// Identify tells who a process is now.
func Identify(pid int) (p ID, err error) {
	p.PID = pid
	if p.Start, err = StartTime(pid); err != nil {
		return p, err
	}
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return p, err
	}
	p.Exe = strings.TrimSuffix(exe, " (deleted)") // by an update of the package
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	p.Cgroup = string(groups)
	return p, err
}

// Alive tells whether the very process still runs; a zombie does not.
func (p ID) Alive() bool {
	start, err := StartTime(p.PID)
	return err == nil && start == p.Start
}

// Ending tells whether the very process has ended or is about to: before it is a zombie, the kernel takes its
// memory, and its arguments with it, and shows it in other cgroups (of version 1).
func (p ID) Ending() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	start, err := parseStartTime(string(stat))
	return errors.Is(err, fs.ErrNotExist) || err == nil && (start != p.Start || exiting(string(stat)))
}

// exiting looks at field 9, the kernel's flags: PF_EXITING of linux/sched.h.
func exiting(stat string) bool {
	fields, err := parseStat(stat)
	if err != nil {
		return false
	}
	flags, err := strconv.ParseUint(fields[6], 10, 64)
	return err == nil && flags&0x4 != 0
}

// Kill ends the very process at once, and waits until the kernel has torn it down.
func (p ID) Kill() error {
	handle, err := os.FindProcess(p.PID) // before it is looked at: its number may be another's afterwards
	if err != nil {
		return fmt.Errorf("cannot end process %d: %w", p.PID, err)
	}
	defer handle.Release()
	if !p.Alive() {
		return nil
	}
	if err := handle.Signal(unix.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cannot end process %d: %w", p.PID, err)
	}
	if !p.Ends(10 * time.Second) { // the kernel may take a while to free a large pool
		return fmt.Errorf("process %d does not end", p.PID)
	}
	return nil
}

// Ends waits for a process's end, at most so long, and tells whether it has come.
func (p ID) Ends(patience time.Duration) bool {
	for end := time.Now().Add(patience); p.Alive(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// StartTime returns field 22 of /proc/PID/stat. A zombie (state Z, X) counts as gone.
func StartTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStartTime(string(b))
}

func parseStartTime(stat string) (uint64, error) {
	fields, err := parseStat(stat)
	if err != nil {
		return 0, err
	}
	if fields[0] == "Z" || fields[0] == "X" {
		return 0, fs.ErrNotExist
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// parseStat returns the fields from the third on: the second may hold spaces and parentheses.
func parseStat(stat string) ([]string, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) < 20 {
		return nil, fmt.Errorf("cannot read %q as a process's stat", stat)
	}
	return fields, nil
}

// Stopped tells whether a process is stopped (SIGSTOP), by its first thread.
func Stopped(pid int) (bool, error) {
	state, err := stateIn(fmt.Sprintf("/proc/%d", pid))
	return state == "T", err
}

// Still tells whether every thread of a process is stopped, or has ended.
func Still(pid int) (bool, error) {
	tasks := fmt.Sprintf("/proc/%d/task", pid)
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return false, err
	}
	for _, e := range entries {
		state, err := stateIn(filepath.Join(tasks, e.Name()))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) { // it has ended
			continue
		}
		if err != nil || !strings.Contains("TZX", state) {
			return false, err
		}
	}
	return true, nil
}

// stateIn reads the third field of a folder's stat file: R, S, D, T, ... (proc(5)).
func stateIn(dir string) (string, error) {
	b, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return "", err
	}
	fields, err := parseStat(string(b))
	if err != nil {
		return "", err
	}
	return fields[0], nil
}

// UserOf returns a process's real user.
func UserOf(pid int) (uid int, err error) {
	uid, _, err = Owner(pid)
	return uid, err
}

// Owner returns a process's real user and group.
func Owner(pid int) (uid, gid int, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for name, into := range map[string]*int{"Uid": &uid, "Gid": &gid} {
		_, after, _ := strings.Cut(string(status), "\n"+name+":\t")
		id, _, _ := strings.Cut(after, "\t")
		if *into, err = strconv.Atoi(id); err != nil {
			return 0, 0, fmt.Errorf("cannot read the %s of process %d: %w", name, pid, err)
		}
	}
	return uid, gid, nil
}

// Age returns how long ago a process was started.
func Age(pid int) (time.Duration, error) {
	start, err := StartTime(pid)
	if err != nil {
		return 0, err
	}
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return 0, err
	}
	const tick = time.Second / 100 // USER_HZ (proc(5), getauxval(3): 100 wherever Go runs)
	return time.Duration(now.Nano()) - time.Duration(start)*tick, nil
}
