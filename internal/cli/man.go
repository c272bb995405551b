package cli

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/report"
)

// manCommand writes the man pages, which the packages hold: of the same words as the help.
func (a *app) manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write david's man pages into a folder",
		Hidden: true,
		Args:   exactArgs(1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeMan(args[0], cmd.Root(), a.build)
		},
	}
}

// writeMan writes a page for a command, and for each below it that help names.
func writeMan(dir string, cmd *cobra.Command, of Build) error {
	file := filepath.Join(dir, manName(cmd)+".1")
	if err := os.WriteFile(file, []byte(manPage(cmd, of)), 0o644); err != nil {
		return fmt.Errorf("cannot write a man page: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := writeMan(dir, sub, of); err != nil {
				return err
			}
		}
	}
	return nil
}

// manName is what a command's page is called: david-follower-clone.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is a command's page.
func manPage(cmd *cobra.Command, of Build) string {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	p := &manWriter{}
	date, _, _ := strings.Cut(of.Date, "T")
	p.line(`.TH %s 1 "%s" "david %s" "david"
.nh
.ad l`, strings.ToUpper(manName(cmd)), date, of.Version)
	p.section("NAME", manName(cmd)+" - "+cmd.Short)
	p.head("SYNOPSIS")
	p.verbatim(strings.Join(forms(cmd), "\n"))
	p.head("DESCRIPTION")
	for _, part := range paragraphs(cmp.Or(cmd.Long, cmd.Short+".")) {
		if part.code {
			p.verbatim(part.text)
		} else {
			p.paragraph(part.text)
		}
	}
	if len(cmd.Aliases) > 0 {
		p.paragraph("Also called: " + strings.Join(cmd.Aliases, ", ") + ".")
	}
	if cmd.HasAvailableSubCommands() {
		p.head("COMMANDS")
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				p.item(manName(sub)+"(1)", sub.Short)
			}
		}
	}
	p.head("OPTIONS")
	for _, s := range sections(cmd) {
		p.line(`.SS "%s"`, roff(s.title))
		s.flags.VisitAll(p.flag)
	}
	p.head("EXAMPLES")
	p.verbatim(strings.ReplaceAll(cmd.Example, "\n  #", "\n\n  #"))
	if !cmd.HasParent() {
		p.about()
		return p.String()
	}
	p.section("SEE ALSO", manName(cmd.Parent())+"(1)")
	return p.String()
}

// about is what the page of david itself tells beside its commands.
func (p *manWriter) about() {
	p.head("EXIT STATUS")
	for _, c := range exitMeanings() {
		p.item(fmt.Sprint(c.code), c.means)
	}
	p.head("FILES")
	p.item("$DAVID_HOME", "david's folder: what was measured, servers, data. Default: $XDG_DATA_HOME/david, else ~/.local/share/david.")
	p.section("SEE ALSO", "/usr/share/doc/david/docs/commands.md has the commands side by side, and all environment variables.")
}

// exitMeaning is an exit code and what it says.
type exitMeaning struct {
	code  int
	means string
}

// exitMeanings are the exit codes, as docs/commands.md explains them.
func exitMeanings() []exitMeaning {
	return []exitMeaning{
		{exitDone, "done"},
		{exitFailed, "david failed"},
		{exitUsage, "bad usage or bad input, a disk too full for the data among it"},
		{exitInvalid, "the measurement is invalid (a gate failed): nothing is concluded"},
		{exitTarget, "the target cannot be reached or started"},
		{exitInterrupted, "interrupted; the finished trials are kept"},
	}
}

// manWriter writes roff.
type manWriter struct{ strings.Builder }

func (p *manWriter) line(format string, args ...any) { fmt.Fprintf(p, format+"\n", args...) }

func (p *manWriter) head(title string) { p.line(".SH %s", title) }

func (p *manWriter) section(title, text string) {
	p.head(title)
	p.paragraph(text)
}

func (p *manWriter) paragraph(text string) {
	p.line(".PP")
	p.text(text)
}

// text writes a text, whose line breaks mean nothing.
func (p *manWriter) text(text string) {
	for _, line := range report.Wrap(text, helpColumns) {
		p.line("%s", roff(line))
	}
}

// verbatim writes lines as they are.
func (p *manWriter) verbatim(text string) {
	p.line(".PP\n.nf")
	for line := range strings.Lines(text) {
		p.line("%s", roff(strings.TrimRight(line, "\n")))
	}
	p.line(".fi")
}

// item writes a word and what is said of it.
func (p *manWriter) item(word, text string) {
	p.line(".TP\n\\fB%s\\fP", roff(word))
	p.text(text)
}

func (p *manWriter) flag(f *pflag.Flag) {
	value, usage := pflag.UnquoteUsage(f)
	word := `\fB` + roff("--"+f.Name) + `\fP`
	if f.Shorthand != "" {
		word = `\fB` + roff("-"+f.Shorthand) + `\fP, ` + word
	}
	if value != "" {
		word += ` \fI` + roff(value) + `\fP`
	}
	if f.DefValue != "" && f.DefValue != "0" && f.DefValue != "false" && f.DefValue != "[]" && f.DefValue != "0s" {
		usage += " (default " + f.DefValue + ")"
	}
	p.line(".TP\n%s", word)
	p.text(usage)
}

// roff escapes what roff would take for its own.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
	if strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	return text
}
