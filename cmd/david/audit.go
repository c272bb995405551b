package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/audit"
	"david/internal/host"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/server"
)

// auditFlags are the flags of david audit.
type auditFlags struct {
	dsn, defaultsFile      string
	cnf, flavour, version  string
	memory, dataSize, fail string
	cpus                   float64
	json                   bool
}

// auditDocument is what david audit --json prints.
type auditDocument struct {
	Flavour  mycnf.Flavour `json:"flavour"`
	Version  string        `json:"version"`
	Of       string        `json:"of"`       // the server's address, or the file
	Hardware []string      `json:"hardware"` // what is seen of it, with units
	audit.Report
}

func (a *app) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Judge a server's or an option file's settings: what endangers data, what costs throughput, what contradicts itself",
		Long:  "audit only reads: SELECT and SHOW on a server (--dsn, --defaults-file), or an option file (--cnf). The rules are in docs/audit.md.",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("cpus") && !(f.cpus > 0) {
				return usage("--cpus %g: give a number above 0", f.cpus)
			}
			return a.audit(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.dsn, "dsn", "", "a running server: user@tcp(host:3306)/, user@unix(/path/socket)/ or mysql://user@host:3306/; the password is better in MYSQL_PWD or --defaults-file")
	fs.StringVar(&f.defaultsFile, "defaults-file", "", "an option file whose [client] group names a running server")
	fs.StringVar(&f.cnf, "cnf", "", "an option file to judge instead of a server, with what it includes")
	fs.StringVar(&f.flavour, "flavour", "", "of the server the file is for: mysql, percona, mariadb (mysql)")
	fs.StringVar(&f.version, "server-version", "", "of the server the file is for; of a series (8.0) the last release (MySQL 9.7, MariaDB 10.11)")
	fs.StringVar(&f.memory, "memory", "", "what the server may use, as 16G (this machine's, where the server or the file is here)")
	fs.Float64Var(&f.cpus, "cpus", 0, "CPUs the server may use (this machine's)")
	fs.StringVar(&f.dataSize, "data-size", "", "tables and indexes, as 20G (what the server tells)")
	fs.StringVar(&f.fail, "fail-on", "", "exit with 3 where there is a finding this severe or worse: danger, slow, conflict, note")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

func (a *app) audit(ctx context.Context, f auditFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	see := a.auditServer
	if f.cnf != "" {
		see = a.auditFile
	}
	in, doc, err := see(ctx, f)
	if err != nil {
		return err
	}
	if err := f.given(&in); err != nil {
		return err
	}
	doc.Flavour, doc.Hardware, doc.Report = in.Flavour, hardware(in.Machine), audit.Run(in)
	if f.json {
		err = a.printJSON(doc)
	} else {
		err = printAudit(a.out, doc)
	}
	if err != nil {
		return err
	}
	return f.verdict(doc.Findings)
}

// check refuses flags that do not go together.
func (f auditFlags) check() error {
	given := 0
	for _, s := range []string{f.dsn, f.defaultsFile, f.cnf} {
		if s != "" {
			given++
		}
	}
	if f.dsn != "" && f.defaultsFile != "" {
		given--
	}
	switch {
	case given == 0:
		return usage("say what to judge: --dsn or --defaults-file for a running server, --cnf for an option file")
	case given > 1:
		return usage("--cnf is for a file: leave out --dsn and --defaults-file")
	case f.cnf == "" && f.flavour+f.version != "":
		return usage("--flavour and --server-version are for --cnf: a running server says what it is")
	case !slices.Contains([]string{"", string(mycnf.MySQL), string(mycnf.Percona), string(mycnf.MariaDB)}, f.flavour):
		return usage("--flavour %s: want mysql, percona or mariadb", f.flavour)
	case f.fail != "" && audit.Severity(f.fail).Rank() == len(audit.Severities()):
		return usage("--fail-on %s: want danger, slow, conflict or note", f.fail)
	}
	return nil
}

// given puts what the flags say of the hardware in the place of what was seen.
func (f auditFlags) given(in *audit.Input) error {
	if f.memory != "" {
		n, err := mycnf.ParseSize(f.memory)
		if err != nil || n == 0 {
			return usage("--memory %s: give a size above 0, as 16G", f.memory)
		}
		in.Machine.Memory, in.Machine.RAM = n, 0
	}
	if f.dataSize != "" {
		n, err := mycnf.ParseSize(f.dataSize)
		if err != nil {
			return usage("--data-size: %w", err)
		}
		in.Machine.Data, in.Machine.DataSeen = n, true
	}
	if !in.Machine.DataSeen {
		in.Unseen = append(in.Unseen, "size of the data (--data-size gives it): whether they fit into the buffer pool is not judged")
	}
	in.Machine.CPUs = cmp.Or(f.cpus, in.Machine.CPUs)
	return nil
}

