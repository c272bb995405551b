package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"david/internal/report"
	"david/internal/result"
	"david/internal/spec"
	"david/internal/stats"
)

// bestNetwork stands for the pod network that loses the least, beside what was published of such a one.
const bestNetwork = "best"

// networkRow is what one record says of a pod network, and of the nodes' own in the same rounds.
type networkRow struct {
	Network    string     `json:"network"`
	Experiment string     `json:"experiment"`
	Measured   time.Time  `json:"measured"`
	Host       networkEnd `json:"host"`
	Pod        networkEnd `json:"pod"`
	Ratio      float64    `json:"ratio"` // transactions/s to the host's
	Interval   [2]float64 `json:"interval95"`
	Rounds     int        `json:"rounds"`
	Verdict    string     `json:"verdict"`

	compared stats.Arm
	hosts    []result.Trial
}

// networkEnd holds one network's own figures.
type networkEnd struct {
	Alone *result.PathProbe `json:"alone,omitempty"` // by iperf3 and sockperf
	TPS   float64           `json:"tps"`
	P95   float64           `json:"p95_ms"`
	Valid int               `json:"valid_trials"`
}

// studyDocument is what david study prints with --json of a study in a cluster.
type studyDocument struct {
	Study      string        `json:"study"`
	Title      string        `json:"title"`
	Experiment string        `json:"experiment"`
	Networks   []networkRow  `json:"networks"`
	Together   []togetherRow `json:"correlations"`
	Published  []spec.Figure `json:"published"`
	Findings   []string      `json:"findings"`
	Differs    []string      `json:"differs"`
}

// togetherRow tells how far the throughput of transactions goes with something else of the networks, each
// relative to the nodes' own in the same record.
type togetherRow struct {
	With string  `json:"with"`
	R    float64 `json:"r"` // Pearson's, of logarithms
	N    int     `json:"n"` // networks, the nodes' own among them
	// Interval is R's. Where it has 0 in it nothing is shown.
	Interval [2]float64 `json:"interval95"`
}

// showNetworks prints five sentences of the newest record and those of other networks under the same load, with -v all of
// them.
func (a *app) showNetworks(st spec.Study, store *result.Store, f studyFlags) error {
	data, err := load(store)
	if err != nil {
		return err
	}
	rows, err := a.networkRows(st, store)
	if err != nil {
		return err
	}
	st.Differs = append(slices.Clone(st.Differs), data.Experiment.Notes...)
	if f.json {
		doc := studyDocument{st.Name, st.Title, store.Dir(), rows, together(rows), st.Published, st.Findings, st.Differs}
		if err := a.printJSON(doc); err != nil {
			return err
		}
		return verdictOf(data)
	}
	here, setup := besidePublished(rows), clusterSetup(data.Experiment, f.cluster)
	if a.verbose {
		err = a.printNetworks(st, data, rows, here, setup, f.differs())
	} else {
		err = a.printStudyBrief(studyScreen{study: st, here: here, setup: setup, cut: append(f.differs(), bestLine(rows)), short: f.short(), trials: data.Trials, records: []string{data.Experiment.ID},
			rest: "the same with -v measures again, and shows this network beside those on record"})
	}
	return cmp.Or(err, verdictOf(data))
}

// bestLine names the pod network that stands beside the published one.
func bestLine(rows []networkRow) string {
	if len(rows) == 0 {
		return "no network on record can be compared"
	}
	return fmt.Sprintf("here is %s, which loses the least of %s on record under this load", rows[0].Network, pluralise(len(rows), "network"))
}

// printNetworks shows the newest record, and it and those of other networks in one table.
func (a *app) printNetworks(st spec.Study, data report.Data, rows []networkRow, here map[string]studyResult, setup spec.Setup, cut []string) error {
	if err := report.Text(a.out, data); err != nil {
		return err
	}
	fmt.Fprintf(a.out, "\nThe networks under this load, each with the nodes' own in the same rounds\n\n")
	if err := a.printTable(networkTable(rows)); err != nil {
		return err
	}
	if err := a.printList("what goes with transactions/s", togetherLines(rows)); err != nil {
		return err
	}
	fmt.Fprintln(a.out)
	return a.printStudy(st, here, setup, cut)
}

