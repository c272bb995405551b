package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"david/internal/mycnf"
	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// Measured is what an experiment's arm tells of a transaction.
type Measured struct {
	Experiment string        `json:"experiment"`
	Arm        string        `json:"arm"`
	Workload   string        `json:"workload"`
	Runs       int           `json:"runs"`
	Invalid    int           `json:"invalid,omitempty"` // runs of the arm of which a gate failed, left out
	TPS        float64       `json:"tps"`
	Flavour    mycnf.Flavour `json:"flavour"`
	DataBytes  float64       `json:"data_bytes"`
	Pool       float64       `json:"buffer_pool_bytes"` // of the arm
	CPUs       float64       `json:"cpus"`              // that its server may use
	HitRate    *float64      `json:"buffer_pool_hit_rate,omitempty"`
	// ClientCPU is what the client took of CPU beside the server, the kernel's interrupts included, in microseconds for a
	// transaction; 0: not seen, as where it is another machine's.
	ClientCPU float64 `json:"client_cpu_us,omitempty"`
	// DiskWrites are the random 16 KiB writes/s that its disk was probed to sustain; 0: not probed.
	DiskWrites float64 `json:"disk_writes,omitempty"`
	// Cold is the arm of the same experiment that tells what is read with a smaller pool; "" where this one
	// does, or none.
	Cold string `json:"cold_arm,omitempty"`
	// Borrowed tells that writes were put off while it was measured, so that more will come.
	Borrowed bool `json:"borrowed,omitempty"`
	// Figures are the means over the runs by the figure's name; Low and High the ends of their 95 % intervals,
	// where there are two runs or more.
	Figures map[string]float64 `json:"figures"`
	Low     map[string]float64 `json:"low,omitempty"`
	High    map[string]float64 `json:"high,omitempty"`
}

// BytesPerRow is what a row of sysbench's tables takes with its index: 10 tables of 1,000,000 rows are 2.3
// GiB.
const BytesPerRow = 247

// writing returns how many queries of a transaction of a workload write; false for one that is not known.
func writing(workload string) (float64, bool) {
	n, ok := map[string]float64{"oltp_read_write": 4, "oltp_read_only": 0, "oltp_write_only": 4, "oltp_point_select": 0, "oltp_update_index": 1,
		"read-intensive": 4, "balanced": 10, "write-intensive": 16}[workload]
	return n, ok
}

// Measure reads what a transaction of an arm took, of the first of an experiment's workloads that it ran.
// Without a name it takes best, else the fastest arm that is safe. Runs that a gate failed do not count.
func Measure(e result.Experiment, arms []result.Arm, trials []result.Trial, name, best string) (Measured, error) {
	m, err := measureArm(e, arms, trials, name, best)
	if err != nil || m.Figures["measured-pool"] < 1 {
		return m, err
	}
	return m.withCold(e, arms, trials), nil
}

// withCold adds what is read and written with a pool that holds part of the data, from the arm with the
// smallest one.
func (m Measured) withCold(e result.Experiment, arms []result.Arm, trials []result.Trial) Measured {
	var cold Measured
	for _, a := range arms {
		x, err := measureArm(e, arms, trials, a.Name, "")
		if err == nil && x.Figures["measured-pool"] < 1 && x.Figures["reads-per-transaction"] > 0 && (cold.Arm == "" || x.Figures["measured-pool"] < cold.Figures["measured-pool"]) {
			cold = x
		}
	}
	if cold.Arm == "" {
		return m
	}
	m.Cold = cold.Arm
	for _, name := range []string{"reads-per-transaction", "cpu-per-transaction", "writes-per-transaction", "measured-pool"} {
		m.Figures[name] = cold.Figures[name]
		delete(m.Low, name)
		delete(m.High, name)
		if x, ok := cold.Low[name]; ok {
			m.Low[name], m.High[name] = x, cold.High[name]
		}
	}
	return m
}

func measureArm(e result.Experiment, arms []result.Arm, trials []result.Trial, name, best string) (m Measured, err error) {
	arm, runs := pickArm(arms, trials, name, best)
	if len(runs) == 0 {
		return m, fmt.Errorf("experiment %s has no valid run of arm %q with all of the durability lock", e.ID, name)
	}
	w := runs[0].Workload
	m = Measured{Experiment: e.ID, Arm: arm.Name, Workload: w.Name, Runs: len(runs), Flavour: e.Server.Flavour, DataBytes: float64(w.Tables) * float64(w.TableSize) * BytesPerRow,
		Figures: map[string]float64{}, Low: map[string]float64{}, High: map[string]float64{}}
	for _, t := range trials {
		if ok, _ := t.Valid(); !ok && t.Arm == arm.Name {
			m.Invalid++
		}
	}
	m.CPUs = cmp.Or(arm.Caps.CPUs, e.Host.CPU.Usable)
	if arm.Server.Flavour != "" {
		m.Flavour = arm.Server.Flavour
	}
	m.TPS = mean(runs, func(t result.Trial) *float64 { return &t.TPS })
	if m.TPS <= 0 {
		return m, fmt.Errorf("arm %s of experiment %s did nothing", arm.Name, e.ID)
	}
	queries := mean(runs, func(t result.Trial) *float64 { return &t.QPS }) / m.TPS
	writes, ok := writing(w.Name)
	if !ok {
		return m, fmt.Errorf("how many queries of %s write is not known: give the figures of a transaction by hand (--cpu-per-transaction, --reads-per-transaction, --writes-per-transaction)", w.Name)
	}
	m.Figures["measured-queries"], m.Figures["measured-writes"] = queries, min(1, writes/queries)
	m.DiskWrites = probedWrites(e.Limits)
	m.ClientCPU = mean(runs, beside)
	m.HitRate = last(runs, func(t result.Trial) *float64 { return t.Costs.HitRate })
	if err := m.costs(runs); err != nil {
		return m, err
	}
	m.Figures["measured-pool"] = 1
	if pool, err := strconv.ParseFloat(arm.Effective["innodb_buffer_pool_size"], 64); err == nil && m.DataBytes > 0 {
		m.Pool = pool
		m.Figures["measured-pool"] = min(1, pool/m.DataBytes)
	}
	return m, nil
}

