// Package sandbox runs throwaway servers. A Workspace owns what they need on the machine; a Template is
// initialised and loaded data, made once; a Server is one mysqld or mariadbd on a fresh clone of it.
//
//	Open -> Template (initialise, load, shut down, keep) -> Start (clone, start, wait) -> Stop (shut down, drop) -> Close
//
// A sandbox is private: a runtime folder of mode 0700, a unix socket and no network unless asked, a random
// password, an ordinary user where david runs as root, and nothing of the system's own configuration or data.
// Everything that outlives a killed david (processes, cgroups, mounts, folders) is in a journal, and Reap
// removes it.
package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"david/internal/cgroup"
)

// Options say what a workspace is for.
type Options struct {
	Need     int64     // bytes of disk one data template and its clone will take
	Log      io.Writer // where remarks go; nil for nowhere
	NoVolume bool      // keep the data on $DAVID_HOME's filesystem also where it has no reflink
	Volume   bool      // keep it on a volume of david's own in any case: I/O can be capped on no other device
}

// Workspace owns david's place on the machine while it measures. One at a time may be open in a $DAVID_HOME.
type Workspace struct {
	home    string
	run     string // private runtime folder: sockets, pid files, mount points
	data    string // data templates and clones
	bound   string // what data is bound to; "" where it is no bind mount
	layout  string
	need    int64
	owner   account
	journal *journal
	lock    *os.File
	log     io.Writer
	reflink bool
	device  cgroup.Device // of david's own volume; zero without one
	groups  int           // cgroups made so far
	// throttled is the server whose caps on I/O are in force; nil for none.
	throttled *Server
}

// Open removes what dead davids left in home, makes the private runtime folder, and makes the data reachable
// for the servers' user, on a volume that can clone where that is possible. On an error nothing is left.
func Open(ctx context.Context, home string, o Options) (w *Workspace, err error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	w = &Workspace{home: home, log: o.Log, need: o.Need}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
			w = nil
		}
	}()
	if err := os.MkdirAll(home, 0o755); err != nil {
		return w, fmt.Errorf("cannot make david's folder: %w", err)
	}
	if err := w.exclude(); err != nil {
		return w, err
	}
	if err := Reap(home, func(s string) { fmt.Fprintln(o.Log, "david: "+s) }); err != nil {
		return w, err
	}
	if w.owner, err = serverAccount(); err != nil {
		return w, err
	}
	if w.journal, err = newJournal(home); err != nil {
		return w, err
	}
	if err := w.makeRun(); err != nil {
		return w, err
	}
	if err := w.makeData(ctx, o); err != nil {
		return w, err
	}
	return w, w.sweep()
}

// exclude makes sure that no other david works in the same folder.
func (w *Workspace) exclude() error {
	f, err := os.OpenFile(filepath.Join(w.home, "workspace.lock"), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("cannot lock david's folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 64))
		f.Close()
		return fmt.Errorf("another david (%s) works in %s: wait for it to end, or set DAVID_HOME", holder, w.home)
	}
	w.lock = f
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "pid %d", os.Getpid())
	return err
}

// makeRun makes the runtime folder. Its path is short, because the system refuses socket paths above 107
// bytes.
func (w *Workspace) makeRun() error {
	var errs error
	for _, base := range []string{"/run", os.Getenv("XDG_RUNTIME_DIR"), os.TempDir()} {
		if base == "" {
			continue
		}
		dir, err := os.MkdirTemp(base, "david-")
		if err != nil {
			errs = errors.Join(errs, err)
			continue
		}
		w.run = dir
		if len(filepath.Join(dir, "123456789", "sock")) > 107 {
			return fmt.Errorf("the path of %s is too long for a socket: set TMPDIR to a shorter one", dir)
		}
		if err := w.journal.folder(dir); err != nil {
			return err
		}
		return w.owner.own(dir)
	}
	return fmt.Errorf("cannot make a runtime folder: %w", errs)
}

// makeData decides where the data lies.
func (w *Workspace) makeData(ctx context.Context, o Options) error {
	own := filepath.Join(w.home, "data")
	if err := os.MkdirAll(own, 0o755); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	clones, err := canReflink(own)
	if err != nil {
		return err
	}
	w.reflink = clones
	if o.Volume {
		return w.mustMountVolume(ctx)
	}
	if !clones && !o.NoVolume && w.owner.switched {
		err := w.mountVolume(ctx)
		if err == nil || errors.Is(err, ErrDiskFull) || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(w.log, "david: no volume of its own, copies will be slower: %v\n", err)
	}
	w.layout = describe(own, clones)
	if w.owner.switched { // the servers' user may not be able to reach david's folder
		w.data, w.bound = filepath.Join(w.run, "data"), own
		return errors.Join(w.owner.own(own), w.bind(own, w.data, 0))
	}
	w.data = own
	return nil
}

// sweep removes half-made data templates and clones of davids that were killed, and makes the folders.
func (w *Workspace) sweep() error {
	half, err := filepath.Glob(filepath.Join(escapeGlob(w.data), "golden", ".*"))
	if err != nil {
		return err
	}
	probes, err := filepath.Glob(filepath.Join(escapeGlob(w.data), "probe-*"))
	if err != nil {
		return err
	}
	half = append(half, probes...)
	for _, dir := range append(half, filepath.Join(w.data, "clones")) {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("cannot remove an old copy: %w", err)
		}
	}
	for _, dir := range []string{"golden", "clones"} {
		path := filepath.Join(w.data, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			return fmt.Errorf("cannot make a folder for copies: %w", err)
		}
		if err := w.owner.own(path); err != nil {
			return err
		}
	}
	return nil
}

// Layout says in a few words where the data lies and how it is copied.
func (w *Workspace) Layout() string { return w.layout }

// Dir returns the folder the data lies in while the workspace is open.
func (w *Workspace) Dir() string { return w.data }

// Private returns a folder of mode 0700 for what must not outlive the workspace, such as a file with a
// password.
func (w *Workspace) Private() string { return w.run }

// Close stops what still runs, unmounts, and removes the runtime folder. It may be called more than once.
func (w *Workspace) Close() error {
	if w == nil {
		return nil
	}
	var err error
	if w.journal != nil {
		err = w.journal.undo()
		w.journal = nil
	}
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
		w.lock = nil
	}
	return err
}
