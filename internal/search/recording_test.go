package search

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// UnmarshalText reads what MarshalText writes.
func (c *Cost) UnmarshalText(text []byte) error {
	for _, known := range []Cost{Dynamic, Restart, Reinitialise} {
		if known.String() == string(text) {
			*c = known
			return nil
		}
	}
	return fmt.Errorf("unknown cost %q: dynamic, restart or reinitialise", text)
}

// ReadRecording reads what Write writes. Errors name the line; unknown keys are errors.
func ReadRecording(in io.Reader) (Recording, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var r Recording
	for n := 1; lines.Scan(); n++ {
		read := r.line
		if n == 1 {
			read = r.head
		}
		if err := read(lines.Bytes()); err != nil {
			return Recording{}, fmt.Errorf("cannot read line %d of the recording: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return Recording{}, fmt.Errorf("cannot read the recording: %w", err)
	}
	if len(r.Space.Knobs) == 0 {
		return Recording{}, errors.New("cannot read the recording: it is empty")
	}
	return r, nil
}

func (r *Recording) head(text []byte) (err error) {
	var h recordingHead
	if err := strict(text, &h); err != nil {
		return err
	}
	if h.Schema != recordingSchema {
		return fmt.Errorf("schema %d is not known, %d is", h.Schema, recordingSchema)
	}
	r.About, r.Space.Knobs = h.About, h.Knobs
	if r.Space.Start, err = r.Space.Point(h.Start); err != nil {
		return err
	}
	return r.Space.Check()
}

func (r *Recording) line(text []byte) (err error) {
	var l recordingLine
	if err := strict(text, &l); err != nil {
		return err
	}
	o := Observation{LogRatio: l.LogRatio, SE: l.SE, Reference: l.Reference, Infeasible: l.Infeasible}
	if o.Point, err = r.Space.Point(l.At); err != nil {
		return err
	}
	if o.Against, err = r.Space.Point(l.Against); err != nil {
		return err
	}
	r.Observations = append(r.Observations, o)
	return o.Check(r.Space)
}

func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if d.More() {
		return errors.New("more than one value on it")
	}
	return nil
}
