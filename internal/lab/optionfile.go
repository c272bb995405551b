package lab

import (
	"fmt"
	"os"
	"path/filepath"

	"david/internal/mycnf"
)

// ReadCnf reads an option file with what it includes.
func ReadCnf(path string) (mycnf.File, error) {
	if err := Regular("option file", path); err != nil {
		return mycnf.File{}, InputError{err}
	}
	return ReadOptions(path)
}

// ReadOptions is ReadCnf of anything that can be read, a shell's <(command) too.
func ReadOptions(path string) (mycnf.File, error) {
	file, err := parseFile(path)
	if err == nil {
		file, err = expand(file, 0)
	}
	if err != nil {
		return file, InputError{err}
	}
	return file, nil
}

// Regular refuses what is there and is no regular file: a named pipe would be waited for, and a device
// read, without end. What is not there is left to those who open it.
func Regular(what, path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot read the %s: %s is no regular file", what, path)
	}
	return nil
}

// parseFile reads one file. Servers leave out one that everybody may write, with a warning that few see.
func parseFile(path string) (mycnf.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return mycnf.File{}, fmt.Errorf("cannot read the option file: %w", err)
	}
	defer f.Close()
	const byAll = 0o002
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&byAll != 0 {
		return mycnf.File{}, fmt.Errorf("cannot judge %s: everybody may write it, so servers ignore it; chmod o-w %s", path, path)
	}
	return mycnf.Parse(f, path)
}

// maxDepth is how deep servers follow includes (my_default.c).
const maxDepth = 10

// expand replaces include directives by what they name, in the order in which the servers read it.
func expand(f mycnf.File, depth int) (mycnf.File, error) {
	out := mycnf.File{Name: f.Name}
	for _, item := range f.Items {
		if item.Include == "" {
			out.Items = append(out.Items, item)
			continue
		}
		if depth == maxDepth {
			return mycnf.File{}, fmt.Errorf("cannot include %s at %s: more than %d files deep", item.Include, item.Where(), maxDepth)
		}
		files, err := included(item)
		if err != nil {
			return mycnf.File{}, fmt.Errorf("cannot include %s at %s: %w", item.Include, item.Where(), err)
		}
		for _, inner := range files {
			if inner, err = expand(inner, depth+1); err != nil {
				return mycnf.File{}, err
			}
			out.Items = append(out.Items, inner.Items...)
		}
	}
	return out, nil
}

// included reads what a !include or !includedir names; of a folder the .cnf files, in the order of their
// names, as the servers do.
func included(directive mycnf.Item) ([]mycnf.File, error) {
	paths := []string{directive.Include}
	if directive.IncludeDir {
		entries, err := os.ReadDir(directive.Include)
		if err != nil {
			return nil, err
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		paths = nil
		for _, name := range mycnf.Included(names) {
			paths = append(paths, filepath.Join(directive.Include, name))
		}
	}
	var files []mycnf.File
	for _, path := range paths {
		if err := Regular("option file", path); err != nil {
			return nil, err
		}
		f, err := parseFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
