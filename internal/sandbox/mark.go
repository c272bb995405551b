package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"david/internal/home"
	"david/internal/process"
)

// markFile lies in every folder that a journal names, and says whose it is. The folder belongs to david's
// user, so that nobody else can have written it: what bears no such mark is no folder of david's, whatever a
// journal says.
const markFile = "david.json"

// mark holds what the file says.
type mark struct {
	Home  string     `json:"home"`
	Owner process.ID `json:"owner"`
}

// mark writes a folder's mark.
func (j *journal) mark(dir string) error {
	b, err := json.Marshal(mark{j.home, j.Owner})
	if err != nil {
		return err
	}
	if err := home.Write(filepath.Join(dir, markFile), b, 0o600); err != nil {
		return fmt.Errorf("cannot mark a folder as david's: %w", err)
	}
	return nil
}

// marked says why a folder is not one that the journal's david has made for this home; nil too where it is
// not there, or empty: that david died before it could mark it.
func (j *journal) marked(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", dir)
	}
	b, err := home.Read(filepath.Join(dir, markFile), 4096)
	if errors.Is(err, fs.ErrNotExist) && empty(dir) {
		return nil
	}
	var m mark
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	if err != nil {
		return fmt.Errorf("%s is no folder of david's: %w", dir, err)
	}
	if m.Home != j.home || m.Owner != j.Owner {
		return fmt.Errorf("%s belongs to process %d with the folder %s", dir, m.Owner.PID, m.Home)
	}
	return nil
}

func empty(dir string) bool {
	entries, err := os.ReadDir(dir)
	return err == nil && len(entries) == 0
}

// removeMarked removes a folder that is the journal's, its mark last. The folder is held open meanwhile:
// another one that is put in its place is not touched.
func (j *journal) removeMarked(dir string) error {
	if err := errors.Join(unmountedInside(dir), j.marked(dir)); err != nil {
		return fmt.Errorf("cannot remove %s: %w", dir, err)
	}
	before, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	r, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer r.Close()
	if held, err := r.Stat("."); err != nil || !os.SameFile(before, held) {
		return errors.Join(fmt.Errorf("cannot remove %s: it was replaced", dir), err)
	}
	if err := emptied(r); err != nil {
		return err
	}
	if err := unix.Rmdir(dir); err != nil {
		return fmt.Errorf("cannot remove %s: %w", dir, err)
	}
	return nil
}

// emptied removes what is in a folder, the mark last.
func emptied(r *os.Root) error {
	d, err := r.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != markFile {
			if err := r.RemoveAll(name); err != nil {
				return err
			}
		}
	}
	return r.RemoveAll(markFile)
}
