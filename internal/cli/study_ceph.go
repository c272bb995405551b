package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"david/internal/ceph"
	"david/internal/lab"
	"david/internal/mycnf"
	"david/internal/spec"
	"david/internal/stats"
)

// cephFlags say which Ceph a study is repeated on.
type cephFlags struct {
	conf, pool string
	local      bool
	none       bool // no Ceph: its servers run on this machine's disk
	used       string
	on         ceph.Cluster
	pools      []string
	shares     []float64
}

func (f *cephFlags) add(fs *pflag.FlagSet) {
	fs.StringVar(&f.conf, "ceph-conf", "", "FILE of a Ceph cluster, with the key of client.admin where it says")
	fs.StringVar(&f.pool, "pool", "", "pools of that cluster, with commas between; servers run on the first. What david makes there it removes")
	fs.BoolVar(&f.local, "local", false, "the throwaway Ceph of make ceph: pools of 2 and 3 copies, each filled to 14 % and 87 %")
	fs.BoolVar(&f.none, "no-ceph", false, "the part with buffer pools alone, its servers on this machine's disk: it says nothing of Ceph")
	fs.StringVar(&f.used, "used", "", "shares of the cluster's capacity to fill it to before writes are measured, as in 14%,87% (default: as full as it is)")
}

// withoutCeph gives the study with its servers on this machine's disk, under titles of their own: what was measured
// on a Ceph is another matter.
func withoutCeph(st spec.Study) spec.Study {
	st.Specs = slices.Clone(st.Specs)
	for i := range st.Specs {
		st.Specs[i].Title = strings.Replace(st.Specs[i].Title, "on Ceph RBD", "on this machine's disk", 1)
	}
	st.Differs = append([]string{"--no-ceph: the servers ran on this machine's own disk, on no image of a pool. Nothing here tells of Ceph."}, st.Differs...)
	return st
}

// localCeph names the configuration of the cluster that is up by `make ceph`, in the environment.
const localCeph = "DAVID_CEPH"

// settle works out what was asked for.
func (f *cephFlags) settle(a *app, needed, dryRun bool) error {
	switch {
	case !needed || dryRun:
		return nil
	case f.none && (f.local || f.conf != "" || f.pool != "" || f.used != ""):
		return usage("--no-ceph has no cluster, pools and fill: leave out --local, --ceph-conf, --pool and --used")
	case f.none:
		return nil
	case f.local && (f.conf != "" || f.pool != ""):
		return usage("--local names its own cluster and pools: leave out --ceph-conf and --pool")
	case f.local:
		if f.conf = a.env(localCeph); f.conf == "" {
			return usage("no Ceph of `make ceph` is up ($%s is not set): make ceph runs david with it; go run ./test/ceph run COMMAND anything", localCeph)
		}
		f.pool = "replicas-2,replicas-3"
		if f.used == "" {
			f.used = "14%,87%"
		}
	case f.conf == "" || f.pool == "":
		return usage("study p4 needs a Ceph: --ceph-conf FILE --pool NAME, or make ceph; --no-ceph has its buffer pools on this machine's disk")
	}
	conf, err := filepath.Abs(f.conf)
	if err != nil {
		return err
	}
	f.on, f.pools = ceph.Cluster{Conf: conf}, strings.Split(f.pool, ",")
	if err := f.on.Trust(); err != nil {
		return codedError{exitUsage, err}
	}
	return f.parseUsed()
}

// parseUsed reads shares, the least first.
func (f *cephFlags) parseUsed() error {
	if f.used == "" {
		return nil
	}
	for _, text := range strings.Split(f.used, ",") {
		share, err := percentage("--used", text)
		if err != nil {
			return usage("%w", err)
		}
		if share < 0.05 || share > 0.9 || len(f.shares) > 0 && share <= f.shares[len(f.shares)-1] {
			return usage("--used %s: give 5%% to 90%%, the least first; writes to a full Ceph wait for ever", f.used)
		}
		f.shares = append(f.shares, share)
	}
	return nil
}

