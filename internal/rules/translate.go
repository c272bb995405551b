package rules

import (
	"fmt"
	"slices"

	"david/internal/mycnf"
)

// logFiles counts the files of the redo log where innodb_log_files_in_group does not say.
const LogFiles = 2

// translate turns settings into those that the problem's server knows, and says in a sentence each what
// became of the rest. An old server does not start with a new name, nor a new one with an old name.
func (p Problem) translate(written []mycnf.Setting) (known []mycnf.Setting, notes []string) {
	known = []mycnf.Setting{}
	written, notes = p.redoNames(written)
	for _, s := range written {
		given := s.Name + "=" + s.Value
		s.Name = mycnf.WithoutLoose(s.Name)
		if !p.has(s.Name) {
			renamed, ok := p.renamed(s)
			if !ok {
				notes = append(notes, fmt.Sprintf("%s is left out: %s", given, p.absent(s.Name)))
				continue
			}
			notes = append(notes, fmt.Sprintf("%s became %s=%s", given, renamed.Name, renamed.Value))
			s = renamed
		}
		s.Group = "durability"
		if v, ok := mycnf.Lookup(s.Name, p.Flavour, p.Version); ok {
			s.Group = v.Group
		}
		known = append(known, s)
	}
	return known, notes
}

// isolation names an option of every server, also of those that report it as tx_isolation.
const isolation = "transaction_isolation"

func (p Problem) has(name string) bool {
	if name == isolation {
		return true
	}
	_, ok := mycnf.Lookup(name, p.Flavour, p.Version)
	return ok
}

// absent says why the server has no such variable.
func (p Problem) absent(name string) string {
	if why := mycnf.Why(name, p.Flavour, p.Version); why != "" {
		return why
	}
	return "david does not know the variable"
}

// renamed finds the variable that means the same on this server.
func (p Problem) renamed(s mycnf.Setting) (mycnf.Setting, bool) {
	for _, pair := range [][2]string{{"tx_isolation", isolation}, {"log_replica_updates", "log_slave_updates"},
		{"binlog_transaction_compression", "log_bin_compress"}} {
		for i, name := range pair {
			if other := pair[1-i]; s.Name == name && p.has(other) {
				s.Name = other
				return s, true
			}
		}
	}
	if s.Name == "temptable_use_mmap" && s.Value == "OFF" && p.has("temptable_max_mmap") { // the manual calls the two the same
		s.Name, s.Value = "temptable_max_mmap", "0"
		return s, true
	}
	return s, false
}

// redoNames brings the size of the redo log to this server's variables: one size for all, or that of each of
// several files.
func (p Problem) redoNames(written []mycnf.Setting) (settings []mycnf.Setting, notes []string) {
	at := func(name string) int {
		return slices.IndexFunc(settings, func(s mycnf.Setting) bool { return s.Name == name })
	}
	settings = slices.Clone(written)
	capacity, file := at("innodb_redo_log_capacity"), at("innodb_log_file_size")
	switch {
	case capacity >= 0 && !p.has("innodb_redo_log_capacity"):
		files := int64(LogFiles)
		if p.OneLogFile() {
			files = 1
		}
		settings[capacity], notes = resized(settings[capacity], "innodb_log_file_size", 1, files)
	case file >= 0 && (p.has("innodb_redo_log_capacity") || p.OneLogFile()):
		name, files := "innodb_log_file_size", int64(LogFiles)
		if p.has("innodb_redo_log_capacity") {
			name = "innodb_redo_log_capacity"
		}
		if i := at("innodb_log_files_in_group"); i >= 0 {
			files, _ = mycnf.ParseSize(settings[i].Value) // a number of ours
		}
		settings[file], notes = resized(settings[file], name, files, 1)
		settings = slices.DeleteFunc(settings, func(s mycnf.Setting) bool { return s.Name == "innodb_log_files_in_group" })
	}
	return settings, notes
}

// OneLogFile tells whether innodb_log_file_size is all of the redo log: MariaDB has had a single file since
// 10.5.
func (p Problem) OneLogFile() bool { return p.Flavour == mycnf.MariaDB && p.Version.AtLeast(10, 5, 0) }

// resized gives a setting another name, and its size times and divided by a number of files.
func resized(s mycnf.Setting, name string, times, by int64) (mycnf.Setting, []string) {
	given := s.Name + "=" + s.Value
	if times > 1 {
		given += fmt.Sprintf(" x %d", times)
	}
	n, err := mycnf.ParseSize(s.Value)
	if err != nil {
		return s, []string{fmt.Sprintf("%s is as it was written: %v", given, err)}
	}
	n = n * times / by
	s.Name, s.Value = name, mycnf.FormatSize(n)
	now := name + "=" + s.Value
	if by > 1 {
		now += fmt.Sprintf(" x %d", by)
	}
	return s, []string{given + " became " + now}
}
