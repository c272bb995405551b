package testserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os/exec"
	"slices"
	"strings"

	"david/internal/mycnf"
	"david/internal/server"
)

// Help is what a server says of its settings with --verbose --help, which needs no data and starts nothing.
type Help struct {
	Values     map[string]string // by variable, as SHOW VARIABLES prints them
	Switches   []string          // the variables it shows as TRUE or FALSE
	Complaints string
	Taken      bool // it would start with these settings
	Crashed    bool // a signal ended it, its own as a rule
}

// AskHelp gives a server options, --defaults-file=PATH or --no-defaults first, and reads the values it would have.
func AskHelp(ctx context.Context, b server.Binary, dir string, options ...string) Help {
	argv := append(slices.Clone(b.Launch), options[0])
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	argv = append(append(argv, "--verbose", "--help"), options[1:]...) // the last may take the next for its value
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	var out, complained bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complained
	err := cmd.Run()
	h := Help{Values: valuesOf(out.Bytes()), Switches: switchesOf(out.String()), Complaints: complained.String()}
	var ended *exec.ExitError
	h.Crashed = strings.Contains(h.Complaints, "got signal") || errors.As(err, &ended) && ended.ExitCode() < 0
	h.Taken = err == nil && !complains(b.Flavour, h.Complaints)
	return h
}

// complains tells whether a server that shows its help would not start. MariaDB calls errors also what loose_
// forgives.
func complains(f mycnf.Flavour, text string) bool {
	if f == mycnf.MariaDB {
		return strings.Contains(text, "Parsing options for plugin")
	}
	return strings.Contains(text, "[ERROR]")
}

// switchesOf lists what the help shows as a switch.
func switchesOf(help string) (names []string) {
	for line := range strings.Lines(help) {
		if words := strings.Fields(line); len(words) == 2 && (words[1] == "TRUE" || words[1] == "FALSE") {
			names = append(names, mycnf.Normalise(words[0]))
		}
	}
	return names
}

// valuesOf reads the table that the help ends with.
func valuesOf(help []byte) map[string]string {
	values := map[string]string{}
	in := false
	lines := bufio.NewScanner(bytes.NewReader(help))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		switch {
		case strings.HasPrefix(name, "--------"):
			in = true
		case in && name == "":
			return values
		case in:
			value = strings.TrimSpace(value)
			if at := slices.Index([]string{"FALSE", "TRUE", "(No default value)"}, value); at >= 0 {
				value = []string{"OFF", "ON", ""}[at]
			}
			values[mycnf.Normalise(name)] = value
		}
	}
	return values
}
