package move

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"david/internal/input"
	"david/internal/mycnf"
)

// Said is a line of an option file that names a place in the data folder.
type Said struct {
	Where string `json:"where"` // "/etc/mysql/conf.d/data.cnf:3"
	Name  string `json:"name"`
	Value string `json:"value"`
}

// What is read of option files at most, and how deep servers follow includes (my_default.c).
const (
	mostOptionFiles = 200
	mostOptionBytes = 1 << 20
	mostIncludes    = 10
)

// launch is how a server was started: that of its process, or of the mysqld_safe that starts it again, which reads
// option files itself and gives the server what they say.
type launch struct {
	args []string
	env  map[string]string
	safe bool
}

func launchOf(pid int) (l launch, err error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return l, err
	}
	environ, err := p.Environ()
	if err != nil {
		return l, err
	}
	l.env = map[string]string{}
	for _, e := range environ {
		name, value, _ := strings.Cut(e, "=")
		l.env[name] = value
	}
	if l.args, err = p.CmdLine(); err != nil {
		return l, err
	}
	stat, err := p.Stat()
	if err != nil {
		return l, err
	}
	above, err := procfs.NewProc(stat.PPID)
	if err != nil {
		return l, nil // it ended meanwhile, or is not to be seen
	}
	args, err := above.CmdLine()
	if l.safe = err == nil && slices.ContainsFunc(args, isSafe); l.safe {
		l.args = args
	}
	return l, nil
}

func isSafe(word string) bool {
	return slices.Contains([]string{"mysqld_safe", "mariadbd-safe"}, filepath.Base(word))
}

// option returns the value of one of the options that say which files are read.
func (l launch) option(name string) string {
	for _, a := range l.args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// files are those that the server reads, in their order; the last line of all counts. needed are those that it does
// not start without.
func (l launch) files() (list []string, needed map[string]bool) {
	if slices.Contains(l.args, "--no-defaults") {
		return nil, nil
	}
	if file := l.option("defaults-file"); file != "" {
		return []string{file}, map[string]bool{file: true}
	}
	list = []string{"/etc/my.cnf", "/etc/mysql/my.cnf"}
	for _, name := range []string{"MARIADB_HOME", "MYSQL_HOME"} {
		if dir := l.env[name]; dir != "" {
			list = append(list, filepath.Join(dir, "my.cnf"))
		}
	}
	extra := l.option("defaults-extra-file")
	if extra != "" {
		list = append(list, extra)
	}
	if dir := l.env["HOME"]; dir != "" {
		list = append(list, filepath.Join(dir, ".my.cnf"))
	}
	return list, map[string]bool{extra: true}
}

// groups are the sections that count, the later ones over the earlier ones: those of the server, and of mysqld_safe.
func (l launch) groups(f mycnf.Flavour, v mycnf.Version) (list [][]string) {
	list = [][]string{mycnf.ServerGroups(f, v)}
	if l.safe {
		list = append(list, []string{"mysqld_safe", "safe_mysqld", "mariadb_safe", "mariadbd-safe", "mariadb-safe"})
	}
	if suffix := l.option("defaults-group-suffix"); suffix != "" || l.env["MYSQL_GROUP_SUFFIX"] != "" {
		if suffix == "" {
			suffix = l.env["MYSQL_GROUP_SUFFIX"]
		}
		for i, names := range list {
			for _, name := range names {
				list[i] = append(list[i], name+suffix)
			}
		}
	}
	return list
}

// given are the variables that the command line sets, whatever the files say.
func (l launch) given(f mycnf.Flavour, v mycnf.Version) map[string]bool {
	names := map[string]bool{}
	for _, a := range l.args {
		switch {
		case strings.HasPrefix(a, "--"):
			name, value, valued := strings.Cut(a[2:], "=")
			names[mycnf.Resolve(f, v, name, value, !valued).Name] = true
		case strings.HasPrefix(a, "-h"):
			names["datadir"] = true
		case strings.HasPrefix(a, "-t"):
			names["tmpdir"] = true
		}
	}
	return names
}

// optionFiles are what a server's option files say, as it would read them if it were started now.
type optionFiles struct {
	lines          []mycnf.Item
	read           []Said // the files and folders of them, and where they are included
	notes, refused []string
	left           int // bytes
}

// follow reads a file and what it includes. Servers leave out a file that is not there, or that everybody may write,
// and go on; without a folder of !includedir they do not start.
func (o *optionFiles) follow(path, where string, depth int, needed bool) {
	if !filepath.IsAbs(path) {
		o.note("%s is relative to the folder that the server is started in: not looked at", named(path, where))
		return
	}
	o.read = append(o.read, Said{Where: where, Value: path})
	text, mode, err := input.ReadMode(path, mostOptionBytes, 0)
	switch o.left -= len(text); {
	case errors.Is(err, fs.ErrNotExist):
		switch {
		case needed:
			o.refuse("the option file %s is not there, and the server does not start without it", path)
		case where != "":
			o.note("%s is not there: the server goes on without it", named(path, where))
		}
		return
	case err != nil:
		o.note("%s is not looked at: %v", named(path, where), err)
		return
	case len(o.read) > mostOptionFiles || o.left < 0:
		o.refuse("%s: with what is included it is more than david reads (%d files, %d bytes)", named(path, where), mostOptionFiles, mostOptionBytes)
		return
	case mode.IsRegular() && mode&0o002 != 0:
		o.note("%s may be written by everybody, so the server leaves it out", path)
		return
	}
	file, err := mycnf.Parse(bytes.NewReader(text), path)
	if err != nil {
		o.refuse("%v: the server may not start with it, mend it first", err)
		return
	}
	for _, item := range file.Items {
		if item.Include == "" {
			o.lines = append(o.lines, item)
		} else if len(o.refused) == 0 {
			o.include(item, depth)
		}
	}
}

// include follows a directive of a file that is so deep itself.
func (o *optionFiles) include(item mycnf.Item, depth int) {
	if depth == mostIncludes {
		o.note("%s includes %s, which is deeper than %d files: the server leaves it out", item.Where(), item.Include, mostIncludes)
		return
	}
	if !item.IncludeDir {
		o.follow(item.Include, item.Where(), depth+1, false)
		return
	}
	if !filepath.IsAbs(item.Include) {
		o.note("%s is relative to the folder that the server is started in: not looked at", named(item.Include, item.Where()))
		return
	}
	o.read = append(o.read, Said{Where: item.Where(), Value: item.Include})
	entries, err := input.Folder(item.Include)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		o.refuse("%s includes the folder %s, which is not there, and the server does not start without it: make it, or take the line out", item.Where(), item.Include)
		return
	case err != nil:
		o.note("%s is not looked at: %v", named(item.Include, item.Where()), err)
		return
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	for _, name := range mycnf.Included(names) {
		if len(o.refused) > 0 {
			return
		}
		o.follow(filepath.Join(item.Include, name), item.Where(), depth+1, false)
	}
}

func named(path, where string) string {
	if where == "" {
		return path
	}
	return path + ", included by " + where + ","
}

func (o *optionFiles) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(o.notes, text) { // what includes itself says it again
		o.notes = append(o.notes, text)
	}
}

