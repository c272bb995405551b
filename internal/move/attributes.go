package move

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// copyAttributes gives a file the extended attributes of another: SELinux's label, access lists.
func copyAttributes(from, to *os.File) error {
	wanted, err := attributes(from)
	if err != nil {
		return err
	}
	there, err := attributes(to)
	if err != nil {
		return err
	}
	for name, value := range wanted {
		if there[name] == value {
			continue
		}
		if err := unix.Fsetxattr(int(to.Fd()), name, []byte(value), 0); err != nil {
			return fmt.Errorf("cannot give it the attribute %s: %w", name, err)
		}
	}
	for name := range there {
		if _, ok := wanted[name]; ok {
			continue
		}
		if err := unix.Fremovexattr(int(to.Fd()), name); err != nil && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EOPNOTSUPP) {
			return fmt.Errorf("cannot remove the attribute %s: %w", name, err)
		}
	}
	return nil
}

// mostAttributes bounds what the kernel lets a file have of names, and each of value (xattr(7)).
const mostAttributes = 64 << 10

// attributes returns a file's extended attributes; none where its filesystem has no such thing.
func attributes(f *os.File) (map[string]string, error) {
	buffer := make([]byte, mostAttributes)
	n, err := unix.Flistxattr(int(f.Fd()), buffer)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cannot list the attributes of %s: %w", f.Name(), err)
	}
	all := map[string]string{}
	for _, name := range strings.Split(strings.TrimSuffix(string(buffer[:n]), "\x00"), "\x00") {
		if name == "" {
			continue
		}
		value := make([]byte, mostAttributes)
		m, err := unix.Fgetxattr(int(f.Fd()), name, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the attribute %s of %s: %w", name, f.Name(), err)
		}
		all[name] = string(value[:m])
	}
	return all, nil
}
