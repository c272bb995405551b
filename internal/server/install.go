package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"david/internal/apt"
	"david/internal/home"
	"david/internal/mycnf"
)

// Installation is install.json: what david installed, from which packages, and what was tried with it.
type Installation struct {
	Name      string        `json:"name"`    // of its folder: "mysql-9.7.4-2"
	Version   string        `json:"version"` // as the program prints it
	SHA256    string        `json:"sha256"`  // of the program
	Installed time.Time     `json:"installed"`
	Suites    []string      `json:"suites"`   // of the distribution's archive
	Tested    []string      `json:"tested"`   // what was seen to work before it was kept
	Packages  []apt.Package `json:"packages"` // all that were unpacked
}

// Install puts a program into david's own folder without touching the system's packages; which is "mysql",
// "mariadb", or "mysqltuner", whose advice races are run against. The packages come from the
// distribution's own mirror, as the system's apt is told to reach it, signed by the distribution: from the
// unstable suite on Debian, whose stable one has no MySQL, an older MariaDB and an old MySQLTuner, and
// from the system's own on Ubuntu. An ordinary user can do it.
//
// Where that version is installed already, nothing but the package lists is fetched. A version that does not
// run is not kept; earlier ones stay. Progress goes to log, a line at a time. Two installations at once wait
// for each other.
func Install(ctx context.Context, home, which string, log io.Writer) (Binary, error) {
	what, ok := products()[which]
	if !ok {
		return Binary{}, fmt.Errorf("cannot install %q: mysql, mariadb and mysqltuner are to be had this way", which)
	}
	servers, err := filepath.Abs(serversDir(home))
	if err != nil {
		return Binary{}, fmt.Errorf("cannot install %s: %w", which, err)
	}
	b, err := installSystem(ctx, servers, what, log)
	if err != nil {
		return Binary{}, fmt.Errorf("cannot install %s in %s: %w%s", which, servers, err, keptNote(servers))
	}
	return b, nil
}

// product is something that Install can get.
type product struct {
	title, prefix string // "MySQL"; what the names of its folders begin with
	// pick names its package among those of the archive.
	pick func(context.Context, apt.State) (string, error)
	// unneeded tells of a package that apt would install with it and that it runs without here.
	unneeded func(apt.Package) bool
	pruned   []string // parts of its tree that are not kept
	// identify runs what lies in a tree.
	identify func(ctx context.Context, tree string) (Binary, error)
	tested   string // what identify asks it
}

func products() map[string]product {
	return map[string]product{
		string(mycnf.MySQL):   {"MySQL", "mysql-", serverPackage, unneeded, pruned(), identifyTree, "--version"},
		string(mycnf.MariaDB): {"MariaDB", "mariadb-", mariadbPackage, unneeded, pruned(), identifyTree, "--version"},
		Tuner:                 {"MySQLTuner", Tuner + "-", tunerPackage, func(p apt.Package) bool { return p.Name != Tuner }, []string{"usr/share/doc", "usr/share/lintian", "usr/share/man"}, identifyTuner, "--help"},
	}
}

// installSystem takes packages from where the system's apt does.
func installSystem(ctx context.Context, servers string, what product, log io.Writer) (Binary, error) {
	from, err := apt.SystemArchive(ctx)
	if errors.Is(err, errors.ErrUnsupported) {
		return Binary{}, fmt.Errorf("%w; unpack a MySQL yourself and name it with --server PATH", err)
	}
	if err != nil {
		return Binary{}, err
	}
	return installLocked(ctx, servers, what, from, log)
}

// installLocked holds the lock, and a folder to work in which disappears with it.
func installLocked(ctx context.Context, servers string, what product, from apt.Archive, log io.Writer) (Binary, error) {
	// The server runs as another user where david runs as root, so the folder is open to read.
	if err := os.MkdirAll(servers, 0o755); err != nil {
		return Binary{}, err
	}
	unlock, err := lock(ctx, servers, log)
	if err != nil {
		return Binary{}, err
	}
	defer unlock()
	if err := sweep(servers); err != nil {
		return Binary{}, err
	}
	work, err := os.MkdirTemp(servers, workPrefix)
	if err != nil {
		return Binary{}, err
	}
	b, err := what.install(ctx, servers, work, from, log)
	return b, errors.Join(err, os.RemoveAll(work))
}

// workPrefix begins the names of unfinished installations.
const workPrefix = ".install-"

// install takes the steps: lists, plan, download, unpack, check, keep.
func (what product) install(ctx context.Context, servers, work string, from apt.Archive, log io.Writer) (Binary, error) {
	a, err := apt.New(ctx, work, from)
	if err != nil {
		return Binary{}, err
	}
	fmt.Fprintf(log, "reading the package lists of %s\n", strings.Join(from.Suites, ", "))
	updated := a.Update(ctx)
	if ctx.Err() != nil {
		return Binary{}, ctx.Err()
	}
	name, err := what.pick(ctx, a)
	if err != nil {
		// One of several mirrors may fail while another serves, so its failure counts only now.
		return Binary{}, cmp.Or(updated, err)
	}
	packages, err := a.Plan(ctx, name)
	if err != nil {
		return Binary{}, err
	}
	i := slices.IndexFunc(packages, func(p apt.Package) bool { return p.Name == name })
	if i < 0 {
		return Binary{}, fmt.Errorf("apt's plan lacks %s", name)
	}
	final := filepath.Join(servers, what.prefix+folderVersion(packages[i].Version))
	if b, err := what.identify(ctx, final); err == nil {
		fmt.Fprintf(log, "%s %s is installed already\n", what.title, b.Version)
		return b, nil
	}
	tree := filepath.Join(work, "tree")
	packages = slices.DeleteFunc(packages, what.unneeded)
	if err := what.fetch(ctx, a, packages, tree, log); err != nil {
		return Binary{}, err
	}
	return what.adopt(ctx, tree, final, Installation{Suites: from.Suites, Packages: packages}, log)
}

