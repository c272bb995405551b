package cli

import (
	"github.com/spf13/cobra"

	"david/internal/podrun"
	"david/internal/workload"
)

// benchWorkerCommand follows another client: `david bench --clients N` starts it in a cluster. It goes by the
// name that images of other versions of david know.
func (a *app) benchWorkerCommand() *cobra.Command {
	var f serverFlags
	var w workload.Worker
	cmd := &cobra.Command{
		Use:    "bench-hand",
		Short:  "Drive a share of another david bench's load, as it tells",
		Args:   exactArgs(0, "no arguments"),
		Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if w.Number < 1 || w.Number >= w.Clients || w.ID == "" {
				return usage("bench-hand: give --crew, and a --number from 1 to below --clients")
			}
			addr, err := a.remoteAddr(f)
			if err != nil {
				return err
			}
			a.generous()
			p := newProgress(a.err, a.verbose)
			defer p.end()
			w.Say = p.text
			err = podrun.Work(cmd.Context(), addr, a.home, w)
			return endedEarly(cmd.Context(), "the first client says what was measured", err)
		},
	}
	fs := cmd.Flags()
	f.add(fs, "the server, as of david bench", "an option file that names it")
	fs.StringVar(&w.ID, "crew", "", "the name of the clients that belong together")
	fs.StringVar(&w.Database, "schema", database, "the workload's schema")
	fs.IntVar(&w.Number, "number", 0, "which of the clients this one is; the first is 0")
	fs.IntVar(&w.Clients, "clients", 0, "how many there are")
	return cmd
}
