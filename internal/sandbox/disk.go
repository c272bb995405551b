package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"david/internal/blocklog"
	"david/internal/clone"
	"david/internal/home"
	"david/internal/unmount"
)

// ErrNoDisk says that there can be no disk of a server's own whose power is cut.
var ErrNoDisk = errors.New("cannot cut the power of a disk")

// Disk holds a filesystem with a server's data, as it is before the server starts. What a server does to it
// is recorded once; images of what a cut of the power leaves are made from the record.
type Disk struct {
	w      *Workspace
	key    TemplateKey
	fs     string
	dir    string
	log    *blocklog.Log
	replay *blocklog.Replay
}

// The files of a disk.
const (
	diskBase = "base"    // before the server starts
	diskLive = "live"    // while it is recorded
	diskLog  = "log"     // what it was told
	diskSafe = "durable" // what is durable at a cut
	diskCut  = "cut"     // and what the cut left of the rest
)

// Filesystems lists those a disk can have.
func Filesystems() []string { return []string{"xfs", "ext4"} }

// NoDisk says what is missing for a disk with a filesystem whose power is to be cut; nil where nothing is.
func NoDisk(fs string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: that needs root, for loop devices and mounts", ErrNoDisk)
	}
	for _, path := range []string{"/dev/fuse", "/dev/loop-control"} {
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("%w: %w; load the kernel's module (modprobe fuse, modprobe loop), or in a container let it in", ErrNoDisk, err)
		}
	}
	if err := lacksMkfs(fs); err != nil {
		return fmt.Errorf("%w: %w", ErrNoDisk, err)
	}
	return nil
}

// NewDisk makes a filesystem of a size in bytes, in a sparse file, with a copy of a data template's data.
// Close removes it.
func (w *Workspace) NewDisk(ctx context.Context, g Template, fs string, size int64) (d *Disk, err error) {
	if err := NoDisk(fs); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(filepath.Join(w.data, "clones"), "disk-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a folder for a disk: %w", err)
	}
	d = &Disk{w: w, key: g.key, fs: fs, dir: dir}
	if err := d.make(ctx, g, size); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Disk) path(file string) string { return filepath.Join(d.dir, file) }

