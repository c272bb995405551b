package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
)

// floors has the floor of each package, by its path below internal: 0 is the highest.
type floors map[string]int

// columns splits a line into its packages and the description that may follow.
var columns = regexp.MustCompile(` {2,}`)

// names matches what a package may be called; "manifest (+ 4)" stands for those below it as well.
var names = regexp.MustCompile(`^[a-z]+( \(\+ \d+\))?$`)

// readFloors reads the picture below "## The floors": a line has the name of its floor, or none, then
// packages, then what they are for. A ruler separates the floors.
func readFloors(path string) (floors, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	_, after, found := strings.Cut(string(text), "\n## The floors\n")
	_, after, fenced := strings.Cut(after, "\n```\n")
	picture, _, closed := strings.Cut(after, "\n```\n")
	if !found || !fenced || !closed {
		return nil, fmt.Errorf("%s has no picture of the floors", path)
	}
	f, floor := floors{}, 0
	for line := range strings.Lines(picture) {
		if strings.Contains(line, "-----") {
			floor++
			continue
		}
		for i, cell := range columns.Split(strings.TrimRight(line, "\n"), -1) {
			if i > 0 && names.MatchString(cell) { // the first is the floor's own name
				name, _, _ := strings.Cut(cell, " ")
				f[name] = floor
			}
		}
	}
	return f, nil
}

// of is the floor of a package: its own, or that of the package it lies below.
func (f floors) of(path string) (int, error) {
	for name := path; ; {
		if floor, ok := f[name]; ok {
			return floor, nil
		}
		i := strings.LastIndex(name, "/")
		if i < 0 {
			return 0, fmt.Errorf("the picture of the floors has no package %s", path)
		}
		name = name[:i]
	}
}
