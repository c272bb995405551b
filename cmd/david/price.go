package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/price"
	"david/internal/report"
)

// priceFlags are those of david price.
type priceFlags struct {
	catalogue, machine, out string
	usdMonth                float64
	json                    bool
}

func (a *app) priceCommand() *cobra.Command {
	var f priceFlags
	cmd := &cobra.Command{
		Use:   "price DIR",
		Short: "What throughput costs: US$ a month per 1,000 transactions/s of an experiment's arms, and what the gain is worth",
		Long: "What throughput costs: US$ a month per 1,000 transactions/s of an experiment's arms, and what an untuned machine of the best arm's\n" +
			"throughput would cost. DIR is the experiment's folder, its name, an --out folder of david tune, or \"latest\".",
		Args: exactArgs(1, "the folder or the name of an experiment, or latest; or: volumes, catalogue"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("usd-month") && (!(f.usdMonth > 0) || math.IsInf(f.usdMonth, 0)) {
				return usage("--usd-month %v: give US$ a month, more than 0", f.usdMonth)
			}
			if f.machine != "" && f.usdMonth > 0 {
				return usage("--machine and --usd-month both say what the machine costs: give one")
			}
			return a.price(args[0], f)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.machine, "machine", "", "the measured machine's NAME in the catalogue (default: that of tune --like, else the cheapest with as many CPUs and as much memory)")
	fs.Float64Var(&f.usdMonth, "usd-month", 0, "what the measured machine costs, in US$ a month")
	fs.StringVar(&f.out, "out", "", "FILE to write the report to, as HTML, with throughput against price as a chart; must not exist")
	cmd.PersistentFlags().StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) whose entries are added to david's own, or replace those of the same name")
	cmd.PersistentFlags().BoolVar(&f.json, "json", false, "print one JSON document")
	cmd.AddCommand(a.volumesCommand(&f), a.catalogueCommand(&f))
	return cmd
}

// prices is david's own catalogue, with a file's entries.
func prices(file string) (price.Catalogue, error) {
	c, err := price.Default()
	if err != nil || file == "" {
		return c, err
	}
	if err := lab.Regular("catalogue", file); err != nil {
		return c, codedError{exitUsage, err}
	}
	r, err := os.Open(file)
	if err != nil {
		return c, usage("cannot open the catalogue: %w", err)
	}
	defer r.Close() // it is only read
	own, err := price.Parse(r, file)
	if err != nil {
		return c, codedError{exitUsage, err}
	}
	return c.With(own), nil
}

// machineOf finds a machine of a catalogue by the name given with a flag.
func machineOf(c price.Catalogue, flag, name string) (price.Machine, error) {
	if m, ok := c.Machine(name); ok {
		return m, nil
	}
	hint := ""
	if near, ok := mycnf.Nearest(name, c.Names()); ok {
		hint = "; did you mean " + near + "?"
	}
	return price.Machine{}, usage("%s %s: the catalogue has no such machine%s; see: david price catalogue", flag, name, hint)
}

// price tells what an experiment's throughput costs.
func (a *app) price(dir string, f priceFlags) error {
	c, err := prices(f.catalogue)
	if err != nil {
		return err
	}
	data, err := a.load(dir)
	if err != nil {
		return err
	}
	q, err := quote(c, data, f)
	if err != nil {
		return err
	}
	data.Price = &q
	if err := writePage(f.out, data); err != nil {
		return err
	}
	if f.json {
		return a.printJSON(q)
	}
	return printQuote(a.out, q)
}

// quote prices an experiment on the machine that the flags name, or that can be told from the record.
func quote(c price.Catalogue, data report.Data, f priceFlags) (price.Quote, error) {
	e := price.Experiment{Experiment: data.Experiment, Arms: data.Arms, Trials: report.Quoted(data).Trials, Finish: data.Finish}
	by, err := payer(c, e, f)
	if err != nil {
		return price.Quote{}, err
	}
	q, err := c.Quote(e, by)
	if errors.Is(err, price.ErrNothing) {
		return q, codedError{exitInvalid, fmt.Errorf("cannot price experiment %s: %w", e.ID, err)}
	}
	return q, err
}