// verdict is the error for --fail-on.
func (f auditFlags) verdict(findings []audit.Finding) error {
	if f.fail == "" {
		return nil
	}
	n := 0
	for _, one := range findings {
		if one.Severity.Rank() <= audit.Severity(f.fail).Rank() {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return codedError{exitInvalid, fmt.Errorf("--fail-on %s: %s that severe or worse", f.fail, pluralise(n, "finding"))}
}

// auditFile sees an option file, and this machine.
func (a *app) auditFile(ctx context.Context, f auditFlags) (in audit.Input, doc auditDocument, err error) {
	in.Flavour = mycnf.Flavour(cmp.Or(f.flavour, string(mycnf.MySQL)))
	assumed := "9.7"
	if in.Flavour == mycnf.MariaDB {
		assumed = "10.11"
	}
	doc.Version = cmp.Or(f.version, assumed)
	if in.Version, err = mycnf.ParseRelease(doc.Version); err != nil {
		return in, doc, usage("--server-version: %w", err)
	}
	file, err := lab.ReadCnf(f.cnf)
	if err != nil {
		return in, doc, err
	}
	settings := file.Settings(mycnf.ServerGroups(in.Flavour, in.Version)...)
	in.Variables, in.Set = audit.Effective(in.Flavour, in.Version, settings)
	if in.Known, err = a.knownNames(ctx, in); err != nil {
		return in, doc, err
	}
	if names := in.Unjudged(); len(names) > 0 {
		in.Unseen = append(in.Unseen, "whether the version has "+strings.Join(names, ", ")+": not in david's catalogue; a binary of the version on this machine would tell, but for names of plugins")
	}
	if len(settings) == 0 {
		in.Unseen = append(in.Unseen, fmt.Sprintf("settings: %s has none for this server, so its defaults are judged", f.cnf))
	}
	doc.Of = f.cnf
	facts, err := host.Read(ctx, a.home)
	if err != nil {
		return in, doc, err
	}
	if f.memory == "" {
		in.Machine = audit.Machine{Memory: facts.Memory.Limit, RAM: facts.Memory.Total, CPUs: facts.CPU.Usable, FreeDisk: facts.Data.Free,
			Spinning: spinning(facts)}
		in.Unseen = append(in.Unseen, "the hardware the file is for: taken for this machine, and david's filesystem for the data's (--memory and --cpus describe another)")
	}
	return in, doc, nil
}

// knownNames are the names that a binary of the very version takes, where one is on this machine; else nil.
func (a *app) knownNames(ctx context.Context, in audit.Input) ([]string, error) {
	for _, b := range server.List(ctx, a.home) {
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

// hardware says what is seen of the machine.
func hardware(m audit.Machine) (list []string) {
	if m.Memory > 0 {
		list = append(list, "memory "+host.Size(m.Memory))
	}
	if m.CPUs > 0 {
		list = append(list, fmt.Sprintf("%.4g CPUs", m.CPUs))
	}
	if m.FreeDisk > 0 {
		list = append(list, "free disk "+host.Size(m.FreeDisk))
	}
	if m.DataSeen {
		list = append(list, "data "+host.Size(m.Data))
	}
	return list
}

func printAudit(out io.Writer, d auditDocument) error {
	seen := "hardware not seen"
	if len(d.Hardware) > 0 {
		seen = strings.Join(d.Hardware, ", ")
	}
	fmt.Fprintf(out, "%s %s, %s; %s\n\n", d.Flavour.Product(), d.Version, d.Of, seen)
	if len(d.Findings) == 0 {
		fmt.Fprintln(out, "nothing found")
	} else {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		fmt.Fprintln(w, "SEVERITY\tFINDING\tLINE\tAPPLIES\tEVIDENCE")
		for _, f := range d.Findings {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.Severity, f.Name, cmp.Or(f.Line, "-"), applies(f), f.Evidence)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out, "\nWhy")
		for _, f := range d.Findings {
			fmt.Fprintf(out, "  %s: %s (%s)\n", f.Name, f.Reason, f.Source)
		}
	}
	for i, u := range d.Unseen {
		if i == 0 {
			fmt.Fprintln(out, "\nNot seen")
		}
		fmt.Fprintf(out, "  %s\n", u)
	}
	return nil
}

// applies says when a finding's line takes effect.
func applies(f audit.Finding) string {
	switch {
	case f.Line == "":
		return "-"
	case f.NewData:
		return "new data directory"
	case f.Restart:
		return "restart"
	}
	return "at once"
}
