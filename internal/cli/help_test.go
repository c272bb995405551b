package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commandTree is david's commands as a process has them.
func commandTree() *cobra.Command {
	return (&app{out: io.Discard, err: io.Discard, env: func(string) string { return "" }, build: Build{Version: "dev"}}).root()
}

// shownCommands are all commands that help names.
func shownCommands(cmd *cobra.Command) []*cobra.Command {
	found := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			found = append(found, shownCommands(sub)...)
		}
	}
	return found
}

// exampleLines are a command's examples without what they are for.
func exampleLines(cmd *cobra.Command) (lines []string) {
	for line := range strings.Lines(cmd.Example) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			lines = append(lines, line)
		}
	}
	return lines
}

// TestHelp: every command has two examples, each with what it is for; every flag stands in a group; no line of
// help/*.txt is of a command or a flag that there is not.
func TestHelp(t *testing.T) {
	t.Parallel()
	unused := examples()
	groups := flagGroups()
	named, commands := map[string]bool{}, []string{}
	for _, cmd := range shownCommands(commandTree()) {
		name := helpName(cmd)
		commands = append(commands, name)
		delete(unused, name)
		if lines := exampleLines(cmd); len(lines) < 2 || strings.Count(cmd.Example, "  # ") != len(lines) {
			t.Errorf("david %s: %d examples in help/examples.txt, each after a line that says what it is for:\n%s", name, len(lines), cmd.Example)
		}
		cmd.InitDefaultHelpFlag()
		cmd.InitDefaultVersionFlag()
		for _, s := range sections(cmd) {
			if s.title == otherFlags {
				t.Errorf("david %s: flags in no group of help/groups.txt:\n%s", name, s.flags.FlagUsages())
			}
			s.flags.VisitAll(func(f *pflag.Flag) { named[f.Name] = true })
		}
	}
	for name := range unused {
		t.Errorf("help/examples.txt: there is no command %q", name)
	}
	for _, g := range groups {
		for _, name := range g.commands {
			if !slices.Contains(commands, name) {
				t.Errorf("help/groups.txt, %s: there is no command %q", g.title, name)
			}
		}
		for _, flag := range g.flags {
			if !named[flag] && flag != "*" {
				t.Errorf("help/groups.txt, %s: there is no flag --%s", g.title, flag)
			}
		}
	}
}

// TestExamplesParse: a shell reads every example, and its command, its arguments and its flags are what david takes.
func TestExamplesParse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "set -o pipefail; source() { cat \"$@\" >/dev/null; }; helm() { :; }; david() { printf '%s\\n' \"$@\" >\"$ARGV\"; cat >/dev/null; }\n"
	type example struct {
		of         *cobra.Command
		line, argv string
	}
	var all []example
	for _, cmd := range shownCommands(commandTree()) {
		for _, line := range exampleLines(cmd) {
			e := example{cmd, line, filepath.Join(dir, strconv.Itoa(len(all)))}
			all = append(all, e)
			script += fmt.Sprintf("ARGV=%s\n%s\n", e.argv, line)
		}
	}
	shell := exec.Command("bash", "-c", script+"wait\n")
	shell.Dir, shell.Env = dir, append(os.Environ(), "HOME="+dir)
	for _, folder := range []string{".local/share/bash-completion/completions", ".config/fish/completions"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := shell.CombinedOutput(); err != nil || len(out) > 0 {
		t.Fatalf("the examples are no shell: %v\n%s", err, out)
	}
	for _, e := range all {
		text, err := os.ReadFile(e.argv)
		if err != nil {
			t.Errorf("%s: %v", e.line, err)
			continue
		}
		args := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		found, err := parses(args)
		if err != nil {
			t.Errorf("%s: %v", e.line, err)
		} else if name := helpName(e.of); e.of.HasParent() && found != name && !strings.HasPrefix(found, name+" ") {
			t.Errorf("%s is an example of david %s, and stands at %s", e.line, found, name)
		}
	}
}

