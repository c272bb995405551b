package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"david/internal/probe"
)

// probeChild is the command that david starts of itself, to measure CPUs inside a cgroup.
const probeChild = "probe-machine"

func (a *app) probeMachineCommand() *cobra.Command {
	return &cobra.Command{
		Use:    probeChild,
		Short:  "Measure the CPUs and the kernel and print JSON: what david probe starts under caps",
		Hidden: true,
		Args:   exactArgs(1, "the number of rounds"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rounds, err := strconv.Atoi(args[0])
			if err != nil || rounds < 1 {
				return usage("%s %s: give a number of rounds above 0", probeChild, args[0])
			}
			a.generous()
			m, err := probe.Machine(cmd.Context(), rounds)
			if err != nil {
				return err
			}
			return a.printJSON(m)
		},
	}
}
