package advice

import (
	"fmt"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// notPersistedRule names the rule whose lines change nothing while the server runs.
const notPersistedRule = "not-persisted"

// nameRules are about the names that were set.
func nameRules() []Rule {
	return []Rule{
		{
			Name: "unknown-variable", Severity: Down, Needs: []Need{NeedSet}, find: unknown,
			When:   "a variable is set that the version does not have; a note where the server takes the name and ignores it",
			Reason: "the server does not start with a variable it does not know",
			Source: "MySQL Server Version Reference; MariaDB manual, System Variables Added in; the server's own list where its binary is here",
		},
		{
			Name: "option-misread", Severity: Down, find: misread,
			When:   "a line of the option file is one that the server does not start with, or reads in another way than it looks: an abbreviation, capitals, a prefix that sets, a word that is neither ON nor OFF; a note where it starts",
			Reason: "what the line says and what the server has are two things",
			Source: "mysys/my_getopt.cc of MySQL and my_getopt.c of MariaDB; held against both servers by a test",
		},
		{
			Name: "deprecated-variable", Severity: Note, Needs: []Need{NeedSet}, find: deprecated,
			When:   "a variable is set that is deprecated in the version",
			Reason: "a later version will not start with it",
			Source: "MySQL manual, What Is New: Deprecated Features; MariaDB manual, System Variables",
		},
		{
			Name: notPersistedRule, Severity: Note, find: notPersisted,
			When:   "a variable that david knows was set on the running server with SET GLOBAL",
			Reason: "the next start brings back what the option file or the default says",
			Source: "MySQL manual, variables_info; MariaDB manual, information_schema.SYSTEM_VARIABLES",
		},
	}
}

func unknown(in Facts) (hits []hit) {
	for _, name := range sortedKeys(in.Set) {
		if in.Live || strings.HasPrefix(name, "loose_") || in.takes(name) {
			continue
		}
		why, sure := in.why(name)
		if !sure {
			continue
		}
		h := hit{variable: name, evidence: why, line: "# " + line(name, in.Set[name])}
		if mycnf.Ignored(name, in.Flavour, in.Version) {
			h.severity, h.reason = Note, "it does nothing"
		}
		hits = append(hits, h)
	}
	return hits
}

// misread reports the lines that a server takes for something else. Names that it does not have are another
// rule's.
func misread(in Facts) (hits []hit) {
	for _, l := range in.Lines {
		for _, d := range l.Doubts {
			if l.Absent {
				continue
			}
			h := hit{variable: l.Option.Name, evidence: fmt.Sprintf("%s: %s", l.Item.Name, d.Why), where: l.Where(), line: "# " + line(l.Item.Name, l.Item.Value)}
			if !d.Refused {
				h.severity, h.reason = Note, "the server starts, and the next reader may take the line for another one"
			}
			hits = append(hits, h)
		}
	}
	return hits
}

// takes tells whether the version has the name, as far as the catalogue or the binary knows.
func (in Facts) takes(name string) bool {
	if in.absentLine(name) != "" {
		return false
	}
	if _, ok := mycnf.Lookup(name, in.Flavour, in.Version); ok || mycnf.Listed(in.Flavour, in.Version, name) {
		return true
	}
	if _, renamed := oldNames()[name]; renamed {
		return true
	}
	if slices.Contains(in.Known, name) {
		return mycnf.Why(name, in.Flavour, in.Version) == ""
	}
	for _, prefix := range []string{"skip_", "disable_", "enable_", "maximum_"} {
		if rest, found := strings.CutPrefix(name, prefix); found && slices.Contains(in.Known, rest) {
			return true
		}
	}
	return false
}

// why says what is wrong with a name that the version does not seem to have. It is not sure where neither the
// catalogue nor a binary knows of the name.
func (in Facts) why(name string) (why string, sure bool) {
	if why := mycnf.Why(name, in.Flavour, in.Version); why != "" {
		return why, true
	}
	if in.ofPlugin(name) {
		return "", false
	}
	if why := in.absentLine(name); why != "" && mycnf.AnyServers(name) {
		return why, true
	}
	if !mycnf.AnyServers(name) {
		return in.unheard(name), true
	}
	if in.Known == nil {
		return "", false
	}
	why = "the server has no variable of this name"
	if near, ok := mycnf.Nearest(name, in.Known); ok {
		why += fmt.Sprintf("; did you mean %s?", near)
	}
	return why, true
}

// absentLine says why the server has no option that a line of the file sets; "" where it has it.
func (in Facts) absentLine(name string) string {
	for _, l := range in.Lines {
		if l.Absent && l.Option.Name == name {
			return l.Doubts[len(l.Doubts)-1].Why
		}
	}
	return ""
}

// unheard says that no server has a name.
func (in Facts) unheard(name string) string {
	if lower := mycnf.Normalise(name); lower != name && mycnf.AnyServers(lower) {
		return "it is written with capitals, which the server does not take for " + lower
	}
	if meant, ok := mycnf.Mistyped(name); ok {
		return fmt.Sprintf("no server has a variable of this name; did you mean %s?", meant)
	}
	return "no server has a variable of this name"
}

// ofPlugin tells whether a name may be a plugin's or a component's, which the server learns only once it is
// loaded.
func (in Facts) ofPlugin(name string) bool {
	_, load := in.Set["plugin_load"]
	_, add := in.Set["plugin_load_add"]
	return load || add || strings.Contains(name, ".")
}

// Unjudged lists the names set of which neither the catalogue nor a binary knows whether the version has
// them.
func (in Facts) Unjudged() (names []string) {
	for _, name := range sortedKeys(in.Set) {
		if _, sure := in.why(name); !in.Live && !sure && !in.takes(name) && !strings.HasPrefix(name, "loose_") {
			names = append(names, name)
		}
	}
	return names
}

// deprecation describes a name, the flavour and version from which on it is deprecated, and what to use
// instead.
type deprecation struct {
	name    string
	flavour mycnf.Flavour
	from    mycnf.Version
	instead string
}

// deprecations, from the manuals; of MySQL's those that the servers' own warnings name at the start.
func deprecations() []deprecation {
	v := func(major, minor, patch int) mycnf.Version {
		return mycnf.Version{Major: major, Minor: minor, Patch: patch}
	}
	const my, maria = mycnf.MySQL, mycnf.MariaDB
	return []deprecation{
		{"innodb_log_file_size", my, v(8, 0, 30), "innodb_redo_log_capacity"},
		{"innodb_log_files_in_group", my, v(8, 0, 30), "innodb_redo_log_capacity"},
		{"innodb_undo_tablespaces", my, v(8, 0, 4), ""},
		{"binlog_format", my, v(8, 0, 34), "ROW, which is the default"},
		{"expire_logs_days", my, v(8, 0, 3), "binlog_expire_logs_seconds"},
		{"default_authentication_plugin", my, v(8, 0, 27), "authentication_policy"},
		{"binlog_transaction_dependency_tracking", my, v(8, 0, 35), ""},
		{"transaction_write_set_extraction", my, v(8, 0, 26), ""},
		{"temptable_use_mmap", my, v(8, 0, 26), "temptable_max_mmap"},
		{"log_slave_updates", my, v(8, 0, 26), "log_replica_updates"},
		{"slave_parallel_workers", my, v(8, 0, 26), "replica_parallel_workers"},
		{"slave_preserve_commit_order", my, v(8, 0, 26), "replica_preserve_commit_order"},
		{"master_verify_checksum", my, v(8, 0, 26), "source_verify_checksum"},
		{"sync_master_info", my, v(8, 0, 26), "sync_source_info"},
		{"binlog_max_flush_queue_time", my, v(5, 7, 9), ""},
		{"innodb_flush_method", maria, v(11, 0, 1), "innodb_data_file_buffering"},
		{"innodb_change_buffering", maria, v(10, 9, 0), ""},
		{"innodb_file_per_table", maria, v(11, 0, 1), ""},
	}
}

func deprecated(in Facts) (hits []hit) {
	for _, d := range deprecations() {
		value, set := in.Set[d.name]
		ours := d.flavour == in.Flavour || d.flavour == mycnf.MySQL && in.Flavour == mycnf.Percona
		if _, has := mycnf.Lookup(d.name, in.Flavour, in.Version); !set || !ours || !has || in.Version.Compare(d.from) < 0 {
			continue
		}
		evidence := fmt.Sprintf("%s is deprecated since %s", d.name, d.from)
		if d.instead != "" {
			evidence += "; use " + d.instead
		}
		hits = append(hits, hit{variable: d.name, evidence: evidence, line: "# " + line(d.name, value)})
		if h := in.keepRedo(d, evidence); len(hits) == 1 {
			hits = append(hits, h...)
		}
	}
	return hits
}

// keepRedo has the redo log keep its size where the old names that give it are taken out, unless another rule
// proposes one.
func (in Facts) keepRedo(d deprecation, evidence string) []hit {
	const name = "innodb_redo_log_capacity"
	size, ok := in.size(name)
	if _, set := in.Set[name]; d.instead != name || !ok || set || len(redoLarge(in)) > 0 && in.redoRoom() > 0 || len(redoSmall(in)) > 0 {
		return nil
	}
	return []hit{{variable: name, evidence: evidence, line: line(name, mycnf.FormatSize(size))}}
}

func notPersisted(in Facts) (hits []hit) {
	for _, name := range in.Lost {
		entry, known := mycnf.Lookup(name, in.Flavour, in.Version)
		if value, there := in.Variables[name]; known && there && entry.Kind != mycnf.KindPath {
			hits = append(hits, hit{variable: name, evidence: fmt.Sprintf("%s is %s by SET GLOBAL", name, in.shown(name)), line: line(name, value)})
		}
	}
	return hits
}
