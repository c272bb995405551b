package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/home"
	"david/internal/unmount"
)

// Kept is what sandboxes left for the next ones in david's folder: data templates, and the volume they may lie
// on. While it is open no other david works there.
type Kept struct {
	w      *Workspace
	places []string // the folders that may hold data templates
	volume string   // the file; "" where there is none that was mounted
	point  string   // where it is mounted
	// Broken says why the volume that is there cannot be mounted; nil where it is, or where there is none.
	Broken error
}

// Copy is a data template, as whoever tidies up sees it.
type Copy struct {
	Name  string
	Made  time.Time // zero where that is not known
	Used  time.Time // last
	Bytes int64     // on the disk

	place string
}

// OpenKept opens it without making anything that is not there. Close must be called.
func OpenKept(ctx context.Context, dir string) (k *Kept, err error) {
	k = &Kept{w: &Workspace{home: dir}}
	defer func() {
		if err != nil {
			err = errors.Join(err, k.Close())
			k = nil
		}
	}()
	if err := k.w.exclude(); err != nil {
		return k, err
	}
	if k.w.owner, err = account.Find(); err != nil {
		return k, err
	}
	if err := k.tidied(filepath.Join(dir, "data")); err != nil {
		return k, err
	}
	return k, k.mount()
}

// LookAtKept looks at it from outside, beside whoever works there: nothing is locked, mounted or ended, and what lies on the volume
// stays unseen. Close must be called.
func LookAtKept(dir string) *Kept {
	return &Kept{w: &Workspace{home: dir}, places: []string{filepath.Join(dir, "data")}}
}

// tidied takes a folder of data templates in, and ends the removals there that were cut short.
func (k *Kept) tidied(place string) error {
	k.places = append(k.places, place)
	return home.Sweep(filepath.Join(place, templatesDir))
}

// mount mounts the volume, where one is there.
func (k *Kept) mount() (err error) {
	file := VolumePath(k.w.home)
	old := filepath.Join(k.w.home, volumeFile)
	if !there(file) && !there(old) {
		return nil
	}
	if file, err = k.w.settleVolume(); err != nil {
		return err
	}
	k.volume = file
	if os.Geteuid() != 0 {
		k.Broken = errors.New("only root can look into it")
		return nil
	}
	if k.w.journal, err = newJournal(k.w.home); err != nil {
		return err
	}
	if err := k.w.makeRun(); err != nil {
		return err
	}
	k.point = filepath.Join(k.w.run, "data")
	if err := os.Mkdir(k.point, 0o755); err != nil {
		return err
	}
	if err := k.w.journal.mount(k.point); err != nil {
		return err
	}
	if k.Broken = mountLoop(file, k.point, "xfs", volumeFlags, 0); k.Broken != nil {
		return nil
	}
	return k.tidied(k.point)
}

func there(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// Close gives everything back.
func (k *Kept) Close() error { return k.w.Close() }

// Copies lists the data templates.
func (k *Kept) Copies() (list []Copy, err error) {
	for _, place := range k.places {
		entries, err := os.ReadDir(filepath.Join(place, templatesDir))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list the prepared data: %w", err)
		}
		for _, e := range entries {
			if !e.IsDir() {
				continue
			}
			c, err := copyIn(place, e)
			if err != nil {
				return nil, err
			}
			list = append(list, c)
		}
	}
	return list, nil
}

func copyIn(place string, e fs.DirEntry) (c Copy, err error) {
	dir := filepath.Join(place, templatesDir, e.Name())
	info, err := e.Info()
	if err != nil {
		return c, err
	}
	c = Copy{Name: e.Name(), Used: info.ModTime(), place: place}
	if c.Bytes, err = home.Allocated(dir); err != nil {
		return c, err
	}
	var m manifest
	if b, err := home.Read(filepath.Join(dir, templateFile), mostJournal); err == nil && json.Unmarshal(b, &m) == nil {
		c.Made = m.Created
	}
	return c, nil
}

// Drop removes a data template; the next measurement that needs it makes it again.
func (k *Kept) Drop(c Copy) error { return home.Remove(filepath.Join(c.place, templatesDir), c.Name) }

// Volume is the sparse file that the data lie in, where there is one.
type Volume struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`          // that it takes on the disk
	Length int64  `json:"apparent_bytes"` // that it could grow to, and that ls and many backups see
	Used   int64  `json:"used_bytes"`     // that its filesystem holds; 0 where it is not mounted
}

// SeeVolume looks at a home's volume from outside; ok is false where there is none.
func SeeVolume(dir string) (v Volume, ok bool, err error) {
	v.Path = VolumePath(dir)
	if !there(v.Path) {
		v.Path = filepath.Join(dir, volumeFile)
	}
	info, err := os.Lstat(v.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return v, false, nil
	}
	if err != nil {
		return v, false, fmt.Errorf("cannot look at the volume: %w", err)
	}
	v.Length = info.Size()
	v.Bytes, err = home.Allocated(v.Path)
	return v, err == nil, err
}

// Volume looks at the volume, also from inside where it is mounted.
func (k *Kept) Volume() (v Volume, ok bool, err error) {
	v, ok, err = SeeVolume(k.w.home)
	if !ok || err != nil || k.point == "" || k.Broken != nil {
		return v, ok, err
	}
	var st unix.Statfs_t
	if err := unix.Statfs(k.point, &st); err != nil {
		return v, ok, fmt.Errorf("cannot see what the volume holds: %w", err)
	}
	v.Used = int64(st.Blocks-st.Bfree) * st.Bsize
	return v, ok, nil
}

// DropVolume removes the volume with all that is in it.
func (k *Kept) DropVolume() error {
	if k.point != "" {
		if err := unmount.Now(k.point); err != nil {
			return err
		}
	}
	if err := detached(k.volume); err != nil {
		return err
	}
	return os.Remove(k.volume)
}

// fitrim is FITRIM of linux/fs.h, _IOWR('X', 121, struct fstrim_range).
const fitrim = 0xc0185879

// Trim has the volume give back to the disk what its filesystem does not use (fstrim(8)): holes are punched into
// the file, whose length stays.
func (k *Kept) Trim() error {
	if k.point == "" || k.Broken != nil {
		return nil
	}
	d, err := os.Open(k.point)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := syncfs(k.point); err != nil {
		return err
	}
	all := struct{ start, length, least uint64 }{length: ^uint64(0)}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, d.Fd(), fitrim, uintptr(unsafe.Pointer(&all))); errno != 0 {
		return fmt.Errorf("cannot have the volume give back what it does not use: %w", errno)
	}
	return nil
}
