package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"david/internal/plain"
	"david/internal/result"
	"david/internal/stats"
)

// Prices are what layouts cost: US$ a month, with a "?" where that is uncertain, by the layout's name; and what
// several volumes give for the price of one.
type Prices struct {
	Month   map[string]string
	Bargain string
}

// LayoutRow tells what one layout gave. Ratios are to the first layout, of the same rounds; nil and zero where
// nothing was measured.
type LayoutRow struct {
	Name     string     `json:"name"`
	Title    string     `json:"title"`
	Volumes  int        `json:"volumes"`
	Caps     string     `json:"caps"`
	Devices  []string   `json:"devices"`
	Fio      []FioRow   `json:"fio"`
	Database *stats.Arm `json:"database"` // null: no server ran on it
	USDMonth string     `json:"usd_month,omitempty"`
}

// FioRow tells how many operations a second fio got done of one kind.
type FioRow struct {
	Way      string         `json:"way"`
	Bytes    int            `json:"bytes"`
	Sync     bool           `json:"fsync"`
	Unsynced bool           `json:"unsynced,omitempty"` // held against the first layout's writes that are not
	IOPS     float64        `json:"iops"`               // geometric mean of the rounds
	Ratio    float64        `json:"ratio"`              // to the first layout's
	Interval stats.Interval `json:"interval"`           // of Ratio
	Rounds   int            `json:"rounds"`
}

// layoutDocument is the JSON document of a measurement of layouts.
type layoutDocument struct {
	Schema     int           `json:"schema"`
	Experiment string        `json:"experiment"`
	Says       []string      `json:"says"` // the lines that decide
	Layouts    []LayoutRow   `json:"layouts"`
	Bargain    string        `json:"bargain"`
	Notes      []string      `json:"notes"`
	Server     result.Server `json:"server"`
}

// layoutRows are those of the arms that have a layout.
func layoutRows(d Data, p Prices) (rows []LayoutRow) {
	compared := stats.Comparison{}
	if list := comparisons(d); len(list) > 0 {
		compared = list[0]
	}
	var first *result.Layout
	for _, a := range d.Arms {
		if a.Layout == nil {
			continue
		}
		if first == nil {
			first = a.Layout
		}
		row := LayoutRow{Name: a.Name, Title: a.Layout.Text(), Volumes: a.Layout.Volumes, Caps: caps(a.Caps), Devices: a.Layout.Devices, Fio: fioRows(a.Layout, first), USDMonth: p.Month[a.Name]}
		if figures := compared.Of(a.Name); figures.Name != "" {
			row.Database = &figures
		} else if compared.Control == "" {
			row.Database = alone(a.Name, d.Trials)
		}
		rows = append(rows, row)
	}
	return rows
}

// alone tells of the only layout's server, with which nothing is compared; nil where no trial counts.
func alone(arm string, trials []result.Trial) *stats.Arm {
	var tps, p95 []float64
	for _, t := range trials {
		if ok, _ := t.Valid(); ok && t.Arm == arm {
			tps, p95 = append(tps, t.TPS), append(p95, t.Latency.P95)
		}
	}
	if len(tps) == 0 {
		return nil
	}
	return &stats.Arm{Name: arm, Trials: len(tps), TPS: stats.GeoMean(tps), P95: stats.GeoMean(p95)}
}

