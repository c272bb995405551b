// Command testservers builds the images that the tests in a cluster run: a MariaDB and a MySQL with the
// contract of the official images, an HAProxy, and the pause image every pod needs. They are for tests on this machine,
// where no registry is at hand. Each is kept in the user's cache folder under a name made of all that goes
// in, and only built where it is not there.
package main

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"david/images/internal/debian"
	"david/images/internal/oci"
	"david/images/internal/root"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "testservers: %v\n", err)
		os.Exit(1)
	}
}

// run builds the images named, or all, and prints a line for each: its name, and the path of its OCI archive.
func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("testservers", flag.ContinueOnError)
	flags.SetOutput(log)
	links := flags.String("links", "", "folder to make links in, such as mariadb-image.tar; none if empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	cache, err := debian.Cache()
	if err != nil {
		return err
	}
	for _, r := range chosen {
		path, err := r.archive(ctx, cache, log)
		if err != nil {
			return fmt.Errorf("cannot build %s: %w", r.image(), err)
		}
		if *links != "" {
			if err := link(path, filepath.Join(*links, r.name+"-image.tar")); err != nil {
				return err
			}
		}
		fmt.Fprintf(out, "%s %s\n", r.image(), path)
	}
	return nil
}

func choose(names []string) ([]recipe, error) {
	if len(names) == 0 {
		return recipes(), nil
	}
	var chosen []recipe
	for _, name := range names {
		i := slices.IndexFunc(recipes(), func(r recipe) bool { return r.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no image %q; there are mariadb, mysql, haproxy and pause", name)
		}
		chosen = append(chosen, recipes()[i])
	}
	return chosen, nil
}

// link replaces what is at path by a link to target.
func link(target, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(target, path)
}

// recipe tells how an image is made.
type recipe struct {
	name     string
	release  string   // of Debian, "" for an image without packages
	packages []string // that it is made of
	program  string   // of this module, which it starts; "": path is of the packages
	path     string   // of what it starts, in the image
	server   string   // of the packages, with data; "" for none
}

// The images. MariaDB is the one that david is tested on outside a cluster; no stable Debian has a MySQL, so
// it comes from the unstable one with all its libraries.
func recipes() []recipe {
	return []recipe{
		{name: "mariadb", release: "bookworm", packages: []string{"base-files", "busybox-static", "mariadb-server-core", "mariadb-client-core", "mariadb-client"},
			program: "entrypoint", path: "usr/local/bin/entrypoint", server: "mariadbd"},
		{name: "mysql", release: "sid", packages: []string{"base-files", "busybox-static", "mysql-server-core", "mysql-client-core"},
			program: "entrypoint", path: "usr/local/bin/entrypoint", server: "mysqld"},
		{name: "haproxy", release: "bookworm", packages: []string{"base-files", "haproxy"}, path: "usr/sbin/haproxy"},
		{name: "pause", program: "pause", path: "pause"},
	}
}

func (r recipe) image() string { return "localhost/" + r.name + ":e2e" }

// archive is the path of the image's archive, which is built unless it is there.
func (r recipe) archive(ctx context.Context, cache string, log io.Writer) (string, error) {
	program, err := compile(ctx, cache, r.program)
	if err != nil {
		return "", err
	}
	var packages debian.Packages
	if r.release != "" {
		from := debian.Release{Name: r.release, Dir: cache, Log: log}
		if packages, err = from.Fetch(ctx, r.packages, unneeded); err != nil {
			return "", err
		}
	}
	key, err := r.key(packages, program)
	if err != nil {
		return "", err
	}
	path := filepath.Join(cache, r.name+"-"+key+".tar")
	if err := os.Chtimes(path, time.Time{}, time.Now()); err == nil {
		return path, nil
	}
	fmt.Fprintf(log, "building %s\n", r.image())
	image, err := r.build(ctx, packages, program)
	if err != nil {
		return "", err
	}
	if err := oci.Write(path, r.image(), image); err != nil {
		return "", err
	}
	return path, removeOthers(cache, r.name, path)
}

// key returns a hash that changes with what the image is made from: its packages, the program in it, and this
// program, which builds it.
func (r recipe) key(packages debian.Packages, program []byte) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	how, err := os.ReadFile(self)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	for _, part := range [][]byte{[]byte(packages.String()), program, how} {
		fmt.Fprintf(h, "%d\n", len(part))
		h.Write(part)
	}
	return hex.EncodeToString(h.Sum(nil))[:16], nil
}

// removeOthers removes builds of an image that nobody asked for in a day: they are large. Younger ones may be
// in use.
func removeOthers(cache, name, keep string) error {
	all, err := filepath.Glob(filepath.Join(cache, name+"-*.tar"))
	if err != nil {
		return err
	}
	for _, path := range all {
		info, statErr := os.Stat(path)
		if path == keep || statErr != nil || time.Since(info.ModTime()) < 24*time.Hour {
			continue
		}
		err = errors.Join(err, os.Remove(path))
	}
	return err
}

// compile builds one of this module's programs, static; Go's own cache makes a second time short. "" is none.
func compile(ctx context.Context, cache, program string) ([]byte, error) {
	if program == "" {
		return nil, nil
	}
	dir, err := os.MkdirTemp(cache, ".compile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, program)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", path, "david/images/"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("cannot compile david/images/%s (run this in the folder images): %w\n%s", program, err, out)
	}
	return os.ReadFile(path)
}

func (r recipe) build(ctx context.Context, packages debian.Packages, program []byte) (v1.Image, error) {
	files := root.Empty()
	config := v1.Config{Entrypoint: []string{"/" + r.path}, User: "65535:65535"}
	if r.release != "" {
		var err error
		if files, err = packages.Root(ctx, pruned); err != nil {
			return nil, err
		}
		config.Env = []string{searched}
	}
	if r.server != "" {
		if err := serve(files, r.server); err != nil {
			return nil, err
		}
		config = serverConfig(r)
	}
	if r.program != "" {
		files.File(r.path, 0o755, program)
	} else if err := files.CheckPrograms(r.path); err != nil {
		return nil, err
	}
	config.Labels = map[string]string{
		"org.opencontainers.image.title":       r.name,
		"org.opencontainers.image.description": "for david's own tests only",
	}
	return oci.Image(config, gzip.BestSpeed, oci.Layer{What: r.image(), Files: files})
}
