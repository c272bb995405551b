package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// version is david's, and this is its only place: the Makefile reads it here, CHANGELOG.md has what it brought.
const version = "0.1.0"

// dirty ends the commit of a david that was built of a tree with changes.
const dirty = "-dirty"

// Build says which david a program is. The fields without a tag are what its build stamps.
type Build struct {
	Version  string `json:"version"`          // "0.1.0"
	Commit   string `json:"commit,omitempty"` // its hash, all of it
	Modified bool   `json:"modified"`         // the tree had changes that are in no commit
	Date     string `json:"date,omitempty"`   // of the commit, RFC 3339
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

// NewBuild describes this program: commit and date as its build stamped them, or else as Go recorded them.
func NewBuild(commit, date string) Build {
	commit, changed := strings.CutSuffix(commit, dirty)
	b := Build{Version: version, Commit: commit, Modified: changed, Date: date, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && commit == "" {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	return b
}

// String is how records, files and --version name this david: "0.1.0+fd2e730c1a2b".
func (b Build) String() string {
	if b.Commit == "" {
		return b.Version
	}
	text := b.Version + "+" + b.Commit[:min(len(b.Commit), 12)]
	if b.Modified {
		text += dirty
	}
	return text
}

func (a *app) versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which david this is: version, commit, date, Go, system",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return a.printJSON(a.build)
			}
			fmt.Fprintf(a.out, "david %s\n", a.build.Version)
			for _, line := range [][2]string{{"commit", a.build.commitText()}, {"date", a.build.Date}, {"built by", a.build.Go}, {"for", a.build.OS + "/" + a.build.Arch}} {
				if line[1] != "" {
					fmt.Fprintf(a.out, "%-9s %s\n", line[0], line[1])
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

// commitText is the commit as people read it.
func (b Build) commitText() string {
	if b.Commit != "" && b.Modified {
		return b.Commit + ", with changes"
	}
	return b.Commit
}
