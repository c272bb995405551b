package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"david/internal/home"
)

// The files that a tune hands over; candidate.cnf is of what was not confirmed, experiment a link to the
// record.
const (
	tunedCnf     = "my.cnf"
	candidateCnf = "candidate.cnf"
	reportHTML   = "report.html"
	reportMD     = "report.md"
	recordLink   = "experiment"
)

// outFolder takes a tune's files.
type outFolder struct {
	path string
	made bool // by this command: an empty one of the user's stays
}

// openFolder names the output folder and makes it: one that holds anything is refused, and one that cannot be
// made is better known before the measurement than after.
func openFolder(path string, now time.Time) (outFolder, error) {
	if path == "" {
		path = "david-tune-" + now.Format("20060102-150405")
	}
	left, err := os.ReadDir(path)
	empty := err == nil && len(left) == 0 // also what a killed tune left, whose command is given again
	if _, err := os.Lstat(path); err == nil && !empty {
		return outFolder{}, usage("--out %s exists already; nothing is overwritten: name another or remove it", path)
	}
	if err := safeFolder(path); err != nil || empty {
		return outFolder{path: path}, err
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		return outFolder{}, usage("cannot make the output folder, --out names another: %w", err)
	}
	return outFolder{path: path, made: true}, nil
}

// safeFolder refuses an output folder that others could change while david writes into it, and reads from it: the
// servers are started with what lies there.
func safeFolder(path string) error {
	whole, err := filepath.Abs(path)
	if err == nil {
		err = home.Safe(whole)
	}
	if errors.Is(err, home.ErrForeign) {
		return usage("cannot use --out %s: %w; name a folder with --out that only you can write to, or a new one there", path, err)
	}
	if err != nil {
		return usage("cannot use --out %s: %w", path, err)
	}
	return nil
}

// clear removes what a tune writes, and the folder where this command made it and nobody put anything into
// it.
func (o outFolder) clear() (err error) {
	for _, name := range []string{tunedCnf, candidateCnf, reportHTML, reportMD, recordLink} {
		if one := os.Remove(filepath.Join(o.path, name)); !errors.Is(one, fs.ErrNotExist) {
			err = errors.Join(err, one)
		}
	}
	if left, one := os.ReadDir(o.path); err == nil && o.made && len(left) == 0 {
		err = errors.Join(one, os.Remove(o.path))
	}
	return err
}
