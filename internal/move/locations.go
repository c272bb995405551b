package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// Elsewhere is something of the server's that does not lie in its folder: it stays where it is.
type Elsewhere struct {
	Name string `json:"name"` // the variable, or the link in the folder
	Path string `json:"path"`
}

// pathVariables hold files and folders that a server writes to. Of a list ("innodb_directories") each entry
// counts.
func pathVariables() []string {
	return []string{"aria_log_dir_path", "general_log_file", "innodb_data_home_dir", "innodb_directories", "innodb_doublewrite_dir", "innodb_log_group_home_dir",
		"innodb_temp_tablespaces_dir", "innodb_tmpdir", "innodb_undo_directory", "log_bin_basename", "log_bin_index", "log_error", "pid_file", "relay_log_basename",
		"relay_log_index", "replica_load_tmpdir", "rocksdb_datadir", "rocksdb_wal_dir", "slave_load_tmpdir", "slow_query_log_file", "socket", "tmpdir"}
}

// setting is a value that names a file or a folder, and the variable that has it.
type setting struct{ variable, value string }

// tablespaceFiles are the variables that list the files of InnoDB's own tablespaces ("ibdata1:12M;/more/ibdata2:1G:autoextend").
func tablespaceFiles() []string {
	return []string{"innodb_data_file_path", "innodb_temp_data_file_path"}
}

// writesBy tells whether a variable names what a server writes to; what stays elsewhere by a link has the link's name.
func writesBy(variable string) bool {
	return slices.Contains(pathVariables(), variable) || slices.Contains(tablespaceFiles(), variable)
}

// places are the files and folders that a server writes to, by its variables.
func places(v map[string]string) (list []setting) {
	for _, name := range pathVariables() {
		for _, value := range filepath.SplitList(strings.ReplaceAll(v[name], ";", ":")) {
			if value != "" && (name != "log_error" || value != "stderr") {
				list = append(list, setting{name, value})
			}
		}
	}
	for _, name := range tablespaceFiles() {
		for file := range strings.SplitSeq(v[name], ";") {
			file, _, _ = strings.Cut(file, ":")
			if home := v["innodb_data_home_dir"]; file != "" && home != "" && !filepath.IsAbs(file) {
				file = home + "/" + file // not joined, which would resolve what leads up
			}
			if file != "" {
				list = append(list, setting{name, file})
			}
		}
	}
	return list
}

// locate sorts where a server's files lie: what is elsewhere stays there. refused are those that would mean
// another place after the move: names that lead out of the folder by "..", and those that call a folder that
// is a link already by its real name.
func locate(v map[string]string, r Route, real string) (stays []Elsewhere, refused []string) {
	datadir := filepath.Clean(v["datadir"])
	for _, n := range places(v) {
		where, why := r.placed(n.value, datadir, real)
		if where != "" {
			stays = append(stays, Elsewhere{n.variable, where})
		}
		if why != "" {
			refused = append(refused, fmt.Sprintf("%s=%s %s", n.variable, n.value, why))
		}
	}
	for _, n := range others(v) { // which it reads: keys, certificates, programs
		if inside(n.value, real, r.Link) {
			refused = append(refused, fmt.Sprintf("%s=%s %s", n.variable, n.value, r.unmoved()))
		}
	}
	return stays, refused
}

// others are the absolute paths among all other variables.
func others(v map[string]string) (list []setting) {
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if name == "datadir" || writesBy(name) {
			continue
		}
		for _, value := range filepath.SplitList(strings.ReplaceAll(v[name], ";", ":")) {
			if filepath.IsAbs(value) {
				list = append(list, setting{name, value})
			}
		}
	}
	return list
}

// inside tells whether a path leads into a place by the place's own name, and not by the link that the switch changes.
func inside(path, place, link string) bool {
	path = filepath.Clean(path)
	to, err := resolved(path)
	return err == nil && within(to, place) && !within(path, link) && !leadsBy(path, link)
}

// strays are the values of a server that runs that name something in the place that it has left: to remove that, or to copy over
// it, takes it away.
func strays(v map[string]string, idle, link string) (list []string) {
	for _, n := range append(places(v), others(v)...) {
		if filepath.IsAbs(n.value) && inside(n.value, idle, link) {
			list = append(list, fmt.Sprintf("%s=%s", n.variable, n.value))
		}
	}
	return list
}

// noSuchTable is the number of the error of a table that is not there.
const noSuchTable = 1146

