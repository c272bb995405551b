package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/advice"
	"david/internal/host"
	"david/internal/mycnf"
)

// seeStorage looks at what is under the folders that the server, or the option file, keeps its data in, where
// they are on this machine.
func seeStorage(ctx context.Context, in *advice.Facts) {
	for _, dir := range dataFolders(in.Variables) {
		flushes, err := host.FindFlushes(ctx, dir)
		if err != nil {
			flushes.Unseen = append(flushes.Unseen, err.Error())
		}
		for _, u := range flushes.Unseen {
			in.Unseen = append(in.Unseen, "whether the storage flushes: "+u)
		}
		in.Machine.StorageSeen = in.Machine.StorageSeen || err == nil
		for _, u := range flushes.LeftOut {
			addUnflushed(&in.Machine, advice.Unflushed{Evidence: u.String(), Sure: u.Sure})
		}
		for _, disk := range flushes.Volatile {
			if !slices.Contains(in.Machine.Volatile, disk) {
				in.Machine.Volatile = append(in.Machine.Volatile, disk)
			}
		}
	}
}

func addUnflushed(m *advice.Machine, u advice.Unflushed) {
	if !slices.Contains(m.Unflushed, u) {
		m.Unflushed = append(m.Unflushed, u)
	}
}

// dataFolders lists the folders of data, redo log, undo log, doublewrite buffer and binary log that are
// there, each once.
func dataFolders(vars map[string]string) (dirs []string) {
	data := vars["datadir"]
	for _, name := range []string{"datadir", "innodb_data_home_dir", "innodb_log_group_home_dir", "innodb_undo_directory", "innodb_doublewrite_dir", "log_bin_basename"} {
		dir := vars[name]
		if dir == "" {
			continue
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(data, dir)
		}
		if name == "log_bin_basename" {
			dir = filepath.Dir(dir)
		}
		if dir = filepath.Clean(dir); isFolder(dir) && filepath.IsAbs(dir) && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// seeProcess looks at a server's process: at libraries that make fsync do nothing, and at options of its
// command line that no server reports.
func seeProcess(pid int, in *advice.Facts) {
	if pid == 0 {
		return
	}
	names, err := host.Preloaded(pid)
	if err != nil {
		in.Unseen = append(in.Unseen, fmt.Sprintf("whether a library such as libeatmydata is in the server's process: %v", err))
	}
	for _, name := range names {
		addUnflushed(&in.Machine, advice.Unflushed{Evidence: fmt.Sprintf("process %d has %s: fsync does nothing", pid, name), Sure: true})
	}
	argv, err := host.CommandLine(pid)
	if err != nil || len(argv) == 0 {
		return
	}
	for name, value := range unreported(in.Flavour, in.Version, argv[1:]) {
		in.Variables[name] = value
	}
}

// unreported reads the options of a command line that are members of the lock and no variables.
func unreported(f mycnf.Flavour, v mycnf.Version, args []string) map[string]string {
	var settings []mycnf.Setting
	for _, arg := range args {
		if option, ok := strings.CutPrefix(arg, "--"); ok {
			name, value, _ := strings.Cut(option, "=")
			settings = append(settings, mycnf.Setting{Name: name, Value: value})
		}
	}
	values, asked := map[string]string{}, mycnf.Asked(f, v, settings)
	for _, l := range mycnf.Lock(f) {
		if value, set := asked[l.Name]; set && l.Unreported {
			values[l.Name] = value
		}
	}
	return values
}
