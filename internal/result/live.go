package result

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/input"
)

// liveFile tells while a measurement lasts what it does, for whoever looks on: one Moment a line. Nothing that is
// concluded rests on it. It is locked as long as its david measures; the kernel unlocks it with the process.
const liveFile = "live.jsonl"

// mostLive bounds the file, in bytes: a week of seconds. What comes later is not noted.
const mostLive = 128 << 20

// Moment is what a measurement did at one moment.
type Moment struct {
	Schema int       `json:"schema"`
	At     time.Time `json:"at"`
	Text   string    `json:"text,omitempty"` // what is being done, in a few words
	Line   string    `json:"line,omitempty"` // a result, where this is one
	Phase  Phase     `json:"phase,omitempty"`
	Arm    string    `json:"arm,omitempty"`
	Round  int       `json:"round,omitempty"`        // or block, from 1
	Left   float64   `json:"left_seconds,omitempty"` // expected; 0 where nobody knows
	Point  *Point    `json:"point,omitempty"`        // a second of load
}

// Note appends a moment to the record's live.jsonl, without waiting for the disk. Its schema is set.
func (s *Store) Note(m Moment) error {
	if s.live == nil {
		f, err := openLive(s.path(liveFile))
		if err != nil {
			return fmt.Errorf("cannot note what is measured: %w", err)
		}
		s.live = f
	}
	m.Schema = Schema
	line, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("cannot note what is measured: %w", err)
	}
	if size, err := s.live.Seek(0, io.SeekEnd); err == nil && size > mostLive {
		return nil
	}
	if _, err := s.live.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("cannot note what is measured: %w", err)
	}
	return nil
}

// endLive lets go of live.jsonl: what is measured has ended.
func (s *Store) endLive() error {
	if s.live == nil {
		return nil
	}
	err := s.live.Close()
	s.live = nil
	return err
}

// openLive opens and locks the file, which is its user's alone, as whoever can read it could lock it. A line that a
// david which died left unfinished is ended.
func openLive(path string) (f *os.File, err error) {
	if f, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND|syscall.O_NOFOLLOW, 0o600); err != nil {
		return nil, err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock); err == nil {
		err = endLine(f)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// endLine has a file end with a whole line.
func endLine(f *os.File) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return err
	}
	last := make([]byte, 1)
	if _, err := f.ReadAt(last, size-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err = f.WriteString("\n")
	return err
}

// Noted is a moment, and where in the file the next one begins.
type Noted struct {
	Moment
	Next int64
}

// mostNoted is how many bytes of moments Moments returns at once.
const mostNoted = 256 << 10

// Moments returns what was noted in dir from a place in its live.jsonl on, some hundreds at once; a place below 0 counts
// from the end. next is the place to go on from, the same one once there is nothing more. on tells whether what was
// noted there is still being measured: where it is not, nothing comes after what is returned last.
func Moments(dir string, from int64) (list []Noted, next int64, on bool, err error) {
	f, size, err := input.Open(filepath.Join(dir, liveFile))
	if err != nil {
		return nil, from, false, err
	}
	defer f.Close() // it is only read
	if on, err = locked(f); err != nil {
		return nil, from, false, err
	}
	if !on { // it may have grown until then
		info, err := f.Stat()
		if err != nil {
			return nil, from, false, err
		}
		size = info.Size()
	}
	if from < 0 {
		from = max(0, size+from)
	}
	text := make([]byte, max(0, min(size-from, mostNoted)))
	n, err := f.ReadAt(text, min(from, size))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, from, on, err
	}
	list, next = moments(text[:n], from)
	if next == from && n == mostNoted { // no line is that long
		next += int64(n)
	}
	return list, next, on, nil
}

// moments decodes the whole lines of a text that begins at that place of the file. What is none is passed over: the
// rest of a line, or what a david left unfinished that died.
func moments(text []byte, at int64) (list []Noted, next int64) {
	next = at
	for {
		line, rest, whole := bytes.Cut(text, []byte("\n"))
		if !whole {
			return list, next
		}
		text, next = rest, next+int64(len(line))+1
		var m Moment
		if json.Unmarshal(line, &m) == nil && m.Schema == Schema {
			list = append(list, Noted{m, next})
		}
	}
}

// locked tells whether a david holds the file.
func locked(f *os.File) (bool, error) {
	lock := unix.Flock_t{Type: unix.F_RDLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &lock); err != nil {
		return false, err
	}
	return lock.Type != unix.F_UNLCK, nil
}

// lately is how many of the experiments that were noted in last Running looks at: what is on is noted in all the time.
const lately = 3

// Running returns the folder of the experiment under $DAVID_HOME that is being measured, whoever began it; "" where
// none is.
func Running(home string) (string, error) {
	root := filepath.Join(home, "experiments")
	entries, err := os.ReadDir(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("cannot see what is being measured: %w", err)
	}
	type noted struct {
		dir string
		at  time.Time
	}
	var list []noted
	for _, e := range entries {
		dir := filepath.Join(root, e.Name())
		if info, err := os.Lstat(filepath.Join(dir, liveFile)); err == nil && !strings.HasPrefix(e.Name(), ".") {
			list = append(list, noted{dir, info.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b noted) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(b.dir, a.dir)) })
	for _, n := range list[:min(len(list), lately)] {
		f, _, err := input.Open(filepath.Join(n.dir, liveFile))
		if err != nil { // removed meanwhile, or not one's own
			continue
		}
		on, err := locked(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("cannot see what is being measured: %w", err)
		}
		if on {
			return n.dir, nil
		}
	}
	return "", nil
}
