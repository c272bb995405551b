package main

import (
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"david/internal/cgroup"
	"david/internal/result"
)

// job is what the guest is to do, as the program in it reads it.
type job struct {
	Args []string
	Env  []string
}

// The ways out of the guest: what the command writes, its errors, and its exit code. What the kernel says comes by a
// serial line.
const (
	outPort = iota
	errPort
	codePort
	kernelPort
)

// port is the guest's name of one of the first three; "" until it is there. Their device has a number among all that
// the emulator gives the guest.
func port(n int) string {
	found, err := filepath.Glob(fmt.Sprintf("/dev/vport*p%d", n+1))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}

// boot runs a command in the guest and returns its exit code.
func boot(ctx context.Context, image string, o options, args []string, out, errOut io.Writer) (int, error) {
	first, err := os.CreateTemp("", "david-guest-")
	if err != nil {
		return 1, err
	}
	defer first.Close()
	scratch, err := os.CreateTemp("", "david-guest-")
	if err != nil {
		return 1, errors.Join(err, os.Remove(first.Name()))
	}
	defer scratch.Close()
	// Without names they are gone with the last who has them open, whatever ends it.
	if err := errors.Join(os.Remove(first.Name()), os.Remove(scratch.Name()), scratch.Truncate(o.disk)); err != nil {
		return 1, err
	}
	if err := ramdisk(first, image, job{args, environment()}); err != nil {
		return 1, err
	}
	log := io.Discard
	if o.log != "" {
		f, err := os.Create(o.log)
		if err != nil {
			return 1, err
		}
		defer f.Close()
		log = f
	}
	project, err := os.Getwd()
	if err != nil {
		return 1, err
	}
	var code, last strings.Builder
	cmd := exec.CommandContext(ctx, "qemu-system-x86_64", arguments(image, project, o)...)
	cmd.Stdout, cmd.Stderr = errOut, errOut
	cmd.ExtraFiles = []*os.File{first, scratch}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true} // a terminal's Ctrl-C ends it by way of this program
	var copying sync.WaitGroup
	copied := make([]error, kernelPort+1)
	for i, to := range []io.Writer{outPort: out, errPort: errOut, codePort: &code, kernelPort: io.MultiWriter(log, &tail{&last})} {
		r, w, err := os.Pipe()
		if err != nil {
			return 1, err
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, w)
		defer w.Close()
		copying.Go(func() {
			defer r.Close()
			_, copied[i] = io.Copy(to, r)
		})
	}
	err = execute(cmd, o.share)
	for _, w := range cmd.ExtraFiles[2:] {
		w.Close()
	}
	copying.Wait()
	if ctx.Err() != nil {
		return 130, context.Cause(ctx)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return 1, fmt.Errorf("%w (scripts/setup guest installs it)", err)
	}
	if err != nil {
		return 1, fmt.Errorf("the guest: %w", err)
	}
	if err := errors.Join(copied...); err != nil {
		return 1, fmt.Errorf("what the guest wrote is not all there: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(code.String()))
	if err != nil {
		return 1, fmt.Errorf("the guest ended without an exit code; its kernel said last:\n%s", last.String())
	}
	return n, nil
}

// execute runs the emulator, with a share of a CPU if not all there are, on a thread of its own, to which the signal that ends it is tied.
func execute(cmd *exec.Cmd, share float64) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		if share > 0 {
			done <- slowly(cmd, share)
			return
		}
		done <- cmd.Run()
	}()
	return <-done
}

// slowly runs a command in a group that gets so much of the CPUs.
func slowly(cmd *exec.Cmd, cpus float64) (err error) {
	group, err := cgroup.Plan(fmt.Sprintf("david-guest-%d", os.Getpid()), result.Caps{CPUs: cpus})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, group.Remove()) }()
	if err := group.Make(); err != nil {
		return err
	}
	if err := group.Start(cmd); err != nil {
		return err
	}
	return cmd.Wait()
}

// tail keeps the last of what is written.
type tail struct{ text *strings.Builder }