// place is where servers run.
func (f cephFlags) place() *ceph.Place {
	if len(f.pools) == 0 {
		return nil
	}
	return &ceph.Place{Cluster: f.on, Pool: f.pools[0]}
}

// cephWrites measures the writes of a study's clients; with -v it shows them. Where some pools could not be measured the
// others come with the error.
func (a *app) cephWrites(ctx context.Context, f cephFlags, quick bool) ([]lab.CephCell, error) {
	if len(f.pools) == 0 {
		return nil, nil
	}
	r := lab.CephWrites{Cluster: f.on, Pools: f.pools, Used: f.shares, Clients: []int{1, 4}, Depth: 8, Rounds: 5, Each: 4 * time.Second}
	if quick {
		r.Rounds, r.Each = 2, time.Second
	}
	p := newProgress(a.err, a.verbose)
	defer p.end()
	l, err := a.measuring(p)
	if err != nil {
		return nil, err
	}
	osds, err := f.on.OSDs(ctx)
	if err != nil {
		return nil, codedError{exitTarget, err}
	}
	cells, err := r.Run(ctx, l)
	if errors.Is(err, ceph.ErrMissing) {
		return nil, codedError{exitTarget, err}
	}
	if len(cells) == 0 || ctx.Err() != nil {
		return nil, err
	}
	p.end()
	missed := missing(err)
	if !a.verbose {
		return cells, missed
	}
	fmt.Fprintf(a.out, "Writes of %d KiB at random to Ceph RBD, %d OSDs, %s of %s each, %d under way of each client, one where each is flushed; 95 %% intervals\n\n",
		ceph.PageBytes>>10, osds.Up, pluralise(r.Rounds, "round"), r.Each, r.Depth)
	if err := a.printTable(cephTable(cells)); err != nil {
		return nil, err
	}
	fmt.Fprintln(a.out)
	return cells, missed
}

// crowdArm is the arm of the study that servers beside each other are configured as: what it found best.
const crowdArm = "pool-20"

// cephServers measures what servers get done beside each other, each on an image of its own; with -v it shows them.
func (a *app) cephServers(ctx context.Context, f studyFlags, s spec.Spec) ([]lab.CephCrowd, error) {
	place := f.ceph.place()
	at := slices.IndexFunc(s.Arms, func(arm spec.Arm) bool { return arm.Name == crowdArm })
	if place == nil || at < 0 {
		return nil, nil
	}
	r := lab.CephServers{Place: *place, Server: s.Server, Load: s.Workloads()[0], Servers: []int{1, 2, 4}, Rounds: 5, Arm: lab.Arm{Name: crowdArm,
		More: func(flavour mycnf.Flavour, memory int64) ([]string, error) {
			return s.Settings(s.Arms[at], flavour, memory)
		}}}
	if f.quick {
		r.Rounds = 2
	}
	p := newProgress(a.err, a.verbose)
	defer p.end()
	l, err := a.measuring(p)
	if err != nil {
		return nil, err
	}
	crowds, err := r.Run(ctx, l)
	if errors.Is(err, ceph.ErrMissing) {
		return nil, codedError{exitTarget, err}
	}
	if err != nil || !a.verbose {
		return crowds, err
	}
	p.end()
	fmt.Fprintf(a.out, "Servers beside each other, each on an RBD image of its own of the pool %s, with %s of its own, %s on %s of %s rows in each, %s; 95 %% intervals\n\n", place.Pool,
		pluralise(r.Load.Threads, "client"), r.Load.Name, pluralise(r.Load.Tables, "table"), fmt.Sprint(r.Load.TableSize), pluralise(r.Rounds, "round"))
	if err := a.printTable(crowdTable(crowds)); err != nil {
		return nil, err
	}
	fmt.Fprintln(a.out)
	return crowds, nil
}

