package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/plan"
	"david/internal/price"
	"david/internal/report"
)

// hardwareFlags are the figures of the commands beside david plan.
type hardwareFlags struct {
	size, from, arm, catalogue string
	json                       bool
	figures                    map[string]*string
}

// add registers the figures of those names.
func (f *hardwareFlags) add(fs *pflag.FlagSet, names ...string) {
	f.figures = map[string]*string{}
	for _, x := range plan.Figures() {
		for _, name := range names {
			if x.Name == name {
				f.figures[name] = fs.String(name, "", x.What+figureDefault(x))
			}
		}
	}
}

// request reads the figures that were given.
func (f *hardwareFlags) request(given func(string) bool) (r plan.Request, err error) {
	r.Figures = map[string]float64{}
	for _, x := range plan.Figures() {
		if text, ok := f.figures[x.Name]; ok && given(x.Name) {
			if r.Figures[x.Name], err = readFigure(x, *text); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

func (a *app) densityCommand() *cobra.Command {
	var f hardwareFlags
	cmd := &cobra.Command{
		Use:   "iops-per-gb",
		Short: "Write IOPS per GB: the clouds' volumes, own hardware and an experiment, beside study P4's",
		Args:  exactArgs(0, "no arguments"),
	}
	fs := cmd.Flags()
	fs.StringVar(&f.size, "size", "1TiB", "size of a volume")
	fs.StringVar(&f.from, "from", "", "DIR, the record of an experiment, its name, or latest: what its load wrote for each GB of its data")
	fs.StringVar(&f.arm, "arm", "", "NAME of its arm (default: what the tune handed over, else the fastest that is safe)")
	fs.StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) whose entries are added to david's own, or replace those of the same name")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	f.add(fs, append(ownServer(), "server-network", "fill")...)
	cmd.RunE = func(*cobra.Command, []string) error { return a.densities(&f, fs.Changed) }
	return cmd
}

// ownServer names the figures of one's own hardware.
func ownServer() []string {
	return []string{"server-price", "server-cpus", "server-memory", "server-disks", "server-disk", "server-iops"}
}

func (a *app) densities(f *hardwareFlags, given func(string) bool) error {
	c, err := prices(f.catalogue)
	if err != nil {
		return err
	}
	size, err := price.ParseSize(f.size)
	if err != nil {
		return usage("--size %s: %w", f.size, err)
	}
	r, err := f.request(given)
	if err != nil {
		return err
	}
	if _, err := a.measured(&planFlags{from: f.from, arm: f.arm, given: func(string) bool { return false }}, &r); err != nil {
		return err
	}
	list, err := r.Densities(c, size)
	if err != nil {
		return codedError{exitUsage, err}
	}
	if f.from != "" {
		data, err := a.load(f.from)
		if err != nil {
			return err
		}
		list = append(list, plan.LayoutDensities(data.Experiment, data.Arms)...)
	}
	if f.json {
		return a.printJSON(list)
	}
	return report.Densities(a.out, list)
}

func (a *app) cephCommand() *cobra.Command {
	var f hardwareFlags
	cmd := &cobra.Command{
		Use:   "ceph",
		Short: "Ratios and settings of a Ceph pool of such servers, and what became of study P4's",
		Args:  exactArgs(0, "no arguments"),
	}
	fs := cmd.Flags()
	f.add(fs, ownServer()...)
	cmd.RunE = func(*cobra.Command, []string) error {
		r, err := f.request(fs.Changed)
		if err != nil {
			return err
		}
		settings, err := r.CephSettings()
		if err != nil {
			return codedError{exitUsage, err}
		}
		return report.Ceph(a.out, settings)
	}
	return cmd
}
