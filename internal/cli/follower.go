package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/follower"
	"david/internal/hold"
	"david/internal/mysqld"
	"david/internal/podfollow"
)

// holdGuard is the command that david starts of itself while a leader stands still.
const holdGuard = "hold-guard"

// catchUp is how long a follower may take to catch up, where nothing else is said.
const catchUp = 10 * time.Minute

// followerFlags are those of what is done to a follower that is there.
type followerFlags struct {
	serverFlags
	leaderPodFlags
	apply, promoted, leave, json bool
}

func (f *followerFlags) add(fs *pflag.FlagSet, apply string) {
	f.serverFlags.add(fs, leaderDSN, leaderFile)
	if apply != "" {
		fs.BoolVar(&f.apply, "apply", false, apply)
	}
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
}

const (
	leaderDSN  = "the leader: user@unix(/path/socket)/ or user@tcp(127.0.0.1:3306)/; its account is used on the follower, too"
	leaderFile = "an option file whose [client] group names the leader"
)

func (a *app) followerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "follower",
		Short: "Replicas on a clone of the leader's data: make, list, compare, promote and drop them",
		Args:  onlyCommands,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.followerCloneCommand(), a.followerListCommand(), a.followerStartCommand(), a.followerVerifyCommand(), a.followerPromoteCommand(), a.followerDropCommand())
	return cmd
}

func (a *app) holdGuardCommand() *cobra.Command {
	return watchCommand(holdGuard, "Let a leader go on whatever happens to david: what david follower clone starts of itself",
		func(in io.Reader) error { return hold.Guard(in, a.out) })
}

func (a *app) followerListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the followers that david has made here",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			all, err := follower.List(a.home)
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(append([]*follower.Record{}, all...))
			}
			if len(all) == 0 {
				a.tell("no followers; make one with: david follower clone NAME --dsn ...")
				return nil
			}
			w := tabwriter.NewWriter(a.out, 0, 4, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tSTATE\tSERVER\tPORT\tLEADER\tFOLDER")
			for _, r := range all {
				fmt.Fprintf(w, "%s\t%s\t%s %s\t%d\t%s\t%s\n", r.Name, r.Status(), r.Flavour.Product(), r.Version, r.Port, r.Leader, r.Dir)
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) followerStartCommand() *cobra.Command {
	var f followerFlags
	patience := catchUp
	cmd := &cobra.Command{
		Use:   "start NAME",
		Short: "Start a follower's server, as after a reboot, and wait until it has caught up",
		Args:  exactArgs(1, "the name of a follower"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withFollower(f, args[0], func(r *follower.Record, leader mysqld.Addr) error {
				was := r.State
				err := r.Start(cmd.Context(), leader, patience)
				if err != nil && !errors.Is(err, follower.ErrAccountLeft) {
					return err
				}
				if r.State != was {
					a.remark("a promotion of %s had been interrupted, and is done now: it follows nobody, and takes writes", r.Name)
				}
				if err != nil {
					a.remark("%s runs, but %v", r.Name, err)
				}
				fmt.Fprintf(a.out, "%s runs on port %d\n", r.Name, r.Port)
				return nil
			})
		},
	}
	f.serverFlags.add(cmd.Flags(), leaderDSN, leaderFile)
	cmd.Flags().DurationVar(&patience, "catch-up", catchUp, "how long the follower may take to catch up")
	return cmd
}

func (a *app) followerVerifyCommand() *cobra.Command {
	var f followerFlags
	cmd := &cobra.Command{
		Use:   "verify NAME",
		Short: "Compare the rows of all tables of leader and follower, as both have them at the same GTIDs",
		Args:  exactArgs(1, "the name of a follower"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			if f.pod != "" {
				return a.withPodFollower(cmd.Context(), f, args[0], func(o *podfollow.Opened) error {
					v, err := o.Verify(cmd.Context())
					return a.printVerdict(v, err, f.json)
				})
			}
			return a.withFollower(f, args[0], func(r *follower.Record, leader mysqld.Addr) error {
				v, err := r.Verify(cmd.Context(), leader)
				return a.printVerdict(v, err, f.json)
			})
		},
	}
	f.add(cmd.Flags(), "")
	f.leaderPodFlags.add(cmd.Flags())
	return cmd
}

// withFollower takes a follower's record while something is done.
func (a *app) withFollower(f followerFlags, name string, do func(*follower.Record, mysqld.Addr) error) error {
	leader, err := a.remoteAddr(f.serverFlags)
	if err != nil {
		return err
	}
	r, err := follower.Open(a.home, name)
	if err != nil {
		return followerError(err)
	}
	return followerError(errors.Join(do(r, leader), r.Close()))
}

func (a *app) printVerdict(v follower.Verdict, err error, asJSON bool) error {
	if v.Tables == 0 && err != nil {
		return err
	}
	a.remarkChanged(v)
	if asJSON {
		return errors.Join(err, a.printJSON(v))
	}
	if err == nil {
		fmt.Fprintf(a.out, "no row differs: %d tables have the same checksums on both at %s\n", v.Tables, v.At)
	}
	return err
}

// remarkChanged tells what was not compared.
func (a *app) remarkChanged(v follower.Verdict) {
	if len(v.Changed) > 0 {
		a.remark("not compared, as CREATE, ALTER, RENAME, TRUNCATE or DROP changed them meanwhile, "+
			"or somebody wrote to them and no snapshot keeps their rows: %s", strings.Join(v.Changed, ", "))
	}
}

func (a *app) followerPromoteCommand() *cobra.Command {
	var f followerFlags
	cmd := &cobra.Command{
		Use:   "promote NAME",
		Short: "Make a follower a server of its own that takes writes; shows what it would do, with --apply does it",
		Long: "Have a follower apply what it has received, follow nobody any more and take writes; the account that was made for it is dropped. The leader need not\n" +
			"answer: see to it that nobody writes to it any more, or the two differ from here on. There is no way back but to drop it and clone again (docs/follower.md).",
		Args: exactArgs(1, "the name of a follower"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withFollower(f, args[0], func(r *follower.Record, leader mysqld.Addr) error {
				return a.promote(cmd.Context(), f, r, leader)
			})
		},
	}
	f.add(cmd.Flags(), "promote it")
	return cmd
}

func (a *app) promote(ctx context.Context, f followerFlags, r *follower.Record, leader mysqld.Addr) error {
	if !f.apply {
		fmt.Fprintf(a.out, "%s on port %d would apply what it has received, follow %s no more, and take writes%s\nnothing was changed: --apply does it\n", r.Name, r.Port, r.Leader, eventsOf(r))
		return nil
	}
	lacks, err := r.Promote(ctx, leader, func(text string) { a.remark("%s: %s", r.Name, text) })
	if err != nil && !errors.Is(err, follower.ErrAccountLeft) {
		return err
	}
	if err != nil {
		a.remark("%s is promoted, but %v", r.Name, err)
	}
	if lacks != "" {
		a.remark("%s lacks what %s has committed since: %s: somebody still writes there, and the two differ", r.Name, r.Leader, lacks)
	}
	if f.json {
		return a.printJSON(promoted{r, lacks})
	}
	fmt.Fprintf(a.out, "%s takes writes on port %d and socket %s\n", r.Name, r.Port, r.Socket())
	return nil
}

// promoted is a follower that was promoted, and what of its leader's it has not, as --json prints them.
type promoted struct {
	*follower.Record
	Lacks string `json:"lacks,omitempty"` // GTIDs of the leader's
}

// eventsOf tells of events, which run on one server only.
func eventsOf(r *follower.Record) string {
	if r.Events == "ON" {
		return "; its events would run, as the leader's do"
	}
	return ""
}

func (a *app) followerDropCommand() *cobra.Command {
	var f followerFlags
	cmd := &cobra.Command{
		Use:   "drop NAME",
		Short: "End a follower's server, remove its data, and its account on the leader; shows what it would do, with --apply does it",
		Args:  exactArgs(1, "the name of a follower"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags()); err != nil {
				return err
			}
			if f.pod != "" {
				return a.withPodFollower(cmd.Context(), f, args[0], func(o *podfollow.Opened) error { return a.dropPod(cmd.Context(), f, o) })
			}
			return a.withFollower(f, args[0], func(r *follower.Record, leader mysqld.Addr) error {
				return a.drop(cmd.Context(), f, r, leader)
			})
		},
	}
	f.add(cmd.Flags(), "drop it")
	f.leaderPodFlags.add(cmd.Flags())
	cmd.Flags().BoolVar(&f.promoted, "promoted", false, "drop it also where it was promoted: its data are nowhere else")
	cmd.Flags().BoolVar(&f.leave, "leave-image", false, "remove nothing from its Ceph cluster or ZFS pool, as when that is gone")
	return cmd
}

