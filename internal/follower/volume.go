package follower

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"

	"david/internal/ceph"
	"david/internal/home"
	"david/internal/host"
	"david/internal/loopdev"
	"david/internal/process"
	"david/internal/unmount"
)

// Volume is a follower's clone of the whole RBD image that the leader's filesystem lies on.
type Volume struct {
	ceph.Image             // the clone; the leader's snapshot is called as it is
	Of         string      `json:"of"`         // the leader's image, of the same pool
	Filesystem string      `json:"filesystem"` // on it
	Below      string      `json:"below"`      // where the data lie in that; "." for all of it
	By         *process.ID `json:"by,omitempty"`
	Clients    []string    `json:"clients,omitempty"` // the addresses as which this machine has had the clone open; By's is the last
	Taking     bool        `json:"taking,omitempty"`  // the snapshot was asked for, and may be there or come yet
}

// own tells whether a client that has the clone open is one of this machine's. The cluster takes one that was killed for
// alive for half a minute.
func (v Volume) own(client string) bool { return slices.Contains(v.Clients, client) }

// dead tells whether a client that has the clone open still is to be locked out, once this machine's rbd-fuse has ended.
// Of an image that was not shown yet nobody else knows.
func (v Volume) dead(client string) bool { return len(v.Clients) == 0 || v.own(client) }

// volume names the clone of an image: no two followers, of whatever david, may take each other's for their own.
func (p Place) volume(leader ceph.Image, follower string) *Volume {
	clone := leader
	clone.Name = "david-" + follower + "-" + strings.ToLower(rand.Text()[:10])
	return &Volume{Image: clone, Of: leader.Name, Filesystem: p.Type, Below: p.Below}
}

// String names what the cluster has of it.
func (v Volume) String() string {
	return fmt.Sprintf("the image %s, and the snapshot %s@%s that it is a clone of", v.Spec(), v.leaders().Spec(), v.Name)
}

// leaders is the image that it is a clone of.
func (v Volume) leaders() ceph.Image {
	i := v.Image
	i.Name = v.Of
	return i
}

// check says what of a record's is not of david's making.
func (v Volume) check() error {
	if err := errors.Join(v.Image.Check(), v.leaders().Check()); err != nil {
		return err
	}
	if !strings.HasPrefix(v.Name, "david-") || !filepath.IsLocal(v.Below) || !filepath.IsAbs(v.Conf) {
		return fmt.Errorf("david makes no image %s by %s with data in %q", v.Name, v.Conf, v.Below)
	}
	return nil
}

// imaged makes sure that the data lie on an image, alone on it, and that its cluster answers.
func (p *Place) imaged(ctx context.Context, under host.Filesystem, i ceph.Image) error {
	if os.Geteuid() != 0 {
		return refuse("cannot mount the clone of an image: that needs root")
	}
	if err := errors.Join(i.Check(), i.Trust(), ceph.Find("ceph", "rbd", "rbd-fuse")); err != nil {
		return refusal{err}
	}
	if under.Type != "xfs" && under.Type != "ext4" {
		return refuse("cannot mount a clone of %s beside it: of xfs and ext4 it can be done", under.Type)
	}
	if ok, err := onImage(ctx, under.Device, i); err != nil {
		return err
	} else if !ok {
		return refuse("%s lies on %s, which is not the image %s here: name the image that rbd-fuse or the kernel shows as that device", p.From, under.Device, i.Spec())
	}
	watchers, err := i.Watchers(ctx)
	if err != nil {
		return err
	}
	if len(watchers) == 0 {
		return refuse("nobody has the image %s open, so that it is not the leader's: name its pool, and its cluster by --ceph-conf", i.Spec())
	}
	p.Way = Image
	p.Below, err = below(under.Mount, p.From)
	return err
}

// below tells where in its filesystem a folder lies, of which a part may be mounted.
func below(mount, dir string) (string, error) {
	there, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(mount))
	if err != nil || len(there) == 0 {
		return "", fmt.Errorf("cannot find the mount %s: %w", mount, errors.Join(err, fs.ErrNotExist))
	}
	rel, err := filepath.Rel(mount, dir)
	if err != nil {
		return "", err
	}
	return filepath.Rel("/", filepath.Join(there[len(there)-1].Root, rel))
}

