package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"david/internal/ceph"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/price"
	"david/internal/report"
	"david/internal/result"
	"david/internal/storage"
)

// storageMeasureFlags are those of david storage measure.
type storageMeasureFlags struct {
	blockFlags
	layout, volume              string
	with, fs                    string
	mount, scheduler, readAhead []string
	recordSize                  []string
	cnf                         string
	sets                        []string
	fioTime, fioUnsynced        time.Duration
	fioRounds                   int
	fioOnly                     bool
	disks                       []string
	ceph                        result.CephPool
	capped                      bool     // --volume was given
	options                     []string // of one volume, that were given
	provider, size, catalogue   string
}

// roomOfPrice is the room of a volume that is priced, where none is given.
const roomOfPrice = "200GiB"

func (a *app) storageMeasureCommand() *cobra.Command {
	var f storageMeasureFlags
	cmd := &cobra.Command{
		Use:   "measure --layout one,stripe4,raid10x4 [--volume 1000iops]",
		Short: "Build layouts of volumes, and hold fio and a server on each against one volume; all of it is taken down again",
		Long: "Build layouts of volumes: files in david's folder behind loop devices, each capped at --volume, stand in for the volumes of a cloud. fio\n" +
			"drives all of them in rounds, then a server on each is an arm of one comparison, as of david compare, with the same settings. What\n" +
			"needs what this machine lacks is left out and named. --fs, --mount, --scheduler and --read-ahead make arms of one volume that differ\n" +
			"from it in that alone, --recordsize those of layouts of ZFS. Everything is taken down at the end, and by the next david command should this one be killed.",
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.settleLayouts(cmd.Flags().Changed); err != nil {
				return err
			}
			return a.storageMeasure(cmd.Context(), f)
		},
	}
	fs := cmd.Flags()
	f.add(fs, 60*time.Second, 15*time.Second, 0)
	for name, usual := range map[string]string{"tables": "4", "table-size": "500000", "threads": "16", "budget": "10m0s", "precision": "5%"} {
		flag := fs.Lookup(name)
		flag.DefValue = usual
		if err := flag.Value.Set(usual); err != nil {
			panic(err) // a constant
		}
	}
	unlisted(fs, "iops", "bandwidth", "no-volume", "trials", "continue", "of", "rate")
	fs.StringVar(&f.layout, "layout", "one,stripe4,raid10x4", "layouts with commas between them, the first is what the others are held against: one, stripeN, raid10xN, raidzN, raidz2xN, ceph-rbd")
	fs.StringVar(&f.volume, "volume", "1000iops", "what one volume may do: operations per second, reads and writes each")
	fs.StringVar(&f.with, "with", "btrfs", "what puts stripes and mirrors together, with commas between: btrfs, md, lvm, zfs")
	fs.StringVar(&f.fs, "fs", "xfs", "filesystems of one volume, with commas between: xfs, ext4, zfs; each but the first is an arm")
	fs.StringSliceVar(&f.mount, "mount", nil, "mount options of one volume, each an arm: relatime, strictatime, lazytime, discard")
	fs.StringSliceVar(&f.scheduler, "scheduler", nil, "I/O schedulers of one volume, each an arm: none, mq-deadline, kyber, bfq")
	fs.StringSliceVar(&f.readAhead, "read-ahead", nil, "read-ahead of one volume in KiB, each an arm: 0 to 65536")
	fs.StringSliceVar(&f.recordSize, "recordsize", nil, "records of each layout of ZFS, 4K to 1M, each an arm; 16K is what they have anyway")
	fs.StringSliceVar(&f.disks, "disks", nil, "whole, empty disks that layouts are built on instead of files, one after the other as each needs them: every byte of them is read before")
	fs.StringVar(&f.ceph.Conf, "ceph-conf", "", "FILE of a Ceph cluster, for ceph-rbd: one image of a pool of it, not capped")
	fs.StringVar(&f.ceph.Pool, "pool", "", "the pool, for ceph-rbd")
	fs.StringVar(&f.cnf, "cnf", "", "option file that the server of every layout runs with")
	fs.StringArrayVar(&f.sets, "set", nil, "VAR=VALUE for the server of every layout; repeatable")
	fs.DurationVar(&f.fioTime, "fio-time", 2*time.Second, "time of each of fio's five loads on a layout")
	fs.IntVar(&f.fioRounds, "fio-rounds", 4, "rounds of fio over all layouts (0: none)")
	fs.DurationVar(&f.fioUnsynced, "fio-unsynced", 0, "also time writes that nobody syncs, on layouts of ZFS: for so long in each round, after 20 s that do not count (0: not)")
	fs.BoolVar(&f.fioOnly, "fio-only", false, "fio alone: no server is started, and none is needed")
	fs.StringVar(&f.provider, "provider", "", "price volumes of this provider only, as in EC2")
	fs.StringVar(&f.size, "size", roomOfPrice, "room of each volume, for its price")
	fs.StringVar(&f.catalogue, "catalogue", "", "FILE (YAML) whose entries are added to david's own, or replace those of the same name")
	a.addVerbose(fs)
	return cmd
}

