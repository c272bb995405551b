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
func (t *Target) Unpack(ctx context.Context, home string, pod result.Pod) (b Build, err error) {
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
	root := filepath.Join(home, "images", folderOf(b.ImageID))
	if err := t.copyImage(ctx, filepath.Join(hand, "pid"), root); err != nil {
		return b, fmt.Errorf("cannot copy the server out of the image %s: %w", pod.Image, err)
	}
	if b.Binary, err = server.Find(ctx, home, root); err != nil {
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
func (t *Target) copyImage(ctx context.Context, pidFile, to string) error {
	pid, err := await(ctx, pidFile)
	if err != nil {
		return err
	}
	if _, err := os.Stat(to); err == nil {
		return nil
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

// pidLimit bounds how long a pod that runs may take to write its process's ID.
const pidLimit = 20 * time.Second

// await reads a process's ID out of a file that is to come.
func await(ctx context.Context, path string) (int, error) {
	for began := time.Now(); time.Since(began) < pidLimit; {
		b, err := os.ReadFile(path)
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
// they are.
func copyRoot(from, to string) error {
	device, err := deviceOf(from)
	if err != nil {
		return err
	}
	for _, part := range parts() {
		top := filepath.Join(from, part)
		if _, err := os.Lstat(top); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			return copyOne(path, filepath.Join(to, rel), d, device)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func deviceOf(dir string) (uint64, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Dev, nil
}

// copyOne copies a file, a folder without what is in it, or a link; nothing else.
func copyOne(from, to string, d fs.DirEntry, device uint64) error {
	switch {
	case d.IsDir():
		own, err := deviceOf(from)
		if err != nil {
			return err
		}
		if own != device {
			return fs.SkipDir
		}
		return os.Mkdir(to, 0o755)
	case d.Type()&fs.ModeSymlink != 0:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case d.Type().IsRegular():
		return copyFile(from, to)
	}
	return nil
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()|0o444) // readable for the servers' user
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	_, err = io.Copy(out, in)
	return err
}
