package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

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
}

func (a *app) crashCommand() *cobra.Command {
	var f crashFlags
	cmd := &cobra.Command{
		Use:   "crash-test",
		Short: "Prove that a configuration keeps what it acknowledged: kill -9 of a throwaway server under load, again and again",
		Long: "Prove that a configuration keeps what it acknowledged. A ledger is written on a throwaway server, the server is killed at random\n" +
			"moments and started again, and every transaction it had acknowledged must be there, whole and once. A kill takes the process, not\n" +
			"what it had handed to the kernel: what only a power failure loses, it cannot show.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.crashTest(cmd.Context(), f) },
	}
	fs := cmd.Flags()
	f.capFlags.add(fs, capMemory)
	fs.StringVar(&f.server, "server", "auto", "auto, mysql, mariadb, or the PATH of a server binary")
	fs.StringVar(&f.cnf, "cnf", "", "a my.cnf for the sandbox")
	fs.StringArrayVar(&f.sets, "set", nil, "VAR=VALUE for the sandbox, after --cnf; repeatable")
	fs.IntVar(&f.kills, "kills", 50, "how often the server is killed")
	fs.IntVar(&f.threads, "threads", 8, "connections that write")
	fs.DurationVar(&f.recovery, "recovery", time.Minute, "how long a recovery may take, from the start of the server until it answers")
	fs.StringArrayVar(&f.unlock, "unlock", nil, "NAME of a variable of the durability lock that may be unsafe in this run; what can be lost is printed; repeatable")
	fs.Uint64Var(&f.seed, "seed", 0, "of the moments of the kills and of what is written (0: drawn, and recorded)")
	fs.BoolVar(&f.noVolume, "no-volume", false, "keep the data on the filesystem of david's folder, without a loop device, also where copies are slow")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// The most a crash test takes: more connections need another max_connections, and after every kill all that was written since the
// first is read and held in memory.
const (
	mostWriters = 100
	mostKills   = 500
)

func (f *crashFlags) check() error {
	switch {
	case f.kills < 1 || f.kills > mostKills:
		return usage("--kills %d: give 1 to %d", f.kills, mostKills)
	case f.threads < 1 || f.threads > mostWriters:
		return usage("--threads %d: give 1 to %d", f.threads, mostWriters)
	case f.recovery < time.Millisecond || f.recovery > time.Hour:
		return usage("--recovery %s: give 1ms to 1h, as in 60s", f.recovery)
	}
	return nil
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
	store, err := a.run(ctx, lab.CrashTest{Server: f.server, Cnf: f.cnf, Sets: f.sets, Caps: caps, Unlock: f.unlock, Kills: f.kills, Threads: f.threads,
		Recovery: f.recovery, Seed: f.seed, NoVolume: f.noVolume})
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
	if asJSON {
		err = a.printJSON(c)
	} else {
		err = report.Crash(a.out, *c)
	}
	if err == nil && !c.Proved {
		err = codedError{exitInvalid, errors.New("not proved: " + report.CrashLine(*c))}
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
