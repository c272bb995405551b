// Command summary ends `make test`: of the records of go test -json that it is given it tells what was
// skipped, the slowest tests, what failed with its output, and a line for each package as go test has it.
//
//	summary [-skips FILE] RECORD...
//
// It exits with 1 where a test or a package failed, or where a test was skipped that FILE does not name.
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// slowest tests are named, at most.
const slowest = 10

func run(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("summary", flag.ContinueOnError)
	flags.SetOutput(errs)
	allowed := flags.String("skips", "", "the `file` of tests that may be skipped; without it all may")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	s := summary{results: map[string]*outcome{}}
	for _, file := range flags.Args() {
		if err := s.read(file); err != nil {
			fmt.Fprintf(errs, "summary: %v\n", err)
			return 1
		}
	}
	bad := s.failures(out)
	if *allowed != "" {
		list, err := os.ReadFile(*allowed)
		if err != nil {
			fmt.Fprintf(errs, "summary: %v\n", err)
			return 1
		}
		bad = s.unexpected(out, string(list)) || bad
	}
	s.skipped(out)
	s.slow(out)
	s.packages(out)
	if bad {
		return 1
	}
	return 0
}

// event is one of test2json's (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
	// ImportPath of a package that is built for a test.
	ImportPath string
}

// outcome tells what came of a test, or of a package where test is "".
type outcome struct {
	pkg, test, action string
	seconds           float64
	output            strings.Builder
}

func (o *outcome) name() string { return strings.TrimPrefix(o.pkg, "david/") + " " + o.test }

// summary gathers what all records say, in the order of their beginnings.
type summary struct {
	results map[string]*outcome
	order   []*outcome
	builds  strings.Builder // what the compiler said
}

// read adds a record. A package that has no end in it was cut short, and has failed.
func (s *summary) read(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		switch {
		case e.Action == "build-output":
			s.builds.WriteString(e.Output)
		case e.Package != "":
			s.add(e)
		}
	}
	return lines.Err()
}

func (s *summary) add(e event) {
	key := e.Package + " " + e.Test
	o := s.results[key]
	if o == nil {
		o = &outcome{pkg: e.Package, test: e.Test, action: "cut short"}
		s.results[key] = o
		s.order = append(s.order, o)
	}
	switch e.Action {
	case "output":
		o.output.WriteString(e.Output)
	case "pass", "fail", "skip":
		o.action, o.seconds = e.Action, e.Elapsed
	}
}

// ended are the tests, or the packages, that ended in one of some ways.
func (s *summary) ended(tests bool, actions ...string) (list []*outcome) {
	for _, o := range s.order {
		if (o.test != "") == tests && slices.Contains(actions, o.action) {
			list = append(list, o)
		}
	}
	return list
}

// failures shows what failed, and tells whether anything did.
func (s *summary) failures(out io.Writer) bool {
	if s.builds.Len() > 0 {
		fmt.Fprintf(out, "=== what does not build\n%s", s.builds.String())
	}
	tests, packages := s.ended(true, "fail", "cut short"), s.ended(false, "fail", "cut short")
	for _, o := range tests {
		fmt.Fprintf(out, "=== %s: %s\n%s\n", o.action, o.name(), strings.TrimSpace(o.output.String()))
	}
	for _, o := range packages {
		if !slices.ContainsFunc(tests, func(t *outcome) bool { return t.pkg == o.pkg }) { // it did not build
			fmt.Fprintf(out, "=== %s: %s\n%s\n", o.action, o.name(), strings.TrimSpace(o.output.String()))
		}
	}
	if len(tests) > 0 {
		fmt.Fprintf(out, "%d tests failed:\n", len(tests))
	}
	for _, o := range tests {
		fmt.Fprintf(out, "  %s\n", o.name())
	}
	return len(tests)+len(packages) > 0
}

// unexpected names the tests that were skipped and are on no line of a list, and tells whether there are any.
// A line is a package, a test and the reason; a test that ends with /* stands for its subtests, and a line
// that begins with # is a comment.
func (s *summary) unexpected(out io.Writer, list string) bool {
	var allowed []string
	for line := range strings.Lines(list) {
		if f := strings.Fields(line); len(f) > 2 && f[0] != "#" {
			allowed = append(allowed, f[0]+" "+f[1])
		}
	}
	found := false
	for _, o := range s.ended(true, "skip") {
		if !slices.ContainsFunc(allowed, func(a string) bool { return a == o.name() || within(a, o.name()) }) {
			fmt.Fprintf(out, "skipped, and not on the list of what may be: %s\n", o.name())
			found = true
		}
	}
	return found
}

// within tells whether a name is that of a subtest of PACKAGE TEST/*.
func within(allowed, name string) bool {
	test, all := strings.CutSuffix(allowed, "*")
	return all && strings.HasSuffix(test, "/") && strings.HasPrefix(name, test)
}

// skipped shows what was skipped and why.
func (s *summary) skipped(out io.Writer) {
	list := s.ended(true, "skip")
	if len(list) > 0 {
		fmt.Fprintf(out, "%d tests were skipped:\n", len(list))
	}
	for _, o := range list {
		why := ""
		for line := range strings.Lines(o.output.String()) {
			if !strings.HasPrefix(strings.TrimSpace(line), "---") && !strings.HasPrefix(line, "===") {
				why = strings.TrimSpace(line)
			}
		}
		fmt.Fprintf(out, "  %s: %s\n", o.name(), why)
	}
}

// slow names the slowest tests, those that hold others left out.
func (s *summary) slow(out io.Writer) {
	list := slices.DeleteFunc(s.ended(true, "pass", "fail"), func(o *outcome) bool { return s.holds(o) })
	slices.SortStableFunc(list, func(a, b *outcome) int { return cmp.Compare(b.seconds, a.seconds) })
	list = list[:min(slowest, len(list))]
	if len(list) > 0 {
		fmt.Fprintf(out, "the %d slowest tests:\n", len(list))
	}
	for _, o := range list {
		fmt.Fprintf(out, "  %6.1f s  %s\n", o.seconds, o.name())
	}
}

// holds tells whether a test has subtests.
func (s *summary) holds(o *outcome) bool {
	return slices.ContainsFunc(s.order, func(x *outcome) bool { return x.pkg == o.pkg && strings.HasPrefix(x.test, o.test+"/") })
}

// packages has a line for each package, as go test prints it, the failed ones last.
func (s *summary) packages(out io.Writer) {
	for _, o := range s.ended(false, "pass") {
		fmt.Fprintf(out, "ok  \t%s\t%.3fs\n", o.pkg, o.seconds)
	}
	for _, o := range s.ended(false, "fail", "cut short") {
		fmt.Fprintf(out, "FAIL\t%s\t%.3fs\n", o.pkg, o.seconds)
	}
}