// keyring is the variable's name that variables gives the file of MySQL's keyring component, which has none.
const keyring = "component keyring, Data_file"

// variables are those of a server, and the file of its keyring component.
func variables(ctx context.Context, conn *mysqld.Conn) (map[string]string, error) {
	v, err := conn.Variables(ctx)
	if err != nil {
		return nil, err
	}
	if mycnf.FlavourOf(v["version"], v["version_comment"]) == mycnf.MariaDB {
		return v, nil
	}
	status, err := conn.Pairs(ctx, "SELECT STATUS_KEY, STATUS_VALUE FROM performance_schema.keyring_component_status")
	if err != nil && mysqld.Number(err) != noSuchTable { // before MySQL 8.0.24
		return nil, fmt.Errorf("cannot see where the keyring lies: %w", err)
	}
	v[keyring] = status["data_file"]
	return v, nil
}

// placed says where a value leads: "" for the folder itself. why says that the move would change that.
// datadir is the folder as the server spells it, real as it is without links.
func (r Route) placed(value, datadir, real string) (where, why string) {
	if slices.Contains(strings.Split(value, "/"), "..") {
		return "", "leads up by \"..\", so that it may mean another place after the move: give the server its path without that first"
	}
	path := filepath.Clean(value)
	if !filepath.IsAbs(path) {
		path = filepath.Join(datadir, path)
	}
	if within(path, datadir) || within(path, r.Link) {
		return "", ""
	}
	to, err := resolved(path)
	switch {
	case err != nil || !within(to, real):
		return path, ""
	case leadsBy(path, r.Link):
		return "", ""
	}
	return "", r.unmoved()
}

// unmoved says of a path that leads to a place by the place's own name that the switch does not change it.
func (r Route) unmoved() string {
	return fmt.Sprintf("names the place itself and not %s, so that it would stay there: give it as a path in %s first", r.Link, r.Link)
}

// systemFile is the first file of the InnoDB system tablespace, relative to the folder; "" where it lies
// elsewhere. A server locks it.
func systemFile(v map[string]string, link string) string {
	first, _, _ := strings.Cut(v["innodb_data_file_path"], ";")
	name, _, _ := strings.Cut(first, ":")
	path := filepath.Join(v["innodb_data_home_dir"], cmp.Or(name, "ibdata1"))
	if filepath.IsAbs(path) && within(path, link) {
		path = strings.TrimPrefix(path, link+"/")
	}
	if !filepath.IsLocal(path) {
		return ""
	}
	return path
}

// tablespaces adds those tables that MariaDB was told to keep elsewhere (DATA DIRECTORY): a file NAME.isl holds the path.
// MySQL keeps such paths in its dictionary, and takes none that is not in innodb_directories.
func (p *Plan) tablespaces(root *os.Root, files []file, real string) error {
	for _, f := range files {
		if !f.mode.IsRegular() || filepath.Ext(f.name) != ".isl" {
			continue
		}
		text, err := root.ReadFile(f.name)
		if errors.Is(err, fs.ErrNotExist) { // its table was dropped meanwhile
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot see where the table of %s lies: %w", f.name, err)
		}
		where, why := p.Route.placed(strings.TrimSpace(string(text)), p.Route.Link, real)
		if why != "" {
			p.Refused = append(p.Refused, fmt.Sprintf("the table of %s: %s %s", f.name, strings.TrimSpace(string(text)), why))
		}
		if where != "" {
			p.Elsewhere = append(p.Elsewhere, Elsewhere{f.name, where})
		}
	}
	return nil
}

// linked are the links in a folder: what they lead to stays where it is. refused are those that would lead
// elsewhere after the move, or to the place that the server has left.
func (r Route) linked(files []file, real string) (stays []Elsewhere, refused []string) {
	for _, f := range files {
		if f.link == "" {
			continue
		}
		path := f.link
		if !filepath.IsAbs(path) {
			path = filepath.Join(real, filepath.Dir(f.name), path)
			if !within(path, real) {
				refused = append(refused, fmt.Sprintf("the link %s leads out of the data folder by a relative path (%s): make it absolute first", f.name, f.link))
			}
			continue
		}
		where, why := r.placed(path, r.Link, real)
		if why != "" {
			refused = append(refused, fmt.Sprintf("the link %s leads to %s, which %s", f.name, path, why))
		}
		if where != "" {
			stays = append(stays, Elsewhere{f.name, where})
		}
	}
	return slices.Clip(stays), refused
}