func (a *app) drop(ctx context.Context, f followerFlags, r *follower.Record, leader mysqld.Addr) error {
	if !f.promoted {
		why, err := r.Unique(ctx, leader)
		if err != nil {
			return err
		}
		if why != "" {
			return usage("%s %s: what was written to it since is nowhere else; --promoted drops it all the same", r.Name, why)
		}
	}
	what := fmt.Sprintf("the server on port %d, the folder %s", r.Port, r.Dir)
	if r.Account != "" {
		what += ", the account " + r.Account + " on " + r.Leader
	}
	if r.Volume != nil && !f.leave {
		what += ", " + r.Volume.String()
	}
	if r.ZFS != nil && !f.leave {
		what += ", " + r.ZFS.String()
	}
	if !f.apply {
		names, err := r.Replicas(ctx, leader)
		switch {
		case err != nil:
			a.remark("%v", err)
		case len(names) > 0:
			a.remark("%s replicates from %s: stop that first", strings.Join(names, ", "), r.Name)
		}
		fmt.Fprintf(a.out, "would be removed: %s\nnothing was changed: --apply does it\n", what)
		return nil
	}
	if err := r.Drop(ctx, leader, f.leave); err != nil {
		return err
	}
	if f.json {
		return a.printJSON(r)
	}
	fmt.Fprintf(a.out, "removed: %s\n", what)
	return nil
}

// followerError gives what is the user's to mend its exit code.
func followerError(err error) error {
	is := func(kinds ...error) bool {
		return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	}
	switch {
	case is(follower.ErrInput, follower.ErrBusy):
		return codedError{exitUsage, err}
	case is(follower.ErrDifferent, follower.ErrChanged, follower.ErrBehind, follower.ErrDiverged):
		return codedError{exitInvalid, err}
	}
	return err
}
