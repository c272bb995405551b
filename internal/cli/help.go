package cli

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/plain"
	"david/internal/report"
)

// helpGroups says which group each flag stands in.
//
//go:embed help/groups.txt
var helpGroups string

// helpExamples has the examples of each command.
//
//go:embed help/examples.txt
var helpExamples string

// otherFlags is the group of a flag that help/groups.txt does not name; TestHelp knows none.
const otherFlags = "Other"

// flagGroup is a line of help/groups.txt.
type flagGroup struct {
	title    string
	commands []string // nil: any
	flags    []string
}

// flagGroups reads help/groups.txt.
func flagGroups() (groups []flagGroup) {
	for line := range strings.Lines(helpGroups) {
		head, flags, ok := strings.Cut(line, ":")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		title, commands, some := strings.Cut(head, ", of ")
		g := flagGroup{title: title, flags: strings.Fields(flags)}
		if some {
			g.commands = strings.Split(commands, ", ")
		}
		groups = append(groups, g)
	}
	return groups
}

// groupOf is the title of the group that a command's flag stands in: what is said of the command goes before
// what is said of all, a name before "*".
func groupOf(groups []flagGroup, command, flag string) string {
	for _, want := range []string{flag, "*"} {
		for _, ofCommand := range []bool{true, false} {
			for _, g := range groups {
				if slices.Contains(g.flags, want) && (g.commands != nil) == ofCommand && (g.commands == nil || slices.Contains(g.commands, command)) {
					return g.title
				}
			}
		}
	}
	return otherFlags
}

// examples reads help/examples.txt: the line of a command, its examples indented below.
func examples() map[string]string {
	found, command := map[string]string{}, ""
	for line := range strings.Lines(helpExamples) {
		switch indented := strings.HasPrefix(line, "  "); {
		case indented:
			found[command] += line
		case strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#"):
			command = strings.TrimSpace(line)
		}
	}
	return found
}

