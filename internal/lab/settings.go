package lab

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/rules"
	"david/internal/server"
)

// UserSettings reads an option file and single assignments, in this order, and holds them against what
// the binary knows. What would tie a sandbox to the system (paths, ports, users) is left out, with a
// word about it.
func (l Lab) UserSettings(ctx context.Context, b server.Binary, cnf string, sets []string) ([]mycnf.Setting, error) {
	v, err := mycnf.ParseVersion(b.Version)
	if err != nil {
		return nil, err
	}
	var all []mycnf.Setting
	if cnf != "" {
		file, err := ReadCnf(cnf)
		if err != nil {
			return nil, err
		}
		if err := l.doubts(file.Lines(b.Flavour, v)); err != nil {
			return nil, err
		}
		all = file.ServerSettings(b.Flavour, v)
	}
	for _, text := range sets {
		s, err := mycnf.ParseSetting(text)
		if err != nil {
			return nil, refuse("--set %s: %w", text, err)
		}
		all = append(all, s)
	}
	if cnf != "" && len(all) == 0 {
		l.logf("%s sets nothing for this server; its defaults are measured", cnf)
	}
	if len(all) == 0 {
		return nil, nil
	}
	known, err := server.Options(ctx, b)
	if err != nil {
		return nil, err
	}
	kept, left := mycnf.Isolate(all)
	for _, name := range left {
		l.logf("%s is left out: a sandbox has its own", name)
	}
	limit, err := l.Memory(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range kept {
		if err := Possible(s, limit); err != nil {
			return nil, err
		}
		if err := knownTo(b, v, known, s); err != nil {
			return nil, err
		}
	}
	return rules.Merge(nil, kept), nil
}

// doubts says what of an option file the server takes for something else than it seems, and refuses what it
// does not start with. Names that it does not know are left to those who ask it.
func (l Lab) doubts(lines []mycnf.Line) error {
	for _, line := range lines {
		for _, d := range line.Doubts {
			switch {
			case line.Absent:
			case d.Refused:
				return refuse("%s: %s: %s", line.Where(), line.Item.Name, d.Why)
			default:
				l.logf("%s: %s: %s", line.Where(), line.Item.Name, d.Why)
			}
		}
	}
	return nil
}

// Possible refuses what no server runs with, before data is prepared for it. memory is what this process
// may use, in bytes.
func Possible(s mycnf.Setting, memory int64) error {
	n, err := mycnf.ParseSize(s.Value)
	pages := []int64{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}
	switch name := mycnf.WithoutLoose(s.Name); {
	case s.Value == "" && mycnf.NeedsValue(name):
		return refuse("%s has no value: give %s=VALUE, or leave it out", s.Name, s.Name)
	case name == "innodb_page_size" && (err != nil || !slices.Contains(pages, n)):
		return refuse("innodb_page_size=%s: a page has 4K, 8K, 16K, 32K or 64K", s.Value)
	case name == "innodb_buffer_pool_size" && err == nil && n > memory:
		return refuse("innodb_buffer_pool_size=%s is more than the %s this process may use", s.Value, host.Size(memory))
	}
	return nil
}

// knownTo says what to do about a variable the binary does not know.
func knownTo(b server.Binary, v mycnf.Version, known map[string]string, s mycnf.Setting) error {
	name := s.Name
	if value, ok := known[name]; ok && s.Value == "" && mycnf.Bare(name) && !mycnf.Known(name) && value != "TRUE" && value != "FALSE" {
		return refuse("%s has no value: give %s=VALUE, or leave it out", name, name) // the server would take its next argument
	}
	if _, ok := known[name]; ok || strings.HasPrefix(name, "loose_") {
		return nil
	}
	for _, prefix := range []string{"skip_", "disable_", "enable_", "maximum_"} {
		if _, ok := known[strings.TrimPrefix(name, prefix)]; ok && strings.HasPrefix(name, prefix) {
			return nil
		}
	}
	why := mycnf.Why(name, b.Flavour, v)
	if why != "" {
		why = "; " + why
	}
	if near, ok := mycnf.Nearest(name, slices.Sorted(maps.Keys(known))); ok && why == "" {
		why = fmt.Sprintf("; did you mean %s?", near)
	}
	return refuse("%s %s has no variable %s%s", b.Flavour.Product(), b.Version, name, why)
}

// strip takes from a baseline what this build of the server does not have, and says so.
func strip(b server.Binary, v mycnf.Version, known map[string]string, of *rules.Baseline) {
	absent := func(s mycnf.Setting) bool { return knownTo(b, v, known, s) != nil }
	for _, s := range of.Shipped {
		if absent(s) {
			of.Translated = append(of.Translated, fmt.Sprintf("%s=%s is left out: this build of the server does not have it", s.Name, s.Value))
		}
	}
	of.Shipped, of.Settings = slices.DeleteFunc(of.Shipped, absent), slices.DeleteFunc(of.Settings, absent)
}
