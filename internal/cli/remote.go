package cli

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"david/internal/lab"
	"david/internal/mysqld"
	"david/internal/result"
)

// benchRemote measures a server that is not david's, as it is.
func (a *app) benchRemote(ctx context.Context, f benchFlags, loads []result.Workload) error {
	design, err := f.design()
	if err != nil {
		return err
	}
	addr, err := a.remoteAddr(f.dsn, f.defaultsFile)
	if err != nil {
		return err
	}
	r := lab.Remote{Addr: addr, Loads: loads, Design: design, Force: f.force, Keep: f.keep, Clients: f.pod.clients, Group: f.group}
	if f.relay {
		r.Relay = a.out
	}
	store, err := a.run(ctx, r)
	if store == nil || f.relay {
		return err
	}
	return errors.Join(a.print(store, f.json), err) // measured it was, whatever was left behind
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
	a.hide(string(addr.Password))
	return addr, nil
}

// clientOptions reads the [client] group of an option file as MySQL's own clients do: --defaults-file, else ~/.my.cnf.
// ok is false where none is there and none was named.
func (a *app) clientOptions(path string) (options map[string]string, ok bool, err error) {
	named := path != ""
	if !named {
		path = filepath.Join(a.env("HOME"), ".my.cnf")
	}
	if _, err := os.Stat(path); err != nil && !named {
		return nil, false, nil
	}
	file, err := lab.ReadOptions(path)
	if err != nil {
		return nil, false, err
	}
	return file.ClientOptions("client", "mysql"), true, nil
}