// parses tells which command these arguments are of, and whether it takes them, as far as can be told without
// doing anything.
func parses(args []string) (name string, err error) {
	root := commandTree()
	cmd, rest, err := root.Find(withHelp(args))
	if err != nil {
		return "", err
	}
	name = helpName(cmd)
	cmd.InitDefaultHelpFlag()
	if err := cmd.ParseFlags(rest); err != nil {
		return name, err
	}
	return name, cmp.Or(cmd.ValidateArgs(cmd.Flags().Args()), noEmptyFlags(cmd), inBounds(cmd), noDSN(cmd, cmd.Flags().Args()), builtPaths(cmd))
}

// builtPaths: what --path names is a path that david builds.
func builtPaths(cmd *cobra.Command) error {
	paths, err := cmd.Flags().GetStringSlice("path")
	if err != nil {
		return nil // a command without it
	}
	if cmd.Name() == "pods" {
		_, err = readPodPaths(paths)
		return err
	}
	_, err = pathArms(paths)
	return err
}

// TestHelpFits: no line of a command's help but examples and forms is wider than helpColumns.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	for _, cmd := range shownCommands(commandTree()) {
		var out strings.Builder
		cmd.SetOut(&out)
		printHelp(cmd, nil)
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "\n") {
				t.Errorf("david %s --%s: its usage is broken by hand, and again by the help", helpName(cmd), f.Name)
			}
		})
		if strings.Contains(out.String(), "(default 0s)") {
			t.Errorf("david %s says 0s as a default", helpName(cmd))
		}
		for line := range strings.Lines(out.String()) {
			line = strings.TrimSuffix(line, "\n")
			if utf8.RuneCountInString(line) > helpColumns && !strings.Contains(cmd.Example, line) && !slices.Contains(forms(cmd), strings.TrimSpace(line)) {
				t.Errorf("david %s: %d columns: %s", helpName(cmd), utf8.RuneCountInString(line), line)
			}
		}
	}
}

// TestStudyFlags: a flag that belongs to one study is in that study's help alone.
func TestStudyFlags(t *testing.T) {
	t.Parallel()
	of := map[string]string{}
	for _, cmd := range shownCommands(commandTree()) {
		for _, flag := range []string{"network", "used", "quick", "fresh", "part", "workload", "blocks", "no-ceph"} {
			if name, ok := strings.CutPrefix(helpName(cmd), "study"); ok && cmd.Flags().Lookup(flag) != nil {
				of[flag] += name
			}
		}
	}
	want := map[string]string{"network": " p3", "used": " p4", "quick": " p1 p2 p3 p4 p5", "fresh": " p1 p2 p4 p5",
		"part": " p1 p2", "workload": " p2 p3", "blocks": " p1 p2 p4 p5", "no-ceph": " p4"}
	if !maps.Equal(of, want) {
		t.Errorf("flags of studies: %v, want %v", of, want)
	}
}

// TestManPages writes the man pages, and has man read each of them: it warns of nothing, finds it by its name, and
// shows its flags and examples.
func TestManPages(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("man"); err != nil {
		t.Skip("there is no man here")
	}
	dir := t.TempDir()
	pages := filepath.Join(dir, "man1")
	if err := os.Mkdir(pages, 0o755); err != nil {
		t.Fatal(err)
	}
	root := commandTree()
	if err := writeMan(pages, root, Build{Version: "1.2.3", Date: "2026-11-24T10:00:00Z"}); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadDir(pages)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(shownCommands(root)) - 1; len(written) != n { // help has none
		t.Errorf("%d pages, want %d", len(written), n)
	}
	args := []string{"-M", dir, "-E", "ascii", "--warnings=all"}
	for _, f := range written {
		args = append(args, strings.TrimSuffix(f.Name(), ".1"))
	}
	read := exec.Command("man", args...)
	read.Env = append(os.Environ(), "MANWIDTH=100", "MANPAGER=cat", "LC_ALL=C.UTF-8")
	var out, warned strings.Builder
	read.Stdout, read.Stderr = &out, &warned
	if err := read.Run(); err != nil || warned.Len() > 0 {
		t.Errorf("man: %v\n%s", err, warned.String())
	}
	for _, want := range []string{"DAVID-FOLLOWER-CLONE(1)", "david 1.2.3", "2026-11-24", "Machine caps", "--statement-deadline duration",
		"david tune --dsn 'root@unix(/run/mysqld/mysqld.sock)/'", "EXIT STATUS", "interrupted; the finished trials are kept"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the man pages lack %q", want)
		}
	}
}
