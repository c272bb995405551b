package experiment

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/home"
)

// lockAddress names an abstract unix socket: the kernel frees it with the process that holds it, it leaves no
// file, and it is one for all users of a network namespace. Anybody can hold it, so that it is asked whose it
// is.
const lockAddress = "@david.measurement"

// lockFile is held as well, in david's folder, where nobody else can: it keeps the user's own measurements
// apart also where somebody sits on the socket.
const lockFile = "measurement.lock"

// Sharing says how a measurement shares the machine. The zero value shares nothing: it is what everybody gets
// who asks for a measurement. The tests of what else a measurement does set it, as they look at no
// throughput; no flag, file or variable of the environment reaches it.
type Sharing struct {
	Apart  string  // names a lock of its own, so that measurements with other names may run beside it; "": the machine's
	Others float64 // the share of the CPU time that others may take while a trial counts; 0: the gate's own limits
}

// Lock makes this process the only one that measures on this machine until release is called. Another david
// that holds it is named in the error. One of another user's, who may never give it back, is put up with
// where beside names that user's number, or is unknown and the holder cannot be told.
func (s Sharing) Lock(dir, what, beside string) (release func(), err error) {
	return lockAt(s.address(), dir, what, beside)
}

func (s Sharing) address() string {
	if s.Apart == "" {
		return lockAddress
	}
	return lockAddress + "." + s.Apart
}

func lockAt(address, dir, what, beside string) (release func(), err error) {
	file, err := lockOwn(dir, what)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		if err = holderOf(address).blocks(beside); err == nil {
			return func() { file.Close() }, nil
		}
		return nil, errors.Join(home.InUse(err), file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot take the measurement lock: %w", err), file.Close())
	}
	go tell(l, what)
	return func() { l.Close(); file.Close() }, nil
}

// lockOwn locks the file in david's folder.
func lockOwn(dir, what string) (*os.File, error) {
	err := os.MkdirAll(dir, 0o755)
	var f *os.File
	if err == nil {
		f, err = home.Open(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	}
	if err == nil { // whoever could open it could hold it
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot take the measurement lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		text, _ := io.ReadAll(io.LimitReader(f, mostSaid))
		return nil, errors.Join(home.InUse(fmt.Errorf("david is at work already (%s): two at once would spoil each other; wait for it to end, or end it (Ctrl-C)", plain(text))), f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = fmt.Fprintf(f, "pid %d: %s", os.Getpid(), what)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot take the measurement lock: %w", err), f.Close())
	}
	return f, nil
}

// tell answers everyone who asks what is measured, until the lock is released.
func tell(l net.Listener, what string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		fmt.Fprintln(conn, what)
		conn.Close()
	}
}

// mostSaid bounds what a holder is listened to, in bytes.
const mostSaid = 100

// holder names the process that holds the lock, by the kernel's word, and what it says of itself.
type holder struct {
	known    bool
	uid, pid int // pid 0: in another container
	says     string
}

// holderOf asks. A holder that takes no calls is not known.
func holderOf(address string) (h holder) {
	conn, err := net.DialTimeout("unix", address, time.Second)
	if err != nil {
		return h
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return h
	}
	err = raw.Control(func(fd uintptr) {
		cred, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err == nil {
			h.known, h.uid, h.pid = true, int(cred.Uid), int(cred.Pid)
		}
	})
	if err != nil {
		return holder{}
	}
	conn.SetReadDeadline(time.Now().Add(time.Second))
	text, _ := io.ReadAll(io.LimitReader(conn, mostSaid)) // what came in time
	line, _, _ := strings.Cut(string(text), "\n")
	h.says = plain([]byte(line))
	return h
}

// plain keeps what can be printed: a holder's words may be meant for the terminal.
func plain(text []byte) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, string(text)))
}

// blocks is the error for who has to wait; nil where the holder is another user's, and put up with.
func (h holder) blocks(beside string) error {
	const spoil = "two at once would spoil each other; wait for it to end"
	if !h.known {
		if beside == Unknown {
			return nil
		}
		return fmt.Errorf("another measurement may be running on this machine: a process that does not answer holds the lock (ss -xlp names it): %s, or, where it does not, measure beside it with %s=%s",
			spoil, BesideVariable, Unknown)
	}
	if h.uid == os.Geteuid() || h.uid == 0 {
		return fmt.Errorf("david is at work on this machine already (pid %d: %s): %s, or end it (Ctrl-C)", h.pid, cmp.Or(h.says, "it does not say what"), spoil)
	}
	if beside == strconv.Itoa(h.uid) {
		return nil
	}
	return fmt.Errorf("another measurement may be running on this machine: %s holds the lock with process %d, which says %q: %s, or, where it does not, measure beside it with %s=%d",
		account.Name(h.uid), h.pid, h.says, spoil, BesideVariable, h.uid)
}

// BesideVariable names the environment variable with the number of a user whose measurements are put up with,
// or with Unknown for a holder of the lock whose user cannot be told.
const (
	BesideVariable = "DAVID_BESIDE"
	Unknown        = "unknown"
)
