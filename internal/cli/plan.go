package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"david/internal/mycnf"
	"david/internal/plan"
	"david/internal/price"
	"david/internal/report"
	"david/internal/stats"
)

// planFlags are those of david plan.
type planFlags struct {
	file, catalogue            string
	data                       string
	tps, qps, queries, writes  float64
	p99                        string
	rpo, rto                   time.Duration
	survive, flavour, commit   string
	budget, rtt, people        float64
	on                         []string
	regions                    int
	reads, consistent, masters bool
	change, kubernetes         bool
	why, sensitivity, json     bool
	stored                     bool
	show                       []string
	today                      string
	markdown                   bool
	from, arm, out             string
	figures                    map[string]*string
	given                      func(string) bool
}

func (a *app) planCommand() *cobra.Command {
	f := planFlags{figures: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "plan --data SIZE --tps N",
		Short: "How a MySQL should be run: which architecture meets what is asked, its bill over three years, and why the others do not",
		Long: "How a MySQL should be run: single server, replication, Group Replication, Galera, Ceph, DRBD, NDB, sharding or a managed service,\n" +
			"in order of cost: which meet what is asked, which do not and by which rule; the bill, what each failure takes, the commands.\n" +
			"Nothing is measured or asked of a provider.",
		Args: exactArgs(0, "no arguments"),
	}
	fs := cmd.Flags()
	f.add(fs)
	f.given = fs.Changed
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context(), &f, fs) }
	cmd.AddCommand(a.capacityCommand(), a.densityCommand(), a.cephCommand())
	return cmd
}

func (f *planFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.file, "requirements", "", "FILE (YAML) with these flags as keys, as in \"data: 200GiB\"; the command line's win")
	fs.StringVar(&f.from, "from", "", "DIR, the record of an experiment, its name, an --out folder of david tune, or latest: what a transaction takes is measured there (default: as david measured sysbench)")
	fs.StringVar(&f.arm, "arm", "", "NAME of its arm (default: what the tune handed over, else the fastest that is safe)")
	fs.StringVar(&f.data, "data", "", "size of the data today, as in 200GiB")
	fs.Float64Var(&f.tps, "tps", 0, "transactions per second at the busiest")
	fs.Float64Var(&f.qps, "qps", 0, "queries per second instead: --queries of them are a transaction")
	fs.Float64Var(&f.queries, "queries", 20, "queries of a transaction, as sysbench's oltp_read_write has them")
	fs.Float64Var(&f.writes, "writes", 0.2, "share of the queries that write, 0 to 1")
	fs.StringVar(&f.p99, "p99", "", "time that 99 % of the transactions may take, as in 20ms (default: not asked)")
	fs.DurationVar(&f.rpo, "rpo", 0, "acknowledged commits that may be lost, as a time; 0s: none (default: not asked)")
	fs.DurationVar(&f.rto, "rto", 0, "time until writes go on, as in 1m (default: not asked)")
	fs.StringVar(&f.survive, "survive", "", "the failure that RPO and RTO are for: machine, disk, zone or region (default: machine, where one of them is given)")
	fs.Float64Var(&f.budget, "budget", 0, "US$ a month at most (default: no limit)")
	fs.StringSliceVar(&f.on, "on", nil, "providers of the catalogue, and \"own\" for own hardware, with commas between them (default: all; own with --server-price)")
	fs.IntVar(&f.regions, "regions", 1, "regions in which the data can be read")
	fs.Float64Var(&f.rtt, "region-rtt", 0, "round trip between them in ms")
	fs.Float64Var(&f.people, "people", 1, "people who can be called at any hour; 0: fail-over has to be automatic")
	fs.BoolVar(&f.reads, "read-scaling", false, "reads are spread over several servers")
	fs.BoolVar(&f.consistent, "consistent-reads", false, "... and each of them sees every acknowledged commit")
	fs.BoolVar(&f.masters, "multi-master", false, "every server takes writes")
	fs.BoolVar(&f.change, "change-application", false, "the application may change, for sharding or another engine")
	fs.BoolVar(&f.kubernetes, "kubernetes", false, "the servers are pods")
	fs.StringVar(&f.flavour, "flavour", "mysql", "mysql, percona or mariadb")
	fs.StringVar(&f.commit, "commitment", "on-demand", "how machines are rented: on-demand, reserved, or spot for copies that only reads need")
	fs.StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) whose entries are added to david's own, or replace those of the same name")
	fs.StringSliceVar(&f.show, "show", nil, "architectures that are told of as the decision is (bill, failures, commands), by their kind: "+strings.Join(kinds(), ", ")+", or all")
	fs.BoolVar(&f.stored, "stored", true, "take what pods, network paths and stripes cost in throughput from this machine's newest experiments, where there are some")
	fs.StringVar(&f.today, "today", "", "DATE from which the age of prices is counted, as in 2026-11-25 (default: today)")
	fs.BoolVar(&f.why, "why", false, "print the chain of rules behind each verdict")
	fs.BoolVar(&f.sensitivity, "sensitivity", true, "ask what each assumption does to the decision")
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	fs.BoolVar(&f.markdown, "markdown", false, "print Markdown, for a ticket")
	fs.StringVar(&f.out, "out", "", "FILE to write the report to, as one HTML page; must not exist")
	for _, x := range plan.Figures() {
		f.figures[x.Name] = fs.String(x.Name, "", x.What+figureDefault(x))
	}
}

