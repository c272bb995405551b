package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"david/internal/host"
	"david/internal/input"
	"david/internal/mycnf"
)

// What is read of an option file at most, with all that it includes. Those of servers have some KB, and servers have some
// 700 options.
const (
	mostOptionFiles = 200
	mostOptionBytes = 1 << 20
	mostOptions     = 10_000
	maxDepth        = 10 // how deep servers follow includes (my_default.c)
)

// ReadCnf reads an option file with what it includes.
func ReadCnf(path string) (mycnf.File, error) { return readOptions(path, input.Read) }

// ReadOptions is ReadCnf of what may also be a shell's <(command).
func ReadOptions(path string) (mycnf.File, error) { return readOptions(path, input.ReadGiven) }

func readOptions(path string, read func(string, int64) ([]byte, error)) (mycnf.File, error) {
	r := optionReader{left: mostOptionBytes}
	file, err := r.file(path, read)
	if err == nil {
		file, err = r.expand(file, 0)
	}
	if err != nil {
		return file, InputError{err}
	}
	return file, nil
}

// optionReader reads an option file, and counts what that takes.
type optionReader struct {
	files, options int
	left           int64 // bytes
}

// file reads one file. Servers leave out one that everybody may write, with a warning that few see.
func (r *optionReader) file(path string, read func(string, int64) ([]byte, error)) (f mycnf.File, err error) {
	if r.files++; r.files > mostOptionFiles {
		return f, fmt.Errorf("cannot read the option file: with what it includes it is more than the %d files that david reads", mostOptionFiles)
	}
	text, err := read(path, mostOptionBytes)
	if err != nil {
		return f, fmt.Errorf("cannot read the option file: %w", err)
	}
	if r.left -= int64(len(text)); r.left < 0 {
		return f, fmt.Errorf("cannot read the option file: with what it includes it is longer than the %s that david reads", host.Size(mostOptionBytes))
	}
	const byAll = 0o002
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&byAll != 0 {
		return f, fmt.Errorf("cannot judge %s: everybody may write it, so servers ignore it; chmod o-w %s", path, path)
	}
	if f, err = mycnf.Parse(bytes.NewReader(text), path); err != nil {
		return f, err
	}
	if r.options += len(f.Items); r.options > mostOptions {
		return f, fmt.Errorf("cannot read the option file: with what it includes it has more than the %d options that david reads", mostOptions)
	}
	return f, nil
}

// expand replaces include directives by what they name, in the order in which the servers read it.
func (r *optionReader) expand(f mycnf.File, depth int) (mycnf.File, error) {
	out := mycnf.File{Name: f.Name}
	for _, item := range f.Items {
		if item.Include == "" {
			out.Items = append(out.Items, item)
			continue
		}
		if depth == maxDepth {
			return mycnf.File{}, fmt.Errorf("cannot include %s at %s: more than %d files deep", item.Include, item.Where(), maxDepth)
		}
		paths, err := included(item)
		for _, path := range paths {
			var inner mycnf.File
			if inner, err = r.file(path, input.Read); err != nil {
				break
			}
			if inner, err = r.expand(inner, depth+1); err != nil {
				return mycnf.File{}, err
			}
			out.Items = append(out.Items, inner.Items...)
		}
		if err != nil {
			return mycnf.File{}, fmt.Errorf("cannot include %s at %s: %w", item.Include, item.Where(), err)
		}
	}
	return out, nil
}

// included names the files that a !include or !includedir names; of a folder the .cnf files, in the order of their
// names, as the servers read them.
func included(directive mycnf.Item) (paths []string, err error) {
	if !directive.IncludeDir {
		return []string{directive.Include}, nil
	}
	dir, err := os.Open(directive.Include)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // it is only read
	const most = 10_000
	names, err := dir.Readdirnames(most + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(names) > most {
		return nil, fmt.Errorf("the folder holds more than the %d files that david looks at", most)
	}
	for _, name := range mycnf.Included(names) {
		paths = append(paths, filepath.Join(directive.Include, name))
	}
	return paths, nil
}
