package hostile

import (
	"path/filepath"

	"golang.org/x/sys/unix"
)

// noFiles are given in the place of a file, and are none.
func noFiles() (list []hostile) {
	pipe := func(dir string) error { return unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600) }
	for path, name := range map[string]string{"{dir}/pipe": "a pipe", "/dev/zero": "zeros", "/dev/random": "noise", "{dir}": "a folder", "/dev/tty": "a terminal"} {
		for what, args := range map[string][]string{
			"audit": {"audit", "--cnf", path}, "spec": {"experiment", "run", path, "--dry-run"}, "manifest": {"manifest", "--cnf", path, "--cpus", "1", "--memory", "1Gi", "--size", "10Gi", "--storage", "zfs", "--stdout"},
			"defaults": {"audit", "--defaults-file", path}, "catalogue": {"price", "catalogue", "--catalogue", path}, "crds": {"manifest", "check", path, "--crds", path},
			"rollback": {"rollback", path}, "show": {"show", path}, "crash-test": {"crash-test", "--server", "mysql", "--cnf", path},
		} {
			list = append(list, hostile{class: "file that is none", name: what + " of " + name, args: args, prepare: pipe})
		}
	}
	return list
}
