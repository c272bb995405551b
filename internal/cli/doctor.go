package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/server"
	"david/internal/workload"
)

// need names one thing david needs or likes to have.
type need struct {
	name     string
	required bool
	found    string // what was found; "" where it is missing
	hint     string // how to get it
	why      string
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what david needs on this machine, what is missing and how to get it",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			missing := false
			for _, c := range a.checks(cmd.Context()) {
				err = errors.Join(err, printNeed(a.out, c.String()))
				missing = missing || c.required && c.found == ""
			}
			for _, line := range flushing(cmd.Context(), a.home, a.env("LD_PRELOAD")) {
				err = errors.Join(err, printNeed(a.out, line))
			}
			if missing {
				return errors.New("david cannot measure before what is missing is installed")
			}
			return err
		},
	}
}

// printNeed prints a line of the doctor's, within the terminal's columns.
func printNeed(out io.Writer, line string) error {
	const head = len("optional sysbench  ")
	return hang(out, line[:head], line[head:])
}

func (c need) String() string {
	switch {
	case c.found != "":
		return fmt.Sprintf("ok       %-9s %s", c.name, c.found)
	case c.required:
		return fmt.Sprintf("missing  %-9s %s: %s", c.name, c.why, c.hint)
	}
	return fmt.Sprintf("optional %-9s %s: %s", c.name, c.why, c.hint)
}

func (a *app) checks(ctx context.Context) []need {
	checks := []need{
		{name: "sysbench", required: true, found: foundSysbench(ctx), hint: "apt-get install sysbench", why: "it is the load generator"},
		{name: "server", required: true, found: a.foundServers(ctx), hint: "david server install mysql, or apt-get install mariadb-server-core", why: "a MySQL or MariaDB to measure"},
		{name: "fio", found: foundTool("fio"), hint: "apt-get install fio", why: "it measures the disk, so that flushing can be sized to it"},
		{name: "tuner", found: a.foundTuner(ctx), hint: "david server install mysqltuner, and apt-get install mariadb-client", why: "MySQLTuner's advice is one of the rivals that a race is run against"},
	}
	if os.Geteuid() == 0 {
		checks = append(checks, need{name: "mkfs.xfs", found: foundTool("mkfs.xfs"), hint: "apt-get install xfsprogs",
			why: "where the filesystem has no reflink, a fresh copy of the data takes seconds instead of milliseconds without it"})
	}
	return checks
}

// flushing says what under david's folder, or in whatever is started here, leaves out flushes: what is measured there is
// faster than what keeps its word.
func flushing(ctx context.Context, folder, preload string) (lines []string) {
	const what = "flushes"
	flushes, err := host.FindFlushes(ctx, folder)
	if err != nil {
		flushes.Unseen = append(flushes.Unseen, err.Error())
	}
	for _, u := range flushes.LeftOut {
		lines = append(lines, fmt.Sprintf("warning  %-9s %s", what, u))
	}
	for _, name := range host.PreloadedForAll(preload) {
		lines = append(lines, fmt.Sprintf("warning  %-9s %s is loaded into every program: fsync does nothing", what, name))
	}
	if len(lines) == 0 {
		lines = append(lines, fmt.Sprintf("ok       %-9s nothing that is known to leave them out is under %s", what, folder))
	}
	for _, u := range flushes.Unseen {
		lines = append(lines, fmt.Sprintf("not seen %-9s %s", what, u))
	}
	return lines
}

func foundSysbench(ctx context.Context) string {
	s, err := workload.Find(ctx)
	if err != nil {
		return ""
	}
	return s.Version + ", " + s.Path
}

func (a *app) foundServers(ctx context.Context) string {
	text := ""
	for _, s := range server.List(ctx, a.home) {
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("%s %s, %s", s.Flavour, s.Version, s.Path)
	}
	return text
}

func (a *app) foundTuner(ctx context.Context) string {
	path, err := a.lab().Tuner(ctx)
	if err != nil {
		return ""
	}
	return path
}

func foundTool(name string) string {
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}