func (o *optionFiles) refuse(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(o.refused, text) {
		o.refused = append(o.refused, text)
	}
}

// readOptions reads all that a server would read.
func readOptions(l launch) optionFiles {
	o := optionFiles{left: mostOptionBytes}
	list, needed := l.files()
	for _, path := range list {
		o.follow(path, "", 0, needed[path])
	}
	return o
}

// last are the lines that count, by the option's name. Those that the server does not start with are noted.
func (o *optionFiles) last(f mycnf.Flavour, v mycnf.Version, groups [][]string) map[string]mycnf.Item {
	last := map[string]mycnf.Item{}
	for i, names := range groups {
		for _, line := range o.lines {
			if !slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, line.Group) }) {
				continue
			}
			option := mycnf.Resolve(f, v, line.Name, line.Value, line.Bare)
			if why, refused := option.Refused(); refused && i == 0 { // mysqld_safe has options of its own
				o.note("%s: %s: %s, as far as david knows", line.Where(), line.Name, why)
			}
			line.Value = option.Value
			last[option.Name] = line
		}
	}
	return last
}

// pathOptions are the options that name places, by the variable that says so of a server that runs.
func pathOptions() map[string]string {
	list := map[string]string{"datadir": "datadir"}
	for _, name := range pathVariables() {
		list[strings.TrimSuffix(name, "_basename")] = name
	}
	return list
}

// decisive tells whether a server that is started with another value is another server, or one that cannot be
// reached: its data, its log of changes or its socket would be elsewhere.
func decisive(option string) bool {
	return slices.Contains([]string{"aria_log_dir_path", "datadir", "innodb_data_home_dir", "innodb_doublewrite_dir", "innodb_log_group_home_dir", "innodb_undo_directory", "log_bin", "relay_log", "socket"}, option)
}

