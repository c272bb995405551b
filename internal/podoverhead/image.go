package podoverhead

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"david/internal/home"
	"david/internal/kube"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/server"
)

// Build holds the server that was taken out of an image.
type Build struct {
	Binary  server.Binary
	Command string // its path in the image
	ImageID string // as the node's container runtime names it
}

// unpackLimit bounds how long the image's pod may live.
const unpackLimit = 15 * time.Minute

// Unpack copies what a server of an image needs to run, with its loader and libraries, to a folder of david's
// home, so that the process is the same build as the pod in all of it. It asks the node's container runtime
// for the image by running a pod of it, which does nothing, and copies its root filesystem. What was copied
// for the same image before is used again.
func (t *Target) Unpack(ctx context.Context, dir string, pod result.Pod) (b Build, err error) {
	hand, err := t.Plain.Workspace.Hand("image")
	if err != nil {
		return b, err
	}
	uid, gid := t.Plain.Workspace.Account()
	pod.QoS = BestEffort
	// Its shell waits for its input, which nobody writes: without any program of the image's beside.
	p := podSpec{name: "image", namespace: t.Namespace, pod: pod, folders: []sandbox.Folder{{Source: hand, Path: hand}}, uid: uid, gid: gid, lasts: unpackLimit, stdin: true,
		command: []string{"/bin/sh", "-c", "echo $$ > " + hand + "/pid.new && mv " + hand + "/pid.new " + hand + "/pid || exit 1; read never"}}
	run := kube.NewRun(t.Run.ID+"-image", unpackLimit)
	defer func() { err = errors.Join(err, t.Cluster.Remove(ctx, run.ID, t.Namespace)) }()
	if err := t.Cluster.Create(ctx, run, p.object()); err != nil {
		return b, err
	}
	running, err := t.Cluster.WaitPod(ctx, t.Namespace, p.name)
	if err != nil {
		return b, fmt.Errorf("cannot run the image %s: %w", pod.Image, err)
	}
	b.ImageID = running.Status.ContainerStatuses[0].ImageID
	root := filepath.Join(dir, "images", folderOf(b.ImageID))
	if err := t.copyImage(ctx, filepath.Join(hand, "pid"), root, uid); err != nil {
		return b, fmt.Errorf("cannot copy the server out of the image %s: %w", pod.Image, err)
	}
	if err := home.Tag(filepath.Dir(root)); err != nil {
		return b, err
	}
	if b.Binary, err = server.Find(ctx, dir, root); err != nil {
		return b, fmt.Errorf("the image %s: %w", pod.Image, err)
	}
	b.Command = strings.TrimPrefix(b.Binary.Path, root)
	return b, nil
}

// folderOf names a folder for an image: the end of its ID is a checksum.
func folderOf(imageID string) string {
	name := imageID[strings.LastIndexAny(imageID, ":/@")+1:]
	return name[:min(16, len(name))]
}

// copyImage copies the root of the process whose ID is in a file to a folder, unless that is there.
func (t *Target) copyImage(ctx context.Context, pidFile, to string, uid int) error {
	pid, err := await(ctx, pidFile, uid)
	if err != nil {
		return err
	}
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if err := contained(pid); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	stale, err := filepath.Glob(filepath.Join(filepath.Dir(to), ".copying-*"))
	if err != nil {
		return err
	}
	for _, dir := range stale { // of a david that was killed: there is one at a time
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	tmp, err := os.MkdirTemp(filepath.Dir(to), ".copying-")
	if err == nil {
		err = os.Chmod(tmp, 0o755)
	}
	if err == nil {
		err = copyRoot(fmt.Sprintf("/proc/%d/root", pid), tmp)
	}
	if err == nil {
		err = os.Rename(tmp, to)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(tmp))
	}
	return nil
}

// contained makes sure that a process has a root filesystem of its own: it is the image that names the
// process.
func contained(pid int) error {
	own, err := os.Stat("/")
	if err != nil {
		return err
	}
	its, err := os.Stat(fmt.Sprintf("/proc/%d/root/", pid))
	if err != nil {
		return fmt.Errorf("cannot find the image's process %d on this machine: %w", pid, err)
	}
	if os.SameFile(own, its) {
		return fmt.Errorf("cannot copy the image: process %d, which it says is its own, is one of this machine's", pid)
	}
	return nil
}

// pidLimit bounds how long a pod that runs may take to write its process's ID.
const pidLimit = 20 * time.Second

// await reads a process's ID out of a file of that user's that is to come.
func await(ctx context.Context, path string, uid int) (int, error) {
	for began := time.Now(); time.Since(began) < pidLimit; {
		b, err := home.Read(path, 32, uid)
		if err == nil {
			return strconv.Atoi(strings.TrimSpace(string(b)))
		}
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return 0, fmt.Errorf("its pod runs, but left no file in %s: is david on another machine than the node?", filepath.Dir(path))
}

// parts lists the folders of a root filesystem in which a server, its libraries and its messages lie.
func parts() []string {
	return []string{"usr", "opt", "bin", "sbin", "lib", "lib32", "lib64", "libx32"}
}

// copyRoot copies those parts of a root filesystem, and nothing that is mounted in it. Links are copied as
// they are, and none is followed out of it, whatever the image does meanwhile.
func copyRoot(from, to string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	c := copying{root, to, deviceOf(info)}
	for _, part := range parts() {
		if _, err := root.Lstat(part); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := c.part(part); err != nil {
			return err
		}
	}
	return nil
}

// copying is a copy of a root filesystem under way.
type copying struct {
	from   *os.Root
	to     string
	device uint64 // that the filesystem is on
}

func deviceOf(info fs.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Dev }

// part copies a folder of the top, which may be a link to another.
func (c copying) part(name string) error {
	info, err := c.from.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return c.link(name)
	}
	return fs.WalkDir(c.from.FS(), name, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = c.one(path, d)
		}
		return err
	})
}

// one copies a file, a folder without what is in it, or a link; nothing else.
func (c copying) one(path string, d fs.DirEntry) error {
	switch {
	case d.IsDir():
		info, err := d.Info()
		if err != nil {
			return err
		}
		if deviceOf(info) != c.device {
			return fs.SkipDir
		}
		return os.Mkdir(filepath.Join(c.to, path), 0o755)
	case d.Type()&fs.ModeSymlink != 0:
		return c.link(path)
	case d.Type().IsRegular():
		return c.file(path)
	}
	return nil
}

func (c copying) link(path string) error {
	target, err := c.from.Readlink(path)
	if err != nil {
		return err
	}
	return os.Symlink(target, filepath.Join(c.to, path))
}

func (c copying) file(path string) (err error) {
	in, err := c.from.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(filepath.Join(c.to, path), os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o444) // readable for the servers' user
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
