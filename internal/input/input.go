// Package input reads files that were given or found, whoever made them: regular files only, no more of them
// than the caller has room for, and without waiting for what may never come.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The kinds of errors.
var (
	// ErrKind marks what is no regular file: a folder, a pipe, a device, a socket.
	ErrKind = errors.New("is no regular file")
	// ErrLong marks what is longer than its reader takes.
	ErrLong = errors.New("is longer than")
)

// patience is how long a pipe may be silent, and a file that only seems to be one, as some of the kernel's.
const patience = 10 * time.Second

// Open opens a regular file to be read, and says how long it is, in bytes. It does not wait, as opening a
// pipe would.
func Open(path string) (*os.File, int64, error) {
	f, info, err := open(path, 0)
	if err != nil {
		return nil, 0, err
	}
	return f, info.Size(), nil
}

// open is Open of files of a further kind too, and says more of them.
func open(path string, also fs.FileMode) (*os.File, fs.FileInfo, error) {
	if info, err := os.Stat(path); err == nil { // first, as some devices act when they are opened
		if err := regular(path, info, also); err != nil {
			return nil, nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(path, info, also)
	}
	if err == nil {
		err = f.SetReadDeadline(time.Now().Add(patience))
	}
	if err != nil && !errors.Is(err, os.ErrNoDeadline) { // files that never keep one waiting
		return nil, nil, errors.Join(err, f.Close())
	}
	return f, info, nil
}

// regular refuses what is no regular file, nor of a kind that is welcome too.
func regular(path string, info fs.FileInfo, also fs.FileMode) error {
	kind := info.Mode().Type()
	if kind == 0 || kind == also {
		return nil
	}
	word := "something else"
	switch {
	case kind&fs.ModeDir != 0:
		word = "a folder"
	case kind&fs.ModeNamedPipe != 0:
		word = "a pipe"
	case kind&fs.ModeDevice != 0:
		word = "a device"
	case kind&fs.ModeSocket != 0:
		word = "a socket"
	}
	return fmt.Errorf("%s %w but %s", path, ErrKind, word)
}

// Read reads a regular file of at most so many bytes.
func Read(path string, most int64) ([]byte, error) {
	text, _, err := ReadMode(path, most, 0)
	return text, err
}

// ReadMode is Read that says which mode the file had that it read. It may be of a further kind too, where
// also names one: fs.ModeNamedPipe, a shell's <(command), which is read until it ends, for ten seconds at
// most.
func ReadMode(path string, most int64, also fs.FileMode) (text []byte, mode fs.FileMode, err error) {
	f, info, err := open(path, also)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close() // it is only read
	if info.Size() > most {
		return nil, 0, long(path, most)
	}
	if text, err = All(f, path, most); err != nil {
		return nil, 0, err
	}
	if len(text) == 0 && !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s %w but a pipe into which nobody writes", path, ErrKind)
	}
	return text, info.Mode(), nil
}

// ReadDocument reads a file of YAML or JSON of at most so many bytes, and of MostValues.
func ReadDocument(path string, most int64) ([]byte, error) {
	text, err := Read(path, most)
	if err != nil {
		return nil, err
	}
	return text, Document(path, text)
}

// mostEntries is how many files a folder may have that is listed.
const mostEntries = 10_000

// Folder lists a folder in the order of the names. One with more than 10,000 files is refused.
func Folder(path string) ([]fs.DirEntry, error) {
	dir, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY, 0) // a pipe would keep it waiting
	if err != nil {
		return nil, err
	}
	defer dir.Close() // it is only read
	entries, err := dir.ReadDir(mostEntries + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(entries) > mostEntries {
		return nil, fmt.Errorf("%s holds more than the %d files that david looks at", path, mostEntries)
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, nil
}

// All reads what r has, where that is no more than so many bytes. name stands in errors.
func All(r io.Reader, name string, most int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, most+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("cannot read %s: it said nothing for %s", name, patience)
	case err != nil:
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	case int64(len(b)) > most:
		return nil, long(name, most)
	}
	return b, nil
}

func long(name string, most int64) error {
	return fmt.Errorf("%s %w the %s that david reads of such a file", name, ErrLong, size(most))
}

// size names a limit.
func size(n int64) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%d MiB", n>>20)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// MostValues is how many values documents of YAML or JSON may have: decoded, each takes some hundred bytes of
// memory, whatever it takes in the file.
const MostValues = 60_000

// Values is about how many values a text of YAML or JSON has, and no more are in it than twice as many.
func Values(text []byte) int {
	n := 0
	for _, c := range text {
		switch c {
		case ',', ':', '[', '{', '\n', '-', '?':
			n++
		}
	}
	return n / 2 // a line has two at least: its key and its end
}

// Document refuses a text with more values than MostValues.
func Document(name string, text []byte) error {
	if Values(text) > MostValues {
		return fmt.Errorf("%s holds more than the %d values that david reads of such a file", name, MostValues)
	}
	return nil
}
