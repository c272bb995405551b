package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// Find returns the server a user wants: "mysql" (Oracle's or Percona's), "mariadb", "auto" (MySQL where
// there is one, else MariaDB), an Engine with its version, or a path: of a binary, or of the folder a
// server was unpacked into. Among several it takes the first that List gives and david supports, of an
// engine the newest. home is david's own folder.
func Find(ctx context.Context, home, want string) (Binary, error) {
	switch want {
	case "", "auto", string(mycnf.MySQL), string(mycnf.MariaDB):
		return summed(choose(Present(ctx, home), want))
	}
	if e, ok := ParseEngine(want); ok {
		return summed(e.among(Present(ctx, home)))
	}
	if !strings.ContainsRune(want, filepath.Separator) && !exists(want) {
		return Binary{}, fmt.Errorf("cannot find the server %q: want auto, mysql, mariadb or a path, or a flavour with its version, as in mysql:9.7", want)
	}
	b, err := findPath(ctx, want)
	if err != nil {
		return Binary{}, err
	}
	return b, b.Supported()
}

// choose takes the first supported server of the wanted kind.
func choose(all []Binary, want string) (Binary, error) {
	var tooOld error
	for _, b := range all {
		if !b.is(want) {
			continue
		}
		err := b.Supported()
		if err == nil {
			return b, nil
		}
		tooOld = cmp.Or(tooOld, err)
	}
	if tooOld != nil {
		return Binary{}, tooOld
	}
	name := map[string]string{"mysql": "MySQL", "mariadb": "MariaDB"}[want]
	return Binary{}, fmt.Errorf("cannot find a %s server on this machine: %s", cmp.Or(name, "MySQL or MariaDB"), HowToGet)
}

// Installed returns the server of a flavour that List gives first, one that david supports before others; of any flavour
// for "". ok is false where there is none.
func Installed(all []Binary, f mycnf.Flavour) (b Binary, ok bool) {
	for _, one := range all {
		if f != "" && one.Flavour != f {
			continue
		}
		if one.Supported() == nil {
			return one, true
		}
		if !ok {
			b, ok = one, true
		}
	}
	return b, ok
}

// is tells whether the binary is of the wanted kind.
func (b Binary) is(want string) bool {
	switch want {
	case string(mycnf.MySQL):
		return b.Flavour != mycnf.MariaDB
	case string(mycnf.MariaDB):
		return b.Flavour == mycnf.MariaDB
	}
	return true
}

// findPath identifies the binary at path, or the one in the folder at path.
func findPath(ctx context.Context, path string) (Binary, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return Binary{}, fmt.Errorf("cannot use %s as a server: %w", path, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Binary{}, fmt.Errorf("cannot use %s as a server: no such file; %s", path, HowToGet)
	case err != nil:
		return Binary{}, fmt.Errorf("cannot use %s as a server: %w", path, err)
	case info.IsDir():
		if path, err = binaryIn(path); err != nil {
			return Binary{}, err
		}
	case info.Mode()&0o111 == 0:
		return Binary{}, fmt.Errorf("cannot use %s as a server: it is not executable", path)
	}
	return identify(ctx, path)
}

// names lists what servers are called. Which flavour hides behind a name, only --version tells: Debian's
// mysqld may be a link to mariadbd.
func names() []string { return []string{"mysqld", "mariadbd"} }

// binaryIn finds the server in a folder into which one was unpacked or installed.
func binaryIn(root string) (string, error) {
	for _, dir := range []string{"usr/sbin", "sbin", "usr/bin", "bin", "usr/libexec", "libexec", "."} {
		for _, name := range names() {
			if path := filepath.Join(root, dir, name); isExecutable(path) {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("cannot find a server in the folder %s: no mysqld or mariadbd in its sbin, bin or libexec; %s", root, HowToGet)
}

// List returns the servers david finds in its own folder and on this machine, each once however many links
// lead to it, also those too old for david (see Supported). Oracle's and Percona's come before MariaDB,
// david's own before the system's, newer before older. What does not answer to --version is no server and
// left out.
func List(ctx context.Context, home string) []Binary {
	var all []Binary
	for _, b := range Present(ctx, home) {
		if b, err := summed(b, nil); err == nil {
			all = append(all, b)
		}
	}
	return all
}

// Present is List without the sums, which take longer than all else.
func Present(ctx context.Context, home string) []Binary {
	var all []Binary
	for _, path := range candidates(home) {
		if b, err := recognise(ctx, path); err == nil {
			all = append(all, b)
		}
	}
	slices.SortFunc(all, func(a, b Binary) int { return compare(home, a, b) })
	return all
}

func compare(home string, a, b Binary) int {
	return cmp.Or(
		cmp.Compare(rank(a.Flavour == mycnf.MariaDB), rank(b.Flavour == mycnf.MariaDB)),
		cmp.Compare(rank(!a.ownedBy(home)), rank(!b.ownedBy(home))),
		slices.Compare(versionNumbers(b.Version), versionNumbers(a.Version)),
		cmp.Compare(a.Path, b.Path),
	)
}

func rank(later bool) int {
	if later {
		return 1
	}
	return 0
}

// ownedBy tells whether david installed the binary.
func (b Binary) ownedBy(home string) bool {
	own, err := filepath.EvalSymlinks(serversDir(home))
	return err == nil && strings.HasPrefix(b.Path, own+string(filepath.Separator))
}

func serversDir(home string) string { return filepath.Join(home, "servers") }

// candidates are the files that may be servers, links resolved, each once.
func candidates(home string) []string {
	var paths []string
	for _, dir := range searched(home) {
		for _, name := range names() {
			path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
			if err == nil && isExecutable(path) && !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	return paths
}

// searched are the folders in which packages and archives of MySQL, Percona Server and MariaDB put their
// servers.
func searched(home string) []string {
	var dirs []string
	add := func(pattern string) {
		// Glob fails on a malformed pattern only, and these are well-formed.
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	add(globQuote(serversDir(home)) + "/[^.]*/usr/sbin")
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if filepath.IsAbs(dir) { // never run what happens to lie in the current folder
			dirs = append(dirs, dir)
		}
	}
	dirs = append(dirs, "/usr/sbin", "/usr/bin", "/usr/libexec", "/usr/local/sbin", "/usr/local/bin", "/usr/local/libexec")
	add("/usr/local/mysql*/bin")
	add("/usr/local/mariadb*/bin")
	add("/opt/*/bin")
	add("/opt/*/*/sbin")
	return dirs
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