// networkRows reads the newest record of each pod network that can stand beside one.
func (a *app) networkRows(st spec.Study, one *result.Store) (rows []networkRow, err error) {
	list, err := result.List(a.home) // the newest first
	if err != nil {
		return nil, err
	}
	for _, sum := range list {
		if sum.Kind != result.KindStudy || sum.Err != "" || !sum.Finished {
			continue
		}
		store, err := result.Open(sum.Dir)
		if err != nil {
			return nil, err
		}
		name, ok := strings.CutPrefix(store.Experiment().Title, st.Name+": ")
		if !ok || slices.ContainsFunc(rows, func(r networkRow) bool { return r.Network == name }) {
			continue
		}
		if ok, err := besideAnother(one, store); err != nil || !ok {
			if err != nil {
				return nil, err
			}
			continue
		}
		row, ok, err := networkOf(store, name)
		if err != nil {
			return nil, err
		}
		if ok {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b networkRow) int { return cmp.Compare(b.Ratio, a.Ratio) })
	return rows, nil
}

// besideAnother tells whether two records are of the same load, server and limits: where these differ, so does
// what a network costs.
func besideAnother(a, b *result.Store) (bool, error) {
	of := func(s *result.Store) (key [3]any, err error) {
		arms, err := s.Arms()
		if err != nil || len(arms) == 0 {
			return key, err
		}
		e := s.Experiment()
		return [3]any{e.Workloads[0], string(e.Server.Flavour) + e.Server.Version, arms[0].Caps}, nil
	}
	one, err := of(a)
	if err != nil {
		return false, err
	}
	other, err := of(b)
	return one == other, err
}

// networkOf reads one record; ok is false where nothing of it can be compared.
func networkOf(store *result.Store, name string) (row networkRow, ok bool, err error) {
	arms, err := store.Arms()
	if err != nil {
		return row, false, err
	}
	trials, err := store.Trials()
	if err != nil {
		return row, false, err
	}
	e := store.Experiment()
	list := stats.Compare(e.Design, arms, trials)
	if len(list) == 0 {
		return row, false, nil
	}
	row = networkRow{Network: name, Experiment: store.Dir(), Measured: e.Created, compared: list[0].Of(name)}
	row.Ratio, row.Interval, row.Rounds, row.Verdict = row.compared.Ratio, row.compared.Interval, row.compared.Pairs, string(row.compared.Verdict)
	var pods []result.Trial
	for _, t := range trials {
		if valid, _ := t.Valid(); valid && t.Arm == hostNetwork {
			row.hosts = append(row.hosts, t)
		} else if valid && t.Arm == name {
			pods = append(pods, t)
		}
	}
	row.Host, row.Pod = endOf(arms, hostNetwork, row.hosts), endOf(arms, name, pods)
	return row, row.Ratio > 0, nil
}

func endOf(arms []result.Arm, name string, trials []result.Trial) networkEnd {
	end := networkEnd{Valid: len(trials)}
	if i := slices.IndexFunc(arms, func(a result.Arm) bool { return a.Name == name }); i >= 0 {
		end.Alone = arms[i].PathProbe
	}
	if len(trials) > 0 {
		end.TPS, end.P95 = mean(trials, "tps"), mean(trials, "p95")
	}
	return end
}

