package kernel

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"david/internal/home"
)

// schema is the version of the record's format.
const schema = 1

// Folder is where records lie in david's home: kernel/1/changes.json, kernel/2/changes.json, ...
const Folder = "kernel"

const recordFile = "changes.json"

// mostRecord bounds a record that is read, in bytes; those of david have a few thousand.
const mostRecord = 1 << 16

// Record holds what one apply changed. It is rewritten as a whole, so that a david that is killed leaves the
// old one or the new one. It is not safe for concurrent use.
type Record struct {
	Schema  int       `json:"schema"`
	N       int       `json:"n"`
	Created time.Time `json:"created"`
	Boot    string    `json:"boot"` // the kernel's boot_id: a reboot undoes what does not persist
	// Persist tells whether /etc/sysctl.d has a file of this record, or is about to.
	Persist bool     `json:"persist"`
	Changes []Change `json:"changes"`
	dir     string
}

// Dir returns the record's folder.
func (r *Record) Dir() string { return r.dir }

// create begins a record, the next one; it is there with its first change. The clock does not decide which is
// the latest.
func create(dir, boot string) (*Record, error) {
	records := filepath.Join(dir, Folder)
	if err := os.MkdirAll(records, 0o700); err != nil {
		return nil, fmt.Errorf("cannot begin the record of changes: %w", err)
	}
	last, err := latest(records, "")
	if err != nil {
		return nil, err
	}
	r := &Record{Schema: schema, N: last + 1, Created: time.Now(), Boot: boot, Changes: []Change{}}
	r.dir = filepath.Join(records, strconv.Itoa(r.N))
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot begin the record of changes: %w", err)
	}
	if err := errors.Join(syncDir(dir), syncDir(records)); err != nil {
		return nil, fmt.Errorf("cannot begin the record of changes: %w", err)
	}
	return r, nil
}

// latest is the highest number of a folder that has a file; 0 where there is none.
func latest(records, file string) (int, error) {
	all, err := numbers(records)
	last := 0
	for _, n := range all {
		if _, err := os.Lstat(filepath.Join(records, strconv.Itoa(n), file)); err == nil {
			last = max(last, n)
		}
	}
	return last, err
}

// numbers are those of the records in a folder.
func numbers(records string) (all []int, err error) {
	entries, err := os.ReadDir(records)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot look for records of changes: %w", err)
	}
	for _, e := range entries {
		if n := numbered(e.Name()); n > 0 {
			all = append(all, n)
		}
	}
	return all, nil
}

// numbered is the number that a record's folder is called; 0 where it is none.
func numbered(name string) int {
	n, err := strconv.Atoi(name)
	if err != nil || n < 1 || strconv.Itoa(n) != name {
		return 0
	}
	return n
}

// save writes the record. When it returns nil it is there after a crash.
func (r *Record) save() (err error) {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot write the record of changes: %w", err)
	}
	path := filepath.Join(r.dir, recordFile)
	if err := home.Replace(path, append(b, '\n'), 0o600); err != nil {
		return fmt.Errorf("cannot write the record of changes: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// ErrNoRecord says that there is no record of changes.
var ErrNoRecord = errors.New("david changed no kernel setting from there")

// Open reads a record of david's folder: its number, its folder, or "latest". What it names is held against
// the table, and nobody else can have written it.
func Open(dir, which string) (*Record, error) {
	records := filepath.Join(dir, Folder)
	path, err := resolve(records, which)
	if err != nil {
		return nil, err
	}
	r := &Record{dir: path}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("cannot use the record of changes in %s: %w", path, err)
	}
	return r, nil
}

// resolve finds a record's folder, which lies in david's own.
func resolve(records, which string) (string, error) {
	n := numbered(which)
	if which == "latest" {
		last, err := latest(records, recordFile)
		if err != nil {
			return "", err
		}
		if n = last; n == 0 {
			return "", fmt.Errorf("%s: %w", records, ErrNoRecord)
		}
	}
	if n > 0 {
		return filepath.Join(records, strconv.Itoa(n)), nil
	}
	path, err := filepath.Abs(which)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", fmt.Errorf("cannot find the record of changes: %w", err)
	}
	real, err := filepath.EvalSymlinks(records)
	if err != nil || filepath.Dir(path) != real || numbered(filepath.Base(path)) == 0 {
		return "", fmt.Errorf("%s is no record of david's folder %s: %w", which, records, ErrNoRecord)
	}
	return path, nil
}

// load reads the record in its folder.
func (r *Record) load() error {
	if _, err := os.Lstat(r.dir); errors.Is(err, fs.ErrNotExist) {
		return ErrNoRecord
	}
	if err := home.Own(filepath.Dir(r.dir)); err != nil {
		return err
	}
	if err := home.Own(r.dir); err != nil {
		return err
	}
	b, err := home.ReadOwn(filepath.Join(r.dir, recordFile), mostRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoRecord
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, r); err != nil {
		return err
	}
	return r.check()
}

// check says why no david wrote the record.
func (r *Record) check() error {
	if r.Schema != schema {
		return fmt.Errorf("it has the format %d, this david knows %d", r.Schema, schema)
	}
	if r.N != numbered(filepath.Base(r.dir)) {
		return fmt.Errorf("it says that it is number %d", r.N)
	}
	for i, c := range r.Changes {
		if _, err := c.setting(); err != nil {
			return err
		}
		if slices.ContainsFunc(r.Changes[:i], func(o Change) bool { return o.Name == c.Name }) {
			return fmt.Errorf("it changes %s twice", c.Name)
		}
	}
	return nil
}