// beside is the CPU time of a transaction that was not the server's; nil where the client's was not seen.
func beside(t result.Trial) *float64 {
	if t.Costs.ClientCPU == nil {
		return nil
	}
	x := *t.Costs.ClientCPU
	if t.Costs.SoftIRQ != nil {
		x += *t.Costs.SoftIRQ
	}
	return &x
}

// probedWrites returns the most random writes of pages that a probe found.
func probedWrites(l *result.Limits) (most float64) {
	if l == nil {
		return 0
	}
	for _, io := range l.IO {
		if io.Way == result.RandomWrite && io.Bytes == page {
			most = max(most, io.IOPS.Value)
		}
	}
	return most
}

// costs reads what the runs took of CPU and disk.
func (m *Measured) costs(runs []result.Trial) error {
	const pageKiB = page / 1024
	for name, of := range map[string]func(result.Trial) (*float64, float64){
		"cpu-per-transaction":    func(t result.Trial) (*float64, float64) { return t.Costs.ServerCPU, 1 },
		"reads-per-transaction":  func(t result.Trial) (*float64, float64) { return t.Costs.ReadKB, pageKiB },
		"writes-per-transaction": func(t result.Trial) (*float64, float64) { return t.Costs.WrittenKB, pageKiB },
	} {
		var values []float64
		for _, t := range runs {
			if x, unit := of(t); x != nil {
				values = append(values, *x/unit)
			}
		}
		if len(values) == 0 {
			return fmt.Errorf("what a transaction of arm %s took was not seen (%s), as of a remote server: give --%[2]s", m.Arm, name)
		}
		x := stats.Mean(values)
		m.Figures[name] = x
		if x <= 0 {
			continue
		}
		if in := stats.RatioInterval(values); in != (stats.Interval{}) {
			m.Low[name], m.High[name] = in[0], in[1]
		}
	}
	m.Borrowed = borrowed(runs)
	for _, end := range []map[string]float64{m.Figures, m.Low, m.High} {
		for warm, cold := range map[string]string{"cpu-in-memory": "cpu-per-transaction", "writes-in-memory": "writes-per-transaction"} {
			if x, ok := end[cold]; ok {
				end[warm] = x
			}
		}
	}
	return nil
}

// borrowed tells whether more than a tenth of the redo written was still to be flushed at the end of the
// runs.
func borrowed(runs []result.Trial) bool {
	put, redo := 0.0, 0.0
	for _, t := range runs {
		if t.Before.CheckpointAge != nil && t.After.CheckpointAge != nil && t.Costs.RedoBytes != nil {
			put += *t.After.CheckpointAge - *t.Before.CheckpointAge
			redo += *t.Costs.RedoBytes * float64(t.Transactions)
		}
	}
	return put > 0.1*redo && redo > 0
}

// pickArm finds the arm and its valid runs of the first workload.
func pickArm(arms []result.Arm, trials []result.Trial, name, best string) (result.Arm, []result.Trial) {
	var fastest result.Arm
	var runs []result.Trial
	most := 0.0
	for _, a := range arms {
		own := validRuns(a, trials)
		switch {
		case len(own) == 0, name != "" && a.Name != name:
		case a.Name == name, name == "" && a.Name == best:
			return a, own
		default:
			if tps := mean(own, func(t result.Trial) *float64 { return &t.TPS }); tps > most {
				fastest, runs, most = a, own, tps
			}
		}
	}
	return fastest, runs
}

func validRuns(a result.Arm, trials []result.Trial) (runs []result.Trial) {
	for _, t := range trials {
		ok, _ := t.Valid()
		if t.Arm == a.Name && ok && len(t.Unsafe) == 0 && !a.Ceiling && (len(runs) == 0 || t.Workload == runs[0].Workload) {
			runs = append(runs, t)
		}
	}
	return runs
}

func mean(runs []result.Trial, of func(result.Trial) *float64) float64 {
	var values []float64
	for _, t := range runs {
		if x := of(t); x != nil {
			values = append(values, *x)
		}
	}
	return stats.Mean(values)
}

