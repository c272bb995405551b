package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"david/internal/result"
	"david/internal/stats"
)

// document is the report as JSON: the whole store in one document, and what follows from it.
type document struct {
	Schema     int               `json:"schema"`
	Headline   string            `json:"headline"`
	Experiment result.Experiment `json:"experiment"`
	Arms       []result.Arm      `json:"arms"`
	Trials     []result.Trial    `json:"trials"`
	Ladder     []stats.Row       `json:"ladder"` // of a tune; empty for a bench
	Finish     *result.Finish    `json:"finish"` // null: running or interrupted
}

// JSON writes exactly one JSON document, on one line.
func JSON(w io.Writer, d Data) error {
	b, err := encode(d)
	if err != nil {
		return err
	}
	return flush(w, bytes.NewBuffer(append(b, '\n')))
}

// encode makes the document. encoding/json escapes <, > and &, so that it can stand in HTML as it is.
func encode(d Data) ([]byte, error) {
	doc := document{
		Schema: result.Schema, Headline: Headline(d), Experiment: d.Experiment, Finish: d.Finish,
		Arms: append([]result.Arm{}, d.Arms...), Trials: append([]result.Trial{}, d.Trials...), Ladder: []stats.Row{},
	}
	if tuned(d) {
		doc.Ladder = append(doc.Ladder, stats.Ladder(d.Arms, d.Trials)...)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("cannot encode experiment %s: %w", d.Experiment.ID, err)
	}
	return b, nil
}
