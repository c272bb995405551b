package cli

import (
	"slices"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"david/internal/advice"
	"david/internal/mycnf"
)

// liveFlags holds the options of david tune for a running server.
type liveFlags struct {
	serverFlags
	apply, persist, load bool
	watch                time.Duration
	freeDisk             string
	pod                  bool // the running server is a pod
}

func (f *liveFlags) add(fs *pflag.FlagSet) {
	f.serverFlags.add(fs, "tune a running server instead of a sandbox: user@tcp(host:3306)/ or user@unix(/path/socket)/; nothing is changed without --apply (docs/live.md)",
		"running server: an option file whose [client] group names it")
	fs.BoolVar(&f.apply, "apply", false, "running server: change its dynamic variables, step by step, and set back what makes its traffic worse")
	fs.BoolVar(&f.persist, "persist", false, "running server: SET PERSIST what was kept, so that it outlives a restart")
	fs.BoolVar(&f.load, "load", false, "running server: put david's own load on it while it is changed, in a schema that is dropped again: --workload, --threads, --tables, --table-size")
	fs.DurationVar(&f.watch, "watch", time.Minute, "running server: how long the traffic is watched before the first step and after each")
	fs.StringVar(&f.freeDisk, "free-disk", "", "running server: free disk under its data, as 100G (seen where the server is here)")
}

// asked tells whether a running server is meant.
func (f *liveFlags) asked() bool { return f.named() || f.pod }

// check refuses what does not go together.
func (f *liveFlags) check(fs *pflag.FlagSet) (err error) {
	planned := []string{"free-disk", deadlineFlag} // what a plan takes too
	ours := append([]string{"apply", "persist", "load", "watch"}, planned...)
	load := []string{"workload", "threads", "tables", "table-size", "rand-type", "rate", "warmup"}
	both := append([]string{"dsn", "defaults-file", "host", "port", "user", "socket", "password", "login-path", "quiet", "verbose", "no-color", "memory", "cpus", "iops", "max-p95", "json", "pod", "relay"}, podOnly()...)
	fs.Visit(func(flag *pflag.Flag) {
		mine := slices.Contains(ours, flag.Name)
		switch {
		case err != nil:
		case mine && !f.asked():
			err = usage("--%s is for a running server: name it with --dsn, --defaults-file or --pod", flag.Name)
		case f.asked() && slices.Contains(load, flag.Name):
			if !f.load {
				err = usage("--%s is for a sandbox, or for david's own load on a running server: give --load with it", flag.Name)
			}
		case f.asked() && !mine && !slices.Contains(both, flag.Name):
			err = usage("--%s is for a sandbox: a running server (--dsn) is tuned under its own traffic", flag.Name)
		case mine && !f.apply && !slices.Contains(planned, flag.Name):
			err = usage("--%s goes with --apply: without it nothing is changed", flag.Name)
		}
	})
	switch {
	case err != nil:
		return err
	case f.watch < time.Second:
		return usage("--watch %s: watch for a second at least", f.watch)
	}
	return nil
}

// told puts what the flags say of the hardware in the place of what was seen.
func (f tuneFlags) told(m *advice.Machine) (err error) {
	for _, s := range []struct {
		flag, text string
		into       *int64
	}{{"memory", f.memory, &m.Memory}, {"free-disk", f.live.freeDisk, &m.FreeDisk}} {
		if s.text == "" {
			continue
		}
		if *s.into, err = mycnf.ParseSize(s.text); err != nil || *s.into == 0 {
			return usage("--%s %s: give a size above 0, as 16G", s.flag, s.text)
		}
	}
	if f.cpus != "" {
		if m.CPUs, err = strconv.ParseFloat(f.cpus, 64); err != nil || !(m.CPUs > 0 && m.CPUs < 1e5) {
			return usage("--cpus %s: give a number above 0", f.cpus)
		}
	}
	if f.iops != "" {
		if m.WriteIOPS, err = strconv.ParseFloat(f.iops, 64); err != nil || !(m.WriteIOPS >= 1 && m.WriteIOPS < 1e9) {
			return usage("--iops %s: give the random writes/s the disk can do, as 5000", f.iops)
		}
	}
	return nil
}

// persistable refuses --persist where the server has no SET PERSIST.
func (f *liveFlags) persistable(known advice.Facts) error {
	switch {
	case !f.persist:
	case known.Flavour == mycnf.MariaDB || !known.Version.AtLeast(8, 0, 0):
		return usage("--persist: this server has no SET PERSIST: leave it out, and write what is kept into its my.cnf")
	case known.Variables["persisted_globals_load"] != "ON":
		return usage("--persist: persisted_globals_load is %s, so the server does not read at its start what SET PERSIST writes", known.Variables["persisted_globals_load"])
	}
	return nil
}