// networkTable has two rows for each record: the nodes' network, and the pods'.
func networkTable(rows []networkRow) [][]string {
	table := [][]string{{"network", "measured", "Gbit/s", "sent again/s", "round trip p50, us", "p99, us", "tps", "p95, ms", "ratio [95 %]", ""}}
	line := func(name string, r networkRow, e networkEnd, ratio, verdict string) {
		alone := []string{"-", "-", "-", "-"}
		if p := e.Alone; p != nil {
			alone = []string{fmt.Sprintf("%.2f", p.Rate/1e9), fmt.Sprintf("%.0f", p.Retransmits), fmt.Sprintf("%.0f", p.RTT50), fmt.Sprintf("%.0f", p.RTT99)}
		}
		table = append(table, slices.Concat([]string{name, r.Measured.Format("2006-01-02 15:04")}, alone,
			[]string{fmt.Sprintf("%.1f", e.TPS), fmt.Sprintf("%.2f", e.P95), ratio, verdict}))
	}
	for _, r := range rows {
		ratio := fmt.Sprintf("%.3f (1 round)", r.Ratio)
		if r.Rounds > 1 {
			ratio = fmt.Sprintf("%.3f [%.3f, %.3f] of %d", r.Ratio, r.Interval[0], r.Interval[1], r.Rounds)
		}
		line(hostNetwork+" beside "+r.Network, r, r.Host, "1", "")
		line(r.Network, r, r.Pod, ratio, r.Verdict)
	}
	return table
}

// leastNetworks are needed for a correlation to mean anything: the nodes' own and three others.
const leastNetworks = 4

// together correlates the networks' transactions/s with their throughput and their round trip, all relative to
// the nodes' own network of the same record, in logarithms. The nodes' own is one of them, once.
func together(rows []networkRow) (list []togetherRow) {
	for _, what := range []struct {
		name string
		of   func(*result.PathProbe) float64
	}{{"throughput of a stream", func(p *result.PathProbe) float64 { return p.Rate }}, {"round trip", func(p *result.PathProbe) float64 { return p.RTT50 }}} {
		x, y := []float64{0}, []float64{0}
		for _, r := range rows {
			if r.Host.Alone != nil && r.Pod.Alone != nil {
				x, y = append(x, math.Log(what.of(r.Pod.Alone)/what.of(r.Host.Alone))), append(y, math.Log(r.Ratio))
			}
		}
		if len(x) >= leastNetworks {
			r, interval := stats.Correlation(x, y)
			list = append(list, togetherRow{what.name, r, len(x), interval})
		}
	}
	return list
}

func togetherLines(rows []networkRow) (lines []string) {
	for _, t := range together(rows) {
		line := fmt.Sprintf("%s: r = %.2f [%.2f, %.2f] over %d networks, the nodes' own among them; each relative to that, in logarithms", t.With, t.R, t.Interval[0], t.Interval[1], t.N)
		if t.Interval[0] <= 0 && t.Interval[1] >= 0 {
			line += ": not shown, it may be chance"
		}
		lines = append(lines, line)
	}
	if len(lines) == 0 {
		return []string{fmt.Sprintf("not told of fewer than %d networks, the nodes' own among them: measure clusters with other pod networks, under the same load and with another --network NAME",
			leastNetworks)}
	}
	return lines
}

// besidePublished puts the best pod network, and the nodes' own of its record, beside what was published.
func besidePublished(rows []networkRow) map[string]studyResult {
	if len(rows) == 0 {
		return map[string]studyResult{}
	}
	return map[string]studyResult{hostNetwork: {trials: rows[0].hosts}, bestNetwork: {compared: rows[0].compared}}
}

// clusterSetup says what a study in a cluster ran on.
func clusterSetup(e result.Experiment, f clusterStudyFlags) spec.Setup {
	cpus := f.cpus + " CPUs"
	if f.cpus == "1" {
		cpus = "1 CPU"
	}
	return spec.Setup{CPUs: cpus + " for the server, and as many for the client; " + e.Host.CPU.Model, Memory: f.memory + " for the server, half of it the buffer pool",
		Server:  fmt.Sprintf("%s %s, image %s, in a Guaranteed pod for each network", e.Server.Flavour, e.Server.Version, f.image),
		Client:  fmt.Sprintf("sysbench %s, %d threads, in a Guaranteed pod on another node", e.Sysbench, e.Workloads[0].Threads),
		Storage: "an emptyDir of the node"}
}
