package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"david/internal/home"
	"david/internal/loopdev"
	"david/internal/process"
	"david/internal/result"
)

// ErrDisk marks a disk that no layout may be built on, and says why.
var ErrDisk = errors.New("it is no empty disk")

// disk is a real one that a layout uses: the first Bytes of it. Whose it is says the UUID of the filesystem that
// david makes there, which also is the name of a file in the marked folder of layouts.
type disk struct {
	Path  string `json:"path"`
	Seq   string `json:"seq"` // of the kernel, which counts the disks it has seen since it was started
	UUID  string `json:"uuid"`
	Bytes int64  `json:"bytes"`
	Made  bool   `json:"made,omitempty"` // the filesystem is: where another or none is there, the disk is somebody else's
}

// wholeDisk is how a disk is named: links to it are followed first.
var wholeDisk = regexp.MustCompile(`^/dev/[a-z][a-z0-9]{1,30}$`)

// realDisk follows links to a disk, and makes sure that it is a whole one that nothing uses.
func realDisk(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%s: %w: %w", path, ErrDisk, err)
	}
	sys := filepath.Join("/sys/block", filepath.Base(real))
	if _, err := os.Stat(sys); err != nil || !wholeDisk.MatchString(real) {
		return "", fmt.Errorf("%s: %w: it is no whole disk, as lsblk -d lists them", path, ErrDisk)
	}
	parts, err := filepath.Glob(filepath.Join(sys, "*", "partition"))
	if err != nil || len(parts) > 0 {
		return "", errors.Join(fmt.Errorf("%s: %w: it has partitions: see lsblk %s", path, ErrDisk, real), err)
	}
	if text(sys, "ro") != "0" {
		return "", fmt.Errorf("%s: %w: it is read-only", path, ErrDisk)
	}
	return real, unheld(path, real)
}

// unheld refuses a disk that somebody has without telling the kernel that it is theirs alone: by a loop device of it,
// by another loop device of its own file, under whichever name, or as a process that may write to it or to its file.
func unheld(path, real string) error {
	above, err := loopdev.Behind(real)
	if err != nil {
		return fmt.Errorf("%s: cannot see whether it lies behind a loop device: %w", path, err)
	}
	if len(above) > 0 {
		return fmt.Errorf("%s: %w: it is the file of %s: detach it there (losetup -d %[4]s)", path, ErrDisk, strings.Join(above, ", "), strings.Join(above, " "))
	}
	beside, err := loopdev.Beside(real)
	if err != nil {
		return fmt.Errorf("%s: cannot see whose file it is, too: %w", path, err)
	}
	if len(beside) > 0 {
		return fmt.Errorf("%s: %w: its file is also that of %s: detach one of them (losetup -d %[4]s)", path, ErrDisk, strings.Join(beside, ", "), strings.Join(beside, " "))
	}
	if err := fileUnwritten(path, real); err != nil {
		return err
	}
	return unwritten(path, real)
}

// fileUnwritten refuses a loop device whose file a process has open for writing.
func fileUnwritten(path, real string) error {
	backing, file, err := loopdev.Backing(real)
	if err != nil {
		return fmt.Errorf("%s: cannot see which file it has: %w", path, err)
	}
	if backing == "" || file.Rdev != 0 {
		return nil
	}
	openers, err := process.OpenersOf(file.Dev, file.Ino)
	return noWriter(path, "its file "+backing, openers, err)
}

// unwritten refuses a disk that a process has open for writing.
func unwritten(path, real string) error {
	info, err := os.Stat(real)
	if err != nil {
		return fmt.Errorf("%s: %w: %w", path, ErrDisk, err)
	}
	openers, err := process.Openers(info)
	return noWriter(path, "it", openers, err)
}

