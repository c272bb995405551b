package lab

import (
	"context"
	"errors"

	"david/internal/ceph"
	"david/internal/experiment"
	"david/internal/host"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/server"
	"david/internal/workload"
)

// tools holds the programs that a measurement runs.
type tools struct {
	binary   server.Binary
	sysbench workload.Sysbench
	others   map[string]server.Binary // of arms that have a server of their own, by path
}

// find finds the server binary and sysbench.
func (l Lab) find(ctx context.Context, want string) (t tools, err error) {
	if t.sysbench, err = workload.Find(ctx); err != nil {
		return t, err
	}
	t.binary, err = l.findServer(ctx, want)
	return t, err
}

func (l Lab) findServer(ctx context.Context, want string) (server.Binary, error) {
	b, err := server.Find(ctx, l.Home, want)
	if err != nil {
		return b, TargetError{err}
	}
	return b, nil
}

// opening says what the workspace is opened for.
type opening struct {
	kind     result.Kind
	need     int64       // bytes on the disk
	volume   bool        // the data must lie on a volume of david's own
	noVolume bool        // it must not
	rbd      *ceph.Place // the data must lie on an image there
}

// opened has the machine to itself, and a workspace on it.
type opened struct {
	Lab
	tools
	workspace *sandbox.Workspace
	facts     host.Facts
	target    *experiment.Sandboxed
	release   func()
}

// open takes the machine and opens the workspace. Close gives both back.
func (l Lab) open(ctx context.Context, t tools, job opening) (o opened, err error) {
	o = opened{Lab: l, tools: t}
	if o.release, err = l.Sharing.Lock(l.Home, "david "+string(job.kind), l.Beside); err != nil {
		return o, err
	}
	l.say("opening the workspace")
	o.workspace, err = sandbox.Open(ctx, l.Home, sandbox.Options{Need: job.need, Log: l.Log, NoVolume: job.noVolume, Volume: job.volume, RBD: job.rbd})
	if err == nil {
		o.target = &experiment.Sandboxed{Workspace: o.workspace, Binary: t.binary, Others: t.others, Sysbench: t.sysbench}
		o.facts, err = host.Read(ctx, o.workspace.Dir())
	}
	if err != nil {
		return o, o.close(err)
	}
	return o, nil
}

// close gives everything back, and adds what to do next, and what goes wrong with that, to the error so far.
func (o opened) close(err error) error {
	if o.workspace != nil {
		err = o.next(err)
	}
	if closing := o.workspace.Close(); closing != nil {
		err = errors.Join(err, closing)
	}
	o.release()
	return err
}

// Take takes the machine for a load on a server that is not david's, with a private folder for the keys of a
// client. give gives both back.
func (l Lab) Take(what string) (private string, give func() error, err error) {
	release, err := l.Sharing.Lock(l.Home, what, l.Beside)
	if err != nil {
		return "", nil, err
	}
	private, remove, err := sandbox.PrivateFolder(l.Home)
	if err != nil {
		release()
		return "", nil, err
	}
	return private, func() error { defer release(); return remove() }, nil
}

// Reap removes what an earlier david that was killed left behind.
func (l Lab) Reap() error {
	return sandbox.Reap(l.Home, func(what string) { l.logf("%s", what) })
}