// helpName is what help/*.txt call a command: "follower clone", and "david" for all of it.
func helpName(cmd *cobra.Command) string {
	if !cmd.HasParent() {
		return cmd.Name()
	}
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// documented gives every command its examples, and its help the flags in groups.
func documented(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = knownTopic
		case "completion":
			cmd.Args, cmd.RunE = onlyCommands, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	shown := examples()
	var explain func(cmd *cobra.Command)
	explain = func(cmd *cobra.Command) {
		cmd.Example = strings.TrimRight(shown[helpName(cmd)], "\n")
		for _, sub := range cmd.Commands() {
			explain(sub)
		}
	}
	explain(root)
	root.SetUsageFunc(printUsage)
	root.SetHelpFunc(printHelp)
}

// knownTopic refuses help with a command that there is not.
func knownTopic(cmd *cobra.Command, args []string) error {
	found, rest, err := cmd.Root().Find(args)
	if err != nil || len(rest) > 0 {
		return unknownCommand(found, append(rest, args...)[0])
	}
	return nil
}

// flagSection is a group of a command's flags, as its help shows it.
type flagSection struct {
	title string
	flags *pflag.FlagSet
}

// sections are a command's flags by their groups, all in the order of help/groups.txt.
func sections(cmd *cobra.Command) (found []flagSection) {
	groups, listed := flagGroups(), map[string][]*pflag.Flag{}
	add := func(f *pflag.Flag) {
		if title := groupOf(groups, helpName(cmd), f.Name); !f.Hidden {
			listed[title] = append(listed[title], f)
		}
	}
	cmd.LocalFlags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	for _, g := range append(groups, flagGroup{title: otherFlags}) {
		if flags := listed[g.title]; len(flags) > 0 {
			found = append(found, section(g, flags))
			delete(listed, g.title)
		}
	}
	return found
}

// section puts flags into the order of their group; those that it does not name come last.
func section(g flagGroup, flags []*pflag.Flag) flagSection {
	rank := func(f *pflag.Flag) int {
		if at := slices.Index(g.flags, f.Name); at >= 0 {
			return at
		}
		return len(g.flags)
	}
	slices.SortStableFunc(flags, func(a, b *pflag.Flag) int { return rank(a) - rank(b) })
	s := flagSection{g.title, pflag.NewFlagSet(g.title, pflag.ContinueOnError)}
	s.flags.SortFlags = false
	for _, f := range flags {
		s.flags.AddFlag(f)
	}
	return s
}

// helpColumns is how wide the help is at most.
const helpColumns = plain.Columns

// printHelp prints what a command is for, and how it is used.
func printHelp(cmd *cobra.Command, _ []string) {
	out := cmd.OutOrStdout()
	for _, p := range paragraphs(cmp.Or(cmd.Long, cmd.Short)) {
		for _, line := range p.lines() {
			fmt.Fprintln(out, line)
		}
		fmt.Fprintln(out)
	}
	fmt.Fprint(out, usageText(cmd))
}

// paragraph is a part of what is said of a command: prose, or lines of a shell, which stay as they are.
type paragraph struct {
	text string
	code bool
}

// paragraphs splits a text at its empty lines; code is what begins with a tab.
func paragraphs(text string) (list []paragraph) {
	for _, part := range strings.Split(strings.TrimSpace(text), "\n\n") {
		code := strings.HasPrefix(part, "\t")
		list = append(list, paragraph{strings.ReplaceAll(part, "\t", "  "), code})
	}
	return list
}

func (p paragraph) lines() []string {
	if p.code {
		return strings.Split(p.text, "\n")
	}
	return report.Wrap(p.text, helpColumns)
}

// printUsage prints how a command is used.
func printUsage(cmd *cobra.Command) error {
	_, err := io.WriteString(cmd.OutOrStderr(), usageText(cmd))
	return err
}

// usageText has a command's forms, its examples, what stands below it, and its flags in groups.
func usageText(cmd *cobra.Command) string {
	var b strings.Builder
	b.WriteString("Usage:\n")
	for _, form := range forms(cmd) {
		fmt.Fprintf(&b, "  %s\n", form)
	}
	if len(cmd.Aliases) > 0 {
		fmt.Fprintf(&b, "\nAlso called: %s\n", strings.Join(cmd.Aliases, ", "))
	}
	if cmd.HasExample() {
		b.WriteString("\nExamples:\n")
		for line := range strings.Lines(cmd.Example) {
			b.WriteString(strings.Join(plain.Command(strings.TrimSuffix(line, "\n"), helpColumns), "\n") + "\n")
		}
	}
	printSubcommands(&b, cmd)
	for _, s := range sections(cmd) {
		fmt.Fprintf(&b, "\n%s:\n%s", s.title, s.flags.FlagUsagesWrapped(helpColumns))
	}
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\n%s COMMAND -h tells more of a command.\n", cmd.CommandPath())
	}
	if cmd.HasLocalFlags() && cmd.Flags().Lookup("table-size") != nil {
		b.WriteString("\nA duration without a unit is in seconds; rows may be written as 1M, sizes as 2G.\n")
	}
	return b.String()
}

// forms are the command lines a command has.
func forms(cmd *cobra.Command) (lines []string) {
	if cmd.Runnable() {
		lines = append(lines, cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		lines = append(lines, cmd.CommandPath()+" COMMAND")
	}
	return lines
}

// printSubcommands lists what stands below a command.
func printSubcommands(b *strings.Builder, cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	b.WriteString("\nCommands:\n")
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() && sub.Name() != "help" {
			continue
		}
		name := sub.Name()
		for _, line := range report.Wrap(sub.Short, helpColumns-sub.NamePadding()-3) {
			fmt.Fprintf(b, "  %-*s %s\n", sub.NamePadding(), name, line)
			name = ""
		}
	}
}