// noWriter refuses what is open for writing. david has none of it open yet: what it has it was started with, and so has
// whoever started it.
func noWriter(path, what string, openers []process.Opener, err error) error {
	if err != nil {
		return fmt.Errorf("%s: cannot see who has %s open: %w", path, what, err)
	}
	writers := slices.DeleteFunc(openers, func(o process.Opener) bool { return !o.Writes })
	others := slices.DeleteFunc(slices.Clone(writers), func(o process.Opener) bool { return o.Own })
	switch {
	case len(writers) == 0:
		return nil
	case len(others) == 0:
		return fmt.Errorf("%s: %w: david itself was started with %s open for writing: close it in the shell or script that starts david", path, ErrDisk, what)
	}
	return fmt.Errorf("%s: %w: %s is open for writing in %s: close it there, or end that", path, ErrDisk, what, process.Names(others))
}

func text(dir, file string) string {
	b, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// seqOf tells a disk from another that gets its name later, as long as the machine runs.
func seqOf(real string) string {
	return text(filepath.Join("/sys/block", filepath.Base(real)), "diskseq")
}

// errInUse says that a disk is somebody's.
var errInUse = errors.New("it is in use: mounted, swap, or part of something")

// letGo opens a disk that a david which was killed had, once what that had begun is over: I/O that is on its way keeps a
// filesystem that is unmounted for some seconds.
func letGo(real string) (f *os.File, err error) {
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		f, err = exclusive(real, os.O_WRONLY)
		if !errors.Is(err, errInUse) {
			return f, err
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("%w; the next david command tries again", err)
		}
	}
}

// exclusive opens a disk that nobody else uses: neither mounted, nor part of anything, nor swap.
func exclusive(real string, how int) (*os.File, error) {
	f, err := os.OpenFile(real, how|unix.O_EXCL|unix.O_NOFOLLOW, 0)
	if errors.Is(err, unix.EBUSY) {
		return nil, fmt.Errorf("%s: %w: %w (lsblk %[1]s)", real, ErrDisk, errInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", real, ErrDisk, err)
	}
	return f, nil
}

// CheckDisks makes sure that disks are whole, in nobody's use, named once, have so many bytes, and that each of
// all their bytes is zero: data need no signature that a tool knows. The last takes as long as reading them does;
// reading is told of each disk before it is read.
func CheckDisks(ctx context.Context, paths []string, need int64, reading func(path string, size int64)) error {
	seen := map[string]string{}
	sizes := make([]int64, len(paths))
	for i, path := range paths {
		f, err := openDisk(path)
		if err != nil {
			return err
		}
		first, twice := seen[f.Name()]
		seen[f.Name()] = path
		sizes[i], err = sizeOf(f, path, need)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
		if twice {
			return fmt.Errorf("%s: %w for a second time: it is %s", path, ErrDisk, first)
		}
	}
	for i, path := range paths {
		reading(path, sizes[i])
		if err := onlyZeros(ctx, path, sizes[i]); err != nil {
			return err
		}
	}
	return nil
}

// openDisk opens a whole disk that nobody uses; its name is that of its device.
func openDisk(path string) (*os.File, error) {
	real, err := realDisk(path)
	if err != nil {
		return nil, err
	}
	return exclusive(real, os.O_RDONLY)
}

// sizeOf is a disk's, in bytes; an error where it is less than needed.
func sizeOf(f *os.File, path string, need int64) (int64, error) {
	size, err := f.Seek(0, io.SeekEnd)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%s: %w: it does not tell its size: %w", path, ErrDisk, err)
	case size < need:
		return 0, fmt.Errorf("%s: %w: it has %d MiB, and %d are needed", path, ErrDisk, size>>20, need>>20)
	}
	return size, nil
}

