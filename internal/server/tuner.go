package server

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"david/internal/account"
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

// Tuners are the paths of the MySQLTuners that david installed, the newest first. Whether one works, who runs
// it finds out.
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

// tunerBanner matches the line in which MySQLTuner names its release.
var tunerBanner = regexp.MustCompile(`MySQLTuner (\d+\.\d+(?:\.\d+)?)`)

// TunerRelease is the release, as in 2.9.3, of the MySQLTuner that printed something.
func TunerRelease(output string) (string, error) {
	m := tunerBanner.FindStringSubmatch(output)
	if m == nil {
		return "", errors.New("mysqltuner does not say which release it is")
	}
	return m[1], nil
}

// TunerHelp returns what the MySQLTuner at a path prints with --help: its release is the first it says.
func TunerHelp(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, versionTimeout)
	defer cancel()
	output, err := account.Look(ctx, filepath.Dir(path), []string{path, "--help"}, (*exec.Cmd).Output)
	if err != nil {
		return "", fmt.Errorf("mysqltuner does not work: %s --help: %w", path, err)
	}
	return output, nil
}

// identifyTuner asks the MySQLTuner in a tree for its release.
func identifyTuner(ctx context.Context, tree string) (Binary, error) {
	path := tunerIn(tree)
	help, err := TunerHelp(ctx, path)
	if err != nil {
		return Binary{}, err
	}
	release, err := TunerRelease(help)
	if err != nil {
		return Binary{}, fmt.Errorf("%s: %w", path, err)
	}
	sum, err := hashFile(path)
	return Binary{Version: release, Path: path, Root: tree, SHA256: sum, Launch: []string{path}}, err
}
