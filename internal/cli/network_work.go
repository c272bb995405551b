package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"david/internal/netpath"
)

// networkWorkCommand keeps a CPU busy while the david that started it measures a network path.
func (a *app) networkWorkCommand() *cobra.Command {
	return childCommand(netpath.WorkCommand+" CPU", "Keep a CPU busy where nothing else would run there: what david network measure starts of itself",
		exactArgs(1, "a CPU"), func(_ *cobra.Command, args []string) error {
			cpu, err := strconv.Atoi(args[0])
			if err != nil {
				return usage("not the number of a CPU: %s", args[0])
			}
			return netpath.Work(cpu)
		})
}
