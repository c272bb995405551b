package testserver

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func findMariaDB(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("mariadbd")
	if err != nil {
		path = "/usr/sbin/mariadbd" // not on every user's PATH
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatal("no MariaDB found: run make setup")
	}
	return path
}

// findMySQL returns how to call a MySQL: from an unpacked tree, the one DAVID_TEST_MYSQL_ROOT names or one david
// installed, else from PATH, where mysqld may be another name for mariadbd.
func findMySQL(tb testing.TB) []string {
	tb.Helper()
	for _, root := range roots() {
		if _, err := os.Stat(filepath.Join(root, "usr/sbin/mysqld")); err == nil {
			return unpacked(tb, root)
		}
	}
	if path, err := exec.LookPath("mysqld"); err == nil {
		version, err := exec.Command(path, "--no-defaults", "--version").Output()
		if err == nil && !strings.Contains(string(version), "MariaDB") {
			return []string{path, "--no-defaults"}
		}
	}
	tb.Fatal("no MySQL found: run make setup, or set DAVID_TEST_MYSQL_ROOT to an unpacked one")
	return nil
}

func roots() []string {
	if root := os.Getenv("DAVID_TEST_MYSQL_ROOT"); root != "" {
		return []string{root}
	}
	home := os.Getenv("DAVID_HOME")
	if home == "" {
		data := os.Getenv("XDG_DATA_HOME")
		if data == "" {
			data = filepath.Join(os.Getenv("HOME"), ".local/share")
		}
		home = filepath.Join(data, "david")
	}
	found, err := filepath.Glob(filepath.Join(home, "servers", "mysql-*"))
	if err != nil { // only a malformed pattern: a home with brackets in it
		return nil
	}
	return found
}

// unpacked runs the server of a tree with the tree's own loader and libraries.
func unpacked(tb testing.TB, root string) []string {
	tb.Helper()
	loaders, _ := filepath.Glob(filepath.Join(root, "usr/lib*/ld-linux*.so*"))
	libraries, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu*"))
	if len(loaders) == 0 || len(libraries) == 0 {
		tb.Fatalf("%s has no loader or no libraries: run make setup again", root)
	}
	return []string{
		loaders[0], "--library-path", strings.Join(libraries, ":"), filepath.Join(root, "usr/sbin/mysqld"),
		"--no-defaults", "--basedir=" + filepath.Join(root, "usr"),
	}
}
