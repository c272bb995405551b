package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/rules"
	"david/internal/server"
)

// userSettings reads --cnf and --set, in this order, and holds them against what the binary knows. What would tie a
// sandbox to the system (paths, ports, users) is left out, with a word about it.
func (a *app) userSettings(ctx context.Context, b server.Binary, cnf string, sets []string) ([]mycnf.Setting, error) {
	v, err := mycnf.ParseVersion(b.Version)
	if err != nil {
		return nil, err
	}
	var all []mycnf.Setting
	if cnf != "" {
		file, err := readCnf(cnf)
		if err != nil {
			return nil, err
		}
		all = file.Settings(mycnf.ServerGroups(b.Flavour, v)...)
	}
	for _, text := range sets {
		s, err := mycnf.ParseSetting(text)
		if err != nil {
			return nil, usage("--set %s: %w", text, err)
		}
		all = append(all, s)
	}
	if cnf != "" && len(all) == 0 {
		fmt.Fprintf(a.err, "david: %s sets nothing for this server; its defaults are measured\n", cnf)
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
		fmt.Fprintf(a.err, "david: %s is left out: a sandbox has its own\n", name)
	}
	limit, err := a.memory(ctx)
	if err != nil {
		return nil, err
	}
	for _, s := range kept {
		if err := possible(s, limit); err != nil {
			return nil, err
		}
		if err := knownTo(b, v, known, s); err != nil {
			return nil, err
		}
	}
	return rules.Merge(nil, kept), nil
}

// readCnf reads an option file with what it includes.
func readCnf(path string) (mycnf.File, error) {
	if err := regular("option file", path); err != nil {
		return mycnf.File{}, codedError{exitUsage, err}
	}
	return readOptions(path)
}

// readOptions is readCnf of anything that can be read, a shell's <(command) too.
func readOptions(path string) (mycnf.File, error) {
	file, err := parseFile(path)
	if err == nil {
		file, err = file.Expand(included)
	}
	if err != nil {
		return file, codedError{exitUsage, err}
	}
	return file, nil
}

// regular refuses what is there and is no regular file: a named pipe would be waited for, and a device read, without end. What is not there is
// left to those who open it.
func regular(what, path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("cannot read the %s: %s is no regular file", what, path)
	}
	return nil
}

func parseFile(path string) (mycnf.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return mycnf.File{}, fmt.Errorf("cannot read the option file: %w", err)
	}
	defer f.Close()
	return mycnf.Parse(f, path)
}

// included reads what a !include or !includedir names; of a folder the .cnf files, in the order of their names, as the
// servers do.
func included(directive mycnf.Item) ([]mycnf.File, error) {
	paths := []string{directive.Include}
	if directive.IncludeDir {
		entries, err := os.ReadDir(directive.Include)
		if err != nil {
			return nil, err
		}
		paths = nil
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".cnf") {
				paths = append(paths, filepath.Join(directive.Include, e.Name()))
			}
		}
	}
	var files []mycnf.File
	for _, path := range paths {
		if err := regular("option file", path); err != nil {
			return nil, err
		}
		f, err := parseFile(path)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

// possible refuses what no server runs with, before data is prepared for it. memory is what this process may use, in bytes.
func possible(s mycnf.Setting, memory int64) error {
	n, err := mycnf.ParseSize(s.Value)
	pages := []int64{4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}
	switch name := mycnf.WithoutLoose(s.Name); {
	case s.Value == "" && mycnf.NeedsValue(name):
		return usage("%s has no value: give %s=VALUE, or leave it out", s.Name, s.Name)
	case name == "innodb_page_size" && (err != nil || !slices.Contains(pages, n)):
		return usage("innodb_page_size=%s: a page has 4K, 8K, 16K, 32K or 64K", s.Value)
	case name == "innodb_buffer_pool_size" && err == nil && n > memory:
		return usage("innodb_buffer_pool_size=%s is more than the %s this process may use", s.Value, size(memory))
	}
	return nil
}

// knownTo says what to do about a variable the binary does not know.
func knownTo(b server.Binary, v mycnf.Version, known map[string]string, s mycnf.Setting) error {
	name := s.Name
	if value, ok := known[name]; ok && s.Value == "" && mycnf.Bare(name) && !mycnf.Known(name) && value != "TRUE" && value != "FALSE" {
		return usage("%s has no value: give %s=VALUE, or leave it out", name, name) // the server would take its next argument
	}
	if _, ok := known[name]; ok || strings.HasPrefix(name, "loose_") {
		return nil
	}
	for _, prefix := range []string{"skip_", "disable_", "enable_", "maximum_"} {
		if _, ok := known[strings.TrimPrefix(name, prefix)]; ok && strings.HasPrefix(name, prefix) {
			return nil
		}
	}
	why := prefixed("; ", mycnf.Why(name, b.Flavour, v))
	if near, ok := mycnf.Nearest(name, slices.Sorted(maps.Keys(known))); ok && why == "" {
		why = fmt.Sprintf("; did you mean %s?", near)
	}
	return usage("%s %s has no variable %s%s", flavourName(b.Flavour), b.Version, name, why)
}

// clientOptions reads the [client] group of an option file as MySQL's own clients do: --defaults-file, else ~/.my.cnf.
// ok is false where none is there and none was named.
func (a *app) clientOptions(path string) (options map[string]string, ok bool, err error) {
	named := path != ""
	if !named {
		path = filepath.Join(a.env("HOME"), ".my.cnf")
	}
	if _, err := os.Stat(path); err != nil && !named {
		return nil, false, nil
	}
	file, err := readOptions(path)
	if err != nil {
		return nil, false, err
	}
	options = map[string]string{}
	for _, s := range file.Settings("client", "mysql") {
		options[s.Name] = s.Value
	}
	return options, true, nil
}