func onlyZeros(ctx context.Context, path string, size int64) error {
	f, err := openDisk(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return zeros(ctx, f, path, size)
}

// zeros reads a disk from its first byte to its last.
func zeros(ctx context.Context, f *os.File, path string, size int64) error {
	block, none := make([]byte, 4<<20), make([]byte, 4<<20)
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(block)
		if err != nil {
			return fmt.Errorf("%s: %w: it cannot be read: %w", path, ErrDisk, err)
		}
		if !bytes.Equal(block[:n], none[:n]) {
			return fmt.Errorf("%s: %w: not all of its bytes are zero, within %d MiB; where nothing on it is needed, empty it yourself: blkdiscard -z %[1]s", path, ErrDisk, at>>20+4)
		}
		_ = unix.Fadvise(int(f.Fd()), at, int64(n), unix.FADV_DONTNEED) // the page cache is others'
		at += int64(n)
	}
	return nil
}

// takeDisks puts a layout's disks into the journal before anything is written to them.
func (w *Workspace) takeDisks(l result.Layout) (devices []string, id string, err error) {
	dir, err := w.layoutFolder()
	if err != nil {
		return nil, "", err
	}
	id = newUUID()
	if err := home.Write(filepath.Join(dir, id), []byte(l.Name), 0o600); err != nil {
		return nil, "", err
	}
	for _, path := range l.Disks {
		real, err := realDisk(path)
		if err != nil {
			return nil, "", err
		}
		d := disk{Path: real, Seq: seqOf(real), UUID: id, Bytes: l.Bytes}
		if err := w.journal.update(func() { w.journal.Disks = append(w.journal.Disks, d) }); err != nil {
			return nil, "", err
		}
		devices = append(devices, real)
	}
	return devices, id, nil
}

// made notes that a filesystem is on the journal's disks that were to have it.
func (j *journal) made(id string) error {
	return j.update(func() {
		for i := range j.Disks {
			j.Disks[i].Made = j.Disks[i].Made || j.Disks[i].UUID == id
		}
	})
}

// newUUID makes one by chance (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var uuidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// checkDisk says why an entry of a journal's is none that david makes.
func (j *journal) checkDisk(d disk, run string) error {
	if run == "" || !uuidForm.MatchString(d.UUID) || !wholeDisk.MatchString(d.Path) || d.Bytes <= 0 {
		return fmt.Errorf("david builds nothing on %q (%q)", d.Path, d.UUID)
	}
	return nil
}

// empty makes a disk empty again: what david made on it is, and nothing else. One that holds something else by
// now, or is gone, is left alone.
func (j *journal) empty(d disk, run string) error {
	mark := filepath.Join(j.home, layoutsDir, run, d.UUID)
	if _, err := home.Read(mark, 4096); errors.Is(err, fs.ErrNotExist) { // emptied before
		return nil
	} else if err != nil {
		return err
	}
	holds, err := uuidOn(d.Path)
	if err != nil {
		return fmt.Errorf("cannot see whether %s is to be emptied: %w; if nothing on it is needed, blkdiscard -z %[1]s, and remove %s", d.Path, err, mark)
	}
	half := !d.Made && holds == "" && d.Seq != "" && seqOf(d.Path) == d.Seq // mkfs was cut short
	if holds != d.UUID && !half {
		return nil // it is another's, or not there
	}
	f, err := letGo(d.Path)
	if err != nil {
		return err
	}
	defer f.Close()
	area := [2]uint64{0, uint64(d.Bytes)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), blkZeroOut, uintptr(unsafe.Pointer(&area))); errno != 0 {
		return fmt.Errorf("cannot empty %s: %w; blkdiscard -z %[1]s does", d.Path, errno)
	}
	return f.Sync()
}

// blkZeroOut is BLKZEROOUT of linux/fs.h: _IO(0x12, 127).
const blkZeroOut = 0x127f

// uuidOn returns the UUID of the filesystem on a disk; "" where nothing is that blkid knows, or no disk, and
// "another" where it has no UUID, or there are several.
func uuidOn(path string) (string, error) {
	out, err := exec.Command("blkid", "-p", "-o", "value", "-s", "UUID", path).Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		switch exit.ExitCode() { // blkid(8)
		case 2:
			return "", nil
		case 8:
			return "another", nil
		}
	}
	return cmp.Or(strings.TrimSpace(string(out)), "another"), err
}
