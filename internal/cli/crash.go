package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/lab"
	"david/internal/report"
	"david/internal/result"
)

// crashFlags are those of david crash-test.
type crashFlags struct {
	capFlags
	server, cnf    string
	sets, unlock   []string
	kills, threads int
	recovery       time.Duration
	seed           uint64
	json, noVolume bool
	power          bool
	cut            cutFlags
}

// cutFlags are those of cuts of the power.
type cutFlags struct {
	cuts       int
	filesystem string
	load       time.Duration
	cache      string
	schema     bool
	every      bool
}

// cutNames are the flags that say how the power is cut.
func cutNames() []string {
	return []string{"cuts", "filesystem", "load", "schema-changes", "disk-cache", "every-flush"}
}

func (a *app) crashCommand() *cobra.Command {
	var f crashFlags
	cmd := &cobra.Command{
		Use:   "crash-test",
		Short: "Prove that a configuration keeps what it acknowledged: kill -9 of a throwaway server under load, or cuts of its disk's power",
		Long: "Prove that a configuration keeps what it acknowledged. A ledger is written on a throwaway server, the server is killed at random\n" +
			"moments and started again, and every transaction it had acknowledged must be there, whole and once. A kill takes the process, not\n" +
			"what it had handed to the kernel: what only a power failure loses, --power shows. The server's disk is then one of david's own, which\n" +
			"is cut off, at flushes and at random, with what was not flushed lost or torn (root, /dev/fuse and loop devices are needed).",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.apart(cmd); err != nil {
				return err
			}
			return a.crashTest(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, a version as mysql:9.7, or the PATH of a server binary")
	fs.StringVar(&f.cnf, "cnf", "", "a my.cnf for the sandbox")
	fs.StringArrayVar(&f.sets, "set", nil, "VAR=VALUE for the sandbox, after --cnf; repeatable")
	fs.IntVar(&f.kills, "kills", 50, "how often the server is killed")
	fs.IntVar(&f.threads, "threads", 8, "connections that write")
	fs.DurationVar(&f.recovery, "recovery", time.Minute,
		"how long a recovery may take until the server answers; a late one is told, and given up after twice that time, 2m at least")
	fs.StringArrayVar(&f.unlock, "unlock", nil, "NAME of a variable of the durability lock that may be unsafe in this run; what can be lost is printed; repeatable")
	fs.Uint64Var(&f.seed, "seed", 0, "of the moments of the kills and of what is written (0: drawn, and recorded)")
	fs.BoolVar(&f.noVolume, "no-volume", false, "keep the data on the filesystem of david's folder, without a loop device, also where copies are slow")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	a.addVerbose(fs)
	fs.BoolVar(&f.power, "power", false, "cut the power of the server's disk instead of killing the server")
	f.cut.add(fs)
	return cmd
}

func (f *cutFlags) add(fs *pflag.FlagSet) {
	fs.IntVar(&f.cuts, "cuts", 100, "with --power: how often it is cut")
	fs.BoolVar(&f.every, "every-flush", false, "with --power: cut the power before each flush of the load, and nowhere else; --cuts N takes the last N flushes")
	fs.StringVar(&f.filesystem, "filesystem", "xfs", "with --power: of the disk: "+strings.Join(lab.Filesystems(), ", "))
	fs.DurationVar(&f.load, "load", 10*time.Second, "with --power: how long the server is under load; the cuts fall into that time")
	fs.BoolVar(&f.schema, "schema-changes", true, "with --power: tables are made, altered, renamed, emptied and dropped meanwhile")
	fs.StringVar(&f.cache, "disk-cache", "volatile", "with --power: what the disk loses: volatile (what was not flushed), protected (what is on its way: it has no cache that "+
		"forgets), lying (flushed writes, too: it ignores flushes)")
}

// apart refuses flags of the one way beside those of the other.
func (f *crashFlags) apart(cmd *cobra.Command) error {
	if f.power {
		if cmd.Flags().Changed("kills") {
			return usage("--kills does not go with --power: give --cuts")
		}
		if f.cut.every && !cmd.Flags().Changed("cuts") {
			f.cut.cuts = mostCuts
		}
		return nil
	}
	for _, name := range cutNames() {
		if cmd.Flags().Changed(name) {
			return usage("--%s says how the power is cut: give --power as well", name)
		}
	}
	return nil
}

// The most a crash test takes: more connections need another max_connections, and after every kill all that was written since the
// first is read and held in memory.
const (
	mostWriters = 100
	mostKills   = 500
	mostCuts    = 10_000
	mostLoad    = 10 * time.Minute // what is recorded takes room, and is read again for every cut
)

func (f *crashFlags) check() error {
	switch {
	case f.kills < 1 || f.kills > mostKills:
		return usage("--kills %d: give 1 to %d", f.kills, mostKills)
	case f.threads < 1 || f.threads > mostWriters:
		return usage("--threads %d: give 1 to %d", f.threads, mostWriters)
	case f.recovery < time.Millisecond || f.recovery > time.Hour:
		return usage("--recovery %s: give 1ms to 1h, as in 60s", f.recovery)
	case f.cut.cuts < 1 || f.cut.cuts > mostCuts:
		return usage("--cuts %d: give 1 to %d", f.cut.cuts, mostCuts)
	case f.cut.load < time.Second || f.cut.load > mostLoad:
		return usage("--load %s: give 1s to %s", f.cut.load, mostLoad)
	case !slices.Contains(lab.Filesystems(), f.cut.filesystem):
		return usage("--filesystem %s: give one of %s", f.cut.filesystem, strings.Join(lab.Filesystems(), ", "))
	case !slices.Contains(lab.DiskCaches(), f.cut.cache):
		return usage("--disk-cache %s: give one of %s", f.cut.cache, strings.Join(lab.DiskCaches(), ", "))
	}
	return nil
}

// powered is what was asked of cuts; nil for kills.
func (f *crashFlags) powered() *lab.Power {
	if !f.power {
		return nil
	}
	return &lab.Power{Filesystem: f.cut.filesystem, Load: f.cut.load, Schema: f.cut.schema, Cache: f.cut.cache, Every: f.cut.every}
}

// crashTest runs the test and prints what it found.
func (a *app) crashTest(ctx context.Context, f crashFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	caps, err := f.caps()
	if err != nil {
		return err
	}
	if f.power {
		f.kills = f.cut.cuts
	}
	store, err := a.run(ctx, lab.CrashTest{Server: f.server, Cnf: f.cnf, Sets: f.sets, Caps: caps, Unlock: f.unlock, Kills: f.kills, Threads: f.threads,
		Recovery: f.recovery, Seed: f.seed, NoVolume: f.noVolume, Power: f.powered()})
	if ctx.Err() != nil {
		return codedError{exitInterrupted, fmt.Errorf("interrupted: a crash test shows nothing before its end, run it again (%w)", errors.Join(ctx.Err(), err))}
	}
	if err != nil {
		return err
	}
	return a.printCrash(store, f.json)
}

// printCrash shows a crash test, and says by its error when nothing is proved.
func (a *app) printCrash(store *result.Store, asJSON bool) error {
	c, err := store.Crash()
	if err != nil {
		return err
	}
	switch {
	case asJSON:
		err = a.printJSON(c)
	case a.verbose:
		err = report.Crash(a.out, *c)
	default:
		err = report.CrashBrief(a.out, *c, store.Experiment().ID)
	}
	if err == nil && !c.Proved {
		err = codedError{exitInvalid, errors.New("not proved: " + c.Verdict)}
	}
	return err
}

// crashStore opens the experiment that arg names where it is a crash test; nil for any other.
func (a *app) crashStore(arg string) (*result.Store, error) {
	dir, err := result.Resolve(a.home, arg)
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	store, err := a.openRecord(dir)
	if err != nil {
		return nil, err
	}
	if store.Experiment().Kind != result.KindCrash {
		return nil, nil
	}
	return store, nil
}

// reportCrash shows a crash test that was run before, unless err says that it cannot be opened.
func (a *app) reportCrash(store *result.Store, format string, err error) error {
	if err != nil {
		return err
	}
	if format != "text" && format != "json" {
		return usage("%s is a crash test, which is shown as text or json: give --format text", store.Experiment().ID)
	}
	c, err := store.Crash()
	if err != nil {
		return err
	}
	if c == nil {
		return usage("%s did not come to its end, so it shows nothing: run the crash test again", store.Experiment().ID)
	}
	if format == "json" {
		return a.printJSON(c)
	}
	return report.Crash(a.out, *c)
}