// settleLayouts completes the flags by what was given.
func (f *storageMeasureFlags) settleLayouts(given func(name string) bool) error {
	for name, instead := range map[string]string{"iops": "--volume", "bandwidth": "--volume", "no-volume": "nothing", "trials": "nothing", "continue": "the same command again", "of": "the same command again", "rate": "--threads"} {
		if given(name) {
			return usage("--%s: not with layouts; give %s in its place", name, instead)
		}
	}
	if given("disks") && len(f.disks) == 0 {
		return usage("--disks names no disk: give their paths, or leave it out to measure on files")
	}
	f.capped = given("volume") || len(f.disks) == 0
	for _, name := range []string{"fs", "mount", "scheduler", "read-ahead"} {
		if given(name) {
			f.options = append(f.options, "--"+name)
		}
	}
	if len(f.options) > 0 && !given("layout") {
		f.layout = string(storage.One)
	}
	if f.fioRounds < 0 || f.fioRounds > mostRepeats {
		return usage("--fio-rounds %d: 0 to %d", f.fioRounds, mostRepeats)
	}
	if f.fioOnly && f.fioRounds == 0 {
		return usage("--fio-only with --fio-rounds 0: nothing is left to measure")
	}
	if f.fioUnsynced != 0 && (f.fioUnsynced < 10*time.Second || f.fioUnsynced > time.Hour) {
		return usage("--fio-unsynced %s: 10s to 1h, as what is written waits in memory for seconds", f.fioUnsynced)
	}
	if f.fioTime < 100*time.Millisecond || f.fioTime > time.Hour {
		return usage("--fio-time %s: 100ms to 1h", f.fioTime)
	}
	return f.settle(given)
}

func (a *app) storageMeasure(ctx context.Context, f storageMeasureFlags) error {
	arms, err := f.arms()
	if err != nil {
		return err
	}
	notes, err := onDisks(arms, f.disks)
	if err != nil {
		return err
	}
	c, err := prices(f.catalogue)
	if err != nil {
		return err
	}
	costs, err := f.costs(c)
	if err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		a.expected(f.layout)
		return usage("loop devices, mounts and caps need root: run it by sudo; without root: what the rules say of layouts (david storage plan), and what a layout that is mounted gives (david probe --dir)")
	}
	q, err := f.request(result.KindCompare, arms[0].Name)
	if err != nil {
		return err
	}
	q.Notes = append(q.Notes, notes...)
	q.Arms, q.Fio, q.Title = arms, lab.Fio{Rounds: f.fioRounds, Each: f.fioTime, Alone: f.fioOnly, Unsynced: f.fioUnsynced}, "layouts of volumes"
	q.Spread()
	if len(q.Arms) > 1 && !f.fioOnly {
		if err := q.Check(); err != nil {
			return err
		}
	}
	store, err := a.run(ctx, q)
	if err != nil {
		return err
	}
	return a.printLayouts(store, costs, f.json)
}

// expected says what the rules make of the layouts, where nothing can be measured.
func (a *app) expected(layouts string) {
	list, err := storage.ParseLayouts(layouts)
	if err != nil {
		return // it was read before
	}
	for _, l := range list {
		fmt.Fprintln(a.out, "not measured, by the rules: "+l.Expected())
	}
}

// printLayouts shows what was found, and says by its error where a gate failed. costs prices what was built.
func (a *app) printLayouts(store *result.Store, costs func([]result.Arm) report.Prices, asJSON bool) error {
	data, err := load(store)
	if err != nil {
		return err
	}
	prices := costs(data.Arms)
	render := report.LayoutsBrief
	switch {
	case asJSON:
		render = report.LayoutsJSON
	case a.verbose:
		render = report.Layouts
	}
	if err := render(a.out, data, prices); err != nil {
		return err
	}
	return verdictOf(data)
}

