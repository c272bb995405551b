package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/result"
	"david/internal/stats"
)

// raceFlags holds the options of david race.
type raceFlags struct {
	blockFlags
	only, against   string
	list, asShipped bool
}

// raceBlocks is the default of a race in trials: enough to tell the fast from the slow.
const raceBlocks = 3

// raceRounds is the default of a race in slices, in two incarnations.
const raceRounds = 12

func (a *app) raceCommand() *cobra.Command {
	var f raceFlags
	cmd := &cobra.Command{
		Use:   "race",
		Short: "Race what others would configure on this machine: operators' templates, the server's own sizing, a random one",
		Long: "Race the named baselines of docs/baselines.md against the server's defaults, in rounds of slices (--trials: in blocks of fresh\n" +
			"servers) as david compare does: what operators, clouds and the server itself would configure for the memory and the CPUs it may use, translated for the\n" +
			"server's version and made as durable as the control. Nothing is clipped: one that does not start, or is killed for memory, is\n" +
			"infeasible, and that is its result. With --against the server runs with your own option file in the place of its defaults, and the\n" +
			"question is whether any baseline, each on its own, is better.",
		Args: exactArgs(0, "no arguments"),
		RunE: a.orMore(result.KindRace, func(cmd *cobra.Command, _ []string) error {
			if err := f.settle(cmd.Flags().Changed); err != nil {
				return err
			}
			if !cmd.Flags().Changed("blocks") && f.blocks > 0 && f.slices() != nil {
				f.instead.Blocks, f.blocks = f.blocks, raceRounds
			}
			return a.race(cmd.Context(), f)
		}),
	}
	fs := cmd.Flags()
	f.blockFlags.add(fs, 30*time.Second, 10*time.Second, raceBlocks)
	a.addVerbose(fs)
	a.addMetrics(fs)
	fs.StringVar(&f.only, "only", "", "NAME,... of the baselines to race; the control always runs")
	fs.StringVar(&f.against, "against", "", "FILE, a my.cnf: the control runs with it, and every baseline without it, the server's defaults among them")
	fs.BoolVar(&f.list, "list", false, "print the baselines with their settings, and run nothing")
	fs.BoolVar(&f.asShipped, "as-shipped", false, "measure those that the durability lock changed as they are shipped, too: unsafe, beside the verdicts and never in them")
	return cmd
}

func (a *app) race(ctx context.Context, f raceFlags) error {
	q, err := f.request(result.KindRace, stats.Control)
	if err != nil {
		return err
	}
	who, err := lab.Race{Server: f.server, Only: f.only, Against: f.against, AsShipped: f.asShipped, Caps: q.Caps, Loads: q.Loads, Seed: f.seed}.Lineup(ctx, a.lab())
	if err != nil {
		return err
	}
	if f.list {
		return a.printLineup(who, f.json)
	}
	if q, err = who.Enter(q); err != nil {
		return err
	}
	return a.measure(ctx, q, f.json)
}

func (a *app) printLineup(l lab.Lineup, asJSON bool) error {
	if asJSON {
		return a.printJSON(l)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s, sized for %s of memory and %.4g CPUs\n", l.Flavour.Product(), l.Version, host.Size(l.Memory), l.CPUs)
	if l.Against != nil {
		fmt.Fprintf(&text, "\n%s: %s\n", stats.Control, l.Against.Title())
		printSettings(&text, l.Against.Settings)
	}
	for i, b := range l.Baselines {
		name, title := l.Named(i)
		fmt.Fprintf(&text, "\n%s: %s\n  from: %s\n", name, title, b.Source)
		printSettings(&text, b.Settings)
		for _, note := range b.Translated {
			fmt.Fprintf(&text, "  translated: %s\n", note)
		}
		for _, k := range b.Locked {
			fmt.Fprintf(&text, "  made safe: %s\n", k)
		}
	}
	fmt.Fprintf(&text, "\n%s %s\n", lab.TunerArm, l.MySQLTuner)
	return a.fit(func(out io.Writer) error {
		_, err := io.WriteString(out, text.String())
		return err
	})
}

func printSettings(text *strings.Builder, settings []mycnf.Setting) {
	for _, s := range settings {
		fmt.Fprintf(text, "  %s\n", strings.TrimSuffix(s.Name+"="+s.Value, "="))
	}
}
