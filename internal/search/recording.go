package search

import (
	"encoding/json"
	"fmt"
	"io"
)

// recordingSchema is the version of the file format.
const recordingSchema = 1

// Recording keeps what was observed of a space, to measure searches on. It is kept as JSON lines: the first
// holds the schema, where the points come from, the knobs and the start, each further one an observation.
// Values stand there by the names of their knobs, so that a file can be read without knowing their places.
type Recording struct {
	About        string // machine, server, workload, length of the trials, date
	Space        Space
	Observations []Observation
}

type recordingHead struct {
	Schema int               `json:"schema"`
	About  string            `json:"about"`
	Knobs  []Knob            `json:"knobs"`
	Start  map[string]string `json:"start"`
}

type recordingLine struct {
	At         map[string]string `json:"at"`
	Against    map[string]string `json:"against"`
	LogRatio   float64           `json:"log_ratio"`
	SE         float64           `json:"se"`
	Reference  int               `json:"reference"`
	Infeasible string            `json:"infeasible,omitempty"`
}

func (c Cost) String() string {
	switch c {
	case Dynamic:
		return "dynamic"
	case Restart:
		return "restart"
	case Reinitialise:
		return "reinitialise"
	}
	return fmt.Sprintf("cost %d", int(c))
}

// MarshalText writes a cost as a word; an error for one that is none.
func (c Cost) MarshalText() ([]byte, error) {
	if c < Dynamic || c > Reinitialise {
		return nil, fmt.Errorf("cannot write %s: no such cost", c)
	}
	return []byte(c.String()), nil
}

// Values returns a point's values by the names of the knobs.
func (s Space) Values(p Point) map[string]string {
	values := map[string]string{}
	for i, k := range s.Knobs {
		values[k.Name] = k.Levels[p[i]].Value
	}
	return values
}

// Point returns the point that has these values, one for each knob.
func (s Space) Point(values map[string]string) (Point, error) {
	if len(values) != len(s.Knobs) {
		return nil, fmt.Errorf("cannot place a point of %d values: the space has %d knobs", len(values), len(s.Knobs))
	}
	p := make(Point, len(s.Knobs))
	for i, k := range s.Knobs {
		value, ok := values[k.Name]
		if !ok {
			return nil, fmt.Errorf("cannot place a point without a value of %q", k.Name)
		}
		if p[i] = k.Place(value); p[i] < 0 {
			return nil, fmt.Errorf("cannot place a point: %q is not a level of %q", value, k.Name)
		}
	}
	return p, nil
}

// Write writes a recording. An observation that does not belong to the space is an error.
func (r Recording) Write(w io.Writer) error {
	if err := r.Space.Check(); err != nil {
		return err
	}
	lines := json.NewEncoder(w)
	err := lines.Encode(recordingHead{recordingSchema, r.About, r.Space.Knobs, r.Space.Values(r.Space.Start)})
	for _, o := range r.Observations {
		if err == nil {
			err = o.Check(r.Space)
		}
		if err == nil {
			err = lines.Encode(recordingLine{r.Space.Values(o.Point), r.Space.Values(o.Against), o.LogRatio, o.SE, o.Reference, o.Infeasible})
		}
	}
	if err != nil {
		return fmt.Errorf("cannot write the recording: %w", err)
	}
	return nil
}