func kinds() (list []string) {
	for _, x := range plan.Architectures() {
		list = append(list, string(x.Kind))
	}
	return list
}

// shown reads --show.
func (f *planFlags) shown() (list []plan.Kind, err error) {
	known := kinds()
	if slices.Equal(f.show, []string{"all"}) {
		f.show = known
	}
	for _, name := range f.show {
		if !slices.Contains(known, name) {
			return nil, usage("--show %s: want %s, or all", name, strings.Join(known, ", "))
		}
		list = append(list, plan.Kind(name))
	}
	return list, nil
}

func figureDefault(x plan.Figure) string {
	if x.Given {
		return ""
	}
	if x.Unit == plan.Size {
		return fmt.Sprintf(" (default: %s)", price.GiB(x.Default/(1<<30)))
	}
	return fmt.Sprintf(" (default: %g%s)", x.Default, map[plan.Unit]string{plan.Duration: " s"}[x.Unit])
}

func (a *app) plan(ctx context.Context, f *planFlags, fs *pflag.FlagSet) error {
	if err := fillFlags(fs, f.file); err != nil {
		return err
	}
	if f.json && f.markdown {
		return usage("--json and --markdown: give one")
	}
	if err := newFile(f.out); err != nil {
		return err
	}
	p, err := a.planned(ctx, f)
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := writeFile(f.out, func(w io.Writer) error { return report.PlanHTML(w, p) }); err != nil {
			return err
		}
	}
	switch {
	case f.json:
		return a.printJSON(p)
	case f.markdown:
		return report.PlanMarkdown(a.out, p)
	}
	return report.PlanText(a.out, p, f.why)
}

// planned makes the plan that the flags ask for.
func (a *app) planned(ctx context.Context, f *planFlags) (p plan.Plan, err error) {
	c, err := prices(f.catalogue)
	if err != nil {
		return p, err
	}
	r, err := f.request()
	if err != nil {
		return p, err
	}
	control, err := a.measured(f, &r)
	if err != nil {
		return p, err
	}
	if f.stored {
		if r, err = a.withStoredCosts(ctx, r); err != nil {
			return p, err
		}
	}
	shown, err := f.shown()
	if err != nil {
		return p, err
	}
	if p, err = plan.New(c, r); err != nil {
		return p, codedError{exitUsage, err}
	}
	p.Shown = shown
	if control != nil {
		p.Value = p.Unlock(c, p.Asked.Untuned(*control))
	}
	if f.sensitivity {
		p.Turns = p.Tornado(c)
	}
	return p, nil
}

