package root

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// CheckPrograms makes sure that programs find every library they need, and those theirs: packages are left
// out on purpose, and a new version of another may come to need one.
func (r *Root) CheckPrograms(names ...string) error {
	seen := map[string]bool{}
	var todo []string
	for _, name := range names {
		todo = append(todo, clean(name))
	}
	for len(todo) > 0 {
		name := todo[0]
		todo = todo[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		libraries, err := r.libraries(name)
		if err != nil {
			return err
		}
		todo = append(todo, libraries...)
	}
	return nil
}

// libraries finds the files of the libraries that a program or library names.
func (r *Root) libraries(name string) ([]string, error) {
	text, err := r.Read(name)
	if err != nil {
		return nil, fmt.Errorf("the image lacks a file: %w", err)
	}
	f, err := elf.NewFile(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s is no program: %w", name, err)
	}
	defer f.Close()
	needed, err := f.ImportedLibraries()
	if errors.Is(err, elf.ErrNoSymbols) || f.Section(".dynamic") == nil {
		return nil, nil // static
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read what %s needs: %w", name, err)
	}
	dirs := r.searched(f, name)
	var found []string
	for _, library := range needed {
		i := slices.IndexFunc(dirs, func(dir string) bool { _, err := r.Read(path.Join(dir, library)); return err == nil })
		if i < 0 {
			return nil, fmt.Errorf("%s needs %s, which none of the image's packages brings: %w", name, library, fs.ErrNotExist)
		}
		found = append(found, path.Join(dirs[i], library))
	}
	return found, nil
}

// searched are the folders in which Debian's loader looks for the libraries of f.
func (r *Root) searched(f *elf.File, name string) []string {
	var dirs []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		values, _ := f.DynString(tag) // none is no error
		for _, v := range values {
			for dir := range strings.SplitSeq(v, ":") {
				dirs = append(dirs, clean(strings.ReplaceAll(dir, "$ORIGIN", path.Dir(name))))
			}
		}
	}
	for _, dir := range r.Names() {
		if ok, _ := path.Match("usr/lib/*-linux-gnu", dir); ok {
			dirs = append(dirs, dir)
		}
	}
	return append(dirs, "usr/lib", "usr/lib64")
}