// crowdTable makes a row of each number of servers.
func crowdTable(crowds []lab.CephCrowd) [][]string {
	rows := [][]string{{"servers", "clients in all", "transactions/s", "[95 %]", "of a server", "of the least", "p95 of the slowest, ms"}}
	for _, c := range crowds {
		mean, span := stats.GeoMean(c.TPS), stats.GeoInterval(c.TPS)
		rows = append(rows, []string{fmt.Sprint(c.Servers), fmt.Sprint(c.Servers * c.Clients), fmt.Sprintf("%.1f", mean), fmt.Sprintf("[%.1f, %.1f]", span[0], span[1]),
			fmt.Sprintf("%.1f", mean/float64(c.Servers)), fmt.Sprintf("%.1f", stats.Mean(c.Least)), fmt.Sprintf("%.0f", stats.Mean(c.P95))})
	}
	return rows
}

// addCrowds puts what servers got done beside each other beside the study's many clients and servers.
func addCrowds(here map[string]studyResult, crowds []lab.CephCrowd) {
	var texts []string
	for _, c := range crowds {
		span := stats.GeoInterval(c.TPS)
		texts = append(texts, fmt.Sprintf("%s %.1f [%.1f, %.1f] transactions/s, p95 %.0f ms", pluralise(c.Servers, "server"), stats.GeoMean(c.TPS), span[0], span[1], stats.Mean(c.P95)))
	}
	if len(texts) > 0 {
		here["ceph-servers"] = studyResult{text: strings.Join(texts, "; ") + fmt.Sprintf("; %s each", pluralise(crowds[0].Clients, "client"))}
	}
}

// missing says which pools could not be measured, where others were.
func missing(err error) error {
	if err == nil {
		return nil
	}
	return codedError{exitInvalid, fmt.Errorf("not measured: %w", err)}
}

// cephTable makes a row of each load.
func cephTable(cells []lab.CephCell) [][]string {
	rows := [][]string{{"pool", "copies", "used", "data, GB", "clients", "writes", "IOPS", "[95 %]", "IOPS/GB", "p99, ms"}}
	for _, c := range cells {
		gb := float64(c.Bytes) / 1e9
		for _, r := range c.Rows {
			how := "under way"
			if r.Sync {
				how = "each flushed"
			}
			mean, span := stats.GeoMean(r.IOPS), stats.GeoInterval(r.IOPS)
			rows = append(rows, []string{c.Pool, fmt.Sprint(c.Replicas), fmt.Sprintf("%.0f %%", 100*c.Used), fmt.Sprintf("%.2f", gb), fmt.Sprint(r.Clients), how,
				fmt.Sprintf("%.0f", mean), fmt.Sprintf("[%.0f, %.0f]", span[0], span[1]), fmt.Sprintf("%.3g", mean/gb), fmt.Sprintf("%.1f", stats.Mean(r.P99))})
		}
	}
	return rows
}

// addCephResults puts the writes of most clients beside those published for a cluster as full.
func addCephResults(here map[string]studyResult, cells []lab.CephCell) {
	for _, published := range []float64{0.14, 0.87} {
		var texts []string
		for _, c := range cells {
			if math.Abs(c.Used-published) > 0.03 {
				continue
			}
			r := c.Rows[0]
			for _, other := range c.Rows {
				if !other.Sync && other.Clients > r.Clients {
					r = other
				}
			}
			gb := float64(c.Bytes) / 1e9
			span := stats.GeoInterval(r.IOPS)
			texts = append(texts, fmt.Sprintf("%.3g [%.3g, %.3g] with %d copies, %s", stats.GeoMean(r.IOPS)/gb, span[0]/gb, span[1]/gb, c.Replicas, pluralise(r.Clients, "client")))
		}
		if len(texts) > 0 {
			here[fmt.Sprintf("ceph-%.0f", 100*published)] = studyResult{text: strings.Join(texts, "; ")}
		}
	}
}
