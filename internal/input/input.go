// Package input reads files that were given or found, whoever made them: regular files only, no more of them than the
// caller has room for, and without waiting for what may never come.
package input

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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

// Open opens a regular file to be read, and says how long it is, in bytes. It does not wait, as opening a pipe would.
func Open(path string) (*os.File, int64, error) { return open(path, 0) }

// open is Open of files of further kinds.
func open(path string, also fs.FileMode) (*os.File, int64, error) {
	if info, err := os.Stat(path); err == nil { // first, as some devices act when they are opened
		if err := regular(path, info, also); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(path, info, also)
	}
	if err == nil {
		err = f.SetReadDeadline(time.Now().Add(patience))
	}
	if err != nil && !errors.Is(err, os.ErrNoDeadline) { // files that never keep one waiting
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
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
	f, size, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	if size > most {
		return nil, long(path, most)
	}
	return All(f, path, most)
}

// ReadGiven is Read of a file that somebody named on the command line, where that may also be a shell's <(command): a
// pipe is read until it ends, for ten seconds at most.
func ReadGiven(path string, most int64) ([]byte, error) {
	f, size, err := open(path, fs.ModeNamedPipe)
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	if size > most {
		return nil, long(path, most)
	}
	b, err := All(f, path, most)
	if err != nil || len(b) > 0 {
		return b, err
	}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		return b, nil
	}
	return nil, fmt.Errorf("%s %w but a pipe into which nobody writes", path, ErrKind)
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

// MostValues is how many values documents of YAML or JSON may have: decoded, each takes some hundred bytes of memory,
// whatever it takes in the file.
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
