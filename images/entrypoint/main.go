// Command entrypoint starts the server of a test image with the contract of the official images: an empty
// data folder is initialised, with root's password from MYSQL_ROOT_PASSWORD or MARIADB_ROOT_PASSWORD (or the
// file that these, with _FILE behind their names, name), for root from anywhere; then the server takes this
// process's place, so that signals reach it. Arguments that begin with a dash go to the server; a command
// that is not the server's is run as it is.
//
// What the official entry points do beyond that (further users and databases, scripts, time zones) is not
// here.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args[1:], os.Getenv); err != nil {
		fmt.Fprintf(os.Stderr, "entrypoint: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string, getenv func(string) string) error {
	server, err := findServer("/usr/sbin/mariadbd", "/usr/sbin/mysqld")
	if err != nil {
		return err
	}
	command, own := commandLine(args, server)
	if own {
		if err := prepare(server, command[1:], getenv); err != nil {
			return fmt.Errorf("cannot start %s: %w", server, err)
		}
	}
	path, err := exec.LookPath(command[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, command, serverEnv(os.Environ()))
}

// findServer takes the first that is there.
func findServer(paths ...string) (string, error) {
	for _, path := range paths {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("there is no server: none of %s", strings.Join(paths, ", "))
}

// commandLine returns what to run, and whether it is the server, whichever of its names is used.
func commandLine(args []string, server string) (command []string, own bool) {
	switch {
	case len(args) == 0:
		return []string{server}, true
	case strings.HasPrefix(args[0], "-"):
		return append([]string{server}, args...), true
	case slices.Contains([]string{"mariadbd", "mysqld"}, filepath.Base(args[0])):
		return append([]string{server}, args[1:]...), true
	}
	return args, false
}

// serverEnv is the environment without the password, which the server does not need.
func serverEnv(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains(passwordNames(), name)
	})
}

func passwordNames() []string { return []string{"MARIADB_ROOT_PASSWORD", "MYSQL_ROOT_PASSWORD"} }

// prepare initialises the data folder where it is empty.
func prepare(server string, args []string, getenv func(string) string) error {
	data, err := dataFolder(server, args)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(data, 0o750); err != nil {
		return fmt.Errorf("cannot make the data folder: %w", err)
	}
	done, err := finish(data)
	if err != nil || done {
		return err
	}
	if err := checkEmpty(data); err != nil {
		return err
	}
	password, err := rootPassword(getenv)
	if err != nil {
		return err
	}
	return initialise(server, args, data, password)
}

// dataFolder asks the server, which has read its option files, where its data are. It complains of wrong
// options here.
func dataFolder(server string, args []string) (string, error) {
	var complaints strings.Builder
	cmd := exec.Command(server, slices.Concat(args, []string{"--verbose", "--help"})...)
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("it does not take its options: %w\n%s", err, complaints.String())
	}
	return parseDataFolder(string(out))
}

// parseDataFolder reads the table of variables that the server prints.
func parseDataFolder(help string) (string, error) {
	for line := range strings.Lines(help) {
		name, value, ok := strings.Cut(line, " ")
		if value = strings.TrimSpace(value); ok && name == "datadir" && filepath.IsAbs(value) {
			return filepath.Clean(value), nil
		}
	}
	return "", errors.New("it does not tell where its data are")
}

// rootPassword reads the password from the environment or the file it names.
func rootPassword(getenv func(string) string) (string, error) {
	for _, name := range passwordNames() {
		value, file := getenv(name), getenv(name+"_FILE")
		switch {
		case value != "" && file != "":
			return "", fmt.Errorf("both %s and %s_FILE are set; set one", name, name)
		case file != "":
			text, err := os.ReadFile(file)
			if err != nil {
				return "", fmt.Errorf("cannot read the password that %s_FILE names: %w", name, err)
			}
			value = strings.TrimRight(string(text), "\r\n")
		}
		if value == "" {
			continue
		}
		if strings.ContainsAny(value, "\x00\r\n") {
			return "", fmt.Errorf("the password of %s has more than one line", name)
		}
		return value, nil
	}
	return "", fmt.Errorf("the data folder is empty, and no password for root is given: set %s, or the name of a file with it as one of these with _FILE behind",
		strings.Join(passwordNames(), " or "))
}
