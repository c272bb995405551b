package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"david/internal/experiment"
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/podrun"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/workload"
)

// benchRemote measures a server that is not david's, as it is. The schema david makes there is removed again.
func (a *app) benchRemote(ctx context.Context, f benchFlags, loads []result.Workload) (err error) {
	design, err := f.design()
	if err != nil {
		return err
	}
	addr, err := a.remoteAddr(f.dsn, f.defaultsFile)
	if err != nil {
		return err
	}
	sysbench, err := workload.Find(ctx)
	if err != nil {
		return err
	}
	unlock, err := experiment.Lock("david bench of a remote server")
	if err != nil {
		return err
	}
	defer unlock()
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := writable(ctx, conn); err != nil {
		return err
	}
	private, remove, err := sandbox.PrivateFolder(a.home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	p := newProgress(a.err)
	defer p.end()
	target := workload.Target{Addr: addr, Sysbench: sysbench, Dir: private}
	drop, err := prepareRemote(ctx, conn, target, loads[0], schemaUse{force: f.force, keep: f.keep}, p)
	if drop {
		defer func() { err = errors.Join(err, dropSchema(ctx, addr)) }()
	}
	if err != nil {
		return err
	}
	clients, release, err := podrun.Join(ctx, addr, loads[0].Database, f.group, f.pod.clients, p.text)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release(ctx)) }()
	store, srv, err := a.remoteStore(ctx, conn, addr, loads, design, sysbench)
	if err != nil {
		return err
	}
	var end func() error
	if f.relay {
		if end, err = podrun.Send(a.out, store); err != nil {
			return err
		}
	}
	process, err := localProcess(ctx, conn)
	if err != nil {
		return err
	}
	engine := &experiment.Engine{Store: store, Target: experiment.Remote{Address: addr, Dir: private, Process: process}, Sysbench: sysbench, Server: srv, Report: p.show, Unlocked: true, Crew: clients, Hidden: f.relay, MaxSteal: store.Experiment().Design.MaxSteal}
	began := time.Now()
	name := "remote"
	if f.relay {
		name = "pod"
	}
	ended, err := measure(ctx, engine, []result.Arm{{Name: name, Title: "the server as it is"}}, loads)
	if err != nil {
		return failed(ctx, store, err)
	}
	if err := finish(store, began, 0, ended); err != nil {
		return err
	}
	p.end()
	if f.relay {
		return end()
	}
	return a.print(store, f.json)
}

// localProcess is the process of a server on this machine, so that its CPU is not taken for a stranger's; 0 where it is
// elsewhere or david may not read its pid file.
func localProcess(ctx context.Context, conn *mysqld.Conn) (int, error) {
	if !conn.Addr().Local() {
		return 0, nil
	}
	vars, err := conn.Variables(ctx)
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile(vars["pid_file"])
	if err != nil { // a tunnel's end, or not david's to read
		return 0, nil
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0, nil
	}
	return pid, nil
}

// dropSchema removes the schema david made, over a connection of its own: the first may have ended with the server, and
// an interruption must not leave it.
func dropSchema(ctx context.Context, addr mysqld.Addr) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	conn, err := mysqld.Open(ctx, addr)
	if err == nil {
		defer conn.Close()
		err = workload.DropSchema(ctx, conn, database, false)
	}
	if err != nil {
		return fmt.Errorf("the schema %s that david made is still on %s: %w", database, addr, err)
	}
	return nil
}

// writable makes sure that the server lets this user make and load a schema, before anything is tried.
func writable(ctx context.Context, conn *mysqld.Conn) error {
	why, err := conn.ReadOnly(ctx)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: %s has %s; measure the primary, or a server that may be written to", mysqld.ErrReadOnly, conn.Addr(), why)
	}
	return conn.CheckPrivileges(ctx, database)
}

// remoteAddr reads where the server is from --dsn or an option file. What of user and password neither says comes from
// MYSQL_PWD and from ~/.my.cnf, as with MySQL's own clients.
func (a *app) remoteAddr(dsn, defaultsFile string) (addr mysqld.Addr, err error) {
	options, _, err := a.clientOptions(defaultsFile)
	if err != nil {
		return addr, err
	}
	if dsn == "" {
		addr, err = mysqld.AddrFromOptions(options)
	} else {
		addr, _, err = mysqld.ParseDSN(dsn, options)
	}
	if err != nil {
		return addr, codedError{exitUsage, err}
	}
	return addr, nil
}

func (a *app) remoteStore(ctx context.Context, conn *mysqld.Conn, addr mysqld.Addr, loads []result.Workload, design result.Design, s workload.Sysbench) (*result.Store, result.Server, error) {
	version, comment, err := conn.Version(ctx)
	if err != nil {
		return nil, result.Server{}, err
	}
	facts, err := host.Read(ctx, existing(a.home))
	if err != nil {
		return nil, result.Server{}, err
	}
	e := newExperiment(a, result.KindBench, loads, s)
	e.Target, e.Host, e.Design = "remote", facts, design
	if err := a.allowSteal(&e); err != nil {
		return nil, result.Server{}, err
	}
	e.Server = result.Server{Flavour: mycnf.FlavourOf(version, comment), Version: version, Comment: comment, Address: addr.Address}
	e.Notes = append(e.Notes, "the machine described is the client's; the server's is not seen")
	store, err := result.Create(filepath.Join(a.home, "experiments", e.ID), e)
	return store, e.Server, err
}

// foreign refuses a schema of somebody else.
func foreign(w result.Workload, addr mysqld.Addr) error {
	return usage("the schema %s on %s was not made by david and is left alone; david bench --force replaces it", w.Database, addr)
}

// schemaUse is what a run may do with the workload's schema.
type schemaUse struct {
	force bool // replace one that david did not make
	keep  bool // leave it for the next run
}

// prepareRemote makes the workload's schema where there is none. It never touches one that david did not make, unless forced. drop tells whether it is to be
// removed at the end: one that this run made, or that an earlier run left because it was cut short, and not one that was to be kept.
func prepareRemote(ctx context.Context, conn *mysqld.Conn, t workload.Target, w result.Workload, use schemaUse, p *progress) (drop bool, err error) {
	state, err := workload.Inspect(ctx, conn, w)
	if err != nil {
		return false, err
	}
	switch {
	case state == workload.OursMatching:
		return useSchema(ctx, conn, w, use)
	case state == workload.Foreign && !use.force:
		return false, foreign(w, t.Addr)
	case state != workload.Absent:
		if err := workload.DropSchema(ctx, conn, w.Database, use.force); err != nil {
			return false, err
		}
	}
	if err := workload.CreateSchema(ctx, conn, w); err != nil {
		return false, err
	}
	err = workload.Prepare(ctx, t, w, min(4, w.Tables), func(done, total int) {
		p.say("preparing the data on %s: %d of %d tables", t.Addr, done, total)
	})
	if err != nil {
		return !use.keep, fmt.Errorf("cannot prepare the data: %w", err)
	}
	if use.keep {
		err = workload.Keep(ctx, conn, w.Database)
	}
	return !use.keep, errors.Join(err, workload.VerifyRows(ctx, conn, w))
}

// useSchema takes a schema that is there as it is wanted.
func useSchema(ctx context.Context, conn *mysqld.Conn, w result.Workload, use schemaUse) (drop bool, err error) {
	if use.keep {
		return false, workload.Keep(ctx, conn, w.Database)
	}
	kept, err := workload.Kept(ctx, conn, w.Database)
	return !kept && err == nil, err
}