// payer says what the measured machine costs.
func payer(c price.Catalogue, e price.Experiment, f priceFlags) (price.Payer, error) {
	switch {
	case f.usdMonth > 0:
		return price.Payer{USDMonth: f.usdMonth}, nil
	case f.machine != "":
		m, err := machineOf(c, "--machine", f.machine)
		if err != nil {
			return price.Payer{}, err
		}
		return pays(c, m, "")
	case e.Like != nil && e.Like.USDMonth > 0:
		return price.Payer{Name: e.Like.Name, CPUs: e.Like.CPUs, USDMonth: e.Like.USDMonth, Source: e.Like.Source, Date: e.Like.Date}, nil
	case e.Target == "remote":
		return price.Payer{}, usage("the server of %s was a remote one, and what machine it ran on is not known: give --machine or --usd-month", e.ID)
	}
	cpus, memory := e.Needs()
	m, ok := c.Cheapest(cpus, memory)
	if !ok {
		return price.Payer{}, usage("no machine of the catalogue has %.4g CPUs and %s of memory: give --machine or --usd-month", cpus, host.Size(int64(memory)))
	}
	return pays(c, m, fmt.Sprintf("assumed: the price is that of %s, the cheapest of the catalogue with the %.4g CPUs and %s of memory measured; say otherwise with --machine or --usd-month",
		m.Name, cpus, host.Size(int64(memory))))
}

func pays(c price.Catalogue, m price.Machine, assumed string) (price.Payer, error) {
	by, err := c.Pays(m, assumed)
	if err != nil {
		return by, codedError{exitUsage, err}
	}
	return by, nil
}

// writePage writes the report with its prices to a file that is not there yet.
func writePage(out string, data report.Data) error {
	if out == "" {
		return nil
	}
	if _, err := os.Lstat(out); err == nil {
		return usage("--out %s exists already; nothing is overwritten: name another or remove it", out)
	}
	if _, err := os.Stat(filepath.Dir(out)); err != nil {
		return usage("--out %s: %w", out, err)
	}
	return writeFile(out, func(w io.Writer) error { return report.HTML(w, data) })
}

