package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"david/internal/account"
	"david/internal/mycnf"
)

// The oldest versions david works with.
var (
	oldestMySQL   = []int{8, 0}
	oldestMariaDB = []int{10, 11}
)

// versionTimeout bounds `--version`, which takes milliseconds; a binary on a cold network filesystem needs a
// few seconds.
const versionTimeout = 15 * time.Second

// HowToGet says what a user without a server can do; it ends the errors about a missing one.
const HowToGet = "get one with `david server install mysql` or `apt-get install mariadb-server-core`, or name one with --server PATH"

// Obtainable says which servers can be had here; it ends the errors about one that is missing.
const Obtainable = "`david server install mysql` and `david server install mariadb` get the newest of each that the distribution's archive has, --server PATH names any other"

// versionLine matches what a server's --version prints: the program (bare or with its path), Ver, the
// version, with Debian's MariaDB from 11.8 on where it is from, the platform, and who built it. Clients
// print the same, so the program's name counts too.
var versionLine = regexp.MustCompile(`(?m)^(.*?)\s+Ver (\d+\.\d+\.\d+\S*)(?: from \S+)? for \S+ on \S+(.*)$`)

// parseVersion reads the output of `--version`; ok is false where it is not a server's.
func parseVersion(output string) (flavour mycnf.Flavour, version string, ok bool) {
	m := versionLine.FindStringSubmatch(output)
	if m == nil {
		return "", "", false
	}
	program := filepath.Base(m[1])
	switch {
	case strings.Contains(m[2], "MariaDB"):
		flavour = mycnf.MariaDB
	case strings.Contains(m[3], "Percona"):
		flavour = mycnf.Percona
	default:
		flavour = mycnf.MySQL
	}
	return flavour, m[2], strings.Contains(program, "mysqld") || strings.Contains(program, "mariadbd")
}

// identify runs the file at path with --version and says what server it is, with its sum.
func identify(ctx context.Context, path string) (Binary, error) { return summed(recognise(ctx, path)) }

// summed adds the sum of a binary that was recognised.
func summed(b Binary, err error) (Binary, error) {
	if err != nil {
		return Binary{}, err
	}
	if b.SHA256, err = hashFile(b.Path); err != nil {
		return Binary{}, fmt.Errorf("cannot read the server %s: %w", b.Path, err)
	}
	return b, nil
}

// recognise is identify without the sum.
func recognise(ctx context.Context, path string) (Binary, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return Binary{}, fmt.Errorf("cannot use %s as a server: %w", path, errors.Unwrap(err))
	}
	b := Binary{Path: real, Launch: []string{real}}
	if err := b.locate(); err != nil {
		return Binary{}, err
	}
	output, err := b.runVersion(ctx)
	if err != nil {
		return Binary{}, err
	}
	var ok bool
	if b.Flavour, b.Version, ok = parseVersion(output); !ok {
		return Binary{}, fmt.Errorf("cannot use %s as a server: it is no mysqld or mariadbd (--version printed %q); %s", path, firstLine(output), HowToGet)
	}
	return b, nil
}

// locate fills in what follows from where the binary lies: in a tree of its own with loader and libraries, in
// an unpacked archive that needs --basedir, or in the system.
func (b *Binary) locate() error {
	prefix := filepath.Dir(filepath.Dir(b.Path))
	if root := filepath.Dir(prefix); filepath.Base(prefix) == "usr" && root != "/" {
		return b.useTree(root)
	}
	if prefix != "/" && prefix != "/usr" {
		b.Basedir = prefix
	}
	return nil
}

// useTree makes the binary run with the loader and the libraries below root, as the system's may be too old
// for it. Both Debian's merged /usr and the older layout with /lib beside it are understood, and Red Hat's
// lib64.
func (b *Binary) useTree(root string) error {
	b.Basedir = filepath.Join(root, "usr")
	for _, lib := range []string{"usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib64", "lib64"} {
		loaders, err := filepath.Glob(filepath.Join(globQuote(root), lib, "ld-linux-*.so.*"))
		if err != nil {
			return fmt.Errorf("cannot look for the loader of %s: %w", b.Path, err)
		}
		if len(loaders) == 0 {
			continue
		}
		if strings.ContainsAny(root, ":;$") {
			return fmt.Errorf("cannot run %s: its path holds one of \":;$\", which a library path cannot; move it to another folder", b.Path)
		}
		libraries := filepath.Join(root, "usr/lib64") + ":" + filepath.Join(root, "lib64")
		if triplet := filepath.Base(filepath.Dir(loaders[0])); triplet != "lib64" {
			libraries = filepath.Join(root, "usr/lib", triplet) + ":" + filepath.Join(root, "lib", triplet)
		}
		b.Root = root
		b.Launch = []string{loaders[0], "--library-path", libraries, b.Path}
		return nil
	}
	return nil
}

// globQuote takes the meaning from the characters that filepath.Glob treats specially.
func globQuote(path string) string {
	return regexp.MustCompile(`[*?\[\\]`).ReplaceAllString(path, `\$0`)
}

func (b Binary) runVersion(ctx context.Context) (string, error) {
	// The wrappers start servers whatever they are asked.
	if base := filepath.Base(b.Path); strings.HasSuffix(base, "safe") || strings.HasSuffix(base, "multi") {
		return "", fmt.Errorf("cannot use %s as a server: it is a script that starts one; name mysqld or mariadbd itself", b.Path)
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	output, err := account.Look(ctx, b.folder(), append(slices.Clone(b.Launch), "--no-defaults", "--version"), (*exec.Cmd).CombinedOutput)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("cannot run %s --version: %w%s; %s", b.Path, err, quoted(firstLine(output)), HowToGet)
	}
	return output, nil
}

// Supported returns an error where david does not work with the binary's version.
func (b Binary) Supported() error {
	oldest := oldestMySQL
	if b.Flavour == mycnf.MariaDB {
		oldest = oldestMariaDB
	}
	if slices.Compare(versionNumbers(b.Version), oldest) < 0 {
		return fmt.Errorf("cannot use %s: version %s is too old; david needs MySQL or Percona Server 8.0, or MariaDB 10.11, or newer: %s", b.Path, b.Version, HowToGet)
	}
	return nil
}

var digits = regexp.MustCompile(`\d+`)

// versionNumbers are the numbers of a version in their order, so that 8.10 follows 8.4 and 10.11 precedes
// 11.4.
func versionNumbers(version string) []int {
	var numbers []int
	for _, d := range digits.FindAllString(version, -1) {
		n, err := strconv.Atoi(d)
		if err != nil {
			break // more digits than an int holds: no version, nothing to compare
		}
		numbers = append(numbers, n)
	}
	return numbers
}

func isExecutable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf(" (%s)", s)
}
