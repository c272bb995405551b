package cli

import (
	"cmp"
	"context"
	"io"

	"github.com/spf13/cobra"

	"david/internal/advice"
	"david/internal/lab"
	"david/internal/mycnf"
)

// auditFlags are the flags of david audit.
type auditFlags struct {
	serverFlags
	cnf, flavour, version  string
	memory, dataSize, fail string
	cpus                   float64
	json                   bool
}

func (a *app) auditCommand() *cobra.Command {
	var f auditFlags
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Judge a server's or an option file's settings: what endangers data, what keeps it from starting, what costs throughput",
		Long:  "audit only reads: SELECT and SHOW on a server (--dsn, --defaults-file), or an option file (--cnf). The rules are in docs/audit.md.",
		Args:  exactArgs(0, "no arguments: an option file is named with --cnf FILE"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("cpus") && !(f.cpus > 0) {
				return usage("--cpus %g: give a number above 0", f.cpus)
			}
			return a.audit(cmd.Context(), f, cmd.InOrStdin())
		},
	}
	fs := cmd.Flags()
	f.serverFlags.add(fs, "a running server: user@tcp(host:3306)/, user@unix(/path/socket)/ or mysql://user@host:3306/; "+passwordElsewhere,
		"an option file whose [client] group names a running server")
	fs.StringVar(&f.cnf, "cnf", "", "an option file to judge instead of a server, with what it includes; - for standard input")
	fs.StringVar(&f.flavour, "flavour", "", "of the server the file is for: mysql, percona, mariadb (what is installed here, else mysql)")
	fs.StringVar(&f.version, "server-version", "", "of the server the file is for; of a series (8.0) the last release (what is installed here, else MySQL 9.7, MariaDB 10.11)")
	fs.StringVar(&f.memory, "memory", "", "what the server may use, as 16G (this machine's, where the server or the file is here)")
	fs.Float64Var(&f.cpus, "cpus", 0, "CPUs the server may use (this machine's)")
	fs.StringVar(&f.dataSize, "data-size", "", "tables and indexes, as 20G (what the server tells)")
	fs.StringVar(&f.fail, "fail-on", "", "exit with 3 where there is a finding this severe or worse: danger, down, slow, conflict, note")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.BoolVarP(&a.verbose, "verbose", "v", false, "print all of it instead of five lines: the evidence, the reason, the source and the risk of each finding")
	return cmd
}

func (a *app) audit(ctx context.Context, f auditFlags, stdin io.Reader) error {
	if err := f.check(); err != nil {
		return err
	}
	doc, in, err := a.auditInput(ctx, f, stdin)
	if err != nil {
		return err
	}
	if err := f.given(&in); err != nil {
		return err
	}
	doc.Flavour, doc.Hardware, doc.Report = in.Flavour, in.Machine.Words(), advice.Of(in)
	if f.json {
		err = a.printJSON(doc)
	} else {
		err = a.printAudit(doc)
	}
	if err != nil {
		return err
	}
	return f.verdict(doc.Report)
}

// auditInput sees what is to be judged.
func (a *app) auditInput(ctx context.Context, f auditFlags, stdin io.Reader) (doc advice.Document, in advice.Facts, err error) {
	if f.cnf == "" {
		addr, err := a.remoteAddr(f.serverFlags)
		if err != nil {
			return doc, in, err
		}
		in, err = a.lab().SeeServer(ctx, addr, f.memory != "")
		return advice.Document{Of: addr.String(), Version: in.Version.String()}, in, err
	}
	said := lab.Named{Flavour: mycnf.Flavour(f.flavour), Version: f.version}
	if _, err := mycnf.ParseRelease(cmp.Or(said.Version, "9.7")); err != nil {
		return doc, in, usage("--server-version: %w", err)
	}
	meant := a.lab().Meant(ctx, said, cmp.Or(a.config.values["server"], "auto"))
	version, err := mycnf.ParseRelease(meant.Version)
	if err != nil {
		return doc, in, err
	}
	doc = advice.Document{Of: f.cnf, Version: meant.Version, Assumed: meant.Assumed}
	if f.cnf == lab.StandardInput {
		doc.Of = "standard input"
	}
	in, err = a.lab().SeeFile(ctx, lab.Cnf{Path: f.cnf, Input: stdin}, meant.Flavour, version, f.memory != "" || f.cpus > 0)
	return doc, in, err
}
