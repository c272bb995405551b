package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"david/internal/apt"
)

// Tuner is the name of MySQLTuner's package and program.
const Tuner = "mysqltuner"

// tunerPackage is MySQLTuner's, which needs no more than a Perl, and every Debian and Ubuntu has one.
func tunerPackage(ctx context.Context, a apt.State) (string, error) {
	names, err := a.Names(ctx, Tuner)
	if err == nil && !slices.Contains(names, Tuner) {
		err = errors.New("the archive has no package " + Tuner)
	}
	return Tuner, err
}

// Tuners are the paths of the MySQLTuners that david installed, the newest first. Whether one works, who runs it finds out.
func Tuners(home string) (paths []string) {
	// Glob fails on a malformed pattern only, and this one is well-formed.
	trees, _ := filepath.Glob(globQuote(serversDir(home)) + "/" + Tuner + "-*")
	slices.SortFunc(trees, func(a, b string) int {
		return slices.Compare(versionNumbers(filepath.Base(b)), versionNumbers(filepath.Base(a)))
	})
	for _, tree := range trees {
		paths = append(paths, tunerIn(tree))
	}
	return paths
}

func tunerIn(tree string) string { return filepath.Join(tree, "usr/bin", Tuner) }

// tunerBanner begins what --help prints.
var tunerBanner = regexp.MustCompile(`^MySQLTuner (\d[\d.]*)`)

// identifyTuner asks the MySQLTuner in a tree for its version.
func identifyTuner(ctx context.Context, tree string) (Binary, error) {
	path := tunerIn(tree)
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, "--help")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "LC_ALL=C"} // it reads option files in the home folder
	output, err := cmd.Output()
	if err != nil {
		return Binary{}, fmt.Errorf("cannot use %s as MySQLTuner: %w", path, err)
	}
	m := tunerBanner.FindSubmatch(output)
	if m == nil {
		return Binary{}, fmt.Errorf("cannot use %s as MySQLTuner: it does not say which release it is (%q)", path, firstLine(string(output)))
	}
	sum, err := hashFile(path)
	return Binary{Version: string(m[1]), Path: path, Root: tree, SHA256: sum, Launch: []string{path}}, err
}