func (t *tail) Write(p []byte) (int, error) {
	const most = 2000
	t.text.Write(p)
	if s := t.text.String(); len(s) > 2*most {
		t.text.Reset()
		t.text.WriteString(s[len(s)-most:])
	}
	return len(p), nil
}

// environment is what the command gets of this program's.
func environment() (list []string) {
	for _, v := range os.Environ() {
		if strings.HasPrefix(v, "DAVID_") && !strings.HasPrefix(v, "DAVID_HOME=") {
			list = append(list, v)
		}
	}
	return list
}

// arguments are the emulator's. A CPU with few extensions is faster to emulate than one that has them all. The first
// file that the emulator gets is number 3.
func arguments(image, project string, o options) []string {
	argv := []string{"-machine", "pc", "-accel", "tcg,thread=multi", "-cpu", "Nehalem", "-smp", fmt.Sprint(o.cpus), "-m", o.memory,
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", filepath.Join(image, "vmlinuz"), "-initrd", "/dev/fd/3",
		"-append", "console=ttyS0 panic=-1 mitigations=off nokaslr random.trust_cpu=on loglevel=5",
		"-drive", "if=virtio,format=raw,snapshot=on,file=" + filepath.Join(image, "root.img"),
		"-drive", "if=virtio,format=raw,cache=unsafe,file=/dev/fd/4",
		"-virtfs", "local,mount_tag=project,security_model=none,readonly=on,path=" + project}
	argv = append(argv, "-device", "virtio-serial-pci")
	for i := range kernelPort {
		argv = append(argv, "-chardev", chardev(i), "-device", fmt.Sprintf("virtserialport,chardev=port%d,nr=%d", i, i+1))
	}
	return append(argv, "-chardev", chardev(kernelPort), "-serial", fmt.Sprintf("chardev:port%d", kernelPort))
}

// chardev has the emulator write to one of the pipes, which come after its two disks.
func chardev(n int) string {
	return fmt.Sprintf("file,id=port%d,path=/dev/fd/%d,append=on", n, 5+n)
}

// ramdisk writes what the kernel starts with: this program, the modules that find the disk, and the job.
func ramdisk(w io.Writer, image string, j job) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := static(self); err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	a := archive{w: w}
	a.folder("early")
	a.folder("dev") // which a program of Go's needs before it can mount anything there
	a.device("dev/console", 5, 1)
	a.device("dev/null", 1, 3)
	a.file("init", 0o755, program)
	a.file("job", 0o644, text)
	files, err := filepath.Glob(filepath.Join(image, "early", "*"))
	if err != nil {
		return err
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		a.file("early/"+filepath.Base(f), 0o644, b)
	}
	return a.end()
}

// static makes sure that a program needs no library, as the ramdisk has none.
func static(path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return errors.New("this program was linked with libraries, which its guest has not got yet: CGO_ENABLED=0 go run ./test/guest")
		}
	}
	return nil
}

// archive writes a cpio archive in the form that the kernel reads (newc: Documentation/driver-api/early-userspace/buffer-format.rst).
type archive struct {
	w   io.Writer
	n   int
	err error
}

func (a *archive) folder(name string) { a.entry(name, 0o040755, 0, 0, nil) }

func (a *archive) device(name string, major, minor int) { a.entry(name, 0o020600, major, minor, nil) }

func (a *archive) file(name string, mode int, body []byte) { a.entry(name, 0o100000|mode, 0, 0, body) }

func (a *archive) entry(name string, mode, major, minor int, body []byte) {
	a.n++
	head := fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", a.n, mode, 0, 0, 1, 0, len(body), 0, 0, major, minor, len(name)+1, 0, name)
	for _, part := range [][]byte{[]byte(head), body} {
		part = append(part[:len(part):len(part)], make([]byte, (4-len(part)%4)%4)...)
		if a.err == nil {
			_, a.err = a.w.Write(part)
		}
	}
}

func (a *archive) end() error {
	a.entry("TRAILER!!!", 0, 0, 0, nil)
	return a.err
}