// settings are those of every layout's server. Without an option file they begin with a pool that holds a part of
// the data, and no page cache that would hold the rest.
func (f storageMeasureFlags) settings() []string {
	if f.cnf != "" {
		return f.sets
	}
	return append([]string{"innodb_buffer_pool_size=128M", "innodb_flush_method=O_DIRECT"}, f.sets...)
}

// arms are the layouts, and one volume with each of the other options.
func (f *storageMeasureFlags) arms() (arms []lab.Arm, err error) {
	list, at, err := f.split()
	if err != nil {
		return nil, err
	}
	iops, err := storage.ParseVolume(f.volume)
	if err != nil {
		return nil, usage("--volume %w", err)
	}
	if iops < leastIOPS {
		return nil, usage("--volume %s: give %diops or more", f.volume, leastIOPS)
	}
	loads, err := f.workloads()
	if err != nil {
		return nil, err
	}
	room := lab.LayoutRoom(loads[0])
	if f.fioOnly {
		room = lab.FioRoom
	}
	if f.fioUnsynced > 0 {
		room += lab.UnsyncedRoom
	}
	layouts, err := f.layouts(list, room)
	if err != nil {
		return nil, err
	}
	if at >= 0 {
		image := result.Layout{Name: cephRBD, Kind: cephRBD, Volumes: 1, Filesystem: "xfs", Mount: "noatime", Bytes: volumeBytes(room, 1), Ceph: &f.ceph}
		if at > 0 {
			at = len(layouts)
		}
		layouts = slices.Insert(layouts, at, image)
	}
	if len(f.options) > 0 && !slices.ContainsFunc(layouts, func(l result.Layout) bool { return l.Kind == string(storage.One) }) {
		return nil, usage("%s: for the layout one, which --layout %s does not name: add it", strings.Join(f.options, ", "), f.layout)
	}
	for _, l := range layouts {
		arm := lab.Arm{Name: l.Name, Title: l.Text(), Cnf: f.cnf, Sets: f.settings(), Layout: &l}
		if f.capped && l.Ceph == nil {
			arm.Title += fmt.Sprintf(", each of %.0f operations/s", iops)
			arm.Caps.IOPS = int64(iops)
		}
		arms = append(arms, arm)
	}
	return arms, nil
}

// cephRBD is the layout that david builds on a cluster that is there.
const cephRBD = "ceph-rbd"

// split reads the layouts, and says at which place of them ceph-rbd is; -1 without it.
func (f *storageMeasureFlags) split() (list []storage.Layout, at int, err error) {
	names := strings.Split(strings.ReplaceAll(f.layout, " ", ""), ",")
	if at = slices.Index(names, cephRBD); at >= 0 {
		names = slices.Delete(names, at, at+1)
		if f.ceph.Conf == "" || f.ceph.Pool == "" {
			return nil, at, usage("--layout %s: give --ceph-conf FILE and --pool NAME; make ceph brings a cluster up", cephRBD)
		}
		if f.ceph.Conf, err = filepath.Abs(f.ceph.Conf); err != nil {
			return nil, at, err
		}
		if err := (ceph.Cluster{Conf: f.ceph.Conf}).Trust(); err != nil {
			return nil, at, codedError{exitUsage, err}
		}
	} else if f.ceph != (result.CephPool{}) {
		return nil, at, usage("--ceph-conf and --pool are for --layout %s", cephRBD)
	}
	if len(names) == 0 {
		return nil, at, nil
	}
	if list, err = storage.ParseLayouts(strings.Join(names, ",")); err != nil {
		return nil, at, usage("--layout %s: %w", f.layout, err)
	}
	return list, at, nil
}

// onDisks gives each layout its disks, in their order; those that are left over are noted.
func onDisks(arms []lab.Arm, disks []string) (notes []string, err error) {
	if len(disks) == 0 {
		return nil, nil
	}
	need, wants := 0, []string{}
	for _, arm := range arms {
		need += arm.Layout.Volumes
		wants = append(wants, fmt.Sprintf("%s %d", arm.Name, arm.Layout.Volumes))
	}
	if need > len(disks) {
		return nil, usage("too few disks: each layout takes disks of its own, %s, which is %d, and --disks names %d: name more, or fewer layouts", strings.Join(wants, ", "), need, len(disks))
	}
	for i, d := range disks {
		if d == "" {
			return nil, usage("--disks %s: a disk without a name", strings.Join(disks, ","))
		}
		if slices.Contains(disks[:i], d) {
			return nil, usage("--disks %s: %s stands there twice", strings.Join(disks, ","), d)
		}
	}
	for _, arm := range arms {
		arm.Layout.Disks, disks = disks[:arm.Layout.Volumes], disks[arm.Layout.Volumes:]
	}
	if len(disks) > 0 {
		notes = append(notes, "not used, as no layout needs it: "+strings.Join(disks, ", "))
	}
	return notes, nil
}

