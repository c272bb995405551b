package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/apt"
)

// release is the Debian that the guest is made of.
const release = "bookworm"

// tools are the packages of the guest, compilers those that ZFS is compiled with, in a folder that goes afterwards.
// None of their scripts is run.
var (
	tools     = []string{"linux-image-amd64", "zfsutils-linux", "mdadm", "lvm2", "btrfs-progs", "xfsprogs", "e2fsprogs", "fio", "util-linux", "mount", "kmod", "coreutils", "bash", "dash", "gawk", "findutils", "grep", "sed", "mariadb-server-core"}
	compilers = []string{"linux-headers-amd64", "zfs-dkms", "gcc", "libc6-dev", "make", "bash", "dash", "coreutils", "diffutils", "findutils", "gawk", "grep", "sed", "tar", "util-linux"}
)

// compile is run in the compilers' folder, with the kernel's version for its argument. Debugging information would
// take most of the time.
const compile = `set -eu
cd /usr/src/zfs-*
./configure --disable-dependency-tracking --with-config=kernel --with-linux="/usr/src/linux-headers-${1%-*}-common" --with-linux-obj="/usr/src/linux-headers-$1"
make -s -j"$2" KCFLAGS=-g0
mkdir -p /out
find module -name '*.ko' -exec cp -t /out {} +
`

