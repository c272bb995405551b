package server

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// Engine is a server as people name one: a flavour and the first numbers of its version.
type Engine struct {
	Flavour mycnf.Flavour
	Version string // "9.7", "10.11.19", or newest
}

const newest = "newest"

var engineForm = regexp.MustCompile(`^(mysql|percona|mariadb)(?::(newest|\d{1,4}(?:\.\d{1,4}){0,2}))?$`)

// ParseEngine reads FLAVOUR:VERSION, as in mysql:9.7, FLAVOUR:newest, or FLAVOUR, which is the same; ok is
// false for anything else.
func ParseEngine(text string) (e Engine, ok bool) {
	m := engineForm.FindStringSubmatch(text)
	if m == nil {
		return e, false
	}
	return Engine{Flavour: mycnf.Flavour(m[1]), Version: cmp.Or(m[2], newest)}, true
}

// EngineForm says how an engine is named; it ends errors.
const EngineForm = "mysql, percona or mariadb, and where it matters its version, as in mysql:9.7"

// String writes the engine as ParseEngine reads it, never as a flavour alone.
func (e Engine) String() string { return string(e.Flavour) + ":" + e.Version }

// among takes the newest of the servers that are the engine and that david supports.
func (e Engine) among(all []Binary) (Binary, error) {
	var those []Binary
	var tooOld error
	for _, b := range all {
		if !e.is(b) {
			continue
		}
		if err := b.Supported(); err != nil {
			tooOld = cmp.Or(tooOld, err)
			continue
		}
		those = append(those, b)
	}
	switch {
	case len(those) > 0:
		return slices.MinFunc(those, func(a, b Binary) int {
			return slices.Compare(versionNumbers(b.Version), versionNumbers(a.Version))
		}), nil
	case tooOld != nil:
		return Binary{}, tooOld
	}
	return Binary{}, fmt.Errorf("cannot find the server %s on this machine: %s; %s", e, installedHere(all), Obtainable)
}

// is tells whether a binary is of the flavour, and its version begins with the numbers given.
func (e Engine) is(b Binary) bool {
	want, got := versionNumbers(e.Version), versionNumbers(b.Version) // of newest, no numbers
	return b.Flavour == e.Flavour && len(got) >= len(want) && slices.Equal(got[:len(want)], want)
}

// installedHere names the servers there are, as an engine is named.
func installedHere(all []Binary) string {
	var names []string
	for _, b := range all {
		name := Engine{Flavour: b.Flavour, Version: release(b.Version)}.String()
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "it has none"
	}
	return "it has " + strings.Join(names, ", ")
}

// release is a version's three numbers, or the version itself where it has no such form.
func release(version string) string {
	v, err := mycnf.ParseVersion(version)
	if err != nil {
		return version
	}
	return v.String()
}
