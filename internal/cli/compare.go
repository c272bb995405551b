package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/result"
	"david/internal/stats"
)

// compareFlags holds the options of david compare.
type compareFlags struct {
	blockFlags
	control      string
	arms         []string
	crossFlavour bool
}

func (a *app) compareCommand() *cobra.Command {
	var f compareFlags
	cmd := &cobra.Command{
		Use:   "compare --arm control --arm NAME=MY.CNF|VAR=VALUE,...",
		Short: "Compare configurations: rounds of slices in random order, intervals, odds, a verdict",
		Long: "Compare configurations with a control. Every arm's server stays up and warm; in rounds, in random order, each is loaded for some\n" +
			"seconds while the others are stopped, and what is compared is slices of one round. Each arm's server is started two to five times.\n" +
			"Rounds are run until every ratio is known to --precision, or --budget is used up; --continue 10m adds time. With --trials a block has\n" +
			"one long trial of every arm and two of the control, each on its own freshly restored server, and the control against itself is the\n" +
			"noise floor, below which no gain is claimed. The same command goes on with an experiment that was interrupted.",
		Args: exactArgs(0, "no arguments"),
		RunE: a.orMore(result.KindCompare, func(cmd *cobra.Command, _ []string) error {
			if err := f.settle(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.compare(cmd.Context(), f)
		}),
	}
	fs := cmd.Flags()
	f.blockFlags.add(fs, 60*time.Second, 15*time.Second, 0)
	fs.StringArrayVar(&f.arms, "arm", nil, "NAME (the defaults), NAME=MY.CNF, or NAME=VAR=VALUE,...; server=mariadb among them gives the arm a server of its own; repeatable")
	fs.StringVar(&f.control, "control", stats.Control, "the arm the others are compared with")
	fs.BoolVar(&f.crossFlavour, "cross-flavour", false, "let arms run on servers of different flavours")
	return cmd
}

// parseArm reads --arm.
func parseArm(text string) (lab.Arm, error) {
	name, what, given := strings.Cut(text, "=")
	arm := lab.Arm{Name: name}
	if !result.ValidName(name) {
		return arm, usage("--arm %s: a name begins with a letter or digit and holds letters, digits, dot, dash and underscore only", text)
	}
	if !given || what == "" {
		return arm, nil
	}
	if !strings.Contains(what, "=") {
		if _, err := os.Stat(what); err != nil {
			return arm, usage("--arm %s: %w; give NAME=MY.CNF or NAME=VAR=VALUE,...", text, err)
		}
		arm.Cnf = what
		return arm, nil
	}
	for _, part := range strings.Split(what, ",") {
		if path, ok := strings.CutPrefix(part, "server="); ok {
			arm.Server = path
			continue
		}
		if n := len(arm.Sets); n > 0 && !strings.Contains(part, "=") { // a value with commas: its rest
			arm.Sets[n-1] += "," + part
			continue
		}
		arm.Sets = append(arm.Sets, part)
	}
	return arm, nil
}

func (a *app) compare(ctx context.Context, f compareFlags) error {
	q, err := f.request()
	if err != nil {
		return err
	}
	return a.measure(ctx, q, f.json)
}

func (f *compareFlags) request() (lab.Request, error) {
	q, err := f.blockFlags.request(result.KindCompare, f.control)
	if err != nil {
		return q, err
	}
	q.CrossFlavour = f.crossFlavour
	for _, text := range f.arms {
		arm, err := parseArm(text)
		if err != nil {
			return q, err
		}
		q.Arms = append(q.Arms, arm)
	}
	q.Spread()
	return q, q.Check()
}
