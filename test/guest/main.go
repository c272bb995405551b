// Command guest runs a command in an emulated machine whose kernel has what this one's may lack: ZFS, md, LVM. It is
// for `make zfs`: what is built there and taken down is real, what fio gets out of capped volumes too; how fast a
// database is there means nothing, as every instruction is emulated.
//
//	guest build              make the guest: Debian's kernel and tools, ZFS compiled for it; kept in the cache folder
//	guest run COMMAND ...    start it, run the command in it, shut it down; the exit code is the command's
//
// The command sees this folder, to read, and a disk of its own for the rest; there is no network. Nothing is left: the
// emulator ends with this program, and its disks have no names; but for the empty cgroup of --share, where this program is killed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	if first() {
		inside()
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// options are the flags.
type options struct {
	cache   string
	memory  string // as the emulator takes it
	cpus    int
	share   float64 // CPUs of this machine that all of it gets; 0: what is there
	disk    int64   // bytes of the disk for what the command writes
	patient time.Duration
	log     string
}

// run executes one command line and returns its exit code.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	say := func(format string, args ...any) { fmt.Fprintf(errOut, "guest: "+format+"\n", args...) }
	what := "help"
	if len(args) > 0 {
		what, args = args[0], args[1:]
	}
	o := options{disk: 40 << 30}
	fs := flag.NewFlagSet("guest "+what, flag.ContinueOnError)
	fs.SetOutput(errOut)
	fs.StringVar(&o.cache, "cache", "", "the folder that keeps the guest (default: david/guest in the user's cache folder)")
	fs.StringVar(&o.memory, "memory", "3G", "the guest's memory")
	fs.Float64Var(&o.share, "share", 0, "how many of this machine's CPUs the guest gets, as 0.35, which takes root; 0: all")
	fs.IntVar(&o.cpus, "cpus", 2, "the guest's CPUs")
	fs.DurationVar(&o.patient, "timeout", 2*time.Hour, "how long it may run")
	fs.StringVar(&o.log, "log", "", "the file for what the guest's kernel says")
	if err := fs.Parse(args); err != nil {
		return 2
	}
	code, err := do(ctx, what, o, fs.Args(), out, errOut, say)
	if err != nil {
		say("%v", err)
		return max(1, code)
	}
	return code
}

func do(ctx context.Context, what string, o options, args []string, out, errOut io.Writer, say func(string, ...any)) (int, error) {
	if o.cache == "" {
		cache, err := cacheFolder()
		if err != nil {
			return 1, err
		}
		o.cache = cache
	}
	switch {
	case what == "build" && len(args) == 0:
		image, err := built(ctx, o.cache, say)
		if err == nil {
			fmt.Fprintln(out, image)
		}
		return 0, err
	case what == "run" && len(args) > 0:
		image, err := built(ctx, o.cache, say)
		if err != nil {
			return 1, err
		}
		ctx, cancel := context.WithTimeoutCause(ctx, o.patient, fmt.Errorf("the guest did not end within %s", o.patient))
		defer cancel()
		return boot(ctx, image, o, args, out, errOut)
	}
	return 2, errors.New("want: guest build, or guest run COMMAND and its arguments")
}

// cacheFolder keeps the guest where no other is named.
func cacheFolder() (string, error) {
	cache, err := os.UserCacheDir()
	return filepath.Join(cache, "david", "guest"), err
}
