package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"david/internal/ceph"
	"david/internal/loopdev"
	"david/internal/process"
	"david/internal/result"
	"david/internal/unmount"
)

// shown is an image that a workspace has made, as the journal keeps it.
type shown struct {
	ceph.Image
	Folder string      `json:"folder"`       // where rbd-fuse shows it as a file: run/rbd-N
	By     *process.ID `json:"by,omitempty"` // the rbd-fuse
}

// wedged is how long what touches an image may take. rbd-fuse waits for its cluster without an end, and whoever
// touches the loop device upon it waits with it, in the kernel, where no signal reaches: only killing rbd-fuse
// ends that.
const wedged = 30 * time.Second

// useRBD puts the data of the workspace on an image.
func (w *Workspace) useRBD(ctx context.Context, o ceph.Place) error {
	pool, err := o.Cluster.Pool(ctx, o.Pool)
	if err != nil {
		return err
	}
	if err := lacksMkfs("xfs"); err != nil {
		return err
	}
	const unit = 1 << 20 // an image has whole ones
	l, point := result.Layout{Filesystem: "xfs", Bytes: sizeFor(w.need+spare) / unit * unit}, filepath.Join(w.run, "data")
	loop, err := w.attachImage(ctx, o, l.Bytes)
	if err != nil {
		return err
	}
	defer loop.Close()
	err = w.journal.guarded(formatting, func() error { return w.format(ctx, l, newUUID(), []string{loop.Name()}, point) })
	if err != nil {
		return fmt.Errorf("cannot mount an image of the pool %s: %w", o.Pool, err)
	}
	if err := w.useVolume(point); err != nil {
		return err
	}
	w.volume = "an image of the Ceph pool " + o.Pool
	w.layout = fmt.Sprintf("XFS (reflink) on an RBD image of the Ceph pool %s, %d copies, by rbd-fuse and a loop device", o.Pool, pool.Replicas)
	return nil
}

