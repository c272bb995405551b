package cli

import (
	"bytes"
	"fmt"

	"david/internal/mycnf"
	"david/internal/report"
	"david/internal/result"
	"david/internal/tune"
)

// candidate is a my.cnf of the arm that a tune's confirmation had no verdict on; nil where it has one.
func candidate(d report.Data) ([]byte, error) {
	name, ok := report.Unconfirmed(d)
	if !ok {
		return nil, nil
	}
	plan, h, err := planOf(d)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	head := append([]string{"NOT CONFIRMED, and proved by neither kills nor memory: the best of short trials. On a quieter machine: david compare --arm control --arm candidate=candidate.cnf, with the load and the caps of the tune."}, report.CnfHead(d)...)
	err = mycnf.Render(&text, head, plan.Winner(h, name))
	return text.Bytes(), err
}

// changedLines returns what a tune changes of the control's own settings, as a section of its own.
func changedLines(d report.Data) ([]byte, error) {
	plan, h, err := planOf(d)
	if err != nil {
		return nil, err
	}
	lines := plan.Changed(h, d.Finish.Best)
	if len(lines) == 0 {
		return []byte("# david tune: " + report.Headline(d) + "; nothing is changed\n"), nil
	}
	var section bytes.Buffer
	err = mycnf.Render(&section, append([]string{"What david tune changes of the file above: the last line of a variable counts."}, report.CnfHead(d)...), lines)
	return section.Bytes(), err
}

// planOf is the plan of a tune on record, and what was measured by it.
func planOf(d report.Data) (tune.Plan, tune.History, error) {
	plan, ok := tune.Recorded(d.Experiment, d.Arms)
	if !ok {
		return plan, tune.History{}, fmt.Errorf("cannot read the plan of the tune in %s", d.Experiment.ID)
	}
	h := tune.History{Proofs: d.Proofs}
	h.Arms, h.Trials = result.WithoutCeilings(d.Arms, d.Trials)
	return plan, h, nil
}
