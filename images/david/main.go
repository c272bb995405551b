// Command david (of images) builds the image of david: what `david bench --pod` runs in a cluster. It needs
// no Docker and no root, only Debian's apt.
package main

import (
	"compress/gzip"
	"context"
	"debug/elf"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"david/images/internal/debian"
	"david/images/internal/oci"
	"david/images/internal/root"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "image: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, log io.Writer) error {
	flags := flag.NewFlagSet("image", flag.ContinueOnError)
	flags.SetOutput(log)
	binary := flags.String("david", "../bin/david", "the static david to put in")
	version := flags.String("version", "unknown", "of that david, for the image's label")
	name := flags.String("name", "localhost/david:dev", "of the image")
	archive := flags.String("out", "../bin/david-image.tar", "the OCI archive to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || !strings.Contains(*name, ":") {
		return fmt.Errorf("want flags only, and --name NAME:TAG; got %q", args)
	}
	cache, err := debian.Cache()
	if err != nil {
		return err
	}
	image, err := build(ctx, debian.Release{Name: release, Dir: cache, Log: log}, *binary, *version)
	if err != nil {
		return err
	}
	if err := oci.Write(*archive, *name, image); err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s %s %s\n", *name, *archive, digest)
	return err
}

// release names the Debian that david is tested on, so that the same client programs measure on a machine and
// in a cluster.
const release = "bookworm"

// user runs the image: nobody that any system has, and a number, so that Kubernetes can tell that it is not
// root.
const user = 65532

// programs lists what david runs; their packages have the same names.
func programs() []string { return []string{"sysbench", "fio", "iperf3", "sockperf"} }

// unneeded tells of packages that others depend on for their set-up, for scripts that are left out, or for
// features whose libraries are not linked; the build fails where a program comes to need one.
func unneeded(name string) bool {
	for _, prefix := range []string{"adduser", "debconf", "dmsetup", "dpkg", "init-system-helpers", "libaudit", "libcap-ng", "libdb5.3", "libexpat", "libfile-", "libgdbm", "libncursesw",
		"libnsl", "libnumber-", "libpam", "libperl", "libpython", "libreadline", "libsasl2-modules-db", "libsemanage", "libsepol", "libsqlite", "libtext-",
		"mawk", "media-types", "passwd", "perl", "python", "readline-common", "tar", "usrmerge"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// pruned tells of files of the packages taken that david does not use.
func pruned(name string) bool {
	if strings.HasPrefix(name, "etc/mysql/") {
		return true // settings for clients on this machine
	}
	scripts := []string{"usr/bin/fio-", "usr/bin/fio2gnuplot", "usr/bin/fio_", "usr/bin/genfio", "usr/share/fio", "usr/lib/python3", "usr/share/python3"}
	for _, prefix := range scripts {
		if strings.HasPrefix(name, prefix) {
			return true // evaluate and draw what fio wrote
		}
	}
	return slices.Contains(unlinked(), strings.SplitN(path.Base(name), ".", 2)[0])
}

// unlinked are libraries that come with linked ones in a package and that nothing here is linked with; the
// build fails where a program comes to need one. ICU's alone are 4 MB.
func unlinked() []string {
	return []string{"libicui18n", "libicuio", "libicutest", "libicutu", "libmvec"}
}

// build makes the image: a layer of Debian's packages, and one of david, which alone changes from build to
// build.
func build(ctx context.Context, from debian.Release, binary, version string) (v1.Image, error) {
	david, err := own(binary)
	if err != nil {
		return nil, err
	}
	packages, err := from.Fetch(ctx, append([]string{"base-files"}, programs()...), unneeded)
	if err != nil {
		return nil, err
	}
	base, err := packages.Root(ctx, pruned)
	if err != nil {
		return nil, err
	}
	accounts(base)
	for _, p := range programs() {
		if err := base.CheckPrograms("usr/bin/" + p); err != nil {
			return nil, err
		}
	}
	return oci.Image(config(version), gzip.DefaultCompression,
		oci.Layer{What: "Debian " + from.Name + ": " + strings.Join(programs(), ", "), Files: base},
		oci.Layer{What: "david " + version, Files: david})
}

// accounts makes the image's users, and the folders they write to.
func accounts(r *root.Root) {
	r.File("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/root:/sbin/nologin\ndavid:x:%[1]d:%[1]d:david:/home/david:/sbin/nologin\n", user))
	r.File("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\ndavid:x:%d:\n", user))
	r.File("etc/nsswitch.conf", 0o644, []byte("passwd: files\ngroup: files\nhosts: files dns\n"))
	r.Dir("home/david", 0o700, user)
}

// own is the layer of david itself. A david that needs libraries would find none of its own in the image.
func own(binary string) (*root.Root, error) {
	text, err := os.ReadFile(binary)
	if err != nil {
		return nil, fmt.Errorf("cannot read david: %w; build it with `make build`", err)
	}
	f, err := elf.Open(binary)
	if err != nil {
		return nil, fmt.Errorf("cannot take %s as david: %w", binary, err)
	}
	defer f.Close()
	if f.Section(".interp") != nil {
		return nil, fmt.Errorf("%s is not static; build it with `make build`, without CGO_ENABLED=1", binary)
	}
	r := root.Empty()
	r.File("usr/bin/david", 0o755, text)
	return r, nil
}

func config(version string) v1.Config {
	return v1.Config{
		User:       fmt.Sprintf("%d:%d", user, user),
		Entrypoint: []string{"/usr/bin/david"},
		Env:        []string{"PATH=/usr/sbin:/usr/bin", "HOME=/home/david"},
		WorkingDir: "/home/david",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "david",
			"org.opencontainers.image.description": "david and the load generators it runs: sysbench, fio, iperf3, sockperf",
			"org.opencontainers.image.version":     version,
		},
	}
}
