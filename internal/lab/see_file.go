package lab

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"david/internal/advice"
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/server"
)

// Cnf is an option file to be judged: its path, or a stream for StandardInput.
type Cnf struct {
	Path  string
	Input io.Reader
}

func (c Cnf) read() (mycnf.File, error) {
	if c.Path == StandardInput {
		return readInput(c.Input)
	}
	return ReadOptions(c.Path)
}

// Named is the server that an option file is for, as far as somebody said: its flavour, its version, both or neither.
type Named struct {
	Flavour mycnf.Flavour
	Version string
}

// Meant is a server that an option file is judged for.
type Meant struct {
	Named
	Assumed string // what nobody said, and why it was taken; "": all was said
}

// The newest that david knows, where nothing of a flavour is installed.
const (
	newestMySQL   = "9.7"
	newestMariaDB = "10.11"
)

// Meant completes the server that an option file is for: it is the one that is installed here, as it is for whoever
// measures with --server auto, or of the flavour that was said; else the newest MySQL. want is what "auto" is here.
func (l Lab) Meant(ctx context.Context, said Named, want string) Meant {
	if said.Flavour != "" && said.Version != "" {
		return Meant{Named: said}
	}
	all := server.Present(ctx, l.Home)
	if b, err := server.Find(ctx, l.Home, want); err == nil {
		all = append([]server.Binary{b}, all...)
	}
	return said.among(all)
}

// among completes what was said by the servers that there are, the one that is wanted first.
func (n Named) among(all []server.Binary) Meant {
	b, ok := server.Installed(all, n.Flavour)
	switch {
	case n.Version != "": // and no flavour
		n.Flavour = ofVersion(n.Version)
		return Meant{n, "taken for " + n.Flavour.Product() + " by the version"}
	case ok:
		n.Flavour, n.Version = b.Flavour, release(b.Version)
		return Meant{n, "installed here"}
	case n.Flavour == mycnf.MariaDB:
		n.Version = newestMariaDB
		return Meant{n, "assumed: none is installed here"}
	case n.Flavour != "":
		n.Version = newestMySQL
		return Meant{n, "assumed: none is installed here"}
	}
	return Meant{Named{mycnf.MySQL, newestMySQL}, "assumed: no server is installed here"}
}

// ofVersion tells whose release a version is: MariaDB went from 5.5 to 10, and MySQL from 9 to the year.
func ofVersion(version string) mycnf.Flavour {
	major, _, _ := strings.Cut(version, ".")
	if slices.Contains([]string{"10", "11", "12", "13"}, major) {
		return mycnf.MariaDB
	}
	return mycnf.MySQL
}

// release is a version without what packagers put behind it.
func release(version string) string {
	if v, err := mycnf.ParseVersion(version); err == nil {
		return v.String()
	}
	return version
}

// SeeFile sees an option file for that server as an audit wants it, and this machine unless somebody told
// what the hardware is.
func (l Lab) SeeFile(ctx context.Context, cnf Cnf, flavour mycnf.Flavour, version mycnf.Version, told bool) (in advice.Facts, err error) {
	in.Flavour, in.Version = flavour, version
	file, err := cnf.read()
	if err != nil {
		return in, err
	}
	settings := file.ServerSettings(in.Flavour, in.Version)
	in.Lines, in.Preloaded = file.Lines(in.Flavour, in.Version), preloaded(file)
	in.Variables, in.Set = advice.Effective(in.Flavour, in.Version, settings)
	if in.Known, err = l.knownNames(ctx, in); err != nil {
		return in, err
	}
	every := func(name string) bool { return name == "skip_grant_tables" } // no variable of MySQL's, and every version's option
	if names := slices.DeleteFunc(in.Unjudged(), every); len(names) > 0 {
		in.Unseen = append(in.Unseen, "whether the version has "+strings.Join(names, ", ")+": not in david's catalogue; a binary of the version on this machine would tell, but for names of plugins")
	}
	if len(settings) == 0 {
		in.Unseen = append(in.Unseen, fmt.Sprintf("settings: %s has none for this server, so its defaults are judged", file.Name))
	}
	if !told {
		if err := l.thisMachine(ctx, &in); err != nil {
			return in, err
		}
	}
	seeStorage(ctx, &in)
	return in, nil
}

// thisMachine takes this machine for the one the file is for.
func (l Lab) thisMachine(ctx context.Context, in *advice.Facts) error {
	facts, err := host.Read(ctx, l.Home)
	if err != nil {
		return err
	}
	in.Machine = advice.Machine{Memory: facts.Memory.Limit, RAM: facts.Memory.Total, CPUs: facts.CPU.Usable, FreeDisk: facts.Data.Free, Spinning: spinning(facts)}
	in.Unseen = append(in.Unseen, "the hardware the file is for: taken for this machine, and david's filesystem for the data's (--memory and --cpus describe another)")
	return nil
}

// knownNames are the names that a binary of the very version takes, where one is on this machine; else nil.
func (l Lab) knownNames(ctx context.Context, in advice.Facts) ([]string, error) {
	for _, b := range server.Present(ctx, l.Home) {
		v, err := mycnf.ParseVersion(b.Version)
		if err != nil || b.Flavour != in.Flavour || v.Major != in.Version.Major || v.Minor != in.Version.Minor {
			continue
		}
		options, err := server.Options(ctx, b)
		if err != nil {
			return nil, err
		}
		names := make([]string, 0, len(options))
		for name := range options {
			names = append(names, name)
		}
		return names, nil
	}
	return nil, nil
}

// preloaded lists the lines of an option file by which mysqld_safe loads a library under the server that makes fsync do
// nothing.
func preloaded(file mycnf.File) (lines []mycnf.Setting) {
	for _, item := range file.Items {
		name, group := mycnf.WithoutLoose(item.Name), mycnf.Normalise(item.Group)
		if !slices.Contains([]string{"mysqld_safe", "safe_mysqld", "mariadb_safe", "mariadbd_safe"}, group) || name != "malloc_lib" && name != "ld_preload" {
			continue
		}
		libraries := strings.FieldsFunc(item.Value, func(r rune) bool { return r == ':' || r == ' ' })
		if slices.ContainsFunc(libraries, host.DropsFsync) {
			lines = append(lines, mycnf.Setting{Name: name, Value: item.Value})
		}
	}
	return lines
}