// built returns the folder of the guest, which is made where it is missing: vmlinuz, root.img, early (the modules that
// find root.img).
func built(ctx context.Context, cache string, say func(string, ...any)) (string, error) {
	recipe := fmt.Sprint(release, tools, compilers, compile, early, kept, users)
	image := filepath.Join(cache, fmt.Sprintf("%.6x", sha256.Sum256([]byte(recipe))))
	if isThere(image) {
		return image, nil
	}
	if os.Geteuid() != 0 {
		return "", errors.New("making the guest needs root, for files that are root's; once made, it runs as anybody")
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil || isThere(image) {
		return image, err
	}
	left, err := filepath.Glob(filepath.Join(cache, "building-*")) // of one that was killed
	for _, dir := range left {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(cache, "building-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	say("making the guest in %s; the first time takes about 10 minutes of CPU", image)
	began := time.Now()
	if err := build(ctx, cache, dir, say); err != nil {
		return "", fmt.Errorf("cannot make the guest: %w", err)
	}
	say("made in %s", time.Since(began).Round(time.Second))
	return image, os.Rename(filepath.Join(dir, "guest"), image)
}

func build(ctx context.Context, cache, dir string, say func(string, ...any)) error {
	archives, err := apt.DebianRelease(ctx, release)
	if err != nil {
		return err
	}
	for i := range archives {
		archives[i].Contrib = true // ZFS's sources
	}
	packages := filepath.Join(cache, "apt")
	if err := os.MkdirAll(packages, 0o755); err != nil {
		return err
	}
	state, err := apt.New(ctx, packages, archives...)
	if err != nil {
		return err
	}
	if err := state.Update(ctx); err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	if err := unpack(ctx, state, root, tools, say); err != nil {
		return err
	}
	versions, err := filepath.Glob(filepath.Join(root, "lib/modules/*"))
	if err != nil || len(versions) != 1 {
		return errors.Join(fmt.Errorf("the packages bring %d kernels", len(versions)), err)
	}
	version := filepath.Base(versions[0])
	modules := filepath.Join(cache, fmt.Sprintf("zfs-%s-%.6x", version, sha256.Sum256([]byte(compile))))
	if !isThere(modules) { // which take most of the time
		from := filepath.Join(dir, "compilers")
		if err := unpack(ctx, state, from, compilers, say); err != nil {
			return err
		}
		say("compiling ZFS for Linux %s", version)
		if err := inChroot(ctx, from, compile, version, fmt.Sprint(runtime.NumCPU())); err != nil {
			return err
		}
		if err := os.Rename(filepath.Join(from, "out"), modules); err != nil {
			return err
		}
	}
	if err := tool(ctx, "cp", "-r", modules, filepath.Join(versions[0], "extra")); err != nil {
		return err
	}
	if err := prune(root, versions[0]); err != nil {
		return err
	}
	if err := inChroot(ctx, root, `depmod "$1"`, version); err != nil {
		return err
	}
	say("writing the guest's disk")
	return pack(ctx, root, versions[0], filepath.Join(dir, "guest"))
}

// unpack puts packages, and what they need, into a folder whose /bin, /lib and /sbin are links into /usr.
func unpack(ctx context.Context, state apt.State, root string, names []string, say func(string, ...any)) error {
	for _, dir := range []string{"bin", "lib", "lib32", "lib64", "sbin"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(root, "usr", dir), 0o755), os.Symlink("usr/"+dir, filepath.Join(root, dir))); err != nil {
			return err
		}
	}
	for _, dir := range []string{"dev", "etc", "proc", "run", "sys", "tmp", "scratch", "project", "root", "var/lib"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			return err
		}
	}
	list, err := state.Plan(ctx, names...)
	if err != nil {
		return err
	}
	var missing []apt.Package
	for _, p := range list {
		if state.Verify(p) != nil {
			missing = append(missing, p)
		}
	}
	say("%d packages, %d to download", len(list), len(missing))
	if len(missing) > 0 {
		if err := state.Download(ctx, missing, io.Discard); err != nil {
			return err
		}
	}
	for _, p := range list {
		// dpkg-deb --extract would put folders in the place of the links.
		line := `set -eu; dpkg-deb --fsys-tarfile "$1" | tar -C "$2" -xp --keep-directory-symlink --warning=no-timestamp`
		if err := tool(ctx, "bash", "-o", "pipefail", "-c", line, "unpack", state.Path(p), root); err != nil {
			return fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	// What packages' scripts would have chosen.
	for link, target := range map[string]string{"usr/bin/awk": "gawk", "usr/bin/cc": "gcc", "usr/bin/sh": "dash"} {
		path := filepath.Join(root, link)
		if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) && isThere(filepath.Join(filepath.Dir(path), target)) {
			if err := os.Symlink(target, path); err != nil {
				return err
			}
		}
	}
	for name, text := range users {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// users are files of /etc.
var users = map[string]string{
	"passwd": "root:x:0:0:root:/scratch/root:/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
	"group":  "root:x:0:\ndisk:x:6:\nnogroup:x:65534:\n",
	"hosts":  "127.0.0.1 localhost\n",
}

// kept are the folders of the kernel's modules that the guest has; the rest is for machines of other kinds.
var kept = []string{"arch", "block", "crypto", "drivers/block", "drivers/char", "drivers/dax", "drivers/md", "drivers/virtio", "drivers/nvdimm", "fs", "lib", "mm", "net/9p"}

// prune removes what the guest does not need.
func prune(root, modules string) error {
	var errs error
	for _, dir := range []string{"usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "usr/share/i18n", "usr/share/perl", "usr/share/zoneinfo", "usr/lib/firmware"} {
		errs = errors.Join(errs, os.RemoveAll(filepath.Join(root, dir)))
	}
	keep := filepath.Join(modules, "kept")
	for _, dir := range kept {
		from, to := filepath.Join(modules, "kernel", dir), filepath.Join(keep, dir)
		if isThere(from) {
			errs = errors.Join(errs, os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(from, to))
		}
	}
	return errors.Join(errs, os.RemoveAll(filepath.Join(modules, "kernel")), os.Rename(keep, filepath.Join(modules, "kernel")))
}

// pack writes the kernel, the disk and the modules that find it.
func pack(ctx context.Context, root, modules, guest string) error {
	if err := os.MkdirAll(filepath.Join(guest, "early"), 0o755); err != nil {
		return err
	}
	kernels, err := filepath.Glob(filepath.Join(root, "boot/vmlinuz-*"))
	if err != nil || len(kernels) != 1 {
		return errors.Join(fmt.Errorf("the packages bring %d kernels", len(kernels)), err)
	}
	if err := os.Rename(kernels[0], filepath.Join(guest, "vmlinuz")); err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(root, "boot")); err != nil {
		return err
	}
	dep, err := os.ReadFile(filepath.Join(modules, "modules.dep"))
	if err != nil {
		return err
	}
	for i, file := range inOrder(string(dep), early) {
		b, err := os.ReadFile(filepath.Join(modules, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(guest, "early", fmt.Sprintf("%02d-%s", i, filepath.Base(file))), b, 0o644)
		}
		if err != nil {
			return err
		}
	}
	disk := filepath.Join(guest, "root.img")
	return tool(ctx, "mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-d", root, disk, "1500M")
}

// early are the modules that the guest needs to find its disk, this folder, and the ways out.
var early = []string{"virtio_pci", "virtio_blk", "virtio_console", "crc32c_generic", "ext4", "9pnet_virtio", "9p"}

// inOrder lists the files of modules, each after those it needs, by what modules.dep says. What is no module is in the
// kernel.
func inOrder(dep string, names []string) (files []string) {
	needs, file := map[string][]string{}, map[string]string{}
	for line := range strings.Lines(dep) {
		path, others, _ := strings.Cut(strings.TrimSpace(line), ":")
		needs[path], file[nameOf(path)] = strings.Fields(others), path
	}
	seen := map[string]bool{}
	var add func(path string)
	add = func(path string) {
		if path == "" || seen[path] {
			return
		}
		seen[path] = true
		for _, other := range needs[path] {
			add(other)
		}
		files = append(files, path)
	}
	for _, name := range names {
		add(file[name])
	}
	return files
}

// nameOf is a module's name as the kernel has it.
func nameOf(path string) string {
	name, _, _ := strings.Cut(filepath.Base(path), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// inChroot runs a script in a folder, as the first process of a space of its own: all that it starts ends with it. It
// gets no mounts, and no copy of this machine's: that would hold the disks of what is unmounted meanwhile.
func inChroot(ctx context.Context, root, script string, args ...string) error {
	for name, minor := range map[string]uint32{"null": 3, "zero": 5, "urandom": 9} {
		if err := unix.Mknod(filepath.Join(root, "dev", name), unix.S_IFCHR|0o666, int(unix.Mkdev(1, minor))); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "/usr/bin/bash", append([]string{"-c", script, "inside"}, args...)...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: root, Cloneflags: syscall.CLONE_NEWPID}
	return toTheEnd(ctx, cmd)
}

// tool runs a program that ends with this one; its last lines are in the error.
func tool(ctx context.Context, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	return toTheEnd(ctx, cmd)
}

func toTheEnd(ctx context.Context, cmd *exec.Cmd) error {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	runtime.LockOSThread() // the signal is tied to the thread that forks
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), errors.Join(context.Cause(ctx), err), strings.Join(lines[max(0, len(lines)-5):], "; "))
	}
	return nil
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