func printQuote(out io.Writer, q price.Quote) error {
	name := prefixed(", ", q.Machine.Name)
	fmt.Fprintf(out, "%s%s: US$%s a month\n\n", q.Experiment, name, money(q.Machine.USDMonth, q.Machine.Doubtful))
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ARM\tWORKLOAD\tTPS\tUS$/MONTH PER 1,000 TPS\t95 %\tTRIALS")
	for _, arm := range q.Arms {
		interval := arm.Note
		if arm.Note == "" {
			interval = fmt.Sprintf("%.2f to %.2f", arm.Interval[0], arm.Interval[1])
		}
		fmt.Fprintf(w, "%s\t%s\t%.2f\t%.2f\t%s\t%d\n", arm.Name, arm.Workload, arm.TPS, arm.USDPer1000, interval, arm.Trials)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, v := range q.Values {
		fmt.Fprintln(out, report.ValueLine(q.Winner, v))
	}
	for _, n := range q.Notes {
		fmt.Fprintln(out, n)
	}
	return nil
}

// money writes US$ with cents, and a "?" where it is uncertain.
func money(x float64, uncertain bool) string {
	if uncertain {
		return fmt.Sprintf("%.2f?", x)
	}
	return fmt.Sprintf("%.2f", x)
}

// figure writes a number, and a "?" where it is uncertain.
func figure(x float64, uncertain bool) string {
	if uncertain {
		return fmt.Sprintf("%.0f?", math.Floor(x))
	}
	return fmt.Sprintf("%.0f", math.Floor(x))
}

// volumesFlags are those of david price volumes.
type volumesFlags struct {
	*priceFlags
	iops                      float64
	size, bandwidth, instance string
	provider                  string
}

func (a *app) volumesCommand(shared *priceFlags) *cobra.Command {
	f := volumesFlags{priceFlags: shared}
	cmd := &cobra.Command{
		Use:   "volumes --iops N --size SIZE",
		Short: "Ways to so many IOPS on so much room, cheapest first: a large volume, a stripe, provisioned IOPS",
		Args:  exactArgs(0, "no arguments"),
		RunE:  func(*cobra.Command, []string) error { return a.volumes(f) },
	}
	fs := cmd.Flags()
	fs.Float64Var(&f.iops, "iops", 0, "operations per second the volumes must sustain, as in 20000")
	fs.StringVar(&f.size, "size", "", "room they must have, as in 1TiB or 900GiB; GB and TB are powers of ten")
	fs.StringVar(&f.bandwidth, "bandwidth", "", "bytes per second they must sustain, as in 300MiB/s (default: not asked)")
	fs.StringVar(&f.instance, "instance", "", "NAME of the catalogue's machine they are for: its provider's volumes only, and no more than it lets through")
	fs.StringVar(&f.provider, "provider", "", "volumes of this provider only, as in EC2")
	return cmd
}

// wish reads what is asked of the volumes.
func (f volumesFlags) wish() (w price.Wish, err error) {
	if !(f.iops >= 1) || f.iops > math.MaxUint32 || f.iops != math.Trunc(f.iops) {
		return w, usage("--iops %v: give whole operations per second, 1 to %d", f.iops, int64(math.MaxUint32))
	}
	w.IOPS = f.iops
	if f.size == "" {
		return w, usage("--size is missing: give the room the volumes must have, as in 1TiB")
	}
	if w.Size, err = price.ParseSize(f.size); err != nil {
		return w, usage("--size %s: %w", f.size, err)
	}
	const most = 1 << 50
	if w.Size > most {
		return w, usage("--size %s: more than 1,024 TiB", f.size)
	}
	if f.bandwidth == "" {
		return w, nil
	}
	if w.Bandwidth, err = price.ParseBandwidth(f.bandwidth); err != nil {
		return w, usage("--bandwidth %s: %w", f.bandwidth, err)
	}
	return w, nil
}

// volumesDocument is what david price volumes --json prints.
type volumesDocument struct {
	Options   []price.Option  `json:"options"`
	Refused   []price.Refusal `json:"refused"`
	Notes     []string        `json:"notes"`
	Catalogue string          `json:"catalogue"` // its date
}

func (a *app) volumes(f volumesFlags) error {
	c, err := prices(f.catalogue)
	if err != nil {
		return err
	}
	w, err := f.wish()
	if err != nil {
		return err
	}
	var m *price.Machine
	if f.instance != "" {
		found, err := machineOf(c, "--instance", f.instance)
		if err != nil {
			return err
		}
		m = &found
	}
	if c, err = onlyProvider(c, f.provider); err != nil {
		return err
	}
	doc := volumesDocument{Options: []price.Option{}, Refused: []price.Refusal{}, Notes: volumeNotes(w), Catalogue: c.Date}
	options, refused := c.Ways(w, m)
	doc.Options, doc.Refused = append(doc.Options, options...), append(doc.Refused, refused...)
	if m != nil && len(options)+len(refused) == 0 {
		return usage("--instance %s: the catalogue has no volumes of %s", m.Name, m.Provider)
	}
	if f.json {
		return a.printJSON(doc)
	}
	return printVolumes(a.out, doc)
}

// onlyProvider leaves the volumes of one provider.
func onlyProvider(c price.Catalogue, provider string) (price.Catalogue, error) {
	if provider == "" {
		return c, nil
	}
	var own []price.Volume
	var known []string
	for _, v := range c.Volumes {
		if strings.EqualFold(v.Provider, provider) {
			own = append(own, v)
		}
		if !slices.Contains(known, v.Provider) {
			known = append(known, v.Provider)
		}
	}
	if len(own) == 0 {
		return c, usage("--provider %s: the catalogue has volumes of %s", provider, strings.Join(known, ", "))
	}
	c.Volumes = own
	return c, nil
}

// volumeNotes is what must be read with the options.
func volumeNotes(w price.Wish) []string {
	notes := []string{
		"a stripe has no redundancy: it is lost with any one of its volumes",
		"US$ without VAT and discounts; bursts are not counted; ? marks what the catalogue calls uncertain",
	}
	if w.Bandwidth == 0 {
		const page = 16 << 10
		notes = append(notes, fmt.Sprintf("%.0f IOPS of 16 KiB pages are %.0f MiB/s: where the bandwidth that comes with a volume is less, ask for it with --bandwidth", w.IOPS, w.IOPS*page/(1<<20)))
	}
	return notes
}

func printVolumes(out io.Writer, d volumesDocument) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "OPTION\tUS$/MONTH\tWITH MACHINE\tIOPS\tGIB\tIOPS/GIB\tUS$/IOPS\tPARTS")
	for _, o := range d.Options {
		total := "-"
		if o.WithMachine > 0 {
			total = money(o.WithMachine, o.UncertainPrice)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%.1f\t%.1f\t%.5f\t%s\n", o.Name, money(o.USDMonth, o.UncertainPrice), total, figure(o.IOPS, o.UncertainIOPS), o.GiB, o.IOPSPerGiB,
			o.USDPerIOPS, bill(o.Parts))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(d.Refused) > 0 {
		fmt.Fprintln(out, "\nnot this way:")
	}
	for _, r := range d.Refused {
		fmt.Fprintf(out, "  %s: %s\n", r.Name, r.Why)
	}
	fmt.Fprintln(out)
	for _, n := range append(entryNotes(d.Options), d.Notes...) {
		fmt.Fprintln(out, n)
	}
	return nil
}

