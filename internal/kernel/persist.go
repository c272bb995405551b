package kernel

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"david/internal/home"
)

// sysctlDir is read when the machine starts (sysctl.d(5)), its files in the order of their names.
const sysctlDir = "etc/sysctl.d"

// sysctlFile is the record's own file, which nothing but its number names.
func (r *Record) sysctlFile() string { return fmt.Sprintf("90-david-%04d.conf", r.N) }

// sysctlText is what it holds.
func (r *Record) sysctlText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Written by david; what takes it back: david kernel rollback %d\n", r.N)
	for _, c := range r.Changes {
		if c.sysctl() {
			fmt.Fprintf(&b, "%s = %s\n", c.Name, c.After)
		}
	}
	return b.String()
}

// canPersist says why a record could have no file, before anything is changed.
func (m Machine) canPersist(r *Record) error {
	path := filepath.Join(m.Root, sysctlDir, r.sysctlFile())
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: this system has no %s: leave --persist out", ErrInput, filepath.Dir(path))
	}
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%w: %s is there already, of another folder of david's: roll that back, or leave --persist out", ErrInput, path)
	}
	return nil
}

// sysctl tells whether a file in /etc/sysctl.d can keep it.
func (c Change) sysctl() bool {
	s, err := c.setting()
	return err == nil && s.sysctl()
}

// persist has the sysctls of a record survive a reboot.
func (m Machine) persist(r *Record) error {
	if !slices.ContainsFunc(r.Changes, Change.sysctl) {
		return nil
	}
	path := filepath.Join(m.Root, sysctlDir, r.sysctlFile())
	r.Persist = true
	if err := r.save(); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
	if err != nil {
		return fmt.Errorf("cannot make the changes last: %w; they are in force until the next reboot", err)
	}
	_, err = f.WriteString(r.sysctlText())
	if err := errors.Join(err, f.Sync(), f.Close(), syncDir(filepath.Dir(path))); err != nil {
		return fmt.Errorf("cannot make the changes last: %w; they are in force until the next reboot", err)
	}
	return nil
}

// persisted finds the record's file, where it is still david's own: all of it, or what a david that was
// killed had written.
func (m Machine) persisted(r *Record) (path string, there bool, err error) {
	if !r.Persist {
		return "", false, nil
	}
	path = filepath.Join(m.Root, sysctlDir, r.sysctlFile())
	b, err := home.Read(path, mostRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return path, false, nil
	}
	if err == nil && !strings.HasPrefix(r.sysctlText(), string(b)) {
		err = fmt.Errorf("%w: remove it, or have it as david wrote it", ErrChanged)
	}
	if err != nil {
		return path, true, fmt.Errorf("%s: %w", path, err)
	}
	return path, true, nil
}

// forget removes the record's file, and says which it was.
func (m Machine) forget(r *Record) (removed string, err error) {
	path, there, err := m.persisted(r)
	if err != nil || path == "" {
		return "", err
	}
	if there {
		if err := errors.Join(os.Remove(path), syncDir(filepath.Dir(path))); err != nil {
			return "", fmt.Errorf("cannot take back what was to last: %w", err)
		}
		removed = path
	}
	r.Persist = false
	return removed, r.save()
}

// Overridden lists the files that say otherwise than a record's, and are read after it: what they set counts
// after a reboot.
func (m Machine) Overridden(r *Record) []string {
	later := []string{filepath.Join(m.Root, "etc/sysctl.conf")}
	for _, dir := range []string{sysctlDir, "run/sysctl.d", "usr/lib/sysctl.d"} {
		list, err := filepath.Glob(filepath.Join(m.Root, dir, "*.conf"))
		if err != nil { // the pattern is david's own
			panic(err)
		}
		later = append(later, slices.DeleteFunc(list, func(path string) bool { return filepath.Base(path) <= r.sysctlFile() })...)
	}
	var found []string
	for _, path := range later {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // what is not there says nothing
		}
		for _, c := range r.Changes {
			if value, set := assigned(string(text), c.Name); set && value != c.After {
				found = append(found, fmt.Sprintf("%s sets %s to %s", path, c.Name, value))
			}
		}
	}
	return found
}

// assigned finds the last value that a file gives a setting, whose name may have slashes for dots.
func assigned(text, name string) (value string, found bool) {
	for line := range strings.Lines(text) {
		key, rest, ok := strings.Cut(line, "=")
		key = strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(key), "-"), "/", ".")
		if ok && key == name {
			value, found = canonical(rest), true
		}
	}
	return value, found
}
