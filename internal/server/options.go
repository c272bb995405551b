package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"david/internal/account"
)

// Options returns the variables a binary knows, with their defaults, as --verbose --help prints them. Names
// have underscores. No data and no privileges are needed, and it takes some 50 ms.
func Options(ctx context.Context, b Binary) (map[string]string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	argv := append(append([]string{}, b.Launch...), "--no-defaults")
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	out, err := account.Look(ctx, b.folder(), append(argv, "--verbose", "--help"), (*exec.Cmd).Output)
	if err != nil {
		return nil, fmt.Errorf("cannot ask %s for its variables (--verbose --help): %w", b.Path, err)
	}
	known := parseOptions([]byte(out))
	if len(known) == 0 {
		return nil, fmt.Errorf("cannot ask %s for its variables: --verbose --help lists none", b.Path)
	}
	return known, nil
}

// parseOptions reads the table at the end of --verbose --help: a ruler of dashes, then "name   value" lines
// up to an empty one.
func parseOptions(help []byte) map[string]string {
	known := map[string]string{}
	in := false
	lines := bufio.NewScanner(bytes.NewReader(help))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "--------"):
			in = true
		case in && strings.TrimSpace(line) == "":
			return known
		case in:
			name, value, _ := strings.Cut(line, " ")
			known[strings.ReplaceAll(name, "-", "_")] = strings.TrimSpace(value)
		}
	}
	return known
}
