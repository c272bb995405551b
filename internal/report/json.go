package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"david/internal/price"
	"david/internal/result"
	"david/internal/stats"
)

// document writes the report as JSON: the whole store in one document, and what follows from it.
type document struct {
	Schema     int               `json:"schema"`
	Headline   string            `json:"headline"`
	Experiment result.Experiment `json:"experiment"`
	Arms       []armDocument     `json:"arms"`
	Trials     []result.Trial    `json:"trials"` // see fill
	Finish     *result.Finish    `json:"finish"` // null: running or interrupted
	// Replaced counts the trials that were set aside, as their blocks were cut short and run again.
	Replaced int       `json:"trials_set_aside,omitempty"`
	Gates    []gateRow `json:"gates"`
	// Comparisons hold a comparison's verdicts, one for each workload. They stand in Arms as well, and the first
	// one's noise floor, as a share (0.021 is 2.1 %), and its number of blocks here.
	Comparisons []stats.Comparison `json:"comparisons"`
	NoiseFloor  *float64           `json:"noise_floor"` // null: the control was not run against itself, or nothing is compared
	Noise       *stats.NoiseFloor  `json:"noise,omitempty"`
	Blocks      *int               `json:"blocks,omitempty"`
	// LightSpeed says how near a bench's server, or a tune's best, comes to its ceiling; one for each workload.
	LightSpeed []stats.LightSpeed `json:"light_speed,omitempty"`
	// Pruned and Proofs are a tune's: what its lines are worth, and what was proved of who was to be handed
	// over.
	Pruned   []result.Worth   `json:"pruned,omitempty"`
	Proofs   []result.Proof   `json:"proofs,omitempty"`
	Searched *result.Searched `json:"searched,omitempty"`
	// Tune holds what the phases of a tune found; null for others.
	Tune *tuneDocument `json:"tune,omitempty"`
	// Live is a tune of a running server; null for others.
	Live *liveDocument `json:"live,omitempty"`
	// UnsafeBaselines are the unsafe arms of a race, which are in no verdict.
	UnsafeBaselines []unsafeBaseline `json:"as_shipped,omitempty"`
	// Price holds what the throughput costs; null where the machine's price is not known.
	Price *price.Quote `json:"price,omitempty"`
}

// Figures holds what a comparison says about an arm.
type Figures = stats.Arm

// armDocument writes an arm and, where it was compared, what the blocks of one workload say about it; under
// several it has an entry for each, workload by workload. Both have a name and a title: the ones outside
// stand for them.
type armDocument struct {
	result.Arm
	*Figures
	Name  string `json:"name"`
	Title string `json:"title"`
	// Workload, Threads and Rate (transactions/s offered; 0: closed loop) are those of its figures.
	Workload string  `json:"workload,omitempty"`
	Threads  int     `json:"threads,omitempty"`
	Rate     float64 `json:"rate,omitempty"`
}

// hole is where the trials go. No text can hold it, as quotes in texts are escaped, and nothing else of that name is a list.
const hole = `"trials":[]`

// JSON writes exactly one JSON document, on one line.
func JSON(w io.Writer, d Data) error {
	b, err := Build(d).encode()
	if err != nil {
		return err
	}
	if err := d.fill(w, b); err != nil {
		return err
	}
	return flush(w, bytes.NewBufferString("\n"))
}

// fill writes a text with the trials in the place of its hole, one after the other, as all of them take much room.
func (d Data) fill(w io.Writer, text []byte) error {
	before, after, _ := bytes.Cut(text, []byte(hole))
	if err := flush(w, bytes.NewBuffer(append(before[:len(before):len(before)], hole[:len(hole)-1]...))); err != nil {
		return err
	}
	for i, t := range d.Trials {
		var err error
		if d.Full != nil {
			if t, err = d.Full(t); err != nil {
				return err
			}
		}
		b, err := json.Marshal(t)
		if err != nil {
			return fmt.Errorf("cannot encode trial %s: %w", t.ID, err)
		}
		if i > 0 {
			b = append([]byte{','}, b...)
		}
		if err := flush(w, bytes.NewBuffer(b)); err != nil {
			return err
		}
	}
	return flush(w, bytes.NewBuffer(append([]byte{']'}, after...)))
}

// encode makes the document, with a hole for the trials. encoding/json escapes <, > and &, so that it can stand in HTML as
// it is.
func (r Report) encode() ([]byte, error) {
	d := r.data
	doc := document{
		Schema: result.Schema, Headline: r.Headline.String(), Experiment: d.Experiment, Replaced: d.Replaced, Finish: d.Finish, Price: d.Price, Gates: gateRows(d.Trials),
		Arms: []armDocument{}, Trials: []result.Trial{}, Comparisons: []stats.Comparison{},
		UnsafeBaselines: r.unsafeBaselines, Pruned: d.Pruned, Proofs: d.Proofs, Searched: d.Searched, Tune: r.tune, Live: r.live, LightSpeed: r.light,
	}
	for _, a := range d.Arms {
		doc.Arms = append(doc.Arms, armDocument{Arm: a, Name: a.Name, Title: a.Title})
	}
	doc.compare(r.comparisons)
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot encode experiment %s: %w", d.Experiment.ID, err)
	}
	return b, nil
}

// compare adds the comparisons, and the first one where those who want a single answer look for it.
func (doc *document) compare(list []stats.Comparison) {
	if len(list) == 0 {
		return
	}
	doc.Comparisons = list
	first := list[0]
	doc.Noise, doc.Blocks = &first.NoiseFloor, &first.Blocks
	if first.NoiseFloor.Pairs > 0 {
		doc.NoiseFloor = &first.NoiseFloor.Floor
	}
	all := doc.Arms
	doc.Arms = nil
	for i, c := range list {
		for _, a := range all {
			if i > 0 {
				a.Effective = nil // hundreds of variables, said once
			}
			doc.Arms = append(doc.Arms, a.under(c))
		}
	}
}

// under adds what a comparison says of the arm.
func (a armDocument) under(c stats.Comparison) armDocument {
	a.Workload, a.Threads, a.Rate = c.Workload.Name, c.Workload.Threads, c.Workload.Rate
	if n := slices.IndexFunc(c.Arms, func(own stats.Arm) bool { return own.Name == a.Name }); n >= 0 {
		a.Figures = &c.Arms[n]
	}
	return a
}
