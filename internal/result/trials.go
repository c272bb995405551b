package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
)

// AppendTrial stores a trial: its points in a file of their own first, then one line of trials.jsonl, written
// at once and synced. When it returns nil the trial is there after a crash; when david dies in the middle it
// is not, and the piece of a line that may be left is cut off by the next append. The schema is set.
//
// A trial with the ID of an earlier one replaces it: a block cut short is run again whole.
func (s *Store) AppendTrial(t Trial) error {
	if !fileName.MatchString(t.ID) {
		return fmt.Errorf("cannot store trial %q: an ID holds letters, digits, dot, dash and underscore only", t.ID)
	}
	if err := errors.Join(s.Hold(), s.reopen()); err != nil {
		return err
	}
	if err := errors.Join(putLines(s.pointsPath(t.ID), t.ID, t.Points), putLines(s.samplesPath(t.ID), t.ID, t.Samples)); err != nil {
		return fmt.Errorf("cannot store the points of trial %s: %w", t.ID, err)
	}
	whole := t
	t.Schema, t.Points, t.Samples = Schema, nil, nil
	line, err := json.Marshal(t)
	if err == nil {
		err = s.appendLine(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("cannot store trial %s: %w", t.ID, err)
	}
	if s.own == nil {
		s.own = map[string]bool{}
	}
	s.own[t.ID] = true
	return s.tell(whole)
}

// Own tells whether this process has stored the trial of an ID: dates cannot tell, as the clock may have been set.
func (s *Store) Own(id string) bool { return s.own[id] }

func (s *Store) appendLine(line []byte) (err error) {
	f, err := os.OpenFile(s.path(trialsFile), os.O_RDWR|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := s.cutTorn(f); err != nil {
		return err
	}
	n, err := f.Write(line)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		s.end += int64(n)
	}
	return err
}

// cutTorn leaves f ending with a whole line and s.end at its end. Only a file that is not as long as this
// store left it has to be read.
func (s *Store) cutTorn(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.Size() == s.end {
		return err
	}
	end, torn, err := eachLine(f, func(int, int64, []byte) error { return nil })
	if err != nil {
		return err
	}
	s.end = end
	if !torn {
		return nil
	}
	return f.Truncate(s.end)
}

// Trials returns the trials in the order in which they ended, without their points. A torn last line is left
// out; a broken line elsewhere is an error that names it.
func (s *Store) Trials() (trials []Trial, err error) {
	_, err = s.lines(func(_ int, _ int64, line []byte) error {
		var t Trial
		err := decodeLine(s.dir, line, &t)
		trials = append(trials, t)
		return err
	})
	if err != nil {
		return nil, err
	}
	return latest(trials), nil
}

// latest keeps the last of several trials of one ID, in its place.
func latest(trials []Trial) []Trial {
	last := make(map[string]int, len(trials))
	for i, t := range trials {
		last[t.ID] = i
	}
	var kept []Trial
	for i, t := range trials {
		if last[t.ID] == i {
			kept = append(kept, t)
		}
	}
	return kept
}

// pointsHead describes the first line of a file of points.
type pointsHead struct {
	Schema int    `json:"schema"`
	Trial  string `json:"trial"`
}

func (s *Store) pointsPath(id string) string  { return s.path(pointsDir, id+".jsonl") }
func (s *Store) samplesPath(id string) string { return s.path(pointsDir, id+".samples.jsonl") }

// putLines writes a file of a head and one value a line.
func putLines[T any](path, id string, values []T) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	if err := enc.Encode(pointsHead{Schema, id}); err != nil {
		return err
	}
	for _, v := range values {
		if err := enc.Encode(v); err != nil {
			return err
		}
	}
	return writeFile(path, b.Bytes())
}

// WithPoints returns the trials with their one-second points and samples attached; trials itself stays as it
// is.
func (s *Store) WithPoints(trials []Trial) (full []Trial, err error) {
	full = slices.Clone(trials)
	for i, t := range trials {
		if full[i].Points, err = s.points(t.ID); err != nil {
			return nil, err
		}
		if full[i].Samples, err = s.samples(t.ID); err != nil {
			return nil, err
		}
	}
	return full, nil
}
