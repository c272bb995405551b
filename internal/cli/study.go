package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/report"
	"david/internal/result"
	"david/internal/spec"
)

// studyFlags holds the options of david study.
type studyFlags struct {
	runFlags
	shortFlags
	server  string
	ceph    cephFlags
	cluster clusterStudyFlags
}

func (a *app) studyCommand() *cobra.Command {
	names := strings.Join(spec.StudyNames(), ", ")
	cmd := &cobra.Command{
		Use:   "study",
		Short: "Repeat a published study here, and show its figures beside yours with what differs",
		Args:  exactArgs(1, "the name of one study, before its flags: "+names),
		RunE: func(_ *cobra.Command, args []string) error {
			return usage("there is no study %q (known: %s)", args[0], names)
		},
	}
	for _, name := range spec.StudyNames() {
		cmd.AddCommand(a.oneStudyCommand(name))
	}
	return cmd
}

// oneStudyCommand repeats a study; it has the flags that this one takes.
func (a *app) oneStudyCommand(name string) *cobra.Command {
	var f studyFlags
	cmd := &cobra.Command{Use: name, Args: exactArgs(0, "flags alone")}
	fs := cmd.Flags()
	fs.BoolVar(&f.quick, "quick", false, "small data, short trials, one number of threads: to try it, not to conclude from it")
	if name != "p3" && name != "p5" { // of a cluster's image; of servers that its arms name
		fs.StringVar(&f.server, "server", "", "the server of the arms that name none: mysql, mariadb, mysql:9.7, a path (as the study has it)")
	}
	run, parts, loads := a.study, "", ""
	switch name {
	case "p1":
		parts = "ladder, volumes"
		cmd.Short = "A US$66 server made to perform like a US$3,000 one (2025): page size, my.cnf, a stripe of volumes"
	case "p2":
		parts, loads = "cpu-bound, io-bound, small-pool", "read-intensive, balanced, write-intensive"
		cmd.Short = "What MySQL loses on Kubernetes (KubeBlocks, 2023): CPU-bound, I/O-bound, a small buffer pool"
	case "p3":
		cmd.Short = "What a cluster's pod network costs a database (Percona, 2020), between two nodes"
		f.cluster.add(fs)
		fs.BoolVar(&f.dryRun, "dry-run", false, "say what would be measured and how long it takes, and measure nothing")
		fs.BoolVar(&f.json, "json", false, "print one JSON document")
		run = a.clusterStudy
	case "p4":
		cmd.Short = "MySQL on Ceph block storage (Red Hat, Percona, Supermicro, 2016): writes per GB, buffer pools"
		f.ceph.add(fs)
	case "p5":
		cmd.Short = "Which is faster, MySQL or MariaDB (Percona Lab, 2026), settled at equal durability"
	}
	if name != "p3" { // which begins anew each time, and has no data here
		f.runFlags.add(fs)
		f.shortFlags.add(fs, parts, loads)
	}
	a.addVerbose(fs)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		st, err := spec.LoadStudy(name)
		if err != nil {
			return err
		}
		st = f.onServer(st)
		if !st.Cluster {
			if st, err = f.shorten(st, fs); err != nil {
				return err
			}
		}
		if st.Cluster && f.quick {
			f.cluster.quick(fs.Changed)
		}
		if err := f.cluster.settle(fs.Changed); err != nil {
			return err
		}
		if err := f.ceph.settle(a, st.Ceph, f.dryRun); err != nil {
			return err
		}
		f.rbd = f.ceph.place()
		if f.ceph.none {
			st = withoutCeph(st)
		}
		return run(cmd.Context(), st, f)
	}
	return cmd
}

// onServer has a study run on another server, where one was named.
func (f studyFlags) onServer(st spec.Study) spec.Study {
	if f.server == "" {
		return st
	}
	st.Specs = slices.Clone(st.Specs)
	for i := range st.Specs {
		st.Specs[i].Server = f.server
	}
	return st
}

// study runs a study's experiments one after the other. One that is invalid does not keep the others from
// being run, and what was published is shown in any case.
func (a *app) study(ctx context.Context, st spec.Study, f studyFlags) error {
	facts, err := host.Read(ctx, a.home)
	if err != nil {
		return err
	}
	refused, err := refusals(st, facts.Memory.Limit, f.runFlags)
	if err != nil {
		return err
	}
	if f.dryRun || a.verbose {
		a.printRefusals(refused)
	}
	if f.dryRun {
		return a.studyPlan(ctx, st, f, setupHere(facts))
	}
	for _, part := range st.Specs { // before anything is measured: the writes to a Ceph take minutes
		if err := specRequest(result.KindStudy, part, ".", f.runFlags).Fits(); err != nil {
			return err
		}
	}
	first, err := a.interruptedPart(st, f)
	if err != nil {
		return err
	}
	var cells []lab.CephCell
	var crowds []lab.CephCrowd
	var failed error
	if first == 0 {
		if cells, failed = a.cephWrites(ctx, f.ceph, f.quick); failed != nil && len(cells) == 0 {
			return failed
		}
		if st.Ceph {
			if crowds, err = a.cephServers(ctx, f, st.Specs[0]); err != nil {
				return errors.Join(failed, err)
			}
		}
	}
	s := studyScreen{study: st, setup: setupHere(facts), cut: f.differs(), short: f.short(), refused: len(refused),
		rest: "the same with --dry-run has every published figure beside those here, and what differs"}
	for _, part := range st.Specs[first:] {
		data, err := a.studyPart(ctx, part, f.runFlags)
		if err != nil && exitCode(err) != exitInvalid {
			return err
		}
		failed = errors.Join(failed, err)
		s.records, s.trials, s.setup.Server = append(s.records, data.Experiment.ID), append(s.trials, data.Trials...), report.Servers(data)
	}
	if s.here, err = a.studyResults(st); err != nil {
		return err
	}
	addCephResults(s.here, cells)
	addCrowds(s.here, crowds)
	if len(cells) > 0 {
		s.rest += "; the writes to Ceph, and what servers get done beside each other, are on no record: -v shows them"
	}
	if a.verbose {
		err = a.printStudy(st, s.here, setupHere(facts), s.cut)
	} else {
		err = a.printStudyBrief(s)
	}
	return cmp.Or(err, failed)
}

