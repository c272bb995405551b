package workload

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"david/internal/account"
	"david/internal/mysqld"
	"david/internal/result"
)

// Sysbench names the program.
type Sysbench struct {
	Path    string
	Version string // "1.0.20"
}

// versionTimeout bounds --version, which takes milliseconds.
const versionTimeout = 15 * time.Second

// Find looks for sysbench on PATH and asks its version.
func Find(ctx context.Context) (Sysbench, error) {
	path, err := exec.LookPath("sysbench")
	if err != nil {
		return Sysbench{}, errors.New("cannot find sysbench on PATH: install it with apt-get install sysbench")
	}
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	out, err := account.Look(ctx, filepath.Dir(path), []string{path, "--version"}, (*exec.Cmd).Output)
	if err != nil {
		return Sysbench{}, fmt.Errorf("cannot run %s --version: %w; reinstall it with apt-get install --reinstall sysbench", path, err)
	}
	fields := strings.Fields(out) // sysbench 1.0.20
	if len(fields) < 2 || fields[0] != "sysbench" {
		return Sysbench{}, fmt.Errorf("cannot use %s: its version reads %q; install sysbench with apt-get install sysbench", path, out)
	}
	return Sysbench{Path: path, Version: fields[1]}, nil
}

// Target describes a server to load, with what it takes to do so.
type Target struct {
	Addr     mysqld.Addr
	Sysbench Sysbench
	Log      string // file that gets every line sysbench prints, appended; "" for none
	// Dir says where a run over TCP makes its private folder for sysbench's keys, removed afterwards; "" for the
	// system's temporary folder. Nothing is written for other runs.
	Dir string
	// Quiet says how long sysbench may print nothing, and Grace how long it may go on after its time is up,
	// before it is stopped. Zero means a minute.
	Quiet, Grace time.Duration
	// Start starts the process; nil where it is started as it is.
	Start func(*exec.Cmd) error
	// Compressed has what is sent compressed, by the protocol of client and server.
	Compressed bool
	// Inside calls fn where the client is, in another network namespace than david; nil where that is david's own.
	Inside func(fn func() error) error
	// CPUs are those that it runs on; none: those that david does.
	CPUs []int
	// Started, which may be nil, is called with the pid of every sysbench as soon as it runs.
	Started func(pid int)
}

// preparedLimit is the default of max_prepared_stmt_count, in MySQL and MariaDB alike.
const preparedLimit = 16382

// psMode returns the mode for prepared statements that stays below the server's limit: a thread prepares at
// most nine statements a table, BEGIN and COMMIT.
func psMode(w result.Workload) string {
	if int64(w.Threads)*(9*int64(w.Tables)+2) > preparedLimit {
		return "disable"
	}
	return "auto"
}

// dataArgs returns the options that say whose the tables are and what they are. The password travels in the environment, see
// environment; the way to the server is added when it is known, see findWay.
func dataArgs(a mysqld.Addr, w result.Workload) []string {
	return []string{find(w.Name).script, "--db-driver=mysql", "--mysql-user=" + a.User, "--mysql-db=" + w.Database,
		fmt.Sprintf("--tables=%d", w.Tables), fmt.Sprintf("--table-size=%d", w.TableSize), "--rand-type=" + w.RandType}
}

// hostPort splits a TCP address for the client library, to which localhost means the default socket.
func hostPort(address string) (host, port string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return address, "3306"
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return host, port
}

// runArgs returns the options of a run that long. sysbench reads the rate as a whole number; with one, it
// takes the latency of a transaction from its arrival, the time in the queue included.
func runArgs(a mysqld.Addr, w result.Workload, seconds int) []string {
	args := append(dataArgs(a, w), find(w.Name).options...)
	args = append(args,
		fmt.Sprintf("--threads=%d", w.Threads), fmt.Sprintf("--time=%d", seconds), "--events=0",
		"--report-interval=1", "--histogram=on", "--percentile=95",
		"--mysql-ignore-errors=1213,1020,1205", "--db-ps-mode="+psMode(w))
	if w.Rate > 0 {
		args = append(args, fmt.Sprintf("--rate=%.0f", w.Rate))
	}
	return append(args, "run")
}

// environment returns all sysbench gets to see of david's environment, and the password: the client library
// reads MYSQL_PWD where no password is given. Root can read a process's environment, and whoever runs as its
// user: where david is root that is nobody else, see solitary. Anyone can read its arguments.
func environment(a mysqld.Addr) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C"}
	if path, ok := os.LookupEnv("LD_LIBRARY_PATH"); ok {
		env = append(env, "LD_LIBRARY_PATH="+path)
	}
	if a.Password != "" {
		env = append(env, "MYSQL_PWD="+string(a.Password))
	}
	return env
}
