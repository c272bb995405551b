package experiment

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// lockAddress names an abstract unix socket: the kernel frees it with the process that holds it, it leaves no
// file, and it is one for all users of a network namespace.
const lockAddress = "@david.measurement"

// Lock makes this process the only one that measures on this machine until release is called. Another david
// that holds it is named in the error.
func Lock(what string) (release func(), err error) {
	l, err := net.Listen("unix", lockAddress)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("another measurement is running on this machine (%s): two at once would spoil each other; wait for it to end", holder())
	}
	if err != nil {
		return nil, fmt.Errorf("cannot take the measurement lock: %w", err)
	}
	name := fmt.Sprintf("pid %d: %s", os.Getpid(), what)
	go tell(l, name)
	return func() { l.Close() }, nil
}

// tell answers everyone who asks who holds the lock, until the lock is released.
func tell(l net.Listener, name string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		conn.SetWriteDeadline(time.Now().Add(time.Second))
		fmt.Fprintln(conn, name)
		conn.Close()
	}
}

func holder() string {
	conn, err := net.DialTimeout("unix", lockAddress, time.Second)
	if err != nil {
		return "its holder does not answer"
	}
	defer conn.Close()
	conn.SetReadDeadline(time.Now().Add(time.Second))
	name, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return "its holder does not answer"
	}
	return strings.TrimSpace(name)
}
