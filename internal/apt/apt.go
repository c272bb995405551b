// Package apt reads packages out of Debian's and Ubuntu's archives with the system's own apt, but with a
// state of its own: the system's package lists, cache and database are neither read nor written, nothing is
// installed, and no root is needed.
//
// The steps: SystemArchive or DebianRelease (where packages come from), New, Update (the signed lists), Plan
// (what to fetch, with what it depends on), Download (checked against the lists), then Unpack or Path.
package apt

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Package is one package of a plan.
type Package struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	SHA256  string `json:"sha256"` // of the .deb, as apt verified it against the signed list
	Bytes   int64  `json:"-"`      // of the .deb
	File    string `json:"-"`      // the .deb's name
}

// State is apt's state in a folder of its own. The system's settings (proxies, certificates, passwords of
// mirrors) stay in force.
type State struct {
	dir    string // holds the state
	config string
}

// aptConfig clears what would run the system's hooks, apply its pinning or fetch what is not needed, and sets
// the rest. apt's _apt user cannot read a private folder, so the privileges are not dropped.
const aptConfig = `#clear APT::Update;
#clear APT::Architectures;
#clear APT::Default-Release;
#clear APT::Get;
#clear DPkg;
APT::Architecture "%[2]s";
APT::Architectures { "%[2]s"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
APT::Update::Error-Mode "any";
APT::Get::AllowUnauthenticated "false";
Acquire::AllowInsecureRepositories "false";
Acquire::AllowWeakRepositories "false";
Acquire::ForceHash "SHA256";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::Cache "%[1]s/cache";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::Etc::sourcelist "%[1]s/archive.sources";
Dir::Etc::sourceparts "/dev/null";
Dir::Log "%[1]s/log";
Dir::State "%[1]s/state";
Dir::State::status "%[1]s/status";
`

// New sets apt up in dir, an absolute path, for the packages of some archives; a state that is there already
// is gone on with.
func New(ctx context.Context, dir string, from ...Archive) (State, error) {
	a := State{dir: dir, config: filepath.Join(dir, "apt.conf")}
	arch, err := a.output(ctx, dir, "dpkg", "--print-architecture")
	if err != nil {
		return State{}, err
	}
	var sources []string
	for _, f := range from {
		sources = append(sources, f.deb822())
	}
	for _, sub := range []string{"state/lists/partial", "cache/archives/partial", "log", "debs"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return State{}, err
		}
	}
	for name, content := range map[string]string{
		"apt.conf":        fmt.Sprintf(aptConfig, dir, strings.TrimSpace(arch)),
		"archive.sources": strings.Join(sources, "\n"),
		"status":          "", // no package is installed, so all that the server needs is fetched
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			return State{}, err
		}
	}
	return a, nil
}

// Update fetches the package lists; the signatures of the archives' keys are checked.
func (a State) Update(ctx context.Context) error {
	_, err := a.output(ctx, a.dir, "apt-get", "-qq", "-c", a.config, "update")
	return err
}

// Names lists the packages whose names begin with prefix.
func (a State) Names(ctx context.Context, prefix string) ([]string, error) {
	out, err := a.output(ctx, a.dir, "apt-cache", "-c", a.config, "pkgnames", prefix)
	return strings.Fields(out), err
}

// Plan lists the packages named and all they depend on.
func (a State) Plan(ctx context.Context, names ...string) ([]Package, error) {
	out, err := a.output(ctx, a.dir, "apt-get", append([]string{"-qq", "-c", a.config, "--print-uris", "install"}, names...)...)
	if err != nil {
		return nil, err
	}
	return parsePlan(out)
}

// parsePlan reads what apt-get --print-uris prints: 'URI' name_version_architecture.deb bytes SHA256:hash.
func parsePlan(out string) ([]Package, error) {
	var all []Package
	for line := range strings.Lines(out) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		p, err := parsePlanned(fields)
		if err != nil {
			return nil, fmt.Errorf("cannot understand apt's line %q: %w", strings.TrimSpace(line), err)
		}
		all = append(all, p)
	}
	return all, nil
}

