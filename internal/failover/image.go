package failover

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"david/internal/ceph"
	"david/internal/home"
	"david/internal/loopdev"
	"david/internal/process"
	"david/internal/unmount"
)

// fenceTime is how long a client is shut out. One that was only cut off from the network goes on with what it
// had under way when it is back, be it after days. An address names one start of one client, so that nobody
// else is met; of a machine that is fenced by its IP the fence is taken off by hand.
const fenceTime = 365 * 24 * time.Hour

// attached is what is on record of an image that this machine has.
type attached struct {
	By     process.ID `json:"by"` // the rbd-fuse
	Client string     `json:"client"`
}

func (p *Plan) point() string { return filepath.Join(p.dir, "image") }

func (p *Plan) record() string { return filepath.Join(p.dir, "attached.json") }

// lookAtImage finds the clients that have the image, and plans to shut them out.
func (p *Plan) lookAtImage(ctx context.Context) error {
	i := *p.q.Image
	if err := i.Trust(); err != nil {
		return refusal{err}
	}
	if err := ceph.Find("ceph", "rbd", "rbd-fuse"); err != nil {
		return refusal{err}
	}
	own, err := p.leftover()
	if err != nil {
		return err
	}
	clients, err := i.Watchers(ctx)
	if err != nil {
		return err
	}
	locks, err := i.Locks(ctx)
	if err != nil {
		return err
	}
	for _, l := range locks {
		clients = append(clients, l.Address)
	}
	slices.Sort(clients)
	clients = slices.DeleteFunc(slices.Compact(clients), func(a string) bool { return a == own.Client })
	if p.Fenced, err = whom(clients, p.q.Fence); err != nil {
		return err
	}
	if err := p.notOurs(); err != nil {
		return err
	}
	if own.Client != "" { // it is dead by then, and could not be told from a third one
		p.Fenced = append(p.Fenced, own.Client)
	}
	for _, address := range p.Fenced {
		p.step(Fencing, func(ctx context.Context) error { return i.Fence(ctx, address, fenceTime) }, append([]string{"ceph", "--conf", i.Conf}, ceph.FenceArgs(address, fenceTime)...)...)
	}
	for _, l := range locks {
		if l.Address == own.Client { // it goes with what is given back first
			continue
		}
		p.step(Fencing, func(ctx context.Context) error { return i.BreakLock(ctx, l) }, append([]string{"rbd", "--conf", i.Conf}, i.BreakArgs(l)...)...)
	}
	argv := i.FuseArgs(p.point())
	p.step(Attaching, func(ctx context.Context) error { return p.attach(ctx) }, append([]string{"env", ceph.FuseVariable}, argv...)...)
	p.mount(true)
	return nil
}

// whom returns the clients and machines to be fenced. One client that has the image is the old side; of
// several the user has to say that they are.
func whom(clients, asked []string) ([]string, error) {
	for _, a := range asked {
		if err := ceph.CheckAddress(a); err != nil {
			return nil, refuse("--fence: %w", err)
		}
		if here(a) {
			return nil, refuse("--fence %s is this machine: it would shut itself out; name the client as rbd status has it", a)
		}
	}
	others := slices.DeleteFunc(slices.Clone(clients), func(c string) bool {
		return slices.ContainsFunc(asked, func(a string) bool { return ceph.Covers(a, c) })
	})
	switch {
	case len(clients) == 0 && len(asked) == 0:
		return nil, refuse("nobody has the image open, and no lock tells who had it: a machine that is only cut off could write to it later; name it: --fence IP")
	case len(others) > 1 || len(others) == 1 && len(asked) > 0:
		return nil, refuse("%s have the image open, of which only one can be the old side: unmap it where it is not, or name all that are to be shut out: --fence ADDRESS, each", strings.Join(others, " and "))
	}
	return append(slices.Clone(asked), others...), nil
}