// measured puts what an experiment measured into the request, and returns what its control took; nil where
// there is nothing to compare with.
func (a *app) measured(f *planFlags, r *plan.Request) (*plan.Measured, error) {
	if f.from == "" {
		return nil, nil
	}
	var m plan.Measured
	var quoted report.Data
	data, err := a.loadFor(f.from, func(data report.Data) (err error) {
		quoted = report.Quoted(data)
		best := ""
		if data.Finish != nil {
			best = data.Finish.Best
		}
		if m, err = plan.Measure(data.Experiment, quoted.Arms, quoted.Trials, f.arm, best); err != nil {
			return codedError{exitInvalid, err}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if !f.given("flavour") {
		r.Flavour = ""
	}
	if *r, err = r.From(m); err != nil {
		return nil, codedError{exitUsage, err}
	}
	control, err := plan.Measure(data.Experiment, quoted.Arms, quoted.Trials, stats.Control, "")
	if err != nil || m.Arm == stats.Control { // an experiment without a control has nothing to say of its worth
		return nil, nil
	}
	return &control, nil
}

// request reads the flags.
func (f *planFlags) request() (r plan.Request, err error) {
	r = plan.Request{TPS: f.tps, Queries: f.queries, Writes: f.writes, Survive: plan.Failure(f.survive), Budget: f.budget, On: f.on, Regions: f.regions, RTT: f.rtt, People: f.people,
		ReadScaling: f.reads, ConsistentReads: f.consistent, MultiMaster: f.masters, ChangeApplication: f.change, Kubernetes: f.kubernetes, Commitment: f.commit,
		Figures: map[string]float64{}, Today: time.Now().UTC()}
	if f.today != "" {
		if r.Today, err = time.Parse(time.DateOnly, f.today); err != nil {
			return r, usage("--today %s: give a date, as in 2026-11-25", f.today)
		}
	}
	if f.regions < 1 {
		return r, usage("--regions %d: give 1 or more", f.regions)
	}
	if r.Data, err = price.ParseSize(f.data); err != nil {
		return r, usage("--data %s: %w", f.data, err)
	}
	if r.Flavour, err = flavourNamed(f.flavour); err != nil {
		return r, err
	}
	if err := f.load(&r); err != nil {
		return r, err
	}
	if err := f.times(&r); err != nil {
		return r, err
	}
	for _, x := range plan.Figures() {
		if !f.given(x.Name) {
			continue
		}
		if r.Figures[x.Name], err = readFigure(x, *f.figures[x.Name]); err != nil {
			return r, err
		}
	}
	return r, nil
}

// load reads transactions/s, of which queries/s are another word.
func (f *planFlags) load(r *plan.Request) error {
	switch {
	case f.given("qps") && f.given("tps") && f.qps != f.tps*f.queries:
		return usage("--qps %g and --tps %g contradict each other: --queries %g of them are a transaction", f.qps, f.tps, f.queries)
	case f.given("qps") && f.queries > 0:
		r.TPS = f.qps / f.queries
	case !f.given("tps"):
		return usage("give the load: --tps transactions/s, or --qps queries/s, at the busiest")
	}
	return nil
}

func (f *planFlags) times(r *plan.Request) error {
	if f.p99 != "" {
		d, err := time.ParseDuration(f.p99)
		if err != nil || d <= 0 {
			return usage("--p99 %s: give a time, as in 20ms", f.p99)
		}
		r.P99 = float64(d) / float64(time.Millisecond)
	}
	if f.given("rpo") {
		seconds := f.rpo.Seconds()
		r.RPO = &seconds
	}
	if f.given("rto") {
		seconds := f.rto.Seconds()
		r.RTO = &seconds
	}
	return nil
}

func flavourNamed(name string) (mycnf.Flavour, error) {
	for _, f := range []mycnf.Flavour{mycnf.MySQL, mycnf.Percona, mycnf.MariaDB} {
		if string(f) == name {
			return f, nil
		}
	}
	return "", usage("--flavour %s: want mysql, percona or mariadb", name)
}

// readFigure reads a figure as its unit is written.
func readFigure(x plan.Figure, text string) (float64, error) {
	switch x.Unit {
	case plan.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return 0, usage("--%s %s: give a time, as in 15m", x.Name, text)
		}
		return d.Seconds(), nil
	case plan.Size:
		n, err := price.ParseSize(text)
		if err != nil {
			return 0, usage("--%s %s: %w", x.Name, text, err)
		}
		return float64(n), nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, usage("--%s %s: give a number (%s)", x.Name, text, x.What)
	}
	return n, nil
}
