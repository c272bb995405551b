package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
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
	if err := s.reopen(); err != nil {
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
	b, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	s.end = int64(whole(b))
	if s.end == info.Size() {
		return nil
	}
	return f.Truncate(s.end)
}

// whole returns how many bytes at the beginning of b are whole lines. What follows is a torn line: one
// without its end, or, as some filesystems leave it after a power cut, one whose pages did not all reach the
// disk and read as zeros.
func whole(b []byte) int {
	end := bytes.LastIndexByte(b, '\n') + 1
	if end == 0 {
		return 0
	}
	begin := bytes.LastIndexByte(b[:end-1], '\n') + 1
	if bytes.IndexByte(b[begin:end], 0) >= 0 {
		return begin
	}
	return end
}

// Trials returns the trials in the order in which they ended, without their points. A torn last line is left
// out; a broken line elsewhere is an error that names it.
func (s *Store) Trials() ([]Trial, error) {
	trials, err := s.lines()
	return latest(trials), err
}

// Replaced returns how many trials were replaced by a later one of the same ID: those of blocks that were cut
// short, and run again whole.
func (s *Store) Replaced() (int, error) {
	trials, err := s.lines()
	return len(trials) - len(latest(trials)), err
}

// lines returns every trial that was stored, those replaced included.
func (s *Store) lines() ([]Trial, error) {
	b, err := os.ReadFile(s.path(trialsFile))
	if err != nil {
		return nil, fmt.Errorf("cannot read the trials: %w", err)
	}
	trials, err := parseTrials(s.dir, b)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", s.path(trialsFile), err)
	}
	return trials, nil
}

func parseTrials(dir string, b []byte) ([]Trial, error) {
	var trials []Trial
	b = b[:whole(b)]
	for n := 1; len(b) > 0; n++ {
		var line []byte
		line, b, _ = bytes.Cut(b, []byte("\n"))
		var t Trial
		if err := decodeLine(dir, line, &t); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// current says how every line of this schema begins, as written by AppendTrial; other lines are looked at
// twice.
var current = []byte(`{"schema":` + strconv.Itoa(Schema) + `,`)

func decodeLine(dir string, line []byte, v any) error {
	if bytes.HasPrefix(line, current) {
		return json.Unmarshal(line, v)
	}
	return decode(dir, line, v)
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
func (s *Store) WithPoints(trials []Trial) ([]Trial, error) {
	full := make([]Trial, len(trials))
	for i, t := range trials {
		if !fileName.MatchString(t.ID) {
			return nil, fmt.Errorf("%q is no trial's ID", t.ID)
		}
		points, err := getLines[Point](s.dir, s.pointsPath(t.ID))
		if err != nil {
			return nil, fmt.Errorf("cannot read the points of trial %s: %w", t.ID, err)
		}
		samples, err := getLines[Sample](s.dir, s.samplesPath(t.ID))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // trials of an earlier david have none
			return nil, fmt.Errorf("cannot read the samples of trial %s: %w", t.ID, err)
		}
		t.Points, t.Samples = points, samples
		full[i] = t
	}
	return full, nil
}

// getLines reads what putLines wrote.
func getLines[T any](dir, path string) ([]T, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	head, rest, _ := bytes.Cut(b, []byte("\n"))
	if err := decodeLine(dir, head, new(pointsHead)); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(rest) == 0 {
		return nil, nil
	}
	values := make([]T, bytes.Count(rest, []byte("\n")))
	dec := json.NewDecoder(bytes.NewReader(rest))
	for i := range values {
		if err := dec.Decode(&values[i]); err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
	}
	return values, nil
}
