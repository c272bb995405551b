// Command ceph runs a real Ceph on this machine for david's tests and for `make ceph`: a monitor, a manager and
// three OSDs, each on a file, as plain processes of Debian's packages on loopback. It has its own folder, name,
// keys and ports, touches no other Ceph, and leaves nothing behind.
//
//	ceph up                  start one; prints the path of its configuration
//	ceph run COMMAND ...     start one, run the command with DAVID_CEPH naming its configuration, take it down
//	ceph down                end whatever runs, and remove whatever is left
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"david/internal/process"
	"david/test/daemon"
)

// variable names the configuration of the cluster that is up, in the environment of the command.
const variable = "DAVID_CEPH"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	say := func(format string, args ...any) { fmt.Fprintf(errOut, "ceph: "+format+"\n", args...) }
	what := "help"
	if len(args) > 0 {
		what, args = args[0], args[1:]
	}
	o := options{}
	fs := flag.NewFlagSet("ceph "+what, flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.StringVar(&o.dir, "dir", defaultDir(), "the cluster's own folder")
	fs.IntVar(&o.osds, "osds", 3, "how many OSDs")
	gib := fs.Float64("gib", 4, "GiB of each OSD's file, which takes them as it fills")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	o.bytes = int64(*gib * (1 << 30))
	err := do(ctx, what, o, fs.Args(), out, say)
	if err == nil {
		return 0
	}
	say("%v", err)
	var failed commandError
	if errors.As(err, &failed) {
		return max(1, failed.ExitCode())
	}
	return 1
}

// commandError is of the command that was run, not of this program.
type commandError struct{ *exec.ExitError }

func do(ctx context.Context, what string, o options, args []string, out io.Writer, say func(string, ...any)) error {
	switch {
	case what == "up" && len(args) == 0:
		s, err := up(ctx, o, say)
		if err == nil {
			fmt.Fprintln(out, s.conf())
		}
		return err
	case what == "run" && len(args) > 0:
		return within(ctx, o, args, say)
	case what == "down" && len(args) == 0:
		return down(o.dir, say)
	}
	return errors.New("want: ceph up, ceph run COMMAND ..., or ceph down")
}

// within runs a command while a cluster is up.
func within(ctx context.Context, o options, args []string, say func(string, ...any)) (err error) {
	o.owned = true
	s, err := up(ctx, o, say)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down(o.dir, say)) }()
	cmd := exec.Command(args[0], args[1:]...) // it gets a terminal's Ctrl-C itself, and ends in good order
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), variable+"="+s.conf())
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) })
	defer stop()
	err = cmd.Wait()
	var ended *exec.ExitError
	if errors.As(err, &ended) {
		return commandError{ended}
	}
	return err
}

// defaultDir is on a disk, as the OSDs' files lie in it; root's is one that the daemons' user can get to.
func defaultDir() string {
	if os.Geteuid() == 0 {
		return "/var/lib/david-ceph"
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "david-ceph")
}

// down takes a cluster down with the folder locked.
func down(dir string, say func(string, ...any)) error {
	release, err := lock(dir)
	if err != nil {
		return err
	}
	defer release()
	if _, err := loadState(dir); errors.Is(err, os.ErrNotExist) {
		say("no cluster is in %s", dir)
		return nil
	}
	if err := takeDown(dir); err != nil {
		return err
	}
	say("down, nothing is left")
	return nil
}

// takeDown needs the lock. The folder, which knows what there was, goes at last.
func takeDown(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "state.json")); err != nil {
		return fmt.Errorf("%s holds no cluster: %w", dir, err)
	}
	entries, err := os.ReadDir(dir)
	if err := errors.Join(err, daemon.Kill(func() []process.ID { return ours(dir) }, 30*time.Second)); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "state.json" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(err, os.RemoveAll(dir))
}
