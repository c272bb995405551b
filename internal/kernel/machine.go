package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"david/internal/host"
)

// Machine is where settings are read and written, with what decides whether they can matter.
type Machine struct {
	Root string // "/" but in tests
	Virt string // as host.Facts has it; "" on bare metal
	Swap int64  // bytes
	Disk string // the whole disk under the data, as "nvme0n1"; "" where it is not known
}

// Of is the machine that facts were read of, with the disk under a database's data.
func Of(f host.Facts, disk string) Machine {
	return Machine{Root: "/", Virt: f.Virt, Swap: f.Memory.Swap, Disk: disk}
}

// virtual tells whether a hypervisor lies between the kernel and the disks.
func (m Machine) virtual() bool { return strings.Contains(m.Virt, "virtual machine") }

// diskName is what a block device is called in /sys/block.
var diskName = regexp.MustCompile(`^[A-Za-z0-9!_-]{1,32}$`)

// ErrAbsent says that this kernel has no such setting, or hides it from this container.
var ErrAbsent = errors.New("not there: this kernel has no such setting, or hides it from this container")

// file is where a setting lies. A disk's name may come from a record: it must be one.
func (m Machine) file(s Setting, disk string) (string, error) {
	if !s.ofDisk() {
		return filepath.Join(m.Root, s.path), nil
	}
	if disk == "" {
		return "", fmt.Errorf("%s: the disk under the data is not known: %w", s.Name, ErrAbsent)
	}
	if !diskName.MatchString(disk) {
		return "", fmt.Errorf("%.60q is no name of a disk", disk)
	}
	return filepath.Join(m.Root, fmt.Sprintf(s.path, disk)), nil
}

// text reads a small file below the root; "" where it cannot be read.
func (m Machine) text(path string) string {
	b, err := os.ReadFile(filepath.Join(m.Root, path))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// number reads the first number in a file; 0 where there is none.
func (m Machine) number(path string) uint64 {
	first, _, _ := strings.Cut(canonical(m.text(path)), " ")
	n, err := strconv.ParseUint(first, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// read returns a setting's value.
func (m Machine) read(s Setting, disk string) (string, error) {
	path, err := m.file(s, disk)
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s: %w", s.Name, ErrAbsent)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", s.Name, err)
	}
	return canonical(host.Selected(string(b))), nil
}

// ErrNotTaken says that the kernel made something else of a value.
var ErrNotTaken = errors.New("the kernel did not take the value")

// set writes a value, and makes sure that the kernel took it.
func (m Machine) set(s Setting, disk, value string) error {
	path, err := m.file(s, disk)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("cannot set %s: %w", s.Name, err)
	}
	_, err = f.WriteString(value + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("cannot set %s to %s: %w", s.Name, value, err)
	}
	now, err := m.read(s, disk)
	if err == nil && now != value {
		err = fmt.Errorf("%w: %s was set to %s and is %s", ErrNotTaken, s.Name, value, now)
	}
	return err
}

// hindrance says what keeps this process from setting it; "" where nothing does.
func (m Machine) hindrance(s Setting) string {
	path, err := m.file(s, m.Disk)
	if err != nil {
		return ""
	}
	switch err := unix.Access(path, unix.W_OK); {
	case errors.Is(err, unix.EROFS):
		return "read-only here, as in a container: it is the host's to set"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return "root sets it"
	}
	return ""
}

// Boot tells one start of the machine from another.
func (m Machine) Boot() string { return m.text("proc/sys/kernel/random/boot_id") }
