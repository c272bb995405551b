package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/mysqld"
	"david/internal/relay"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/workload"
)

// meet waits for the other clients of a load that is spread; the crew is nil where this one drives it alone. dismiss, which is never nil,
// sends them away.
func (f benchFlags) meet(ctx context.Context, addr mysqld.Addr, loads []result.Workload, p *progress) (crew *workload.Crew, dismiss func(context.Context) error, err error) {
	dismiss = func(context.Context) error { return nil }
	if f.pod.clients < 2 {
		return nil, dismiss, nil
	}
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return nil, dismiss, err
	}
	crew, err = workload.Meet(ctx, conn, loads[0].Database, f.crew, f.pod.clients, func(text string) { p.say("%s", text) })
	if err != nil {
		return nil, dismiss, errors.Join(err, conn.Close())
	}
	return crew, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(crew.Dismiss(ctx), conn.Close())
	}, nil
}

// relayed has all that the store is given printed as lines for a log; end writes the last of them.
func (f benchFlags) relayed(a *app, store *result.Store) (end func() error, err error) {
	if !f.relay {
		return nil, nil
	}
	w := relay.NewWriter(a.out)
	store.Watch(func(document any) error { return w.Write(packed(store, document)) })
	e := store.Experiment()
	return func() error { return w.Write(relay.Document{End: true}) }, w.Write(relay.Document{Experiment: &e})
}

// mostLog is how much of a trial's log is sent along, in bytes: a kubelet keeps 10 MiB of a pod's in all.
const mostLog = 256 << 10

func packed(store *result.Store, document any) (d relay.Document) {
	switch v := document.(type) {
	case result.Arm:
		d.Arm = &v
	case result.Finish:
		d.Finish = &v
	case result.Trial:
		d.Trial = &v
		if text, err := os.ReadFile(store.LogPath(v.ID, "sysbench")); err == nil { // a record without it is a record
			d.Log = string(text[:min(len(text), mostLog)])
		}
	}
	return d
}

// benchHandCommand is a client that another one leads: `david bench --clients N` starts it in a cluster.
func (a *app) benchHandCommand() *cobra.Command {
	var dsn, defaultsFile, crew, schema string
	var number, clients int
	cmd := &cobra.Command{
		Use:    "bench-hand",
		Short:  "Drive a share of another david bench's load, as it tells",
		Args:   exactArgs(0, "no arguments"),
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if number < 1 || number >= clients || crew == "" {
				return usage("bench-hand: give --crew, and a --number from 1 to below --clients")
			}
			return a.hand(cmd.Context(), workload.Hand{Database: schema, ID: crew, Number: number, Clients: clients}, dsn, defaultsFile)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&dsn, "dsn", "", "the server, as of david bench")
	fs.StringVar(&defaultsFile, "defaults-file", "", "an option file that names it")
	fs.StringVar(&crew, "crew", "", "the name of the clients that belong together")
	fs.StringVar(&schema, "schema", database, "the workload's schema")
	fs.IntVar(&number, "number", 0, "which of the clients this one is; the lead is 0")
	fs.IntVar(&clients, "clients", 0, "how many there are")
	return cmd
}

func (a *app) hand(ctx context.Context, h workload.Hand, dsn, defaultsFile string) (err error) {
	addr, err := a.remoteAddr(dsn, defaultsFile)
	if err != nil {
		return err
	}
	if h.Target.Sysbench, err = workload.Find(ctx); err != nil {
		return err
	}
	if h.Name, err = os.Hostname(); err != nil {
		return err
	}
	if h.Conn, err = mysqld.Open(ctx, addr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Conn.Close()) }()
	private, remove, err := sandbox.PrivateFolder(a.home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := newProgress(a.err)
	defer p.end()
	h.Target.Addr, h.Target.Dir = addr, private
	h.Say = func(text string) { p.say("%s", text) }
	return h.Work(ctx)
}

// hide keeps flags out of the help.
func hide(fs *pflag.FlagSet, names ...string) {
	for _, name := range names {
		fs.Lookup(name).Hidden = true
	}
}
