package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/lab"
	"david/internal/mysqld"
	"david/internal/result"
)

// benchRemote measures a server that is not david's, as it is.
func (a *app) benchRemote(ctx context.Context, f benchFlags, loads []result.Workload) (err error) {
	became := "the finished trials are kept, and the same command begins a new experiment"
	if f.relay {
		became = "the finished trials are in this log"
	}
	defer func() { err = endedEarly(ctx, became, err) }()
	design, err := f.design()
	if err != nil {
		return err
	}
	addr, err := a.remoteAddr(f.serverFlags)
	if err != nil {
		return err
	}
	r := lab.Remote{Addr: addr, Loads: loads, Design: design, Force: f.force, Keep: f.keep, Clients: f.pod.clients, Group: f.group, Node: f.node}
	if f.relay {
		r.Relay = a.out
	}
	store, err := a.run(ctx, r)
	if store == nil || f.relay {
		return err
	}
	return errors.Join(a.print(store, f.json, ""), err) // measured it was, whatever was left behind
}

// passwordElsewhere tells where a password belongs: what stands on a command line is in the list of processes.
const passwordElsewhere = "give the password in MYSQL_PWD or --defaults-file"

// serverFlags say where a running server is that is not david's, and how long it may take.
type serverFlags struct {
	mysqlFlags
	dsn, defaultsFile string
	statement         time.Duration
}

// deadlineFlag names the time that a server has for a statement.
const deadlineFlag = "statement-deadline"

// statementDeadline is long enough to count the rows of a large table.
const statementDeadline = 5 * time.Minute

func (f *serverFlags) add(fs *pflag.FlagSet, dsn, defaultsFile string) {
	f.mysqlFlags.add(fs)
	f.addBare(fs, dsn, defaultsFile)
}

// addBare adds what is left where a command has names of MySQL's clients for something else.
func (f *serverFlags) addBare(fs *pflag.FlagSet, dsn, defaultsFile string) {
	fs.StringVar(&f.dsn, "dsn", "", dsn)
	fs.StringVar(&f.defaultsFile, "defaults-file", "", defaultsFile)
	fs.DurationVar(&f.statement, deadlineFlag, statementDeadline, "how long the server may take for one statement of david's own")
}

// named tells whether a server is named.
func (f serverFlags) named() bool {
	return f.dsn != "" || f.defaultsFile != "" || f.mysqlFlags.named()
}

// checkDeadline refuses no time at all.
func (f serverFlags) checkDeadline() error {
	if f.statement <= 0 {
		return usage("--%s %s: give a time above 0, as 5m", deadlineFlag, f.statement)
	}
	return nil
}

// deadlineArgs have another david give the server as much time, where that is not the usual.
func (f serverFlags) deadlineArgs() []string {
	if f.statement == statementDeadline {
		return nil
	}
	return []string{fmt.Sprintf("--%s=%s", deadlineFlag, f.statement)}
}

// remoteAddr reads where the server is from --dsn or an option file. What of user, password and TLS the DSN does not say
// comes from MYSQL_PWD and from the option file, as with MySQL's own clients.
func (a *app) remoteAddr(f serverFlags) (addr mysqld.Addr, err error) {
	if err := f.checkDeadline(); err != nil {
		return addr, err
	}
	if f.dsn != "" && (f.host != "" || f.port != 0 || f.socket != "") {
		return addr, usage("--dsn says where the server is: leave out -h, -P and -S")
	}
	options, read, err := a.clientOptions(f.defaultsFile)
	if err == nil {
		options, err = a.loginOptions(f.loginPath, options)
	}
	if err != nil {
		return addr, err
	}
	if options = f.over(options); f.dsn == "" {
		if addr, err = mysqld.AddrFromOptions(options); err != nil {
			err = fmt.Errorf("cannot use %s: %w", f.sources(read), err)
		}
	} else {
		addr, _, err = mysqld.ParseDSN(f.dsn, options)
	}
	if err != nil {
		return addr, codedError{exitUsage, err}
	}
	addr.Deadline, addr.Longer = f.statement, "--"+deadlineFlag+" allows more"
	a.hide(string(addr.Password))
	return addr, nil
}

// sources says what tells where the server is: flags, and an option file where one was read.
func (f serverFlags) sources(file bool) string {
	var list []string
	for _, one := range []struct {
		name  string
		given bool
	}{{"-h", f.host != ""}, {"-P", f.port != 0}, {"-S", f.socket != ""}, {"--login-path", f.loginPath != ""}, {"the option file", file}} {
		if one.given {
			list = append(list, one.name)
		}
	}
	return strings.Join(list, " with ")
}

// clientOptions reads the groups of an option file that MySQL's and MariaDB's own clients read (mysql --help,
// mariadb --help): --defaults-file, else ~/.my.cnf. ok is false where none is there and none was named.
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
	return file.ClientOptions("client", "mysql", "client-server", "client-mariadb", "mariadb-client"), true, nil
}
