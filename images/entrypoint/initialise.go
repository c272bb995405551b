package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// A data folder is made in a folder of its own below the final one, and moved up when it is complete: a
// volume's own folder cannot be renamed, and a container may be killed at any time. Its name has no place
// among the server's databases.
const (
	staging  = ".initialising"
	complete = ".complete" // in the staging folder: all that is beside it is to be moved up
)

// finish moves a complete staging folder's content up, and tells whether the data folder is initialised then.
func finish(data string) (bool, error) {
	tmp := filepath.Join(data, staging)
	if exists(filepath.Join(tmp, complete)) {
		return true, moveUp(tmp, data)
	}
	if err := os.RemoveAll(tmp); err != nil {
		return false, fmt.Errorf("cannot remove an unfinished initialisation: %w", err)
	}
	return exists(filepath.Join(data, "mysql")), nil
}

func moveUp(tmp, data string) error {
	entries, err := os.ReadDir(tmp)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == complete {
			continue
		}
		if err := os.Rename(filepath.Join(tmp, e.Name()), filepath.Join(data, e.Name())); err != nil {
			return err
		}
	}
	return errors.Join(os.Remove(filepath.Join(tmp, complete)), os.Remove(tmp))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// checkEmpty refuses a folder with files that are not a server's; new file systems have a lost+found.
func checkEmpty(data string) error {
	entries, err := os.ReadDir(data)
	if err != nil {
		return fmt.Errorf("cannot look into the data folder: %w", err)
	}
	for _, e := range entries {
		if e.Name() != "lost+found" {
			return fmt.Errorf("the data folder %s has files, %s among them, but is no server's; empty it or mount another", data, e.Name())
		}
	}
	return nil
}

func initialise(server string, args []string, data, password string) error {
	tmp := filepath.Join(data, staging)
	if err := os.Mkdir(tmp, 0o750); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "entrypoint: initialising %s\n", data)
	var err error
	if filepath.Base(server) == "mariadbd" {
		err = initialiseMariaDB(server, args, tmp, password)
	} else {
		err = initialiseMySQL(server, args, tmp, password)
	}
	if err != nil {
		return fmt.Errorf("cannot initialise %s: %w", data, err)
	}
	if err := os.WriteFile(filepath.Join(tmp, complete), nil, 0o600); err != nil {
		return err
	}
	return moveUp(tmp, data)
}

// initialiseMySQL has the server make its data and run the statements that set the password.
func initialiseMySQL(server string, args []string, data, password string) error {
	cmd := exec.Command(server, slices.Concat(args, []string{"--initialize-insecure", "--datadir=" + data, "--init-file=/proc/self/fd/3"})...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	sql, err := pipe(accounts(password))
	if err != nil {
		return err
	}
	defer sql.Close()
	cmd.ExtraFiles = []*os.File{sql} // descriptor 3; a password in a file or an argument would be seen by others
	return cmd.Run()
}

// initialiseMariaDB feeds the server what mariadb-install-db does, which is a script for a shell.
func initialiseMariaDB(server string, args []string, data, password string) error {
	sql, err := mariadbSystem("/usr/share/mysql")
	if err != nil {
		return err
	}
	cmd := exec.Command(server, slices.Concat(args, []string{"--bootstrap", "--datadir=" + data,
		"--enforce-storage-engine=", "--max-allowed-packet=8M", "--net-buffer-length=16K"})...)
	// The scripts make roots of 127.0.0.1 and ::1 that need no password.
	cmd.Stdin = strings.NewReader(sql + "DELETE FROM mysql.global_priv WHERE Host <> 'localhost';\nFLUSH PRIVILEGES;\n" + accounts(password))
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return cmd.Run()
}

// systemScripts are MariaDB's scripts for its system tables, in the order in which mariadb-install-db runs them.
func systemScripts() []string {
	return []string{"mysql_system_tables", "mysql_performance_tables", "mysql_system_tables_data",
		"maria_add_gis_sp_bootstrap", "mysql_sys_schema"}
}

// mariadbSystem is the SQL that makes MariaDB's system tables, without users for the host's name and without
// a test database.
func mariadbSystem(dir string) (string, error) {
	var sql strings.Builder // half a megabyte in ten thousand lines: added one by one they took a pod's memory
	sql.WriteString("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n")
	for _, name := range systemScripts() {
		text, err := os.ReadFile(filepath.Join(dir, name+".sql"))
		if err != nil {
			return "", fmt.Errorf("cannot read one of the server's scripts: %w", err)
		}
		for line := range strings.Lines(string(text)) {
			if !strings.Contains(line, "@current_hostname") {
				sql.WriteString(line)
			}
		}
		sql.WriteString("\n")
	}
	return sql.String(), nil
}

// accounts are the statements, a line each, that give root its password, at home and from anywhere.
func accounts(password string) string {
	quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + "'"
	return "ALTER USER 'root'@'localhost' IDENTIFIED BY " + quoted + ";\n" +
		"CREATE USER 'root'@'%' IDENTIFIED BY " + quoted + ";\n" +
		"GRANT ALL ON *.* TO 'root'@'%' WITH GRANT OPTION;\n"
}

// pipe is a file to read text from. The text is shorter than a pipe holds, so writing does not wait for a
// reader.
func pipe(text string) (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(w, text)
	return r, errors.Join(err, w.Close())
}
