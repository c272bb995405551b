package hold

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// prompt is the nice value of what others stand still for (setpriority(2)).
const prompt = -10

// Promptly runs f before others' work, where this user may do that: something stands still until it is done.
func Promptly(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thisThread = 0
	before, err := unix.Getpriority(unix.PRIO_PROCESS, thisThread)
	if err != nil || unix.Setpriority(unix.PRIO_PROCESS, thisThread, prompt) != nil { // only root may
		return f()
	}
	defer unix.Setpriority(unix.PRIO_PROCESS, thisThread, 20-before) // as the system call gives it
	return f()
}