func last(runs []result.Trial, of func(result.Trial) *float64) (x *float64) {
	for _, t := range runs {
		x = of(t)
	}
	return x
}

// ErrFlavour says that what was measured is another server's.
var ErrFlavour = errors.New("measured on another flavour")

// From returns the request with what was measured in the place of david's figures; what was given stays.
func (r Request) From(m Measured) (Request, error) {
	if r.Flavour != "" && r.Flavour != m.Flavour {
		return r, fmt.Errorf("--flavour %s: experiment %s was %w, %s: measure what is to be run", r.Flavour, m.Experiment, ErrFlavour, m.Flavour)
	}
	r.Flavour, r.Measured = m.Flavour, &m
	figures, sources := maps.Clone(m.Figures), map[string]string{}
	for name := range m.Figures {
		sources[name] = m.String()
	}
	for name, x := range r.Figures {
		figures[name] = x
		delete(sources, name)
	}
	r.Figures, r.Sources = figures, sources
	return r, nil
}

// String says what was measured.
func (m Measured) String() string {
	text := fmt.Sprintf("measured: experiment %s, arm %s, %s, %d runs", m.Experiment, m.Arm, m.Workload, m.Runs)
	if m.Invalid > 0 {
		text += fmt.Sprintf(" (%d more are invalid and left out)", m.Invalid)
	}
	if m.Cold != "" {
		text += fmt.Sprintf("; arm %s for a pool of %.1f %% of the data", m.Cold, 100*m.Figures["measured-pool"])
	}
	if m.Borrowed {
		text += "; dirty pages were still to be flushed, so more writes will come"
	}
	return text
}

// at returns the request at an end of the measured intervals.
func (r Request) at(end map[string]float64) Request {
	for name, x := range end {
		if _, measured := r.Sources[name]; measured {
			r = r.with(name, x)
		}
	}
	return r
}

// Span is the decision at both ends of what was measured.
type Span struct {
	Low      End  `json:"low"`
	High     End  `json:"high"`
	LowLoad  Load `json:"low_load"`
	HighLoad Load `json:"high_load"`
}

// ends returns the figures at both ends of what was measured: those that take least of a machine, and those that
// take most; nil and nil where there is no interval.
func (r Request) ends() (least, most map[string]float64) {
	if m := r.Measured; m != nil && len(m.Low) > 0 {
		least, most = maps.Clone(m.Low), maps.Clone(m.High)
	}
	for _, c := range r.Costs {
		if !r.Kubernetes || c.What != podPart {
			continue
		}
		if least == nil {
			least, most = map[string]float64{}, map[string]float64{}
		}
		least[podFigure], most[podFigure] = c.High, c.Low // the more is left, the less is taken
	}
	return least, most
}

func (r Request) hasInterval() bool {
	least, _ := r.ends()
	return least != nil
}

// beyond says how far the load is from what was measured.
func (r Request) beyond() string {
	if r.Measured == nil || r.TPS <= r.Measured.TPS {
		return ""
	}
	return fmt.Sprintf("%.1f times the measured %.0f transactions/s: that CPUs and disks scale is assumed", r.TPS/r.Measured.TPS, r.Measured.TPS)
}

// span decides at both ends of the measured intervals; nil where there are none.
func (p Plan) span(c price.Catalogue) (*Span, error) {
	d, ok := p.Decision()
	if !ok || !p.Asked.hasInterval() {
		return nil, nil
	}
	s := &Span{}
	least, most := p.Asked.ends()
	for _, side := range []struct {
		figures map[string]float64
		end     *End
		load    *Load
	}{{least, &s.Low, &s.LowLoad}, {most, &s.High, &s.HighLoad}} {
		at, err := p.Asked.at(side.figures).decide(c)
		if err != nil {
			return nil, err
		}
		*side.end = at.end(d)
		if i := slices.IndexFunc(at.Choices, func(x Choice) bool { return x.Kind == d.Kind && x.Provider == d.Provider }); i >= 0 {
			*side.load = at.Choices[i].Load
		}
	}
	return s, nil
}

// Untuned returns the request with what the control took: its pool stays as small as it was, whatever the
// machine's memory.
func (r Request) Untuned(control Measured) Request {
	figures := maps.Clone(r.Figures)
	for name, x := range control.Figures {
		if _, measured := r.Sources[name]; measured {
			figures[name] = x
		}
	}
	r.Figures, r.FixedPool, r.Measured = figures, true, nil
	return r.filled()
}

// Unlock prices the same requirement untuned: what the decision saves by being tuned (study P1's value
// unlocked). nil where one of the two has no decision.
func (p Plan) Unlock(c price.Catalogue, untuned Request) *Value {
	d, ok := p.Decision()
	at, err := untuned.withDefaults().decide(c)
	if !ok || err != nil {
		return nil
	}
	u, ok := at.Decision()
	if !ok {
		return nil
	}
	return &Value{u.Name(), u.Bill.USDMonth, toCents(u.Bill.USDMonth - d.Bill.USDMonth), toCents(u.Bill.USDYears - d.Bill.USDYears)}
}