// entryNotes is what the catalogue says of the volumes shown, once for each.
func entryNotes(options []price.Option) []string {
	var notes []string
	for _, o := range options {
		if n := o.Volume + ": " + o.Note; o.Note != "" && !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	return notes
}

// bill writes the positions: "4 x volume of 238.4 GiB at US$8".
func bill(parts []price.Part) string {
	var list []string
	for _, p := range parts {
		list = append(list, fmt.Sprintf("%.6g x %s at US$%.4g", p.Count, p.What, p.USDEach))
	}
	return strings.Join(list, " + ")
}

func (a *app) catalogueCommand(shared *priceFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "catalogue",
		Short: "List the machines and volumes with their prices, sources and dates",
		Args:  exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			c, err := prices(shared.catalogue)
			if err != nil {
				return err
			}
			if shared.json {
				return a.printJSON(c)
			}
			return printCatalogue(a.out, c)
		},
	}
}

func printCatalogue(out io.Writer, c price.Catalogue) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "MACHINE\tCPUS\tGIB\tA MONTH\tVOLUME IOPS\tDATE\tSOURCE")
	for _, m := range c.Machines {
		fmt.Fprintf(w, "%s\t%g\t%g\t%s %s\t%s\t%s\t%s\n", m.Name, m.CPUs, m.Memory.GiB(), m.Price.Currency, money(m.Price.Amount, m.Doubt("price")),
			known(m.OwnIOPS(), m.Doubt("volume_iops") || m.Doubt("included_iops")), m.Date, m.Source)
	}
	fmt.Fprintln(w, "\nVOLUME\tIOPS IN IT\tIOPS/GIB\tA MONTH\tMOST IOPS\tDATE\tSOURCE")
	for _, v := range c.Volumes {
		of := "by size"
		if len(v.Sizes) == 0 {
			of = fmt.Sprintf("%s %g/%s", v.Price.Currency, v.Price.Amount, v.Price.Per)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", v.Name, known(v.BaseIOPS, slices.Contains(v.Uncertain, "base_iops")),
			known(v.IOPSPerGiB, slices.Contains(v.Uncertain, "iops_per_gib")), of, known(v.MaxIOPS, slices.Contains(v.Uncertain, "max_iops")), v.Date, v.Source)
	}
	return w.Flush()
}

// known is a figure, or a dash where it is 0.
func known(x float64, uncertain bool) string {
	if x == 0 {
		return "-"
	}
	return figure(x, uncertain)
}