// notOurs refuses to shut out a client of this machine that nobody named: a server that works here would be ended.
func (p *Plan) notOurs() error {
	for _, client := range p.Fenced {
		host, _, found := strings.Cut(client, "/")
		ip, _, err := net.SplitHostPort(host)
		if found && err == nil && here(ip) && !p.q.Force && !slices.Contains(p.q.Fence, client) {
			return refuse("this machine itself has the image open, as %[1]s: a server that works on it would be ended; "+
				"unmount it first, or if it is the old side name it: --fence %[1]s", client)
		}
	}
	return nil
}

// here tells whether an address is an IP of this machine, all of which would be fenced.
func here(address string) bool {
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return false
	}
	list, err := net.InterfaceAddrs()
	return err == nil && slices.ContainsFunc(list, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err == nil && prefix.Addr() == ip.Unmap()
	})
}

// leftover finds an rbd-fuse of an earlier run that did not come to its mount, and plans to end it first.
func (p *Plan) leftover() (own attached, err error) {
	if loops, err := loopdev.Of(p.source()); err != nil || len(loops) > 0 {
		return own, errors.Join(err, refuse("the image is attached to this machine already, as %s: unmount what is on it", strings.Join(loops, ", ")))
	}
	if own, err = p.recorded(); err != nil {
		return own, err
	}
	there, err := unmount.Mounted(p.point())
	if err != nil {
		return own, err
	}
	if own.By.PID != 0 || there {
		p.Notes = append(p.Notes, "an earlier run was cut short: what it had attached is given back first")
		p.step(Detaching, func(context.Context) error { return p.detach(own) }, "umount", p.point())
	}
	return own, nil
}

// detach gives back what is attached and not mounted.
func (p *Plan) detach(own attached) error {
	var by *process.ID
	if own.By.PID != 0 {
		by = &own.By
	}
	err := ceph.Hide(by, p.point())
	if e := os.Remove(p.record()); e != nil && !errors.Is(e, fs.ErrNotExist) {
		err = errors.Join(err, e)
	}
	return err
}

// attach has rbd-fuse show the image as a file, and makes sure that nobody but it and those that are fenced
// has it.
func (p *Plan) attach(ctx context.Context) (err error) {
	if err := os.Mkdir(p.point(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	log, err := home.Create(filepath.Join(p.dir, "rbd-fuse.log"), 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	own := attached{}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.detach(own))
		}
	}()
	err = p.q.Image.Show(ctx, p.point(), log, func(by process.ID) error {
		own.By = by
		return p.save(own)
	})
	if err != nil {
		return err
	}
	if own.Client, err = p.alone(ctx); err != nil {
		return err
	}
	return p.save(own)
}

// recorded is what this machine has attached by the record; zero for nothing.
func (p *Plan) recorded() (own attached, err error) {
	text, err := home.Read(p.record(), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return own, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &own)
	}
	return own, err
}

func (p *Plan) save(own attached) error {
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	return home.Write(p.record(), text, 0o600)
}

// alone opens the image, and returns as which client. It fails where another one has it that is not fenced:
// somebody who came in the meantime.
func (p *Plan) alone(ctx context.Context) (client string, err error) {
	fenced := func(c string) bool {
		return slices.ContainsFunc(p.Fenced, func(a string) bool { return ceph.Covers(a, c) })
	}
	err = p.guarded(ctx, ceph.Wedged, func() error {
		client, err = p.q.Image.Alone(ctx, p.point(), fenced)
		return err
	})
	return client, err
}

// guarded does what touches the volume. Of an image that takes longer than a limit, or until david is told to
// end, rbd-fuse is killed.
func (p *Plan) guarded(ctx context.Context, limit time.Duration, do func() error) error {
	if p.q.Image == nil {
		return do()
	}
	return ceph.Guarded(ctx, limit, func() error {
		own, err := p.recorded()
		if err == nil && own.By.PID != 0 {
			err = own.By.Kill()
		}
		return err
	}, do)
}
