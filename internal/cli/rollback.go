package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"david/internal/live"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// rollbackFlags holds the options of david rollback.
type rollbackFlags struct {
	serverFlags
	json bool
}

// rollbackDocument holds the output of david rollback --json.
type rollbackDocument struct {
	Dir    string      `json:"dir"`
	Server live.Server `json:"server"`
	live.Undone
}

func (a *app) rollbackCommand() *cobra.Command {
	var f rollbackFlags
	cmd := &cobra.Command{
		Use:   "rollback DIR",
		Short: "Set back on a running server what david tune --dsn --apply changed",
		Long: "Set back what a david tune --dsn --apply changed, the last change first. DIR is its folder, its name, or \"latest\". Where the server is another\n" +
			"one by now, or a variable was changed since by somebody else, nothing is set back and what changed is said (docs/live.md).",
		Args: exactArgs(1, "the folder or the name of a live tune, or latest"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.rollback(cmd.Context(), f, args[0]) },
	}
	fs := cmd.Flags()
	f.serverFlags.add(fs, "how to reach the server (the address on record, with the user and password of MYSQL_PWD and ~/.my.cnf)",
		"an option file whose [client] group says how to reach it")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (a *app) rollback(ctx context.Context, f rollbackFlags, arg string) (err error) {
	dir, err := result.ResolveFor(a.home, arg, func(dir string) error {
		_, err := live.Open(dir)
		return err
	})
	if err != nil {
		return codedError{exitUsage, err}
	}
	record, err := live.Open(dir)
	if err != nil {
		return codedError{exitUsage, err}
	}
	doc := rollbackDocument{Dir: dir, Server: record.Server, Undone: live.Undone{Restored: []live.Change{}, Already: []live.Change{}}}
	if len(record.Pending()) == 0 {
		return a.printRollback(doc, f.json)
	}
	addr, err := a.recordedAddr(f, dir, record)
	if err != nil {
		return err
	}
	conn, err := mysqld.Open(ctx, addr)
	if errors.Is(err, mysqld.ErrAccess) && !f.named() {
		return fmt.Errorf("%w; the record has no user: name it with --dsn", err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	doc.Undone, err = live.Rollback(ctx, conn, record)
	if errors.Is(err, live.ErrOther) || errors.Is(err, live.ErrChanged) {
		return liveError(fmt.Errorf("nothing was set back: %w", err))
	}
	if err != nil {
		return liveError(fmt.Errorf("%d of %d changes are set back; the same command goes on: %w", len(doc.Restored)+len(doc.Already),
			len(doc.Restored)+len(doc.Already)+len(record.Pending()), err))
	}
	return a.printRollback(doc, f.json)
}

// recordedAddr tells how to reach the server: as the flags say, else as it was reached when it was changed. A
// record has neither user nor password, which are sent to the address on record only where this user's david
// wrote it, on this machine.
func (a *app) recordedAddr(f rollbackFlags, dir string, r *live.Record) (addr mysqld.Addr, err error) {
	if f.named() {
		return a.remoteAddr(f.serverFlags)
	}
	err = r.Vouched(a.home, os.Geteuid())
	if err == nil {
		err = changedHere(dir)
	}
	if errors.Is(err, live.ErrNotVouched) {
		return addr, codedError{exitUsage, fmt.Errorf("%w: name the server with --dsn, as user@tcp(host:3306)/", err)}
	}
	if err != nil {
		return addr, err
	}
	f.dsn = fmt.Sprintf("%s(%s)/", r.Server.Network, r.Server.Address)
	addr, err = a.remoteAddr(f.serverFlags)
	addr.TLS = r.Server.TLS
	return addr, err
}

// changedHere makes sure that a record was written here: that of a pod came through a cluster.
func changedHere(dir string) error {
	store, err := result.Open(dir)
	if err != nil {
		return err
	}
	if e := store.Experiment(); e.Kind != result.KindLive || e.Target != result.TargetRemote {
		return fmt.Errorf("%w: the server was changed from elsewhere (%s)", live.ErrNotVouched, e.Target)
	}
	return nil
}

func (a *app) printRollback(d rollbackDocument, asJSON bool) error {
	if asJSON {
		return a.printJSON(d)
	}
	for _, c := range d.Restored {
		fmt.Fprintf(a.out, "%s: %s -> %s\n", c.Name, mycnf.AsWritten(c.Name, c.After), mycnf.AsWritten(c.Name, c.Before))
	}
	for _, c := range d.Already {
		fmt.Fprintf(a.out, "%s: is %s already\n", c.Name, c.Before)
	}
	if len(d.Restored)+len(d.Already) == 0 {
		fmt.Fprintf(a.out, "nothing is left to do: all that %s has on record is set back\n", d.Dir)
	}
	return nil
}
