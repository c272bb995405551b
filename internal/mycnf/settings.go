package mycnf

import (
	"slices"
)

// Line is a line of an option file with what it means to a server.
type Line struct {
	Item
	Option
}

// Lines gives the lines of a server's groups as it takes them.
func (f File) Lines(flavour Flavour, v Version) (list []Line) {
	return f.lines(flavour, v, ServerGroups(flavour, v))
}

func (f File) lines(flavour Flavour, v Version, groups []string) (list []Line) {
	for _, item := range f.Items {
		if item.Include == "" && inGroup(item.Group, groups) {
			list = append(list, Line{item, Resolve(flavour, v, item.Name, item.Value, item.Bare)})
		}
	}
	return list
}

// inGroup compares as servers do: in any case, ASCII only.
func inGroup(name string, groups []string) bool {
	return slices.ContainsFunc(groups, func(g string) bool { return asciiLower(g) == asciiLower(name) })
}

func asciiLower(s string) string {
	lower := []byte(s)
	for i, c := range lower {
		if c >= 'A' && c <= 'Z' {
			lower[i] = c + 'a' - 'A'
		}
	}
	return string(lower)
}

// Settings lists what the file sets in the given sections, for any server. A variable set more than once has
// its last value and stands where it was first set. Names are canonical (see Canonical); a bare flag has an
// empty value.
func (f File) Settings(groups ...string) []Setting { return merge(f.lines("", Version{}, groups)) }

// ClientOptions returns the options of clients in the given sections, by name with underscores and without
// loose_: what a server would take for an abbreviation, as host of host_cache_size, is none here. The last one
// counts.
func (f File) ClientOptions(groups ...string) map[string]string {
	options := map[string]string{}
	for _, item := range f.Items {
		if item.Include == "" && inGroup(item.Group, groups) {
			options[WithoutLoose(item.Name)] = item.Value
		}
	}
	return options
}

// ServerSettings is Settings as a server of the flavour and version takes the file. Lines that it leaves out
// are none of them.
func (f File) ServerSettings(flavour Flavour, v Version) []Setting {
	return merge(f.Lines(flavour, v))
}

func merge(lines []Line) []Setting {
	var list []Setting
	at := map[string]int{}
	for _, l := range lines {
		if l.Ignored {
			continue
		}
		one := Setting{Name: l.Option.Name, Value: l.Option.Value, Group: catalogue()[l.Option.Name].Group}
		about := subject(one.Name)
		if l.Absent { // tx_isolation may be no option, and transaction_isolation stands under that name
			about = "no option: " + l.Item.Name
		}
		i, seen := at[about]
		if !seen {
			i = len(list)
			at[about] = i
			list = append(list, one)
		}
		list[i] = one
	}
	return list
}

// subject names the variable that a name sets: skip_log_bin is about log_bin, and the first of several names
// stands for all.
func subject(name string) string {
	if x := catalogue()[name]; x.Reports != "" {
		return x.Reports
	}
	return namesOf(name)[0]
}

// namesOf lists the names of a variable that has several, or had another one in an older release.
func namesOf(name string) []string {
	for _, names := range [][]string{{"log_slave_updates", "log_replica_updates"}, {"sync_master_info", "sync_source_info"},
		{"tx_isolation", "transaction_isolation"}, {"tx_read_only", "transaction_read_only"}} {
		if slices.Contains(names, name) {
			return names
		}
	}
	return []string{name}
}

// Asked returns what settings ask of a server of the flavour, by variable, as SHOW GLOBAL VARIABLES would
// print it: skip_innodb_doublewrite is innodb_doublewrite=OFF, and sync_binlog=0k is 0. What the server would
// not start with is as it was written.
func Asked(f Flavour, v Version, settings []Setting) map[string]string {
	values := map[string]string{}
	for _, s := range settings {
		o := resolveSetting(f, v, s.Name, s.Value)
		if o.Ignored || o.Absent && f != "" {
			continue
		}
		for _, name := range namesOf(subject(o.Name)) {
			values[name] = o.Reads
		}
	}
	if f != MariaDB {
		follow(values)
	}
	return values
}

// Starts tells whether a server starts with a setting that it has. One without a value may be a name alone, or a name
// with an empty one.
func Starts(f Flavour, v Version, s Setting) bool {
	o := resolveSetting(f, v, s.Name, s.Value)
	_, refused := o.Refused()
	if refused && s.Value == "" {
		_, refused = Resolve(f, v, s.Name, "", false).Refused()
	}
	return o.Absent || !refused
}

// follow adds what MySQL derives: a server that refuses administrators' writes refuses all, and one without a
// binary log has nothing to pass on.
func follow(values map[string]string) {
	if values["super_read_only"] == "ON" {
		values["read_only"] = "ON"
	}
	if _, asked := values["log_replica_updates"]; values["log_bin"] == "OFF" && !asked {
		values["log_slave_updates"], values["log_replica_updates"] = "OFF", "OFF"
	}
}

// resolveSetting is Resolve of what a setting has: "" is a name alone, but for what cannot do without a
// value.
func resolveSetting(f Flavour, v Version, name, value string) Option {
	o := Resolve(f, v, name, value, value == "")
	if value == "" && NeedsValue(o.Name) {
		return Resolve(f, v, name, value, false)
	}
	return o
}
