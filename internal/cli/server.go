package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/mycnf"
	"david/internal/server"
)

func (a *app) serverCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "server", Short: "List the servers of this machine, or install one into david's own folder", Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(a.serverListCommand(), a.serverInstallCommand(), a.serverRemoveCommand())
	return cmd
}

func (a *app) serverListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the server binaries david can use",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			found := server.List(cmd.Context(), a.home)
			if asJSON {
				return a.printJSON(append([]server.Binary{}, found...))
			}
			if len(found) == 0 {
				a.tell("no server found; get one with: david server install mysql")
				return nil
			}
			return a.fit(func(out io.Writer) error {
				w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
				fmt.Fprintln(w, "FLAVOUR\tVERSION\tSHA-256\tPATH")
				for _, b := range found {
					fmt.Fprintf(w, "%s\t%s\t%.12s\t%s\n", b.Flavour, b.Version, b.SHA256, b.Path)
				}
				return w.Flush()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return cmd
}

func (a *app) serverInstallCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "install mysql|mariadb|mysqltuner",
		Short: "Put an Oracle MySQL, a MariaDB, or MySQLTuner, into david's own folder; the system's packages are not touched",
		Args:  exactArgs(1, "what to install: mysql, mariadb or mysqltuner"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if known := []string{string(mycnf.MySQL), string(mycnf.MariaDB), server.Tuner}; !slices.Contains(known, args[0]) {
				return usage("cannot install %q: david installs %s", args[0], strings.Join(known, ", "))
			}
			b, err := server.Install(cmd.Context(), a.home, args[0], a.err)
			if err != nil {
				return err
			}
			fmt.Fprintf(a.out, "%s %s is in %s\n", productName(b), b.Version, b.Root)
			return nil
		},
	}
}

func productName(b server.Binary) string {
	if b.Flavour == "" {
		return "MySQLTuner"
	}
	return b.Flavour.Product()
}

func (a *app) serverRemoveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "remove NAME",
		Short: "Remove a server, or MySQLTuner, that david installed",
		Args:  exactArgs(1, "the name of a server in david's folder, as in mysql-9.7.4-2"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return server.Remove(cmd.Context(), a.home, args[0])
		},
	}
}
