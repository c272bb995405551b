package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"david/internal/netpath"
)

// networkWorkCommand is the work beside which a david measures a path: it starts this of itself, and ends it. It cleans
// nothing up at its start, as other commands do: that david is at work.
func (a *app) networkWorkCommand() *cobra.Command {
	return &cobra.Command{
		Use:               netpath.WorkCommand + " CPU",
		Short:             "Keep a CPU busy where nothing else would run there: what david network measure starts of itself",
		Hidden:            true,
		Args:              exactArgs(1, "a CPU"),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil },
		RunE: func(_ *cobra.Command, args []string) error {
			cpu, err := strconv.Atoi(args[0])
			if err != nil {
				return usage("not the number of a CPU: %s", args[0])
			}
			return netpath.Work(cpu)
		},
	}
}
