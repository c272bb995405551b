package netpath

import (
	"fmt"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"david/internal/result"
)

// watch notes what goes down of a network.
type watch struct {
	done chan struct{}
	mu   sync.Mutex
	down map[result.Path][]string
	// blind says why the kernel's word of the links is no longer heard; nil while it is.
	blind error
}

// watched has the kernel tell of every link of the network that changes from now on.
func (n *Net) watched() error {
	n.watch = &watch{done: make(chan struct{}), down: map[result.Path][]string{}}
	for _, ns := range append(slices.Clone(n.nodes), n.Client, n.Server) {
		updates := make(chan netlink.LinkUpdate)
		err := netlink.LinkSubscribeWithOptions(updates, n.watch.done, netlink.LinkSubscribeOptions{Namespace: &ns.fd, ErrorCallback: n.watch.lost})
		if err != nil {
			return fmt.Errorf("cannot watch the links of a path: %w", err)
		}
		go func() {
			for u := range updates {
				n.changed(ns, u)
			}
		}()
	}
	return nil
}

// lost notes that what went down may not have been heard of.
func (w *watch) lost(why error) {
	select {
	case <-w.done: // as it should
	default:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.blind = why
	}
}

// changed notes a link that is down, and the path that it belongs to.
func (n *Net) changed(ns *Namespace, u netlink.LinkUpdate) {
	const whole = unix.IFF_UP | unix.IFF_RUNNING
	name := u.Attrs().Name
	if u.IfInfomsg.Flags&whole == whole || name == "lo" {
		return
	}
	n.watch.mu.Lock()
	defer n.watch.mu.Unlock()
	for p, way := range n.ways {
		if end := ns == n.Client || ns == n.Server; end && way.link == name || slices.Contains(way.nodes, ns) {
			n.watch.down[p] = append(n.watch.down[p], name)
		}
	}
}

// Interrupted names the links of a path that were down at some time since it was asked last.
func (n *Net) Interrupted(p result.Path) []string {
	n.watch.mu.Lock()
	defer n.watch.mu.Unlock()
	list := slices.Compact(slices.Sorted(slices.Values(n.watch.down[p])))
	delete(n.watch.down, p)
	if n.watch.blind != nil {
		list = append(list, fmt.Sprintf("unknown, as its links are no longer watched: %s", n.watch.blind))
	}
	return list
}
