package netpath

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Namespace is a network namespace without a name: it is there as long as david holds it open, or a process
// or a link to another namespace is in it. So what a killed david leaves of it goes with the last process
// that it had started there.
type Namespace struct {
	fd    netns.NsHandle
	links *netlink.Handle
}

// newNamespace makes one, with its loopback interface up and without IPv6, whose addresses would take a
// second to be found unique.
func newNamespace() (*Namespace, error) {
	fd, err := apart(func() (netns.NsHandle, error) {
		fd, err := netns.New()
		if err != nil {
			return fd, fmt.Errorf("cannot make a network namespace: %w", err)
		}
		return fd, noIPv6()
	})
	n := &Namespace{fd: fd}
	if err == nil {
		n.links, err = netlink.NewHandleAt(fd, unix.NETLINK_ROUTE)
	}
	if err == nil {
		err = n.up("lo")
	}
	if err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

// apart runs what moves its thread to another namespace on a thread that ends with it.
func apart[T any](fn func() (T, error)) (v T, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		v, err = fn()
	}()
	<-done
	return v, err
}

func noIPv6() error {
	for _, which := range []string{"all", "default"} {
		err := setting("ipv6/conf/"+which+"/disable_ipv6", "1")
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel without IPv6
			return err
		}
	}
	return nil
}

// setting gives a setting of the calling thread's namespace a value.
func setting(name, value string) error {
	if err := os.WriteFile("/proc/sys/net/"+name, []byte(value), 0); err != nil {
		return fmt.Errorf("cannot set net/%s: %w", name, err)
	}
	return nil
}

// Close lets go of the namespace.
func (n *Namespace) Close() error {
	if n.links != nil {
		n.links.Close()
	}
	if !n.fd.IsOpen() {
		return nil
	}
	return n.fd.Close()
}

// Do calls fn on a thread that is in the namespace: a socket that it opens and a process that it starts are
// there. What other goroutines do on its behalf is not.
func (n *Namespace) Do(fn func() error) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err == nil {
		defer home.Close()
		err = netns.Set(n.fd)
	}
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("cannot enter a network namespace: %w", err)
	}
	err = fn()
	if back := netns.Set(home); back != nil { // the thread stays locked, so that it ends with its goroutine
		return errors.Join(err, fmt.Errorf("cannot leave a network namespace: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

// set gives a setting of the namespace a value.
func (n *Namespace) set(name, value string) error {
	return n.Do(func() error { return setting(name, value) })
}

// up brings a link up.
func (n *Namespace) up(name string) error {
	link, err := n.links.LinkByName(name)
	if err == nil {
		err = n.links.LinkSetUp(link)
	}
	if err != nil {
		return fmt.Errorf("cannot bring %s up: %w", name, err)
	}
	return nil
}
