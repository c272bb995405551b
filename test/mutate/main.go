// Command mutate breaks lines on purpose, one at a time, and sees whether the tests notice: a test that
// passes with the line broken does not hold it.
//
//	go run ./test/mutate [-only TEXT] [test/mutate/mutations.txt]
//
// The tree is not touched: go test gets the broken file by -overlay. It exits with 1 where a mutation
// survives, or no longer fits its file.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	flags.SetOutput(errs)
	only := flags.String("only", "", "run those alone whose line holds this `text`")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	file := "test/mutate/mutations.txt"
	if flags.NArg() > 0 {
		file = flags.Arg(0)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintf(errs, "mutate: %v\n", err)
		return 1
	}
	list, err := parse(string(text))
	if err != nil {
		fmt.Fprintf(errs, "mutate: %s: %v\n", file, err)
		return 1
	}
	ran, left, whole := 0, 0, map[string]error{}
	for _, m := range list {
		if !strings.Contains(m.String(), *only) {
			continue
		}
		ran++
		began := time.Now()
		verdict, err := "", m.passes(whole)
		if err == nil {
			verdict, err = m.try()
		}
		if err != nil {
			fmt.Fprintf(errs, "mutate: %s: %v\n", m, err)
			left++
			continue
		}
		if verdict == survived {
			left++
		}
		fmt.Fprintf(out, "%-8s %4.0f s  %s\n", verdict, time.Since(began).Seconds(), m)
	}
	fmt.Fprintf(out, "%d mutations, %d left unnoticed\n", ran, left)
	if left > 0 {
		return 1
	}
	return 0
}

// mutation is a text of a file and what is put in its place; run picks the tests of its package, "" for all.
type mutation struct{ file, old, new, run string }

func (m mutation) String() string { return fmt.Sprintf("%s: %s -> %s", m.file, m.old, m.new) }

// parse reads mutations: four parts on a line with " | " between them, the last one may be left out. A bar in
// a text has a backslash. A line that is empty or begins with # is none.
func parse(text string) (list []mutation, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, " | ")
		for i := range min(3, len(parts)) {
			parts[i] = strings.ReplaceAll(parts[i], `\|`, "|")
		}
		if len(parts) < 3 || len(parts) > 4 {
			return nil, fmt.Errorf("%q: want FILE | OLD | NEW | TESTS", line)
		}
		m := mutation{file: parts[0], old: parts[1], new: parts[2]}
		if len(parts) == 4 {
			m.run = parts[3]
		}
		list = append(list, m)
	}
	return list, nil
}

// passes is an error where the mutation's tests fail without it, too, which says nothing of it. Each tests are
// run once, or were already and are known to go.
func (m mutation) passes(whole map[string]error) error {
	key := filepath.Dir(m.file) + " " + m.run
	if _, known := whole[key]; !known {
		cmd := exec.Command("go", "test", "-run", m.run, "./"+filepath.Dir(m.file))
		cmd.SysProcAttr = apart()
		if said, err := cmd.CombinedOutput(); err != nil {
			whole[key] = fmt.Errorf("its tests fail without it: %w: %s", err, said)
		} else {
			whole[key] = nil
		}
	}
	return whole[key]
}

// The verdicts on a mutation.
const (
	noticed  = "noticed"
	survived = "SURVIVED"
)

// try runs the tests of the mutation's package with the broken file.
func (m mutation) try() (string, error) {
	text, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		return "", fmt.Errorf("the file has the text %d times, want once", n)
	}
	dir, err := os.MkdirTemp("", "david-mutate-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	overlay, err := overlaid(dir, m.file, strings.Replace(string(text), m.old, m.new, 1))
	if err != nil {
		return "", err
	}
	args := []string{"test", "-overlay", overlay, "-count=1"}
	if m.run != "" {
		args = append(args, "-run", m.run)
	}
	cmd := exec.Command("go", append(args, "./"+filepath.Dir(m.file))...)
	cmd.SysProcAttr = apart()
	said, err := cmd.CombinedOutput()
	return judge(string(said), err)
}

// judge tells what go test's end says of a mutation. That go itself failed is no verdict.
func judge(said string, err error) (string, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return survived, nil
	case !errors.As(err, &exit):
		return "", err
	case strings.Contains(said, "[build failed]"):
		return "", fmt.Errorf("it does not build: %s", said)
	case !failed.MatchString(said):
		return "", fmt.Errorf("its tests did not run: %s", said)
	}
	return noticed, nil
}

// failed matches the line with which go test names a package whose tests ran and failed.
var failed = regexp.MustCompile(`(?m)^FAIL\t\S+\t[0-9.]+s$`)

// apart gives root's tests mounts of their own: a david whose checks are broken may unmount whatever a test
// names, and did so with /proc.
func apart() *syscall.SysProcAttr {
	if os.Geteuid() != 0 {
		return nil
	}
	return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
}

// overlaid writes what -overlay takes to put a text in a file's place.
func overlaid(dir, file, text string) (string, error) {
	whole, err := filepath.Abs(file)
	if err != nil {
		return "", err
	}
	broken, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {whole: broken}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(broken, []byte(text), 0o600), os.WriteFile(overlay, list, 0o600))
}