// attachImage makes an image of so many bytes, which it takes as it fills, a disk of this machine: rbd-fuse shows
// it as a file, a loop device makes that a disk, which goes when it is closed or with its mount. The kernel's own
// driver would need a module that clouds' kernels seldom have. What touches the disk has to be guarded.
func (w *Workspace) attachImage(ctx context.Context, o ceph.Place, size int64) (loop *os.File, err error) {
	if !w.owner.Switched {
		return nil, errors.New("cannot put data on an RBD image: mounting it needs root")
	}
	if err := ceph.Find("rbd-fuse"); err != nil {
		return nil, err
	}
	s, err := w.makeImage(ctx, o, size)
	if err != nil {
		return nil, err
	}
	if err := w.show(ctx, s); err != nil {
		return nil, err
	}
	err = w.journal.guarded(wedged, func() error {
		backing, err := os.OpenFile(filepath.Join(s.Folder, s.Name), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer backing.Close()
		loop, err = loopdev.Attach(backing, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot attach a loop device to an image of the pool %s: %w%s", o.Pool, err, s.says())
	}
	w.serving = ceph.Programs()
	return loop, nil
}

// makeImage makes an image that goes with the workspace.
func (w *Workspace) makeImage(ctx context.Context, o ceph.Place, size int64) (*shown, error) {
	free, err := o.Cluster.Free(ctx, o.Pool)
	if err != nil {
		return nil, err
	}
	if free < size { // a full cluster lets writes wait for ever
		return nil, fmt.Errorf("%w: %d MiB are needed in the Ceph pool %s, %d MiB are free; use fewer or smaller tables", ErrDiskFull, size>>20, o.Pool, free>>20)
	}
	s, err := w.journal.image(ceph.Image{Cluster: o.Cluster, Pool: o.Pool, Name: filepath.Base(w.run) + "-" + rand.Text()}, w.run)
	if err != nil {
		return nil, err
	}
	return s, s.Create(ctx, size)
}

// Image makes an image of so many bytes that nothing is mounted of, and that goes with the workspace.
func (w *Workspace) Image(ctx context.Context, o ceph.Place, size int64) (ceph.Image, error) {
	s, err := w.makeImage(ctx, o, size)
	if err != nil {
		return ceph.Image{}, err
	}
	return s.Image, nil
}

// show starts rbd-fuse, as root because root's loop device reads its file, and waits until it serves.
func (w *Workspace) show(ctx context.Context, s *shown) error {
	if err := os.Mkdir(s.Folder, 0o700); err != nil {
		return fmt.Errorf("cannot make a mount point: %w", err)
	}
	if err := w.journal.mount(s.Folder); err != nil {
		return err
	}
	said, err := os.OpenFile(s.log(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer said.Close()
	argv := s.FuseArgs(s.Folder)
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", append(s.Environ(), ceph.FuseVariable), said, said
	c, err := unrecorded(cmd, nil, nil, nil)
	if err != nil {
		return err
	}
	if p, err := process.Identify(cmd.Process.Pid); err == nil { // else it ended already
		if err := w.journal.update(func() { s.By = &p }); err != nil {
			return err
		}
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		if there, err := unmount.Mounted(s.Folder); err != nil || there {
			return err
		}
		if err, ended := c.exited(); ended {
			return fmt.Errorf("rbd-fuse ended: %w%s", err, s.says())
		}
		if time.Since(began) > wedged || ctx.Err() != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("rbd-fuse did not serve the pool %s within %s%s", s.Pool, wedged, s.says()))
		}
	}
}

// shown tells the file that an image is shown as.
func (j *journal) shown(file string) bool {
	return slices.ContainsFunc(j.Images, func(s *shown) bool { return file == filepath.Join(s.Folder, s.Name) })
}

func (s shown) log() string { return s.Folder + ".log" }

// says is the last line of rbd-fuse.
func (s shown) says() string {
	text, _ := os.ReadFile(s.log()) // it may not have come so far
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return "; rbd-fuse says: " + last
	}
	return ""
}

// image enters an image that is to be made and shown.
func (j *journal) image(i ceph.Image, run string) (s *shown, err error) {
	return s, j.update(func() {
		s = &shown{Image: i, Folder: filepath.Join(run, fmt.Sprintf("rbd-%d", len(j.Images)))}
		j.Images = append(j.Images, s)
	})
}

// guarded does what touches images, and kills their rbd-fuse where that takes too long.
func (j *journal) guarded(limit time.Duration, do func() error) error {
	if len(j.Images) == 0 {
		return do()
	}
	return ceph.Guarded(context.Background(), limit, j.hide, do)
}

// hide kills every rbd-fuse that still runs.
func (j *journal) hide() error {
	for _, s := range j.Images {
		if s.By == nil {
			continue
		}
		if err := s.By.Kill(); err != nil {
			return err
		}
	}
	return nil
}

// unmountAll takes off the mounts, the newest first. What hung upon a dead cluster is gone all the same.
func (j *journal) unmountAll(limit time.Duration) error {
	for _, m := range slices.Backward(j.Mounts) {
		err := j.guarded(limit, func() error { return unmount.Now(m) })
		if err == nil {
			continue
		}
		if there, looked := unmount.Mounted(m); len(j.Images) == 0 || there || looked != nil {
			return errors.Join(err, looked)
		}
	}
	return j.hide() // it ends with its mount
}

// removeImages removes the images. Where their cluster cannot be reached it says how that is done later, as
// david would else have to wait for that cluster at each command.
func (j *journal) removeImages(say func(string)) {
	for _, s := range j.Images {
		if _, err := os.Stat(s.Conf); errors.Is(err, os.ErrNotExist) {
			continue // the cluster is gone
		}
		if err := s.Remove(context.Background(), ceph.Anybody); err != nil {
			say(fmt.Sprintf("cannot remove the image %s of the pool %s: %v; remove it by: rbd -c %s rm %s/%s", s.Name, s.Pool, err, s.Conf, s.Pool, s.Name))
		}
	}
}

// checkImages says what of the entries for images is not of david's making.
func (j *journal) checkImages(run string) error {
	for i, s := range j.Images {
		if s == nil || run == "" {
			return errors.New("it has images without a runtime folder")
		}
		if err := s.Check(); err != nil {
			return err
		}
		if !strings.HasPrefix(s.Name, filepath.Base(run)+"-") || !filepath.IsAbs(s.Conf) || s.Folder != filepath.Join(run, fmt.Sprintf("rbd-%d", i)) {
			return fmt.Errorf("david makes no image that is called %s", s.Name)
		}
		if err := s.Trust(); err != nil && !errors.Is(err, os.ErrNotExist) { // that of a cluster that is gone
			return err
		}
		if err := s.shows(); err != nil {
			return err
		}
	}
	return nil
}

// shows says why a process that still runs is not the rbd-fuse of the folder.
func (s shown) shows() error {
	if s.By == nil {
		return nil
	}
	now, err := process.Identify(s.By.PID)
	if err != nil || now.Start != s.By.Start { // it has ended
		return nil
	}
	args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", now.PID))
	if now.Ending() {
		return nil
	}
	if err != nil {
		return err
	}
	if filepath.Base(now.Exe) != "rbd-fuse" || !bytes.HasSuffix(args, []byte("\x00"+s.Folder+"\x00")) {
		return fmt.Errorf("process %d is no rbd-fuse that shows an image in %s", now.PID, s.Folder)
	}
	return nil
}
