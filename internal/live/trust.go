package live

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"david/internal/rules"
)

// check says why no david wrote a line after those before it: a record may come from anybody, and its names
// and values end in SQL.
func (r *Record) check(l recordLine) error {
	switch l.Event {
	case guarded:
		return nil
	case intended:
		if l.N != len(r.changes)+1 {
			return fmt.Errorf("change %d does not follow %d", l.N, len(r.changes))
		}
		return rules.Reversible(l.Name, l.Before, l.After)
	}
	if l.N < 1 || l.N > len(r.changes) {
		return fmt.Errorf("%.20q of change %d, which is not there", l.Event, l.N)
	}
	switch c := r.changes[l.N-1]; l.Event {
	case done:
		return rules.Reversible(c.Name, c.Before, l.After)
	case persisting:
		if l.Persisted != nil {
			return rules.Reversible(c.Name, *l.Persisted, c.After)
		}
	case kept, undone:
	default:
		return fmt.Errorf("unknown event %.20q", l.Event)
	}
	return nil
}

// ErrNotVouched says that the address on a record is not to be believed.
var ErrNotVouched = errors.New("its address may be anybody's")

// Vouched says why the address on a record is not used, to which passwords would be sent; nil where it is.
// It is one that the user wrote: among the experiments of david's home, which is the user's own, and neither
// it nor a folder on the way belongs to, or can be written by, anybody else.
func (r *Record) Vouched(home string, uid int) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(r.journal.path))
	if err != nil {
		return fmt.Errorf("cannot find the record of changes: %w", err)
	}
	root, err := filepath.EvalSymlinks(filepath.Join(home, "experiments"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot find david's experiments: %w", err)
	}
	if inside, err := filepath.Rel(root, dir); root == "" || err != nil || !filepath.IsLocal(inside) || inside == "." {
		return fmt.Errorf("%w: %s is not among the experiments of david's home %s", ErrNotVouched, r.journal.path, home)
	}
	if err := private(r.journal.path, r.journal.info, uid); err != nil {
		return err
	}
	for ; ; dir = filepath.Dir(dir) {
		info, err := os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("cannot look at david's home: %w", err)
		}
		if err := private(dir, info, uid); err != nil || dir == root {
			return err
		}
	}
}

// private makes sure that only a user can have written a file, or put files into a folder.
func private(path string, info fs.FileInfo, uid int) error {
	const others = 0o022
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || int(stat.Uid) != uid:
		return fmt.Errorf("%w: %s does not belong to you", ErrNotVouched, path)
	case info.Mode().Perm()&others != 0:
		return fmt.Errorf("%w: others may write %s", ErrNotVouched, path)
	}
	return nil
}