func parsePlanned(fields []string) (Package, error) {
	if len(fields) != 4 {
		return Package{}, errors.New("want an address, a file, a size and a hash")
	}
	file := fields[1]
	parts := strings.Split(strings.TrimSuffix(file, ".deb"), "_")
	if len(parts) != 3 || parts[0] == "" || strings.ContainsRune(file, '/') {
		return Package{}, errors.New("want name_version_architecture.deb")
	}
	version, err := url.PathUnescape(parts[1]) // the colon after an epoch is escaped
	if err != nil {
		return Package{}, err
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return Package{}, err
	}
	hash, ok := strings.CutPrefix(fields[3], "SHA256:")
	if !ok {
		return Package{}, errors.New("want a SHA256")
	}
	return Package{Name: parts[0], Version: version, SHA256: hash, Bytes: size, File: file}, nil
}

// Path returns where Download puts a package.
func (a State) Path(p Package) string { return filepath.Join(a.dir, "debs", p.File) }

// Download fetches the packages, reports on the way, and checks each against its hash.
func (a State) Download(ctx context.Context, packages []Package, log io.Writer) error {
	args := []string{"-q", "-c", a.config, "download"}
	for _, p := range packages {
		args = append(args, p.Name+"="+p.Version)
	}
	cmd := command(ctx, filepath.Join(a.dir, "debs"), "apt-get", args...)
	cmd.Stdout = &counter{out: log, total: len(packages)}
	if err := run(ctx, cmd); err != nil {
		return err
	}
	for _, p := range packages {
		if err := a.Verify(p); err != nil {
			return err
		}
	}
	return nil
}

// Verify checks a package that was downloaded, now or earlier, against its hash; errors.Is(err,
// fs.ErrNotExist) where it was not.
func (a State) Verify(p Package) error {
	text, err := os.ReadFile(a.Path(p))
	if err != nil {
		return fmt.Errorf("cannot read the downloaded package %s: %w", p.Name, err)
	}
	if hash := fmt.Sprintf("%x", sha256.Sum256(text)); hash != p.SHA256 {
		return fmt.Errorf("cannot trust the downloaded package %s: its SHA-256 is %s, the signed list says %s", p.File, hash, p.SHA256)
	}
	return nil
}

// Unpack extracts the packages into the folder root.
func (a State) Unpack(ctx context.Context, packages []Package, root string) error {
	for _, p := range packages {
		if _, err := a.output(ctx, a.dir, "dpkg-deb", "--extract", a.Path(p), root); err != nil {
			return err
		}
	}
	return nil
}

func (a State) output(ctx context.Context, dir, name string, args ...string) (string, error) {
	var out bytes.Buffer
	cmd := command(ctx, dir, name, args...)
	cmd.Stdout = &out
	err := run(ctx, cmd)
	return out.String(), err
}

// command prepares a tool to run in a process group of its own, which ends as a whole with ctx: apt's helpers
// too.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run runs a tool; its error quotes what the tool complained of.
func run(ctx context.Context, cmd *exec.Cmd) error {
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		if said := complaint(complaints.String()); said != "" {
			return fmt.Errorf("%s: %w (%s)", filepath.Base(cmd.Path), err, said)
		}
		return fmt.Errorf("%s: %w", filepath.Base(cmd.Path), err)
	}
	return nil
}

// complaint is a line that says that a disk is full, else the first line that apt marks as an error (those
// after it only sum up), else the last line.
func complaint(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if i := slices.IndexFunc(lines, func(line string) bool { return strings.Contains(strings.ToLower(line), syscall.ENOSPC.Error()) }); i >= 0 {
		return lines[i]
	}
	for _, line := range lines {
		if e, ok := strings.CutPrefix(line, "E: "); ok {
			return e
		}
	}
	return lines[len(lines)-1]
}

// counter passes apt's progress on, a line for every tenth package.
type counter struct {
	out   io.Writer
	total int
	done  int
	rest  []byte // a line not ended yet
}

// Write never fails: progress is not worth a download.
func (c *counter) Write(p []byte) (int, error) {
	c.rest = append(c.rest, p...)
	for {
		line, after, ok := bytes.Cut(c.rest, []byte("\n"))
		if !ok {
			return len(p), nil
		}
		c.rest = after
		if bytes.HasPrefix(line, []byte("Get:")) {
			if c.done++; c.done%10 == 0 {
				fmt.Fprintf(c.out, "  %d of %d packages\n", c.done, c.total)
			}
		}
	}
}
