package ceph

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Lock is one on an image. A client takes that of the feature exclusive-lock by itself when it writes, and it
// stays on record when the client dies.
type Lock struct {
	ID      string `json:"id"`
	Locker  string `json:"locker"`
	Address string `json:"address"`
}

// Watchers lists the addresses of those clients that have the image open for writing, and of those that had
// until half a minute ago and died.
func (i Image) Watchers(ctx context.Context) (list []string, err error) {
	var doc struct {
		Watchers []struct {
			Address string `json:"address"`
		} `json:"watchers"`
	}
	if err := i.tell(ctx, &doc, "status"); err != nil {
		return nil, err
	}
	for _, w := range doc.Watchers {
		list = append(list, w.Address)
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// Locks lists the locks on the image.
func (i Image) Locks(ctx context.Context) (list []Lock, err error) {
	return list, i.tell(ctx, &list, "lock", "ls")
}

// BreakLock takes a lock off. Whoever had it should be fenced before.
func (i Image) BreakLock(ctx context.Context, l Lock) error {
	_, err := i.rbd(ctx, i.BreakArgs(l)...)
	if err == nil {
		return nil
	}
	left, listed := i.Locks(ctx)
	if listed == nil && !slices.Contains(left, l) { // it went by itself, as its client did
		return nil
	}
	return err
}

// BreakArgs are what rbd is told to take a lock off.
func (i Image) BreakArgs(l Lock) []string { return []string{"lock", "rm", i.Spec(), l.ID, l.Locker} }

// tell runs rbd for a JSON document on the image.
func (i Image) tell(ctx context.Context, into any, args ...string) error {
	if err := i.Check(); err != nil {
		return err
	}
	out, err := i.rbd(ctx, append(args, "--format", "json", i.Spec())...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("cannot understand what rbd %s says: %w", strings.Join(args, " "), err)
	}
	return nil
}

// Fence has the cluster refuse whatever a client asks of it from now on: one client by its address as
// Watchers has it (10.0.0.5:0/123456), or all of a machine by its IP. It returns once the cluster's monitors
// have it on their list; a disk learns of it from them, or from the first client that knows of it.
func (c Cluster) Fence(ctx context.Context, address string, last time.Duration) error {
	if err := CheckAddress(address); err != nil {
		return err
	}
	if _, err := c.ceph(ctx, FenceArgs(address, last)...); err != nil {
		return err
	}
	var list []struct {
		Addr string `json:"addr"`
	}
	if err := c.ask(ctx, &list, "osd", "blocklist", "ls"); err != nil {
		return err
	}
	for _, one := range list {
		if one.Addr == address || strings.HasSuffix(one.Addr, ":0/0") && Covers(address, one.Addr) {
			return nil
		}
	}
	return fmt.Errorf("the cluster took the fence of %s, and does not have it on its list", address)
}

// FenceArgs are what ceph is told to fence a client.
func FenceArgs(address string, last time.Duration) []string {
	return []string{"osd", "blocklist", "add", address, strconv.Itoa(int(last.Seconds()))}
}

// CheckAddress refuses what is no address of a client's or of a machine's.
func CheckAddress(address string) error {
	if _, err := netip.ParseAddr(address); err == nil {
		return nil
	}
	at, nonce, found := strings.Cut(address, "/")
	_, err := netip.ParseAddrPort(at)
	if _, number := strconv.ParseUint(nonce, 10, 64); !found || err != nil || number != nil {
		return fmt.Errorf("%q is no address of a Ceph client: give an IP, as 10.0.0.5, or one as rbd status has it, as 10.0.0.5:0/123456", address)
	}
	return nil
}

// Covers tells whether a fence holds for a client: it is that client's address, or its machine's.
func Covers(fence, client string) bool {
	at, _, _ := strings.Cut(client, "/")
	ip, err := netip.ParseAddrPort(at)
	machine, isIP := netip.ParseAddr(fence)
	return fence == client || err == nil && isIP == nil && ip.Addr().Unmap() == machine.Unmap()
}