// serverPackage names the newest package with a MySQL server in it.
func serverPackage(ctx context.Context, a apt.State) (string, error) {
	names, err := a.Names(ctx, "mysql-server-core")
	if err != nil {
		return "", err
	}
	name, ok := newestServer(names)
	if !ok {
		return "", errors.New("the archive has no package mysql-server-core")
	}
	return name, nil
}

// mariadbPackage names the package with a MariaDB server in it.
func mariadbPackage(context.Context, apt.State) (string, error) { return "mariadb-server-core", nil }

// newestServer prefers mysql-server-core to those with a version in their name, and of these the highest.
func newestServer(packages []string) (name string, ok bool) {
	servers := slices.DeleteFunc(slices.Clone(packages), func(p string) bool {
		rest, ok := strings.CutPrefix(p, "mysql-server-core")
		return !ok || strings.Trim(rest, "-.0123456789") != ""
	})
	if len(servers) == 0 {
		return "", false
	}
	if slices.Contains(servers, "mysql-server-core") {
		return "mysql-server-core", true
	}
	return slices.MaxFunc(servers, func(a, b string) int { return slices.Compare(versionNumbers(a), versionNumbers(b)) }), true
}

// folderVersion is a package's version without its epoch, which the server does not print either.
func folderVersion(version string) string {
	if _, rest, ok := strings.Cut(version, ":"); ok {
		return rest
	}
	return version
}

// unneeded tells of a package that the server's scripts need but mysqld does not; a test starts a server
// without them.
func unneeded(p apt.Package) bool {
	for _, prefix := range []string{"perl", "libperl", "libgdbm", "libdb5.", "libc-gconv", "libsasl2-modules-db", "debconf"} {
		if strings.HasPrefix(p.Name, prefix) {
			return true
		}
	}
	return false
}

// pruned are the parts of a tree that mysqld does not need: documentation and the other programs.
func pruned() []string {
	return []string{"etc", "var", "usr/bin", "usr/share/bug", "usr/share/doc", "usr/share/lintian", "usr/share/locale", "usr/share/man"}
}

func (what product) fetch(ctx context.Context, a apt.State, packages []apt.Package, tree string, log io.Writer) error {
	var size int64
	for _, p := range packages {
		size += p.Bytes
	}
	fmt.Fprintf(log, "downloading %d packages, %.0f MiB\n", len(packages), float64(size)/(1<<20))
	if err := a.Download(ctx, packages, log); err != nil {
		return err
	}
	fmt.Fprintln(log, "unpacking")
	if err := os.Mkdir(tree, 0o755); err != nil {
		return err
	}
	if err := a.Unpack(ctx, packages, tree); err != nil {
		return err
	}
	for _, path := range what.pruned {
		if err := os.RemoveAll(filepath.Join(tree, path)); err != nil {
			return err
		}
	}
	return nil
}

// adopt moves a tree whose program runs to its final place, with its install.json; one that does not run
// stays where it is, to be removed.
func (what product) adopt(ctx context.Context, tree, final string, i Installation, log io.Writer) (Binary, error) {
	b, err := what.identify(ctx, tree)
	if err != nil {
		return Binary{}, fmt.Errorf("the downloaded %s does not work and was removed: %w", what.title, err)
	}
	i.Name, i.Version, i.SHA256 = filepath.Base(final), b.Version, b.SHA256
	i.Installed, i.Tested = time.Now().UTC().Truncate(time.Second), []string{what.tested}
	record, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return Binary{}, err
	}
	if err := os.WriteFile(filepath.Join(tree, "install.json"), append(record, '\n'), 0o644); err != nil {
		return Binary{}, err
	}
	// What may be there already does not run, or it would have been taken.
	if err := errors.Join(os.RemoveAll(final), os.Rename(tree, final)); err != nil {
		return Binary{}, err
	}
	fmt.Fprintf(log, "installed %s %s in %s\n", what.title, b.Version, final)
	return what.identify(ctx, final)
}

func identifyTree(ctx context.Context, tree string) (Binary, error) {
	path, err := binaryIn(tree)
	if err != nil {
		return Binary{}, err
	}
	return identify(ctx, path)
}

// lock makes installations in one folder follow each other.
func lock(ctx context.Context, servers string, log io.Writer) (unlock func(), err error) {
	f, err := home.Open(filepath.Join(servers, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for waiting := false; ; waiting = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil // closing gives the lock back
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			f.Close()
			return nil, fmt.Errorf("cannot lock %s: %w", f.Name(), err)
		}
		if !waiting {
			fmt.Fprintln(log, "waiting for another installation to end")
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// sweep removes what installations that were killed left behind. The lock must be held.
func sweep(servers string) error {
	left, err := filepath.Glob(filepath.Join(globQuote(servers), workPrefix+"*"))
	for _, path := range left {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// keptNote names the servers that a failed installation leaves untouched.
func keptNote(servers string) string {
	kept := installed(servers)
	if len(kept) == 0 {
		return ""
	}
	return "; still there: " + strings.Join(kept, ", ")
}

// installed names the servers in david's folder.
func installed(servers string) []string {
	entries, err := os.ReadDir(servers)
	if err != nil {
		return nil // no folder, no server
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	return names
}