func (d *Disk) make(ctx context.Context, g Template, size int64) error {
	f, err := home.Create(d.path(diskBase), 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(size), f.Close()); err != nil {
		return err
	}
	args := []string{"-f"}
	if d.fs == "ext4" { // nothing is left to be initialised while it is recorded
		args = []string{"-F", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"}
	}
	if err := runTool(ctx, append(append([]string{"mkfs." + d.fs, "-q"}, args...), d.path(diskBase))); err != nil {
		return err
	}
	m, err := d.mount(d.path(diskBase))
	if err != nil {
		return err
	}
	return errors.Join(d.w.cloneTree(filepath.Join(g.dir, "data"), filepath.Join(m.point, "data")), m.Close())
}

// Close removes what there is of the disk. What is mounted of it has to be closed before.
func (d *Disk) Close() error {
	var err error
	if d.log != nil {
		err = errors.Join(d.replay.Close(), d.log.Close())
	}
	return errors.Join(err, os.RemoveAll(d.dir))
}

// Mounted is a disk's filesystem where a server can use it.
type Mounted struct {
	w     *Workspace
	file  string
	point string
	after func() error // once it is unmounted
}

// mount mounts an image.
func (d *Disk) mount(file string) (*Mounted, error) {
	point, err := os.MkdirTemp(d.w.run, "disk-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a mount point: %w", err)
	}
	m := &Mounted{w: d.w, file: file, point: point}
	if err := d.w.journal.mount(point); err != nil {
		return nil, err
	}
	flags := ""
	if d.fs == "xfs" {
		flags = "nouuid"
	}
	const sector = 512 // always: the kernel takes larger ones on copies by reflink, and the filesystem has those it was made with
	if err := mountLoop(file, point, d.fs, flags, sector); err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

// Data returns the folder of the server's data.
func (m *Mounted) Data() string { return filepath.Join(m.point, "data") }

// Close unmounts it. The server has to be gone.
func (m *Mounted) Close() error {
	if err := m.w.drop(m.point); err != nil {
		return err // the journal still has it
	}
	err := detached(m.file)
	if m.after != nil {
		err = errors.Join(err, m.after())
	}
	return err
}

// drop unmounts a folder that was made for that, and removes it.
func (w *Workspace) drop(point string) error {
	if err := unmount.Now(point); err != nil {
		return err
	}
	if err := os.Remove(point); err != nil && !os.IsNotExist(err) {
		return err
	}
	return w.journal.unmounted(point)
}

// Recording is a disk that is mounted while what it is told is recorded.
type Recording struct {
	*Mounted
	log string
}

// Moment returns the length of the log: whatever is known to be done has been recorded before it.
func (r *Recording) Moment() (int64, error) {
	info, err := os.Stat(r.log)
	if err != nil {
		return 0, fmt.Errorf("cannot see what the disk was told: %w", err)
	}
	return info.Size(), nil
}

// Record mounts the disk over a block device that is recorded. Close of the recording ends that; Cut may be
// called then.
func (d *Disk) Record(ctx context.Context) (*Recording, error) {
	if err := cloneFile(d.path(diskBase), d.path(diskLive)); err != nil {
		return nil, err
	}
	f, err := home.Create(d.path(diskLog), 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	point, err := os.MkdirTemp(d.w.run, "device-")
	if err != nil {
		return nil, fmt.Errorf("cannot make a mount point: %w", err)
	}
	if err := d.w.journal.mount(point); err != nil {
		return nil, err
	}
	end, err := d.serve(ctx, point)
	if err != nil {
		return nil, err
	}
	m, err := d.mount(filepath.Join(point, blocklog.File))
	if err != nil {
		return nil, errors.Join(err, end())
	}
	m.after = end
	return &Recording{Mounted: m, log: d.path(diskLog)}, nil
}

// serve starts the process that answers for the device, and returns once it does. end ends it.
func (d *Disk) serve(ctx context.Context, point string) (end func() error, err error) {
	said := &strings.Builder{}
	cmd := exec.Command("/proc/self/exe", blocklog.Command, point, d.path(diskLive), d.path(diskLog))
	cmd.Dir, cmd.Stderr, cmd.Env = "/", said, []string{"DAVID_HOME=" + d.w.home}
	c, err := d.w.spawnAs(cmd, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	end = func() error {
		err := d.w.drop(point)
		if err != nil { // whoever waits for the device gets an error then
			err = errors.Join(err, cmd.Process.Kill())
		}
		<-c.done
		return errors.Join(err, d.w.journal.ended(cmd.Process.Pid))
	}
	for {
		if _, err := os.Stat(filepath.Join(point, blocklog.File)); err == nil {
			return end, nil
		}
		select {
		case <-c.done:
			cause, _ := c.exited()
			return nil, errors.Join(fmt.Errorf("%w: the process that records it ended (%w): %s", ErrNoDisk, cause, strings.TrimSpace(said.String())), end())
		case <-ctx.Done():
			return nil, errors.Join(ctx.Err(), end())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Log returns what was recorded.
func (d *Disk) Log() (*blocklog.Log, error) {
	if d.log != nil {
		return d.log, nil
	}
	log, err := blocklog.Open(d.path(diskLog))
	if err != nil {
		return nil, err
	}
	if err := os.Rename(d.path(diskBase), d.path(diskSafe)); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	replay, err := log.Replay(d.path(diskSafe))
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	d.log, d.replay = log, replay
	return log, os.Remove(d.path(diskLive))
}

// Image makes what a cut leaves of the disk: later ones than the one before only. Mount mounts it.
func (d *Disk) Image(c blocklog.Cut) (f blocklog.Fate, err error) {
	if err := d.replay.Until(c.Risk); err != nil {
		return f, err
	}
	if err := cloneFile(d.path(diskSafe), d.path(diskCut)); err != nil {
		return f, err
	}
	image, err := os.OpenFile(d.path(diskCut), os.O_WRONLY, 0)
	if err != nil {
		return f, err
	}
	f, err = d.log.Apply(image, c)
	return f, errors.Join(err, image.Close())
}

// Mount mounts what a cut left, which the filesystem has to repair.
func (d *Disk) Mount() (*Mounted, error) { return d.mount(d.path(diskCut)) }

// Start starts a server on the disk's data. It returns how long it took from there until the server answered:
// its recovery included. One that does not answer within patience, or ends, is a *StartError. Stop leaves the
// data.
func (d *Disk) Start(ctx context.Context, m *Mounted, o StartOptions, patience time.Duration) (*Server, time.Duration, error) {
	o.kept, o.patience = true, patience
	began := time.Now()
	s, err := d.w.launch(ctx, d.key, m.Data(), o)
	return s, time.Since(began), err
}

// cloneFile copies a file, whatever is in the place of the copy: by reflink where the filesystem can.
func cloneFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := home.Create(to, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return clone.File(context.Background(), in, out)
}