func fioRows(l, first *result.Layout) (rows []FioRow) {
	for _, r := range l.Fio {
		row := FioRow{Way: r.Way, Bytes: r.Bytes, Sync: r.Sync, Unsynced: r.Unsynced, IOPS: stats.GeoMean(r.IOPS), Rounds: len(r.IOPS)}
		base, _ := first.Rate(r.Way, r.Bytes, r.Sync)
		if len(base.IOPS) == len(r.IOPS) && len(r.IOPS) > 0 {
			var ratios []float64
			for i := range r.IOPS {
				ratios = append(ratios, r.IOPS[i]/base.IOPS[i])
			}
			row.Ratio, row.Interval = stats.GeoMean(ratios), stats.RatioInterval(ratios)
			if l == first {
				row.Interval = stats.Interval{}
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// fio finds the row of a kind; the zero row where there is none.
func (r LayoutRow) fio(way string, bytes int, sync bool) FioRow {
	i := slices.IndexFunc(r.Fio, func(f FioRow) bool { return f.Way == way && f.Bytes == bytes && f.Sync == sync && !f.Unsynced })
	if i < 0 {
		return FioRow{}
	}
	return r.Fio[i]
}

const innodbPage = 16 << 10

func (r LayoutRow) reads() FioRow  { return r.fio(result.RandomRead, innodbPage, false) }
func (r LayoutRow) writes() FioRow { return r.fio(result.RandomWrite, innodbPage, false) }
func (r LayoutRow) syncs() FioRow  { return r.fio(result.RandomWrite, innodbPage, true) }

// unsynced are the writes that nobody synced; the zero row where there were none.
func (r LayoutRow) unsynced() FioRow {
	i := slices.IndexFunc(r.Fio, func(f FioRow) bool { return f.Unsynced })
	if i < 0 {
		return FioRow{}
	}
	return r.Fio[i]
}

// layoutTable has a row for each layout.
func layoutTable(rows []LayoutRow) table {
	to := right("to " + rows[0].Name + " [95 %]")
	t := table{"Layouts", []column{left("layout"), right("volumes"), right("reads/s"), to, right("writes/s"), to, right("with fsync"),
		right("tps [95 %]"), right("ratio [95 %]"), right("p95, ms"), right("US$/month")}, nil}
	unsynced := slices.ContainsFunc(rows, func(r LayoutRow) bool { return r.unsynced().Rounds > 0 })
	if unsynced {
		t.Cols = append(t.Cols, right("never synced"), to)
	}
	for _, r := range rows {
		tps, ratio, p95 := none, none, none
		if a := r.Database; a != nil && a.TPS > 0 {
			tps, ratio, p95 = between(a.TPS, a.TPSInterval), ratioCell(*a), brief(a.P95)
		}
		cells := []string{r.Name, fmt.Sprint(r.Volumes), operations(r.reads()), r.reads().ratio(), operations(r.writes()), r.writes().ratio(), operations(r.syncs()),
			tps, ratio, p95, cmp.Or(r.USDMonth, none)}
		if unsynced {
			cells = append(cells, operations(r.unsynced()), r.unsynced().ratio())
		}
		t = t.add(cells...)
	}
	return t
}

func operations(f FioRow) string {
	if f.Rounds == 0 {
		return none
	}
	return round(f.IOPS)
}

func (f FioRow) ratio() string {
	switch {
	case f.Ratio == 0:
		return none
	case f.Interval == (stats.Interval{}):
		return fixed(f.Ratio, 2)
	}
	return fmt.Sprintf("%s [%s, %s]", fixed(f.Ratio, 2), fixed(f.Interval[0], 2), fixed(f.Interval[1], 2))
}

// layoutSays are the lines that decide: what was found, what it costs, how sure that is, what was measured, what
// next.
func layoutSays(d Data, rows []LayoutRow, p Prices) []string {
	best := bestOf(rows)
	return []string{found(rows), p.Bargain, howSure(rows), measuredOn(d), "next: " + next(d, best, rows[0])}
}

// bestOf is the layout that gives the most beyond doubt; the first where none does.
func bestOf(rows []LayoutRow) LayoutRow {
	best := rows[0]
	for _, r := range rows[1:] {
		if r.pays() && cmp.Or(cmp.Compare(r.gain(), best.gain()), cmp.Compare(r.writes().Ratio, best.writes().Ratio)) > 0 {
			best = r
		}
	}
	return best
}

// pays tells whether a layout gives more than the first, beyond doubt: the database's throughput, or fio's reads
// or writes where that was not compared.
func (r LayoutRow) pays() bool {
	if r.Database != nil && r.Database.Verdict != "" && r.Database.Verdict != stats.Invalid {
		return r.Database.Verdict == stats.Faster
	}
	return r.writes().Interval[0] > 1 || r.reads().Interval[0] > 1
}

// gain is what a layout is chosen by: the database's throughput; 0 where that was not compared.
func (r LayoutRow) gain() float64 {
	if r.Database == nil {
		return 0
	}
	return r.Database.Ratio
}

// found says which layout gives most.
func found(rows []LayoutRow) string {
	best, first := bestOf(rows), rows[0]
	switch {
	case len(rows) == 1:
		return fmt.Sprintf("found: %s gives %s", first.Name, first.absolute())
	case best.Name == first.Name:
		return fmt.Sprintf("found: nothing is surely faster than %s: %s", first.Name, first.absolute())
	}
	text := fmt.Sprintf("found: %s gives", best.Name)
	if a := best.Database; a != nil && a.Ratio > 0 {
		text += fmt.Sprintf(" %sx %s's transactions/s%s", fixed(a.Ratio, 2), first.Name, bounds(a.Interval))
	}
	if r := best.reads(); r.Ratio > 0 {
		text += fmt.Sprintf("%s %sx its random reads%s, %sx its writes%s", also(best), fixed(r.Ratio, 2), bounds(r.Interval), fixed(best.writes().Ratio, 2), bounds(best.writes().Interval))
	}
	return text
}

func also(r LayoutRow) string {
	if r.Database != nil && r.Database.Ratio > 0 {
		return ", and of fio"
	}
	return ""
}

func bounds(i stats.Interval) string {
	if i == (stats.Interval{}) {
		return " (no interval)"
	}
	return fmt.Sprintf(" (%s to %s)", fixed(i[0], 2), fixed(i[1], 2))
}

// absolute is what it gave by itself.
func (r LayoutRow) absolute() string {
	text := fmt.Sprintf("%s reads/s, %s writes/s", operations(r.reads()), operations(r.writes()))
	if r.Database != nil && r.Database.TPS > 0 {
		text += ", " + brief(r.Database.TPS) + " transactions/s"
	}
	return text
}

func howSure(rows []LayoutRow) string {
	text := fmt.Sprintf("how sure: intervals of 95 %%; fio in %s", plural(rows[0].reads().Rounds, "round"))
	for _, r := range rows {
		if a := r.Database; a != nil && a.Verdict != stats.IsControl && a.Pairs > 0 {
			return text + ", the database in " + restsOn(*a)
		}
	}
	return text + ", the database not compared"
}

// fioAlone tells that no server was to run on the layouts.
func fioAlone(d Data) bool { return len(d.Experiment.Workloads) == 0 }

// measuredOn says what stood in for volumes, and what ran on it.
func measuredOn(d Data) string {
	var parts, disks []string
	image := ""
	for _, a := range d.Arms {
		switch l := a.Layout; {
		case l == nil:
		case l.Ceph != nil:
			image = fmt.Sprintf("%s: an image of the Ceph pool %s, not capped", a.Name, l.Ceph.Pool)
		case len(l.Disks) > 0:
			disks = append(disks, l.Disks...)
		default:
			parts = []string{fmt.Sprintf("files behind loop devices on %s stand in for volumes, each capped (%s)", diskOf(d), caps(a.Caps))}
		}
	}
	if len(disks) > 0 {
		parts = append(parts, "the disks "+strings.Join(disks, ", "))
	}
	if image != "" {
		parts = append(parts, image)
	}
	if !fioAlone(d) {
		parts = append(parts, serverName(d.Experiment.Server)+", "+short(d.Experiment.Workloads[0]))
	} else {
		parts = append(parts, "fio alone, no database was measured (--fio-only)")
	}
	return "measured: " + strings.Join(parts, "; ")
}

func diskOf(d Data) string {
	if disk := d.Experiment.Host.Data.Disk; disk != "" && !strings.HasPrefix(disk, "loop") {
		return disk
	}
	return "one disk"
}

func next(d Data, best, first LayoutRow) string {
	switch {
	case len(d.Arms) > 1 && fioAlone(d):
		return "what a server makes of them: the same without --fio-only"
	case len(d.Arms) < 2 || best.Database == nil:
		return "hold it against another layout (--layout one,stripe4)"
	case best.Name == first.Name:
		return "leave it at " + first.Name + ", which is the simplest; what else holds it up: david explain " + d.Experiment.ID
	}
	return "the commands that make it, and what it cannot survive: david storage plan"
}

// LayoutsBrief writes the first screen of layouts that were measured, a sentence each; Layouts has the rest.
func LayoutsBrief(w io.Writer, d Data, p Prices) error {
	rows := layoutRows(d, p)
	b := terminal{columns: columns}
	best := bestOf(rows)
	b.paragraph(strings.TrimPrefix(found(rows), "found: ") + "; " + p.Bargain)
	sure := ""
	if !fioAlone(d) { // whose rounds no gate watches
		sure = "; " + gatesSaid(d)
	}
	b.labelled("how sure", strings.TrimPrefix(howSure(rows), "how sure: ")+sure)
	b.labelled("rests on", strings.Join(slices.Concat([]string{strings.TrimPrefix(measuredOn(d), "measured: ")}, leftOut(d)), "; "))
	b.labelled("written", "the record "+d.Experiment.ID)
	b.labelled("next", fmt.Sprintf("%s; `david show %s` has every figure", next(d, best, rows[0]), d.Experiment.ID))
	return b.flush(w)
}

// leftOut are the notes that tell which layouts could not be built here.
func leftOut(d Data) (notes []string) {
	for _, n := range d.Experiment.Notes {
		if strings.Contains(n, ": unavailable here: ") {
			notes = append(notes, n)
		}
	}
	return notes
}

// Layouts writes what was found of layouts: the lines that decide, one table, and what must be read with them.
func Layouts(w io.Writer, d Data, p Prices) error {
	rows := layoutRows(d, p)
	b := terminal{columns: columns}
	for _, line := range layoutSays(d, rows, p) {
		label, sentence, _ := strings.Cut(line, ": ") // each has its label
		b.labelled(label, sentence)
	}
	b.WriteString("\n")
	b.fit(layoutTable(rows))
	b.WriteString("\n")
	for _, r := range rows {
		b.paragraph(fmt.Sprintf("%s: %s", r.Name, r.Title))
	}
	failedGates(&b, d.Trials)
	for _, n := range layoutNotes(d) {
		b.paragraph(n)
	}
	b.paragraph(plain.Line(d.Experiment.ID))
	return b.flush(w)
}

// layoutNotes must be read with the figures.
func layoutNotes(d Data) []string {
	list := slices.Clone(d.Experiment.Notes)
	for _, c := range comparisons(d) {
		list = append(list, compareRemarks(c)...)
	}
	return list
}

// LayoutsJSON writes the same as one JSON document.
func LayoutsJSON(w io.Writer, d Data, p Prices) error {
	rows := layoutRows(d, p)
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	doc := layoutDocument{result.Schema, d.Experiment.ID, layoutSays(d, rows, p), rows, p.Bargain, layoutNotes(d), d.Experiment.Server}
	if err := enc.Encode(doc); err != nil {
		return err
	}
	return flush(w, &b)
}

// layoutSection shows the layouts of a comparison's arms; an empty section where there are none.
func layoutSection(d Data) Section {
	rows := layoutRows(d, Prices{})
	if len(rows) == 0 {
		return Section{}
	}
	t := layoutTable(rows)
	return Section{
		text:     func(b *terminal) { b.fit(t); b.WriteString("\n") },
		markdown: func(b *bytes.Buffer) { section(b, "What fio got out of the layouts", t) },
	}
}