// studyPlan lists the trials of a study, and shows what was published beside what is on record.
func (a *app) studyPlan(ctx context.Context, st spec.Study, f studyFlags, setup spec.Setup) error {
	for _, s := range st.Specs {
		if err := a.runSpec(ctx, result.KindStudy, s, ".", f.runFlags); err != nil {
			return err
		}
		fmt.Fprintln(a.out)
	}
	here, err := a.studyResults(st)
	if err != nil {
		return err
	}
	cut := f.differs()
	if len(here) > 0 {
		cut = append(cut, "What stands under \"here\" is of the newest runs on record, whatever they were cut down to.")
	}
	return a.printStudy(st, here, setup, cut)
}

// studyPart runs one of a study's experiments; with -v it shows all of it. It says by its error where a gate failed.
func (a *app) studyPart(ctx context.Context, s spec.Spec, f runFlags) (data report.Data, err error) {
	store, err := a.run(ctx, specRequest(result.KindStudy, s, ".", f)) // a study's arms have no files
	if err != nil {
		return data, err
	}
	if data, err = load(store); err != nil {
		return data, err
	}
	if a.verbose {
		if err := report.Text(a.out, data); err != nil {
			return data, err
		}
		fmt.Fprintln(a.out)
	}
	return data, verdictOf(data)
}

// studyRefusal is an experiment as it was published, and why david does not run it.
type studyRefusal struct {
	title   string
	reasons []error
}

// refusals says why david does not run a study as it was published, where it does not: by the rules that hold
// for anybody's comparison.
func refusals(st spec.Study, memory int64, f runFlags) (list []studyRefusal, err error) {
	for _, s := range st.Refused {
		reasons, err := specRequest(result.KindStudy, s, ".", f).Objections(memory)
		if err != nil {
			return nil, err
		}
		if len(reasons) == 0 {
			return nil, fmt.Errorf("study %s: nothing speaks against it as it was published (%s)", st.Name, s.Title)
		}
		list = append(list, studyRefusal{s.Title, reasons})
	}
	return list, nil
}

func (a *app) printRefusals(list []studyRefusal) {
	for _, r := range list {
		fmt.Fprintf(a.out, "Refused as published: %s\n", r.title)
		for _, reason := range r.reasons {
			fmt.Fprintf(a.out, "- %v\n", reason)
		}
		fmt.Fprintln(a.out, "What is measured instead: all arms at equal durability, in blocks in random order, with intervals.")
		fmt.Fprintln(a.out)
	}
}

// interruptedPart says with which of a study's experiments to begin: the first, or the one in which the same
// command was interrupted; those before it are in the store.
func (a *app) interruptedPart(st spec.Study, f studyFlags) (int, error) {
	if f.fresh {
		return 0, nil
	}
	for i, s := range st.Specs {
		old, err := result.Unfinished(a.home, result.KindStudy, s.Title, redacted(a.argv))
		if err != nil {
			return 0, err
		}
		if old != nil {
			if i > 0 {
				a.remark("the first %s were run before; david list names them", pluralise(i, "experiment"))
			}
			return i, nil
		}
	}
	return 0, nil
}

// printStudy shows what was published, what was measured here beside it, on what, and what differs here.
func (a *app) printStudy(st spec.Study, here map[string]studyResult, setup spec.Setup, cut []string) error {
	fmt.Fprintf(a.out, "Study %s: %s\n\n", st.Name, st.Title)
	for _, table := range [][][]string{figures(st, here), {}, setups(st.Setup, setup)} {
		if err := a.printTable(table); err != nil {
			return err
		}
	}
	return errors.Join(a.printList("found there", st.Findings), a.printList("what differs", slices.Concat(cut, st.Differs)))
}

// printTable prints rows of cells in columns; one without rows is an empty line.
func (a *app) printTable(rows [][]string) error {
	if len(rows) == 0 {
		fmt.Fprintln(a.out)
	}
	return a.fit(func(out io.Writer) error {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		for _, row := range rows {
			fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		return w.Flush()
	})
}

func (a *app) printList(head string, items []string) error {
	return a.fit(func(out io.Writer) error {
		text := "\n" + head + "\n"
		for _, item := range items {
			text += "- " + item + "\n"
		}
		_, err := io.WriteString(out, text)
		return err
	})
}

// setups are the rows of the table of set-ups: what, published, here.
func setups(p, here spec.Setup) [][]string {
	return [][]string{
		{"set-up", "published", "here"}, {"CPUs", p.CPUs, here.CPUs}, {"memory", p.Memory, here.Memory}, {"server", p.Server, here.Server},
		{"client", p.Client, here.Client}, {"storage", p.Storage, here.Storage},
	}
}

// setupHere says what a study that needs this machine alone ran on.
func setupHere(f host.Facts) spec.Setup {
	return spec.Setup{CPUs: fmt.Sprintf("%.4g usable, %s", f.CPU.Usable, f.CPU.Model), Memory: host.Size(f.Memory.Limit), Server: "a throwaway server on this machine",
		Client:  "sysbench 1.0.20, on the same machine, through the unix socket",
		Storage: fmt.Sprintf("%s, %s, %s free", f.Data.Device, f.Data.Type, host.Size(f.Data.Free))}
}