// onImage tells whether a device is an image by its names: one of the kernel's, or a loop device of the file that an
// rbd-fuse shows it as. Another cluster may have the same names: what the clone holds tells (pair.end).
func onImage(ctx context.Context, device string, i ceph.Image) (bool, error) {
	name := filepath.Base(device)
	read := func(path string) string {
		text, _ := os.ReadFile(path) // of another kind of device there is none
		return strings.TrimSpace(string(text))
	}
	if file := read("/sys/block/" + name + "/loop/backing_file"); file != "" {
		pool, err := shownPool(filepath.Dir(file))
		return filepath.Base(file) == i.Name && (pool == "" || pool == i.Pool), err
	}
	number, ok := strings.CutPrefix(name, "rbd")
	dir := "/sys/bus/rbd/devices/" + number + "/"
	if !ok || read(dir+"pool") != i.Pool || read(dir+"name") != i.Name || read(dir+"pool_ns") != "" || read(dir+"current_snap") != "-" {
		return false, nil
	}
	id, err := i.ID(ctx)
	return id == read(dir+"cluster_fsid"), err
}

// shownPool is the pool of the rbd-fuse that is mounted on a folder, by its command line; "" where that names none.
func shownPool(dir string) (string, error) {
	procs, err := procfs.AllProcs()
	if err != nil {
		return "", err
	}
	for _, p := range procs {
		args, err := p.CmdLine()
		if err != nil || len(args) < 2 || filepath.Base(args[0]) != "rbd-fuse" || !slices.Contains(args, dir) {
			continue // it has ended, or is another
		}
		for i, arg := range args {
			if pool, ok := strings.CutPrefix(arg, "--pool="); ok {
				return pool, nil
			}
			if (arg == "-p" || arg == "--pool") && i+1 < len(args) {
				return args[i+1], nil
			}
		}
	}
	return "", nil
}

func (r *Record) point() string { return filepath.Join(r.Dir, "volume") } // where the clone is mounted, of an image or a dataset
func (r *Record) shown() string { return filepath.Join(r.Dir, "image") }  // where rbd-fuse shows it as a file

// leaderPatience is how long a leader may take to say what it is, and its image to write what its filesystem has in memory.
const leaderPatience = time.Minute

// leads makes sure that the leader's image answers, before david itself waits for it: what waits for an rbd-fuse that does
// not answer cannot be ended, so that another process does, which david leaves behind.
func (v Volume) leads(ctx context.Context, dir string) error {
	none, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer none.Close()
	id, done, err := process.Detached([]string{"sync", "--file-system", dir}, none)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, leaderPatience, fmt.Errorf("within %s", leaderPatience))
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return refuse("the image %s, on which %s lies, does not answer (%w): end the rbd-fuse that shows it (kill -9) and see to its cluster; david's sync (process %d) ends then",
			v.leaders().Spec(), dir, context.Cause(ctx), id.PID)
	}
}

// unfold makes an image of the snapshot that was taken, and shows it.
func (r *Record) unfold(ctx context.Context) error {
	v := r.Volume
	if err := v.leaders().Clone(ctx, v.Name, v.Image); err != nil {
		return err
	}
	return r.show(ctx)
}