// layouts are all that are to be built, with room for so many bytes on each.
func (f storageMeasureFlags) layouts(list []storage.Layout, room int64) (all []result.Layout, err error) {
	tools, err := oneOf("--with", f.with, "btrfs", "md", "lvm", "zfs")
	if err != nil {
		return nil, err
	}
	records, err := f.records()
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.Kind == storage.One {
			ones, err := f.ones(room)
			if err != nil {
				return nil, err
			}
			for _, one := range ones {
				all = append(all, ofRecords(one, records)...)
			}
			continue
		}
		for i, tool := range tools {
			all = append(all, ofRecords(built(l, tool, i > 0, room), records)...)
			if kind := l.Kind; kind != storage.Stripe && kind != storage.RAID10 {
				break // which has but one way
			}
		}
	}
	if len(f.recordSize) > 0 && !slices.ContainsFunc(all, func(l result.Layout) bool { return l.Tool == "zfs" }) {
		return nil, usage("--recordsize is for layouts of ZFS, and --layout %s has none: give --layout raidz4, --with zfs, or --fs xfs,zfs", f.layout)
	}
	return all, nil
}

// The records that ZFS may have: a smaller one than a sector of the pool's takes a sector all the same, and a larger one
// than 1M no ZFS has without a setting of its module's.
const (
	leastRecord = 4 << 10
	mostRecord  = 1 << 20
	usualRecord = "16K"
)

// records are the sizes of ZFS's records that are asked for, beside the usual one.
func (f storageMeasureFlags) records() (list []string, err error) {
	seen := map[string]bool{}
	for _, text := range f.recordSize {
		n, err := mycnf.ParseSize(text)
		if err != nil || n < leastRecord || n > mostRecord || n&(n-1) != 0 {
			return nil, usage("--recordsize %s: a power of two, 4K to 1M", text)
		}
		size := mycnf.FormatSize(n)
		if seen[size] {
			return nil, usage("--recordsize %s: %s stands there twice", strings.Join(f.recordSize, ","), size)
		}
		if seen[size] = true; size != usualRecord {
			list = append(list, size)
		}
	}
	return list, nil
}

// ofRecords is a layout as it is, and of ZFS with records of each other size.
func ofRecords(l result.Layout, sizes []string) []result.Layout {
	list := []result.Layout{l}
	if l.Tool != "zfs" {
		return list
	}
	for _, size := range sizes {
		other := l
		other.Name, other.RecordSize = l.Name+"-recordsize-"+size, size
		if l.Kind == string(storage.RAIDZ2) && (size == "4K" || size == "8K") { // two thirds of what such a record takes are parity
			other.Bytes += l.Bytes / 2
		}
		list = append(list, other)
	}
	return list
}

// built is a layout that a tool puts together, named after it where there are several.
func built(l storage.Layout, tool string, named bool, room int64) result.Layout {
	b := result.Layout{Name: l.String(), Kind: string(l.Kind), Volumes: l.N, Tool: tool, Filesystem: "xfs", Mount: "noatime"}
	copies := int64(1)
	switch {
	case l.Kind == storage.RAID10:
		copies = 2
	case l.Kind != storage.Stripe: // RAIDZ is ZFS's, a pool Ceph's
		b.Tool, copies = "zfs", 2
		if strings.HasPrefix(b.Kind, "ceph") {
			b.Tool = "ceph"
		}
	}
	switch b.Tool {
	case "btrfs":
		b.Filesystem, b.Mount = "btrfs", "noatime,nodatacow"
	case "zfs":
		b.Filesystem = "zfs"
	}
	if named {
		b.Name += "-" + tool
	}
	b.Bytes = volumeBytes(room*copies, l.N)
	return b
}

// volumeBytes are those of each volume: a share of the room, and what the filesystem keeps for itself.
func volumeBytes(room int64, volumes int) int64 {
	const own, unit = 512 << 20, 1 << 20
	return (room*5/4/int64(volumes) + own) / unit * unit
}

