// Package zfs asks ZFS by its own program.
//
//	Tool: Properties, Below -> Snapshot -> Clone -> Mount -> Destroy
package zfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var (
	// ErrMissing says that ZFS's program is not installed.
	ErrMissing = errors.New("there is no program zfs; apt-get install zfsutils-linux")
	// ErrNone says that there is no dataset, or snapshot, of a name.
	ErrNone = errors.New("it is not there")

	errLate = errors.New("it took too long: does its pool take writes (zpool status)?")
)

// patience bounds each command. A snapshot waits until the pool has written what it holds in memory.
const patience = 5 * time.Minute

// Tool runs the program.
type Tool struct {
	// Hold is kept open by each command as long as it runs, also where david dies before it: the lock of a record, which
	// nobody takes then before what was asked for is done.
	Hold *os.File
}

// Property is what a dataset has of one.
type Property struct {
	Value  string
	Source string // "local" where it was set on the dataset itself, else "default", "inherited from NAME", "received", "-"
}

// names matches those of datasets and snapshots: no option, no range or list of snapshots.
var names = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.: -]*(/[A-Za-z0-9_.:][A-Za-z0-9_.: -]*)*(@[A-Za-z0-9_.:][A-Za-z0-9_.: -]*)?$`)

// longest is what ZFS takes for a name, in bytes.
const longest = 255

// Check refuses what is no name of a dataset.
func Check(dataset string) error {
	if !names.MatchString(dataset) || strings.Contains(dataset, "@") || len(dataset) > longest {
		return fmt.Errorf("%.80q is no name of a ZFS dataset", dataset)
	}
	return nil
}

// Pool is the one that a dataset lies in.
func Pool(dataset string) string {
	pool, _, _ := strings.Cut(dataset, "/")
	return pool
}

// Find says whether the program is not there.
func Find() error {
	if _, err := exec.LookPath("zfs"); err != nil {
		return ErrMissing
	}
	return nil
}

// Properties asks what a dataset or a snapshot has of some; ErrNone where it is not there.
func (t Tool) Properties(ctx context.Context, name string, wanted ...string) (map[string]Property, error) {
	out, err := t.run(ctx, "get", "-H", "-p", "-o", "property,value,source", strings.Join(wanted, ","), name)
	if err != nil {
		return nil, err
	}
	return properties(out, wanted)
}

// properties reads what zfs get -H -p -o property,value,source prints. What a user has set may hold tabs and lines.
func properties(out string, wanted []string) (map[string]Property, error) {
	found := map[string]Property{}
	for line := range strings.Lines(out) {
		property, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		end := strings.LastIndex(rest, "\t")
		if _, twice := found[property]; end < 0 || twice || !slices.Contains(wanted, property) {
			return nil, fmt.Errorf("cannot understand what zfs get says of %.80q", property)
		}
		found[property] = Property{Value: rest[:end], Source: rest[end+1:]}
	}
	if len(found) != len(wanted) {
		return nil, fmt.Errorf("zfs get says %d of %d properties", len(found), len(wanted))
	}
	return found, nil
}

// Below names what lies below a dataset: its snapshots, the datasets in it, and theirs.
func (t Tool) Below(ctx context.Context, dataset string) ([]string, error) {
	out, err := t.run(ctx, "list", "-H", "-r", "-t", "filesystem,volume,snapshot", "-o", "name", dataset)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(strings.Split(strings.TrimSuffix(out, "\n"), "\n"), func(name string) bool { return name == "" || name == dataset }), nil
}

// Snapshot makes a snapshot (DATASET@NAME) that has some properties of a user's from its first moment on.
func (t Tool) Snapshot(ctx context.Context, snapshot string, set map[string]string) error {
	_, err := t.run(ctx, append(append([]string{"snapshot"}, options(set)...), snapshot)...)
	return err
}

// Clone makes a dataset of a snapshot, with some properties. The others are its parent's, and not the snapshot's.
func (t Tool) Clone(ctx context.Context, snapshot, dataset string, set map[string]string) error {
	_, err := t.run(ctx, append(append([]string{"clone"}, options(set)...), snapshot, dataset)...)
	return err
}

// Mount mounts a dataset on its mountpoint.
func (t Tool) Mount(ctx context.Context, dataset string) error {
	_, err := t.run(ctx, "mount", dataset)
	return err
}

// Destroy destroys a dataset, or a snapshot, on which nothing depends. One that is not there is as good.
func (t Tool) Destroy(ctx context.Context, name string) error {
	_, err := t.run(ctx, "destroy", name)
	if errors.Is(err, ErrNone) {
		return nil
	}
	return err
}

// options are properties as snapshot and clone take them, in their order.
func options(set map[string]string) (argv []string) {
	for _, name := range slices.Sorted(maps.Keys(set)) {
		argv = append(argv, "-o", name+"="+set[name])
	}
	return argv
}

// run runs the program until it ends, and returns what it printed. The last argument is a name.
func (t Tool) run(ctx context.Context, args ...string) (string, error) {
	if err := Find(); err != nil {
		return "", err
	}
	if name := args[len(args)-1]; !names.MatchString(name) || len(name) > longest {
		return "", fmt.Errorf("%.80q is no name of a ZFS dataset", name)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, patience, errLate)
	defer cancel()
	var out, said bytes.Buffer
	cmd := exec.CommandContext(ctx, "zfs", args...)
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &said, "/"
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Ctrl-C ends it by way of david
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	if t.Hold != nil {
		cmd.ExtraFiles = []*os.File{t.Hold}
	}
	err := cmd.Run()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err != nil {
		return "", fmt.Errorf("zfs %s %s: %w", args[0], args[len(args)-1], because(err, said.String()))
	}
	return out.String(), nil
}

// because is an error with what the program complained of. It tells what is not there by its words alone.
func because(err error, said string) error {
	said = strings.Join(strings.Fields(said), " ")
	switch {
	case said == "":
		return err
	case strings.HasSuffix(said, "does not exist"), strings.Contains(said, "could not find any snapshots to destroy"), strings.HasSuffix(said, "no such pool"):
		return fmt.Errorf("%w: %s", ErrNone, said)
	}
	return fmt.Errorf("%w: %s", err, said)
}
