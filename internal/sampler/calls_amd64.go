package sampler

import "golang.org/x/sys/unix"

// oldCalls returns those that later architectures do without.
func oldCalls() map[int]call {
	return map[int]call{
		unix.SYS_POLL: {"poll", socket}, unix.SYS_EPOLL_WAIT: {"epoll_wait", nothing}, unix.SYS_SELECT: {"select", nothing},
		unix.SYS_OPEN: {"open", nothing}, unix.SYS_UNLINK: {"unlink", nothing}, unix.SYS_RENAME: {"rename", nothing},
	}
}