// ones are one volume as it is, and with each option that is asked for.
func (f storageMeasureFlags) ones(room int64) (list []result.Layout, err error) {
	kinds, err := oneOf("--fs", f.fs, "xfs", "ext4", "zfs")
	if err != nil {
		return nil, err
	}
	if kinds[0] == "zfs" && len(f.mount) > 0 {
		return nil, usage("--mount %s: of xfs and ext4, and --fs %s begins with zfs, which has atime and discard as properties: put another first", strings.Join(f.mount, ","), f.fs)
	}
	plain := onOne(result.Layout{Name: string(storage.One), Kind: string(storage.One), Volumes: 1, Mount: "noatime", Bytes: volumeBytes(room, 1)}, kinds[0])
	list = append(list, plain)
	add := func(name string, change func(l *result.Layout)) {
		l := plain
		l.Name += "-" + name
		change(&l)
		list = append(list, l)
	}
	for _, kind := range kinds[1:] {
		add(kind, func(l *result.Layout) { *l = onOne(*l, kind) })
	}
	for _, o := range f.mount {
		if !slices.Contains([]string{"relatime", "strictatime", "lazytime", "discard"}, o) {
			return nil, usage("--mount %s: relatime, strictatime, lazytime or discard; noatime is how one volume is mounted, and what drops flushes is refused", o)
		}
		add(o, func(l *result.Layout) {
			if l.Mount = o; o == "discard" || o == "lazytime" {
				l.Mount = "noatime," + o
			}
		})
	}
	for _, s := range f.scheduler {
		if !slices.Contains([]string{"none", "mq-deadline", "kyber", "bfq"}, s) {
			return nil, usage("--scheduler %s: none, mq-deadline, kyber or bfq", s)
		}
		add(s, func(l *result.Layout) { l.Scheduler = s })
	}
	for _, kb := range f.readAhead {
		if n, err := strconv.ParseUint(kb, 10, 32); err != nil || n > 65536 {
			return nil, usage("--read-ahead %s: KiB, 0 to 65536", kb)
		}
		add("read-ahead-"+kb, func(l *result.Layout) { l.ReadAheadKB = kb })
	}
	return list, nil
}

// onOne gives one volume its filesystem; that of ZFS is a pool.
func onOne(l result.Layout, kind string) result.Layout {
	if l.Filesystem, l.Tool = kind, ""; kind == "zfs" {
		l.Tool = "zfs"
	}
	return l
}

// oneOf reads a list with commas of words that are known.
func oneOf(flag, text string, known ...string) (list []string, err error) {
	for word := range strings.SplitSeq(text, ",") {
		switch {
		case !slices.Contains(known, word):
			return nil, usage("%s %s: %q is none of %s", flag, text, word, strings.Join(known, ", "))
		case slices.Contains(list, word):
			return nil, usage("%s %s: %s stands there twice", flag, text, word)
		}
		list = append(list, word)
	}
	return list, nil
}

// costs returns what prices layouts' volumes, where the catalogue has such.
func (f storageMeasureFlags) costs(c price.Catalogue) (func([]result.Arm) report.Prices, error) {
	size, err := price.ParseSize(f.size)
	if err != nil {
		return nil, usage("--size %s: %w", f.size, err)
	}
	if c, err = c.OnlyOf(f.provider); err != nil {
		return nil, codedError{exitUsage, err}
	}
	iops, err := storage.ParseVolume(f.volume)
	if err != nil {
		return nil, usage("--volume %w", err)
	}
	if !f.capped {
		return func([]result.Arm) report.Prices {
			return report.Prices{Bargain: "cost: not priced: the disks are what they are; what volumes cost: david storage plan"}
		}, nil
	}
	each := storage.Each{IOPS: iops, Size: size}
	return func(arms []result.Arm) report.Prices { return pricesOf(c, each, arms) }, nil
}

// pricesOf are what the volumes of layouts that were built cost.
func pricesOf(c price.Catalogue, each storage.Each, arms []result.Arm) report.Prices {
	p := report.Prices{Month: map[string]string{}}
	most := 1
	for _, arm := range arms {
		if arm.Layout == nil || strings.HasPrefix(arm.Layout.Kind, "ceph") { // whose price is that of nodes
			continue
		}
		if o, err := each.Cheapest(c, arm.Layout.Volumes); err == nil {
			p.Month[arm.Name] = price.Money(o.USDMonth, o.UncertainPrice)
		}
		if arm.Layout.Kind == string(storage.Stripe) {
			most = max(most, arm.Layout.Volumes)
		}
	}
	p.Bargain = "cost: " + each.Bargain(c, most)
	return p
}