// show has rbd-fuse show the clone as a file, and makes sure that nobody else has it: another machine may have taken it
// over from this one.
func (r *Record) show(ctx context.Context) error {
	v := r.Volume
	if err := v.Trust(); err != nil {
		return err
	}
	log, err := home.Create(filepath.Join(r.Dir, "rbd-fuse.log"), 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	err = v.Show(ctx, r.shown(), log, func(by process.ID) error {
		v.By = &by
		return r.save()
	})
	if err != nil {
		return err
	}
	client := ""
	err = r.guarded(ctx, ceph.Wedged, func() (err error) {
		client, err = v.Alone(ctx, r.shown(), v.own)
		return err
	})
	if err != nil {
		return errors.Join(err, ceph.Hide(v.By, r.shown()))
	}
	v.Clients = append(v.Clients, client)
	return r.save()
}

// mount mounts the clone by a loop device, which replays its filesystem's journal.
func (r *Record) mount() error {
	v := r.Volume
	backing, err := os.OpenFile(filepath.Join(r.shown(), v.Name), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer backing.Close()
	loop, err := loopdev.Attach(backing, 0)
	if err != nil {
		return fmt.Errorf("cannot attach a loop device to %s: %w", backing.Name(), err)
	}
	defer loop.Close() // it stays for as long as it is mounted
	options := ""
	if v.Filesystem == "xfs" {
		options = "nouuid" // it has the leader's
	}
	if err := unix.Mount(loop.Name(), r.point(), v.Filesystem, unix.MS_NODEV|unix.MS_NOSUID, options); err != nil {
		return fmt.Errorf("cannot mount the clone of %s: %w", v.leaders().Spec(), err)
	}
	return nil
}

// remount mounts the volume again where it is not, as after a reboot, or where its rbd-fuse is dead or does not
// answer: whatever was mounted upon that is of no use any more.
func (r *Record) remount(ctx context.Context) error {
	if r.ZFS != nil {
		return r.mountZFS(ctx)
	}
	v := r.Volume
	if v == nil {
		return nil
	}
	there, err := unmount.Mounted(r.point())
	if err == nil && there && v.By != nil && v.By.Alive() && r.answers() == nil {
		return nil
	}
	if err := r.end(); err != nil {
		return err
	}
	err = r.show(ctx)
	if errors.As(err, new(ceph.InUse)) {
		return refuse("cannot start the follower %s: %w: stop what uses it there first", r.Name, err)
	}
	if err != nil {
		return err
	}
	return r.guarded(ctx, startPatience, r.mount)
}

// guarded does what touches the volume, and ends its rbd-fuse where that takes longer than a limit.
func (r *Record) guarded(ctx context.Context, limit time.Duration, do func() error) error {
	if r.Volume == nil {
		return do()
	}
	return ceph.Guarded(ctx, limit, r.hide, do)
}

// answers reads a block of the image past every cache, and ends an rbd-fuse that does not give it: all that touches the
// volume would hang. No interrupt cuts it short: who waits for rbd-fuse cannot end before it does.
func (r *Record) answers() error {
	if r.Volume == nil {
		return nil
	}
	err := r.guarded(context.Background(), ceph.Wedged, func() error {
		image, err := os.OpenFile(filepath.Join(r.shown(), r.Volume.Name), os.O_RDONLY|unix.O_DIRECT, 0)
		if err != nil {
			return err
		}
		_, err = image.ReadAt(make([]byte, 4096), 0)
		return errors.Join(err, image.Close())
	})
	if err != nil {
		return fmt.Errorf("the volume of the follower %s does not answer: %w; david follower start %s shows it anew", r.Name, err, r.Name)
	}
	return nil
}

// hide ends the rbd-fuse of the volume: what waits for it gets an error.
func (r *Record) hide() error {
	if r.Volume == nil || r.Volume.By == nil {
		return nil
	}
	return r.Volume.By.Kill()
}

// endPatience is how long a volume may take to be unmounted. What it does not write down any more a journal's replay makes up
// for, or it is removed anyway.
const endPatience = 30 * time.Second

// end ends the follower's servers and gives its volume back to this machine.
func (r *Record) end() error {
	err := r.kill()
	if err == nil && r.ZFS != nil {
		return unmount.Now(r.point())
	}
	if r.Volume == nil {
		return err
	}
	if err != nil { // it waits for a cluster that does not answer, which no signal ends
		err = errors.Join(r.hide(), r.kill())
	}
	if err != nil {
		return err
	}
	off := func() error { return unmount.Now(r.point()) }
	err = ceph.Guarded(context.Background(), endPatience, r.hide, off)
	if errors.Is(err, unix.EBUSY) { // threads of a server that was killed wait for a volume that does not answer
		err = errors.Join(r.hide(), off())
	}
	if err != nil {
		if there, looked := unmount.Mounted(r.point()); there || looked != nil {
			return errors.Join(err, looked)
		}
	}
	return ceph.Hide(r.Volume.By, r.shown())
}

// elsewhere refuses to drop a clone that another machine has taken over, or on which something depends. Where the cluster
// does not answer it refuses nothing, so that what is on this machine can be removed; discard then says what is left.
func (r *Record) elsewhere(ctx context.Context) error {
	if r.ZFS != nil {
		return r.depended(ctx)
	}
	v := r.Volume
	if v == nil || len(v.Clients) == 0 {
		return nil
	}
	watchers, err := v.Watchers(ctx)
	if err != nil {
		return nil
	}
	if others := slices.DeleteFunc(watchers, v.own); len(others) > 0 {
		return refuse("cannot drop the follower %s: %w: stop what uses it there first", r.Name, ceph.InUse{Image: v.Image, Clients: others})
	}
	if snapshots, err := v.Snapshots(ctx); err == nil && len(snapshots) > 0 {
		return refuse("cannot drop the follower %s: its image %s has snapshots (%s); remove them first, and what is cloned from them", r.Name, v.Spec(), strings.Join(snapshots, ", "))
	}
	return nil
}

// discard removes the volume from the cluster, or the dataset from its pool.
func (r *Record) discard(ctx context.Context) error {
	v := r.Volume
	if v == nil {
		return r.dispose(ctx)
	}
	err := v.Trust()
	if err == nil {
		err = v.Remove(ctx, v.dead)
	}
	snapshot := v.leaders().RemoveSnapshot
	if v.Taking {
		snapshot = v.leaders().Settle
	}
	if err == nil {
		err = snapshot(ctx, v.Name)
	}
	if err != nil {
		return fmt.Errorf("%w: %w; once that is mended, david follower drop %s --apply goes on; by hand: rbd -c %s rm %s; rbd -c %s snap rm %s@%s; then add --leave-image",
			ErrImageLeft, err, r.Name, v.Conf, v.Spec(), v.Conf, v.leaders().Spec(), v.Name)
	}
	r.Volume = nil
	return r.save()
}
