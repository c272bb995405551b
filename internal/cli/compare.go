package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/lab"
	"david/internal/result"
	"david/internal/server"
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
		Use:   "compare --arm control --arm NAME=MY.CNF|BASELINE|VAR=VALUE,... | --arm mysql:9.7[,...] --arm mariadb:10.11[,...]",
		Short: "Compare configurations, or servers: rounds of slices in random order, intervals, odds, a verdict",
		Long: "Compare configurations with a control. Every arm's server stays up and warm. A round loads each for some seconds, in random\n" +
			"order, while the others are stopped; ratios are taken within a round. Each server is started two to ten times, as starts differ.\n" +
			"Rounds are run until every ratio is known to --precision, or --budget is used up; --continue 10m adds time. With --trials a block has\n" +
			"one long trial of every arm and two of the control, each on its own freshly restored server, and the control against itself is the\n" +
			"smallest difference that can be seen: no smaller gain is claimed. The same command goes on with an experiment that was interrupted.\n\n" +
			"An arm that is a server (mysql, percona or mariadb, :VERSION where it matters) is that server with its defaults, with the settings after\n" +
			"it, or like a baseline of david race --list: mysql:9.7,david-rules against mariadb:10.11,david-rules compares what david's sizing rules\n" +
			"make of each. The first is the control. Servers are compared at equal durability, read back from both, or not at all.\n\n" +
			"cpus, memory, iops and bandwidth in an arm's list limit that arm's server alone; the flags of these\n" +
			"names limit all. --arm control=my.cnf,iops=10000 --arm cheaper=my.cnf,iops=5800 measures what the\n" +
			"throughput loses on a smaller volume.",
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
	a.addVerbose(fs)
	a.addMetrics(fs)
	fs.StringArrayVar(&f.arms, "arm", nil, armHelp)
	fs.StringVar(&f.control, "control", stats.Control, "the arm the others are compared with")
	fs.BoolVar(&f.crossFlavour, "cross-flavour", false, "let arms run on servers of different flavours")
	return cmd
}

const armHelp = "NAME (the defaults), NAME=MY.CNF, NAME=BASELINE, or NAME=VAR=VALUE,...; " +
	"server=mariadb in the list gives the arm a server of its own, cpus=1 or iops=3000 a limit of its own; " +
	"or a server by itself, as mysql:9.7; repeatable"

// parseArm reads --arm. engine tells whether it names a server, whose name is then the arm's.
func parseArm(text string) (arm lab.Arm, engine bool, err error) {
	first, rest, _ := strings.Cut(text, ",")
	if e, ok := server.ParseEngine(first); ok {
		arm.Server = e.String()
		err = readArm(&arm, text, rest)
		arm.Name = strings.TrimSuffix(strings.ReplaceAll(first, ":", "-")+"-"+arm.Baseline, "-")
		return arm, true, err
	}
	name, what, _ := strings.Cut(text, "=")
	arm.Name = name
	if !result.ValidName(name) {
		return arm, false, usage("--arm %s: a name begins with a letter or digit and holds letters, digits, dot, dash and underscore only; a server is %s", text, server.EngineForm)
	}
	if fileOf(what) {
		arm.Cnf = what
		return arm, false, nil
	}
	return arm, false, readArm(&arm, text, what)
}

// readArm reads what an arm is to have: a server of its own, an option file or a baseline, settings, caps.
func readArm(arm *lab.Arm, text, what string) error {
	if what == "" {
		return nil
	}
	var own capFlags
	for _, part := range strings.Split(what, ",") {
		path, named := strings.CutPrefix(part, "server=")
		n := len(arm.Sets)
		switch {
		case named && arm.Server != "":
			return usage("--arm %s: it names two servers: leave out %s", text, part)
		case named:
			arm.Server = path
		case own.read(part):
		case strings.Contains(part, "="):
			arm.Sets = append(arm.Sets, part)
		case n > 0: // a value with commas: its rest
			arm.Sets[n-1] += "," + part
		case arm.Cnf != "" || arm.Baseline != "":
			return usage("--arm %s: %s and %s: give one file or baseline", text, arm.Cnf+arm.Baseline, part)
		case fileOf(part):
			arm.Cnf = part
		case !result.ValidName(part) || filepath.Ext(part) == ".cnf":
			return usage("--arm %s: %s: no such file; give NAME=MY.CNF, NAME=BASELINE (david race --list) or NAME=VAR=VALUE,...", text, part)
		default:
			arm.Baseline = part
		}
	}
	return capArm(arm, text, own)
}

// capArm gives an arm caps of its own, and a title that tells of them.
func capArm(arm *lab.Arm, text string, own capFlags) (err error) {
	if !own.given() {
		return nil
	}
	if arm.Caps, err = own.caps(); err != nil {
		return usage("--arm %s: %v", text, err)
	}
	arm.Title = strings.TrimPrefix(arm.What()+", "+arm.Caps.Text(), ", ")
	return nil
}

func fileOf(path string) bool {
	_, err := os.Stat(path)
	return err == nil
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
		arm, engine, err := parseArm(text)
		if err != nil {
			return q, err
		}
		q.Arms, q.Equal = append(q.Arms, arm), q.Equal || engine
	}
	f.overEngines(&q)
	q.Spread()
	return q, q.Check()
}

// overEngines completes a comparison of servers: these differ by intention, durability may not, and the
// first is the control unless another one is. Arms that name no server run on the control's.
func (f *compareFlags) overEngines(q *lab.Request) {
	if !q.Equal {
		return
	}
	q.CrossFlavour = true
	named := func(arm lab.Arm) bool { return arm.Name == q.Design.Control }
	if f.control == stats.Control && !slices.ContainsFunc(q.Arms, named) {
		q.Design.Control = q.Arms[0].Name
	}
	if i := slices.IndexFunc(q.Arms, named); i >= 0 && f.server == "auto" && q.Arms[i].Server != "" {
		q.Server = q.Arms[i].Server
	}
}