// judge holds what the files say against the server that runs, and against the switch: real is the folder that its
// data are in, which is to be left.
func (o *optionFiles) judge(l launch, v map[string]string, r Route, real string) (said []Said) {
	flavour := mycnf.FlavourOf(v["version"], v["version_comment"])
	version, err := mycnf.ParseVersion(v["version"])
	if err != nil {
		o.note("the server's option files are not looked at: %v", err)
		return nil
	}
	for _, file := range o.read {
		if itself(file.Value, r, real) {
			o.refuse("%s lies in the place itself and is not named as in %s, so that it would go with --forget: give it as a path there, or keep it elsewhere", named(file.Value, file.Where), r.Link)
		}
	}
	last, given := o.last(flavour, version, l.groups(flavour, version)), l.given(flavour, version)
	for _, option := range slices.Sorted(maps.Keys(pathOptions())) {
		line, ok := last[option]
		if !ok || given[option] || line.Value == "" {
			continue
		}
		variable := pathOptions()[option]
		for _, value := range filepath.SplitList(strings.ReplaceAll(line.Value, ";", ":")) {
			if o.line(line, option, value, v, r, real) {
				said = append(said, Said{Where: line.Where(), Name: option, Value: value})
			}
		}
		if now := v[variable]; !samePlaces(option, line.Value, now, v["datadir"]) {
			text := fmt.Sprintf("%s says %s=%s, and the server runs with %s", line.Where(), option, line.Value, now)
			if decisive(option) {
				o.refuse("%s: its start after the stop would bring that, too: have the line say what the server runs with, or restart the server before", text)
			} else {
				o.note("%s: its start brings that", text)
			}
		}
	}
	if _, ok := last["datadir"]; !ok && !given["datadir"] && filepath.Clean(v["datadir"]) != "/var/lib/mysql" { // which most are built with
		o.note("neither the command line nor an option file says datadir=%s: the server was built with it, or has it from a file that david does not find, or its start brings another", v["datadir"])
	}
	return said
}

// line judges one value; within tells that it leads into the data by the path that the switch changes.
func (o *optionFiles) line(line mycnf.Item, option, value string, v map[string]string, r Route, real string) (within bool) {
	where, why := r.placed(value, filepath.Clean(v["datadir"]), real)
	if why != "" {
		o.refuse("%s: %s=%s %s", line.Where(), option, value, why)
		return false
	}
	return where == "" && filepath.IsAbs(value)
}

// itself tells whether a path leads into a folder, and not by the name that the switch leads elsewhere.
func itself(path string, r Route, real string) bool {
	return filepath.IsAbs(path) && inside(path, real, r.Link)
}

// samePlaces tells whether an option's value means what its variable is.
func samePlaces(option, value, now, datadir string) bool {
	split := func(text string) (list []string) {
		for _, path := range filepath.SplitList(strings.ReplaceAll(text, ";", ":")) {
			if !filepath.IsAbs(path) {
				path = filepath.Join(datadir, path)
			}
			if option == "log_bin" || option == "relay_log" { // whose files have numbers for extensions
				path = strings.TrimSuffix(path, filepath.Ext(path))
			}
			if to, err := resolved(filepath.Clean(path)); err == nil {
				path = to
			}
			list = append(list, strings.TrimSuffix(filepath.Clean(path), ".err"))
		}
		return list
	}
	return slices.Equal(split(value), split(now))
}

// leadsBy tells whether the way to a path goes by a name, through whatever links.
func leadsBy(path, name string) bool {
	at, rest := "/", strings.Split(strings.Trim(path, "/"), "/")
	for hops := 0; len(rest) > 0 && hops < 1000; hops++ {
		next := filepath.Join(at, rest[0])
		if rest = rest[1:]; next == name {
			return true
		}
		to, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		if !filepath.IsAbs(to) {
			to = filepath.Join(at, to)
		}
		at, rest = "/", append(strings.Split(strings.Trim(filepath.Clean(to), "/"), "/"), rest...)
	}
	return false
}

// options looks at the option files of a server. Those of one that sees other files than david are not looked at.
func options(pid int, v map[string]string, r Route, real string) (said []Said, refused, notes []string) {
	ours, err := os.Stat("/")
	theirs, unseen := os.Stat(proc(pid, "root"))
	if err != nil || unseen != nil || !os.SameFile(ours, theirs) {
		return nil, nil, []string{"the server's option files are not looked at: it sees other files than david, as in a container, or david may not see which"}
	}
	l, err := launchOf(pid)
	if err != nil {
		return nil, nil, []string{fmt.Sprintf("the server's option files are not looked at: david does not see how it was started: %v", err)}
	}
	o := readOptions(l)
	said = o.judge(l, v, r, real)
	return said, o.refused, o.notes
}
