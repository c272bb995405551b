package advice

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"david/internal/mycnf"
)

// defaultsText is the data: one variable a line, explained at its top. It is checked by tests.
//
//go:embed defaults.txt
var defaultsText string

// since pairs a value with the version from which on it is the default.
type since struct {
	value string
	from  mycnf.Version
}

// defaultTable holds the defaults of MySQL and of MariaDB by variable.
type defaultTable map[string][2][]since

// defaults reads the embedded text once. It cannot fail in a binary whose tests have passed.
var defaults = sync.OnceValue(func() defaultTable {
	table, err := parseDefaults(defaultsText)
	if err != nil {
		panic(err)
	}
	return table
})

// parseDefaults reads the text, strictly.
func parseDefaults(text string) (defaultTable, error) {
	table := defaultTable{}
	for i, row := range strings.Split(text, "\n") {
		row, _, _ = strings.Cut(row, "#")
		if strings.TrimSpace(row) == "" {
			continue
		}
		cols := strings.Split(row, "|")
		if len(cols) != 3 {
			return nil, fmt.Errorf("cannot read defaults line %d: want 3 columns, got %d", i+1, len(cols))
		}
		name := strings.TrimSpace(cols[0])
		if _, twice := table[name]; twice || name == "" {
			return nil, fmt.Errorf("cannot read defaults line %d: %q is there twice, or is no name", i+1, name)
		}
		mysql, err := parseSince(cols[1])
		if err != nil {
			return nil, fmt.Errorf("cannot read defaults line %d: %w", i+1, err)
		}
		mariadb, err := parseSince(cols[2])
		if err != nil {
			return nil, fmt.Errorf("cannot read defaults line %d: %w", i+1, err)
		}
		table[name] = [2][]since{mysql, mariadb}
	}
	return table, nil
}

// parseSince reads "200; 10000 8.4+".
func parseSince(text string) ([]since, error) {
	if strings.TrimSpace(text) == "-" {
		return nil, nil
	}
	var list []since
	for i, part := range strings.Split(text, ";") {
		words := strings.Fields(part)
		if i == 0 && len(words) == 1 {
			list = append(list, since{value: words[0]})
			continue
		}
		if i == 0 || len(words) != 2 || !strings.HasSuffix(words[1], "+") {
			return nil, fmt.Errorf("%q is no value, or no value with a version as in 10000 8.4+", part)
		}
		v, err := mycnf.ParseVersion(strings.TrimSuffix(words[1], "+"))
		if err != nil {
			return nil, err
		}
		list = append(list, since{words[0], v})
	}
	return list, nil
}

// Defaults returns the values that a server of the version has without an option file, of the variables that
// the rules look at.
func Defaults(f mycnf.Flavour, v mycnf.Version) map[string]string {
	values := map[string]string{}
	column := 0
	if f == mycnf.MariaDB {
		column = 1
	}
	for name, row := range defaults() {
		if _, ok := mycnf.Lookup(name, f, v); !ok {
			continue
		}
		for _, s := range row[column] {
			if v.Compare(s.from) >= 0 {
				values[name] = s.value
			}
		}
	}
	return values
}

// Effective gives the values that a server of the version would have with an option file's settings, of the
// variables that the rules look at and of those set; and the settings as written, by name. A value that the
// server does not start with is nobody's: it is judged as a line, and the variable as if that were not there.
func Effective(f mycnf.Flavour, v mycnf.Version, settings []mycnf.Setting) (values, set map[string]string) {
	values, set = Defaults(f, v), map[string]string{}
	taken := slices.DeleteFunc(slices.Clone(settings), func(s mycnf.Setting) bool { return !mycnf.Starts(f, v, s) })
	asked := mycnf.Asked(f, v, taken)
	for name, value := range asked { // also what follows from others
		if _, known := values[name]; known {
			values[name] = value
		}
	}
	for _, s := range settings {
		set[s.Name] = s.Value
	}
	for _, s := range taken {
		name, value := s.Name, s.Value
		entry, ok := mycnf.Lookup(name, f, v)
		if old, renamed := oldNames()[name]; renamed && !ok {
			name, ok = old, true
		}
		if !ok && mycnf.Why(name, f, v) != "" { // the version does not have it
			continue
		}
		if entry.Reports != "" { // skip_log_bin
			name, value = entry.Reports, "OFF"
			set[name] = value
		}
		if read, there := asked[name]; there {
			value = read
		}
		values[name] = value
	}
	derive(f, v, values, set)
	return values, set
}

// derive corrects the values that follow from others: a dedicated server sizes itself, the bound of the I/O
// capacity is twice the capacity, and old names for the redo log are taken where the new one is not set.
func derive(f mycnf.Flavour, v mycnf.Version, values, set map[string]string) {
	if values["innodb_dedicated_server"] == "ON" {
		for _, name := range []string{"innodb_buffer_pool_size", "innodb_redo_log_capacity", "innodb_log_file_size", "innodb_log_files_in_group"} {
			if _, ok := set[name]; !ok {
				delete(values, name)
			}
		}
	}
	if io, err := mycnf.ParseSize(values["innodb_io_capacity"]); err == nil && set["innodb_io_capacity"] != "" && set["innodb_io_capacity_max"] == "" {
		values["innodb_io_capacity_max"] = strconv.FormatInt(max(2*min(io, 1<<60), 2000), 10)
	}
	_, capacity := set["innodb_redo_log_capacity"]
	_, size := set["innodb_log_file_size"]
	_, files := set["innodb_log_files_in_group"]
	if _, has := mycnf.Lookup("innodb_redo_log_capacity", f, v); !has || capacity || !size && !files {
		return
	}
	if total, ok := redoFiles(values); ok {
		values["innodb_redo_log_capacity"] = strconv.FormatInt(total, 10)
	}
}

// redoFiles returns the size of a redo log that is made of files, in bytes.
func redoFiles(values map[string]string) (int64, bool) {
	size, err := mycnf.ParseSize(values["innodb_log_file_size"])
	if err != nil || size == 0 {
		return 0, false
	}
	files, err := mycnf.ParseSize(values["innodb_log_files_in_group"])
	if err != nil || files == 0 {
		files = 1
	}
	if files > math.MaxInt64/size {
		return 0, false
	}
	return size * files, true
}

// oldNames are options that servers took under this name long before they had a variable of that name.
func oldNames() map[string]string {
	return map[string]string{"transaction_isolation": "tx_isolation", "transaction_read_only": "tx_read_only"}
}
