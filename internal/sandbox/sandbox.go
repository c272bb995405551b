// Package sandbox runs throwaway servers. A Workspace owns what they need on the machine; a Template is
// initialised and loaded data, made once; a Server is one mysqld or mariadbd on a fresh clone of it.
//
//	Open -> Template (initialise, load, shut down, keep) -> Start (clone, start, wait) -> Stop (shut down, drop) -> Close
//
// A sandbox is private: a runtime folder that only david's user and the servers' may enter, a unix socket and
// no network unless asked, a random password, an ordinary user where david runs as root, and nothing of the
// system's own configuration or data. That user can write to a server's own data and runtime folder alone;
// what is above them is david's, so that a server that turned hostile cannot have root follow a link of its
// making. Everything that outlives a killed david (processes, cgroups, mounts, folders) is in a journal, and
// Reap removes it.
package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/ceph"
	"david/internal/cgroup"
	"david/internal/clone"
	"david/internal/home"
)

// Options say what a workspace is for.
type Options struct {
	Need     int64     // bytes of disk one data template and its clone will take
	Log      io.Writer // where remarks go; nil for nowhere
	NoVolume bool      // keep the data on $DAVID_HOME's filesystem also where it has no reflink
	Volume   bool      // keep it on a volume of david's own in any case: I/O can be capped on no other device
	// RBD, where not nil, keeps it on an image of a Ceph pool, that is made for the workspace and goes with it.
	RBD *ceph.Place
}

// Workspace owns david's place on the machine while it measures. One at a time may be open in a $DAVID_HOME.
type Workspace struct {
	home    string
	run     string // private runtime folder: sockets, pid files, mount points
	data    string // data templates and clones
	bound   string // what data is bound to; "" where it is no bind mount
	volume  string // the file of david's own volume, or the pool of its image; "" without one
	layout  string
	serving []string         // see Serving
	places  map[string]place // of the layouts that were built, by name
	granted int64            // bytes that their volumes may grow to
	need    int64
	owner   account.Account
	reached map[string]string // where the trees of servers are bound to
	journal *journal
	lock    *os.File
	log     io.Writer
	reflink bool
	device  cgroup.Device // of david's own volume; zero without one
	groups  int           // cgroups made so far
	// throttled is the server whose caps on I/O are in force; nil for none.
	throttled *Server
}

// Open removes what dead davids left in dir, david's folder, makes the private runtime folder, and makes the
// data reachable for the servers' user, on a volume that can clone where that is possible. On an error
// nothing is left.
func Open(ctx context.Context, dir string, o Options) (w *Workspace, err error) {
	if o.Log == nil {
		o.Log = io.Discard
	}
	w = &Workspace{home: dir, log: o.Log, need: o.Need}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
			w = nil
		}
	}()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return w, fmt.Errorf("cannot make david's folder: %w", err)
	}
	if err := w.exclude(); err != nil {
		return w, err
	}
	if err := Reap(dir, func(s string) { fmt.Fprintln(o.Log, "david: "+s) }); err != nil {
		return w, err
	}
	if w.owner, err = account.Find(); err != nil {
		return w, err
	}
	if w.journal, err = newJournal(dir); err != nil {
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
	f, err := home.Open(filepath.Join(w.home, "workspace.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil { // whoever could open it could lock it
		err = f.Chmod(0o600)
	}
	if err != nil {
		return fmt.Errorf("cannot lock david's folder: %w; remove what lies there", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		holder, _ := io.ReadAll(io.LimitReader(f, 64))
		f.Close()
		return home.InUse(fmt.Errorf("another david (%s) works in %s: wait for it to end, or set DAVID_HOME", holder, w.home))
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
		return errors.Join(w.journal.mark(dir), w.letIn(dir))
	}
	return fmt.Errorf("cannot make a runtime folder: %w", errs)
}

// letIn lets the servers' user, and nobody else, into a folder that stays david's.
func (w *Workspace) letIn(dir string) error {
	if !w.owner.Switched {
		return nil
	}
	return errors.Join(os.Lchown(dir, os.Geteuid(), w.owner.GID), os.Chmod(dir, 0o710))
}

// makeData decides where the data lies.
func (w *Workspace) makeData(ctx context.Context, o Options) error {
	own := filepath.Join(w.home, "data")
	if err := keep(own); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	if err := home.Tag(own); err != nil {
		return err
	}
	clones, err := clone.Shares(own)
	if err != nil {
		return err
	}
	w.reflink = clones
	if o.RBD != nil {
		return w.useRBD(ctx, *o.RBD)
	}
	if o.Volume {
		return w.mustMountVolume(ctx)
	}
	if !clones && !o.NoVolume && w.owner.Switched {
		err := w.mountVolume(ctx)
		if err == nil || errors.Is(err, ErrDiskFull) || ctx.Err() != nil {
			return err
		}
		fmt.Fprintf(w.log, "david: no volume of its own, copies will be slower: %v\n", err)
	}
	w.layout = describe(own, clones)
	if w.owner.Switched { // the servers' user may not be able to reach david's folder
		w.data, w.bound = filepath.Join(w.run, "data"), own
		return w.bind(own, w.data, unix.MS_NODEV|unix.MS_NOSUID)
	}
	w.data = own
	return nil
}

// sweep removes half-made data templates and clones of davids that were killed, and makes the folders.
func (w *Workspace) sweep() error {
	half, err := filepath.Glob(filepath.Join(escapeGlob(w.data), templatesDir, ".*"))
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
	for _, dir := range []string{templatesDir, "clones"} {
		path := filepath.Join(w.data, dir)
		if err := keep(path); err != nil {
			return fmt.Errorf("cannot make a folder for copies: %w", err)
		}
	}
	return nil
}

// keep makes a folder of david's that the servers' user may pass through; one that earlier davids gave away
// is taken back.
func keep(dir string) error {
	if err := mkdirIfMissing(dir); err != nil {
		return err
	}
	return takeBack(dir)
}

// takeBack makes a folder david's, that the servers' user may pass through.
func takeBack(dir string) error {
	f, err := os.OpenFile(dir, unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Chown(os.Geteuid(), os.Getegid()), f.Chmod(0o711), f.Close())
}

// Layout says in a few words where the data lies and how it is copied.
func (w *Workspace) Layout() string { return w.layout }

// Serving names the programs that serve what the data lie on, where it is no disk of the kernel's alone.
func (w *Workspace) Serving() []string { return w.serving }

// Dir returns the folder the data lies in while the workspace is open.
func (w *Workspace) Dir() string { return w.data }

// Place says where the data lies whether or not the workspace is open: its folder, or what its volume lies in.
func (w *Workspace) Place() string { return cmp.Or(w.volume, w.bound, w.data) }

// Private returns a folder of mode 0700 for what must not outlive the workspace, such as a file with a
// password.
func (w *Workspace) Private() string { return w.run }

// remark says something beside the work.
func (w *Workspace) remark(text string) {
	if w.log != nil { // a probe's workspace has none
		fmt.Fprintln(w.log, "david: "+text)
	}
}

// Close stops what still runs, unmounts, and removes the runtime folder. It may be called more than once.
func (w *Workspace) Close() error {
	if w == nil {
		return nil
	}
	var err error
	if w.journal != nil {
		err = w.journal.undo(w.remark)
		w.journal = nil
	}
	if w.lock != nil {
		err = errors.Join(err, w.lock.Close())
		w.lock = nil
	}
	return err
}
