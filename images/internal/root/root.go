// Package root holds the files of an image in memory and writes them as a layer. Packages' files are taken
// from their tar archives as they are, owners included, so that no root is needed, and what is written
// depends on nothing else: entries are sorted, times are zero, owners have no names.
package root

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Root is a tree of files. Names are relative, without a leading slash: "usr/bin/fio".
type Root struct {
	entries map[string]entry
	owner   map[string]string // which package a file is from, for errors
}

type entry struct {
	header tar.Header
	body   []byte // nil unless a regular file
}

// New is a tree whose /bin, /sbin, /lib and /lib64 are links into /usr, as in every Debian today. No package
// brings these links in all releases, so they are made here, and what a package puts into the old places goes
// to the new ones.
func New() *Root {
	r := Empty()
	for _, dir := range merged() {
		r.Dir("usr/"+dir, 0o755, 0)
		r.Link(dir, "usr/"+dir)
	}
	return r
}

// Empty is a tree for a layer above another, which has the links.
func Empty() *Root { return &Root{entries: map[string]entry{}, owner: map[string]string{}} }

func merged() []string { return []string{"bin", "lib", "lib64", "sbin"} }

// clean is a name as the tree keeps it: relative, without dots, with /usr's merge applied.
func clean(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	first, _, _ := strings.Cut(name, "/")
	if slices.Contains(merged(), first) {
		return "usr/" + name
	}
	return name
}

// Dir adds a folder.
func (r *Root) Dir(name string, mode fs.FileMode, owner int) {
	r.put(clean(name), tar.Header{Typeflag: tar.TypeDir, Mode: unixMode(mode), Uid: owner, Gid: owner}, nil)
}

// File adds a file that belongs to root.
func (r *Root) File(name string, mode fs.FileMode, body []byte) {
	r.put(clean(name), tar.Header{Typeflag: tar.TypeReg, Mode: unixMode(mode)}, body)
}

// Link adds a symbolic link. Those in the root folder itself are taken literally: they make the merge.
func (r *Root) Link(name, target string) {
	if strings.Contains(name, "/") {
		name = clean(name)
	}
	r.put(name, tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: target}, nil)
}

func unixMode(mode fs.FileMode) int64 {
	unix := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		unix |= 0o1000
	}
	return unix
}

// put keeps a header's type, mode, owner and target, nothing else, and makes the folders above.
func (r *Root) put(name string, h tar.Header, body []byte) {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, ok := r.entries[dir]; !ok {
			r.entries[dir] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
		}
	}
	r.entries[name] = entry{
		header: tar.Header{Typeflag: h.Typeflag, Mode: h.Mode & 0o7777, Uid: h.Uid, Gid: h.Gid, Linkname: h.Linkname},
		body:   body,
	}
}

// AddTar adds the files of a package's tar archive, but for those that drop tells of. Two packages must not
// bring the same file.
func (r *Root) AddTar(pkg string, archive io.Reader, drop func(name string) bool) error {
	hard := map[string]string{}
	files := tar.NewReader(archive)
	for {
		h, err := files.Next()
		if errors.Is(err, io.EOF) {
			return r.copyLinked(hard)
		}
		if err != nil {
			return fmt.Errorf("cannot read the files of %s: %w", pkg, err)
		}
		name := clean(h.Name)
		if drop(name) {
			continue
		}
		if h.Typeflag == tar.TypeLink {
			hard[name] = clean(h.Linkname)
			continue
		}
		if err := r.add(pkg, name, h, files); err != nil {
			return err
		}
	}
}

func (r *Root) add(pkg, name string, h *tar.Header, body io.Reader) error {
	switch h.Typeflag {
	case tar.TypeDir:
		if name != "" && !slices.Contains(merged(), strings.TrimPrefix(name, "usr/")) {
			r.put(name, *h, nil)
		}
		return nil
	case tar.TypeReg, tar.TypeSymlink:
		if slices.Contains(merged(), path.Clean(h.Name)) {
			return nil // newer releases bring the links of the merge
		}
	default:
		return fmt.Errorf("cannot take %s of %s: neither a file, a folder nor a link", name, pkg)
	}
	if other, ok := r.owner[name]; ok && other != pkg {
		return fmt.Errorf("both %s and %s bring %s", other, pkg, name)
	}
	text, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("cannot read %s of %s: %w", name, pkg, err)
	}
	r.owner[name] = pkg
	r.put(name, *h, text)
	return nil
}

// copyLinked gives hard links files of their own: few packages have any, and an order of entries in which a
// link comes after its file is then no concern.
func (r *Root) copyLinked(hard map[string]string) error {
	for name, target := range hard {
		e, ok := r.entries[target]
		if !ok {
			return fmt.Errorf("%s is a hard link to %s, which is not there", name, target)
		}
		r.put(name, e.header, e.body)
	}
	return nil
}

// Names lists all that is in the tree, sorted.
func (r *Root) Names() []string { return slices.Sorted(maps.Keys(r.entries)) }

// Share looks at the files that of tells of, keeps one of those with equal contents, and makes the others links to it.
func (r *Root) Share(of func(name string) bool) error {
	first := map[string]string{} // by content
	for _, name := range r.Names() {
		e := r.entries[name]
		if e.header.Typeflag != tar.TypeReg || !of(name) {
			continue
		}
		kept, ok := first[string(e.body)]
		if !ok {
			first[string(e.body)] = name
			continue
		}
		target, err := filepath.Rel(path.Dir(name), kept)
		if err != nil {
			return err
		}
		r.Link(name, target)
	}
	return nil
}

// Size is the sum of the files' sizes, bytes.
func (r *Root) Size() int64 {
	var size int64
	for _, e := range r.entries {
		size += int64(len(e.body))
	}
	return size
}

// Read returns a file's content, following links; errors.Is(err, fs.ErrNotExist) where there is none.
func (r *Root) Read(name string) ([]byte, error) {
	at := clean(name)
	for range 40 { // as the kernel does
		e, ok := r.entries[at]
		switch {
		case !ok:
			return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
		case e.header.Typeflag == tar.TypeReg:
			return e.body, nil
		case e.header.Typeflag != tar.TypeSymlink:
			return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
		}
		target := e.header.Linkname
		if !strings.HasPrefix(target, "/") {
			target = path.Join(path.Dir(at), target)
		}
		at = clean(target)
	}
	return nil, &fs.PathError{Op: "read", Path: name, Err: fs.ErrInvalid}
}

// WriteTar writes the tree as a layer. The same files give the same bytes.
func (r *Root) WriteTar(w io.Writer) error {
	out := tar.NewWriter(w)
	for _, name := range r.Names() {
		e := r.entries[name]
		if parent, ok := r.entries[path.Dir(name)]; ok && parent.header.Typeflag != tar.TypeDir {
			return fmt.Errorf("cannot write %s into the layer: what is above it is no folder", name)
		}
		h := e.header
		h.Name, h.Size, h.ModTime = name, int64(len(e.body)), time.Unix(0, 0)
		if h.Typeflag == tar.TypeDir {
			h.Name += "/"
		}
		if err := out.WriteHeader(&h); err != nil {
			return fmt.Errorf("cannot write %s into the layer: %w", name, err)
		}
		if _, err := io.Copy(out, bytes.NewReader(e.body)); err != nil {
			return cmp.Or(err, out.Close())
		}
	}
	return out.Close()
}
