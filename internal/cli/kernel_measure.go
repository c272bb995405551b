package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/kernel"
	"david/internal/lab"
	"david/internal/result"
	"david/internal/stats"
)

func (a *app) kernelMeasureCommand() *cobra.Command {
	var f blockFlags
	cmd := &cobra.Command{
		Use:   "measure NAME=VALUE[,NAME=VALUE ...] ...",
		Short: "Measure what kernel settings do to throughput: each an arm of a comparison with this machine as it is",
		Long: "Measure what kernel settings do to throughput. Each argument is an arm; the control is this machine as it is. All arms load one\n" +
			"server: an arm's settings hold while it is loaded, and are set back before the next. Only what a server takes when it starts, such as\n" +
			"huge pages, gets a server of its own. Settings and bounds are those of david kernel plan. Where david is killed, the next david\n" +
			"command sets them back. Verdicts and rounds are those of david compare.",
		RunE: a.orMore(result.KindCompare, func(cmd *cobra.Command, args []string) error {
			if err := f.settle(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.kernelMeasure(cmd.Context(), f, args)
		}),
	}
	f.add(cmd.Flags(), 60*time.Second, 15*time.Second, 0)
	a.addVerbose(cmd.Flags())
	return cmd
}

func (a *app) kernelMeasure(ctx context.Context, f blockFlags, args []string) error {
	if len(args) == 0 {
		return usage("david kernel measure takes settings, as vm.swappiness=1; david kernel plan lists them")
	}
	q, err := f.request(result.KindCompare, stats.Control)
	if err != nil {
		return err
	}
	m, err := a.kernelMachine(ctx, "")
	if err != nil {
		return err
	}
	q.Arms = []lab.Arm{{Name: stats.Control}}
	for _, text := range args {
		arm, err := kernelArm(m, text)
		if err != nil {
			return kernelError(err)
		}
		q.Arms = append(q.Arms, nameKernelArm(arm, q.Arms))
	}
	q.Spread()
	if err := q.Check(); err != nil {
		return err
	}
	return a.measure(ctx, q, f.json)
}

// kernelArm is the control under kernel settings that david can set here.
func kernelArm(m kernel.Machine, text string) (arm lab.Arm, err error) {
	steps, err := m.Steps(strings.Split(text, ","), false)
	if err == nil {
		err = m.Hindered(steps)
	}
	if err != nil {
		return arm, err
	}
	if len(steps) == 0 {
		return arm, fmt.Errorf("%w: %s is so already: there is nothing to measure", kernel.ErrInput, text)
	}
	for _, c := range steps {
		arm.Kernel = append(arm.Kernel, result.KernelSetting{Name: c.Name, Disk: c.Disk, Value: c.After})
		arm.Title += fmt.Sprintf(", %s=%s (was %s)", c.Name, c.After, c.Before)
	}
	arm.Title = "kernel: " + strings.TrimPrefix(arm.Title, ", ")
	return arm, nil
}

// nameKernelArm names an arm by its settings: vm.swappiness-1. The name becomes a file's and stands in tables, so of
// many settings it has the first and says how many more there are; the title has all. Where an arm with other
// settings has that name already it is numbered. One with the same settings keeps it, and lab refuses the pair.
func nameKernelArm(arm lab.Arm, others []lab.Arm) lab.Arm {
	const longest = 60
	var names []string
	for _, s := range arm.Kernel {
		names = append(names, s.Name+"-"+strings.ReplaceAll(s.Value, " ", "-"))
	}
	if arm.Name = strings.Join(names, "_"); len(arm.Name) <= longest {
		return arm
	}
	short := fmt.Sprintf("%s_and-%d-more", names[0], len(names)-1)
	arm.Name = short
	taken := func(o lab.Arm) bool { return o.Name == arm.Name && o.Title != arm.Title }
	for n := 2; slices.ContainsFunc(others, taken); n++ {
		arm.Name = fmt.Sprintf("%s-%d", short, n)
	}
	return arm
}
