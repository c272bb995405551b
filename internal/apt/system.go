package apt

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// SystemArchive finds out where the system's apt gets packages of its own distribution from: on Debian those
// of the unstable suite. The error is errors.ErrUnsupported on systems of other kinds and where no mirror or
// keyring is there.
func SystemArchive(ctx context.Context) (Archive, error) {
	d, sources, err := system(ctx)
	if err != nil {
		return Archive{}, err
	}
	return mainArchive(d, sources)
}

// DebianRelease finds out where a Debian system's apt gets packages from, and names a release's archives
// there: "sid", or a stable release such as "bookworm" with its updates and security updates. Errors as those
// of SystemArchive.
func DebianRelease(ctx context.Context, release string) ([]Archive, error) {
	d, sources, err := system(ctx)
	if err != nil {
		return nil, err
	}
	if d.Name != "Debian" {
		return nil, unsupportedf("this system is %s, and the packages wanted are Debian's", d.Name)
	}
	a, err := mainArchive(d, sources)
	if err != nil {
		return nil, err
	}
	return releaseOf(d, a, release, sources), nil
}

// releaseOf names the archives of a release on the mirrors of a.
func releaseOf(d distribution, a Archive, release string, sources []source) []Archive {
	a.Suites = []string{release}
	if release == "sid" {
		return []Archive{a}
	}
	a.Suites = append(a.Suites, release+"-updates")
	all := []Archive{a}
	if security := securityOf(d, release, sources); len(security.URIs) > 0 {
		all = append(all, security)
	}
	return all
}

func mainArchive(d distribution, sources []source) (Archive, error) {
	a := archiveOf(d, sources)
	if len(a.URIs) == 0 {
		return Archive{}, unsupportedf("apt's sources name no mirror of %s; add one", d.Name)
	}
	if _, err := os.Stat(d.Keyring); err != nil {
		return Archive{}, unsupportedf("%s's keyring %s is missing; install %s", d.Name, d.Keyring, strings.TrimSuffix(filepath.Base(d.Keyring), ".gpg"))
	}
	return a, nil
}

// unsupported is an error of a system that cannot do what was asked for.
type unsupported string

func (e unsupported) Error() string { return string(e) }
func (unsupported) Unwrap() error   { return errors.ErrUnsupported }

func unsupportedf(format string, args ...any) error { return unsupported(fmt.Sprintf(format, args...)) }

// system tells the distribution, and apt's sources.
func system(ctx context.Context) (distribution, []source, error) {
	for _, tool := range []string{"apt-get", "apt-config", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			return distribution{}, nil, unsupportedf("this system has no %s, and david takes Debian's and Ubuntu's packages only", tool)
		}
	}
	release, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return distribution{}, nil, err
	}
	d, ok := distributionOf(string(release))
	if !ok {
		return distribution{}, nil, unsupportedf("this system is neither Debian nor Ubuntu")
	}
	sources, err := systemSources(ctx)
	return d, sources, err
}

// systemSources reads all of apt's sources, from where apt says they are.
func systemSources(ctx context.Context) ([]source, error) {
	var paths []string
	for _, key := range []string{"Dir::Etc::sourcelist/f", "Dir::Etc::sourceparts/d"} {
		out, err := State{}.output(ctx, "/", "apt-config", "shell", "path", key)
		if err != nil {
			return nil, err
		}
		path, _ := strings.CutPrefix(strings.TrimSpace(out), "path=")
		paths = append(paths, strings.Trim(path, "'"))
	}
	list, parts := paths[0], paths[1]
	files := []string{list}
	entries, _ := os.ReadDir(parts) // absent where nobody added sources
	for _, e := range entries {
		files = append(files, filepath.Join(parts, e.Name()))
	}
	var all []source
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // absent, or not for this user: apt as this user skips it too
		}
		switch filepath.Ext(file) {
		case ".list":
			all = append(all, parseOneLine(string(text))...)
		case ".sources":
			all = append(all, parseDeb822(string(text))...)
		}
	}
	return all, nil
}
