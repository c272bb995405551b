package live

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// journal is the file of a record. Neither it nor what is read of it is trusted for being there; see check
// and Vouched.
type journal struct {
	path string
	torn bool  // its last line is not whole; the next must not be appended to it
	end  int64 // of its last whole line, where it is torn
	info fs.FileInfo
}

// longestRecord bounds a record that is read, in bytes; those of david have a few thousand.
const longestRecord = 1 << 20

// Create begins a record in a folder that has none.
func Create(dir string, s Server) (*Record, error) {
	r := &Record{Server: s, journal: journal{path: filepath.Join(dir, RecordFile)}}
	f, err := os.OpenFile(r.journal.path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("cannot begin the record of changes: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("cannot begin the record of changes: %w", err)
	}
	if err := r.journal.append(recordLine{Server: &s}); err != nil {
		return nil, err
	}
	return r, syncDir(dir)
}

// ErrNoRecord says that a folder holds no record of changes.
var ErrNoRecord = errors.New("it holds no " + RecordFile + ": david changed no server there")

// Open reads the record in a folder, to go on with it. It changes nothing.
func Open(dir string) (*Record, error) {
	path := filepath.Join(dir, RecordFile)
	b, info, err := readJournal(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read %s: %w", dir, ErrNoRecord)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read the record of changes: %w", err)
	}
	r, whole, err := parse(b)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", path, err)
	}
	r.journal = journal{path: path, torn: whole < len(b), end: int64(whole), info: info}
	return r, nil
}

// readJournal reads a plain file, without following a link and without waiting for a writer.
func readJournal(path string) (b []byte, info fs.FileInfo, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ELOOP) {
		return nil, nil, fmt.Errorf("%s is a symbolic link, which david makes none of", path)
	}
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > longestRecord {
		return nil, nil, fmt.Errorf("%s is no record of david's: no plain file, or longer than %d KiB", path, longestRecord>>10)
	}
	b, err = io.ReadAll(io.LimitReader(f, longestRecord))
	return b, info, err
}

// again reads the changes once more: another david may have gone on with them meanwhile.
func (r *Record) again() error {
	now, err := Open(filepath.Dir(r.journal.path))
	if err != nil {
		return err
	}
	r.changes, r.journal = now.changes, now.journal
	return nil
}

// note appends lines, all or none of them, and brings the changes up to them. When it returns nil they are
// there after a crash.
func (r *Record) note(lines ...recordLine) error {
	for _, l := range lines {
		if err := r.check(l); err != nil {
			return fmt.Errorf("cannot write the record of changes: %w", err)
		}
	}
	if err := r.journal.append(lines...); err != nil {
		return err
	}
	return r.takeAll(lines)
}

func (r *Record) takeAll(lines []recordLine) error {
	for _, l := range lines {
		if err := r.take(l); err != nil {
			return err
		}
	}
	return nil
}

// append writes lines in one go, so that a process that is killed leaves all of them or none.
func (j *journal) append(lines ...recordLine) (err error) {
	var text bytes.Buffer
	for _, l := range lines {
		l.Schema, l.At = schema, time.Now()
		b, err := json.Marshal(l)
		if err != nil {
			return fmt.Errorf("cannot write the record of changes: %w", err)
		}
		text.Write(append(b, '\n'))
	}
	f, err := os.OpenFile(j.path, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("cannot write the record of changes: %w", err)
	}
	if j.torn {
		err = f.Truncate(j.end)
		j.torn = err != nil
	}
	if err == nil {
		_, err = f.Write(text.Bytes())
	}
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("cannot write the record of changes: %w", err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("cannot begin the record of changes: %w", err)
	}
	return errors.Join(d.Sync(), d.Close())
}
