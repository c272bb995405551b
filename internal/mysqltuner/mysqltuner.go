// Package mysqltuner runs MySQLTuner, a program that looks at a live server and prints what it would change.
// What it says is read by package tune.
package mysqltuner

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"david/internal/account"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/server"
)

// ErrAbsent marks that the program, or a client that it needs, is not installed.
var ErrAbsent = errors.New("mysqltuner is not installed")

// timeout bounds a run, which takes a few seconds on a schema of few tables.
const timeout = 3 * time.Minute

// oldest is the first series that knows innodb_redo_log_capacity.
const oldest = 2

// Find looks for a program that is new enough, on the PATH first, then at own, which are paths, and for the
// client programs it looks with.
func Find(ctx context.Context, own ...string) (path string, err error) {
	err = fmt.Errorf("%w: release %d or later is wanted on the PATH, or david server install mysqltuner", ErrAbsent, oldest)
	for _, path := range append([]string{"mysqltuner", "mysqltuner.pl"}, own...) {
		if path, lost := exec.LookPath(path); lost == nil {
			if err = release(ctx, path); err == nil {
				return path, client()
			}
		}
	}
	return "", err
}

// release refuses a program that is too old.
func release(ctx context.Context, path string) error {
	help, err := server.TunerHelp(ctx, path)
	if err != nil {
		return err
	}
	return supported(help)
}

func client() error {
	for _, name := range []string{"mariadb-admin", "mysqladmin"} {
		if _, err := exec.LookPath(name); err == nil {
			return nil
		}
	}
	return fmt.Errorf("%w completely: it needs the client programs mysql and mysqladmin, or MariaDB's", ErrAbsent)
}

// Run has the program look at a server and returns what it printed. memory, in bytes, is what the server may
// use. It runs as the servers' user where david is root, in a folder of its own in dir, which that user may
// enter. The password goes into an option file there, and is gone afterwards: a command line can be read by
// everybody. With such a file the program does not look for the system's own accounts either.
func Run(ctx context.Context, path string, addr mysqld.Addr, memory int64, dir string) (output string, err error) {
	if addr.Network != "unix" {
		return "", fmt.Errorf("cannot run mysqltuner on %s: it is given a socket only", addr.Address)
	}
	a, err := account.Find()
	if err != nil {
		return "", err
	}
	own, options, err := prepare(dir, addr, a)
	defer func() { err = errors.Join(err, os.RemoveAll(own)) }()
	if err != nil {
		return "", fmt.Errorf("cannot run mysqltuner: %w", err)
	}
	door, err := a.Door(filepath.Dir(path))
	if err != nil {
		return "", fmt.Errorf("mysqltuner failed: %w", err)
	}
	defer door.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	// The socket is in the file: with --socket the program adds a port, for which MariaDB's clients take TCP.
	cmd := exec.CommandContext(ctx, path, "--defaults-file", options, "--forcemem", fmt.Sprint(memory>>20), "--nocolor")
	cmd.Dir, cmd.Env = own, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + own, "LC_ALL=C"}
	cmd.WaitDelay = 5 * time.Second
	door.Prepare(cmd)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("mysqltuner failed (%w): %s", err, last(out.String()))
	}
	return out.String(), supported(out.String())
}

// prepare makes the folder that the program runs in, with the option file, for an account.
func prepare(dir string, addr mysqld.Addr, a account.Account) (own, options string, err error) {
	if own, err = os.MkdirTemp(dir, "mysqltuner-"); err != nil {
		return "", "", err
	}
	options = filepath.Join(own, "mysqltuner.cnf")
	return own, options, errors.Join(writeOptions(options, addr), a.Own(options), a.Own(own))
}

// writeOptions writes what a client needs to know to log in.
func writeOptions(file string, addr mysqld.Addr) error {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`)
	text := fmt.Sprintf("[client]\nuser=\"%s\"\npassword=\"%s\"\nsocket=\"%s\"\n", escape.Replace(addr.User), escape.Replace(string(addr.Password)), escape.Replace(addr.Address))
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// supported refuses releases whose advice is out of date.
func supported(output string) error {
	release, err := server.TunerRelease(output)
	if err != nil {
		return err
	}
	v, err := mycnf.ParseVersion(release)
	if err != nil {
		return err
	}
	if v.Major < oldest {
		return fmt.Errorf("mysqltuner %s is too old: release %d or later knows innodb_redo_log_capacity", release, oldest)
	}
	return nil
}

// last is the last line that says something.
func last(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}
