package lab

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
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
func ReadCnf(path string) (mycnf.File, error) { return readOptions(path, 0) }

// ReadOptions is ReadCnf of what may also be a shell's <(command).
func ReadOptions(path string) (mycnf.File, error) { return readOptions(path, fs.ModeNamedPipe) }

// StandardInput stands for the file that a command is given there.
const StandardInput = "-"

// readOptions reads an option file that may be of a further kind.
func readOptions(path string, also fs.FileMode) (mycnf.File, error) {
	r := optionReader{left: mostOptionBytes}
	file, err := r.file(path, also)
	return r.whole(file, err)
}

// readInput reads an option file from a stream, with what it includes.
func readInput(in io.Reader) (mycnf.File, error) {
	const name = "standard input"
	r := optionReader{left: mostOptionBytes, files: 1}
	text, err := input.All(in, name, mostOptionBytes)
	if err != nil {
		return mycnf.File{}, InputError{fmt.Errorf("cannot read the option file: %w", err)}
	}
	r.left -= int64(len(text))
	return r.whole(r.parse(text, "stdin"))
}

// whole has a file include what it names.
func (r *optionReader) whole(file mycnf.File, err error) (mycnf.File, error) {
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
func (r *optionReader) file(path string, also fs.FileMode) (f mycnf.File, err error) {
	if r.files++; r.files > mostOptionFiles {
		return f, fmt.Errorf("cannot read the option file: with what it includes it is more than the %d files that david reads", mostOptionFiles)
	}
	text, mode, err := input.ReadMode(path, mostOptionBytes, also)
	if err != nil {
		return f, fmt.Errorf("cannot read the option file: %w", err)
	}
	if r.left -= int64(len(text)); r.left < 0 {
		return f, fmt.Errorf("cannot read the option file: with what it includes it is longer than the %s that david reads", host.Size(mostOptionBytes))
	}
	const byAll = 0o002
	if mode.IsRegular() && mode&byAll != 0 {
		return f, fmt.Errorf("cannot judge %s: everybody may write it, so servers ignore it; chmod o-w %s", path, path)
	}
	return r.parse(text, path)
}

// parse reads the text of a file.
func (r *optionReader) parse(text []byte, name string) (mycnf.File, error) {
	f, err := mycnf.Parse(bytes.NewReader(text), name)
	if err != nil {
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
			if inner, err = r.file(path, 0); err != nil {
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
	files, err := input.Folder(directive.Include)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	for _, name := range mycnf.Included(names) {
		paths = append(paths, filepath.Join(directive.Include, name))
	}
	return paths, nil
}
