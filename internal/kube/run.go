package kube

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// The labels and annotations of what david creates.
const (
	ManagedBy = "app.kubernetes.io/managed-by" // label, "david"
	RunLabel  = "david/run"                    // label, the run's ID
	ownerNote = "david/owner"                  // annotation, the process that runs it
	untilNote = "david/until"                  // annotation, when it is over in any case
	manager   = "david"
)

// Run bounds one use of a cluster: what it creates carries its ID and is removed with it.
type Run struct {
	ID    string    // a label's value: letters, digits, - and .
	Owner string    // names the process, so that the same machine can tell whether it lives; "" where that is not known
	Until time.Time // by when it is over also for who cannot tell; zero: never
}

// NewRun returns a run of this process that takes at most that long.
func NewRun(id string, lasts time.Duration) Run {
	return Run{ID: id, Owner: owner("/proc", os.Getpid()), Until: time.Now().Add(lasts)}
}

// owner names a process so that no other ever has the name: the boot, the PID namespace, the PID, and when it
// began. It is "" where the process is not there, or not to be seen.
func owner(proc string, pid int) string {
	boot, err := os.ReadFile(proc + "/sys/kernel/random/boot_id")
	space, err2 := os.Readlink(proc + "/self/ns/pid")
	stat, err3 := os.ReadFile(fmt.Sprintf("%s/%d/stat", proc, pid))
	if err != nil || err2 != nil || err3 != nil {
		return ""
	}
	text := string(stat)
	after := strings.Fields(text[strings.LastIndexByte(text, ')')+1:]) // the name may hold spaces
	if len(after) < 20 {
		return ""
	}
	return fmt.Sprintf("%s/%s/%d/%s", strings.TrimSpace(string(boot)), strings.Trim(space, "pid:[]"), pid, after[19])
}

// gone tells whether a run can be no more: its process is not there on this machine, or its time is over.
func gone(proc, name, until string, now time.Time) bool {
	if t, err := time.Parse(time.RFC3339, until); err == nil && now.After(t) {
		return true
	}
	own, theirs := strings.Split(owner(proc, os.Getpid()), "/"), strings.Split(name, "/")
	if len(own) != 4 || len(theirs) != 4 || own[0] != theirs[0] || own[1] != theirs[1] {
		return false // of another machine, or another container of it
	}
	var pid int
	if _, err := fmt.Sscan(theirs[2], &pid); err != nil {
		return false
	}
	return owner(proc, pid) != name
}
