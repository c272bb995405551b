package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strconv"

	"david/internal/input"
)

// What is read of a store at most. A trial's line has some 20 KB, an arm's file 60 KB.
const (
	longestFile = 1 << 20 // bytes of any of its JSON files
	longestLine = 1 << 20 // bytes of a trial, and of a second of it
)

// ErrRoom marks a record that takes more memory than its reader gives it.
var ErrRoom = errors.New("takes more memory than david gives to a record")

// room counts the bytes that a record takes in memory.
type room struct {
	left    int64
	bounded bool
}

// much is how many bytes of one part of a record leave more behind, of decoding them, than the collector of garbage is to find
// out by itself: it may be late where the CPUs are busy.
const much = 1 << 20

// take books some bytes, and is an error where there are no more.
func (r *room) take(dir string, bytes int) error {
	r.left -= int64(bytes)
	if r.bounded && bytes > much {
		runtime.GC()
	}
	if r.bounded && r.left < 0 {
		return fmt.Errorf("%s %w", dir, ErrRoom)
	}
	return nil
}

// OpenWithin is Open for who only reads, and has so many bytes of memory for what Arms and Figures return: beyond them they
// fail with ErrRoom.
func OpenWithin(dir string, bytes int64) (*Store, error) {
	s, err := Open(dir)
	if err == nil {
		s.room = room{left: bytes, bounded: true}
	}
	return s, err
}

// lineReader reads whole lines, and knows how many bytes they have.
type lineReader struct {
	in  *bufio.Reader
	at  int64 // where the next line begins
	buf []byte
}

// next returns the next line with its end, which is good until it is called again; without one where the text ends in it.
func (l *lineReader) next() (line []byte, err error) {
	l.buf = l.buf[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		l.buf = append(l.buf, part...)
		if len(l.buf) > longestLine {
			return nil, fmt.Errorf("a line is longer than the %d MiB that david reads", longestLine>>20)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		l.at += int64(len(l.buf))
		return l.buf, err
	}
}

// eachLine gives use every whole line of trials.jsonl with its number and its place, without its end. It returns where the
// last of them ends, and whether something follows: a torn line is one without its end, or, as some filesystems leave it
// after a power cut, one whose pages did not all reach the disk and read as zeros.
func eachLine(r io.Reader, use func(n int, at int64, line []byte) error) (end int64, torn bool, err error) {
	in := lineReader{in: bufio.NewReaderSize(r, 64<<10)}
	var before []byte // the line before, of which it is not known yet whether it is the last
	for n := 0; ; n++ {
		at := in.at
		line, err := in.next()
		if err != nil && err != io.EOF {
			return end, false, fmt.Errorf("line %d: %w", n+1, err)
		}
		last := err == io.EOF
		if n > 0 && !(last && bytes.IndexByte(before, 0) >= 0) {
			if err := use(n, end, bytes.TrimSuffix(before, []byte("\n"))); err != nil {
				return end, false, fmt.Errorf("line %d: %w", n, err)
			}
			end += int64(len(before))
		}
		if last {
			return end, at+int64(len(line)) > end, nil
		}
		before = append(before[:0], line...)
	}
}

// lines gives use every line of the store's trials.
func (s *Store) lines(use func(n int, at int64, line []byte) error) (torn bool, err error) {
	f, _, err := input.Open(s.path(trialsFile))
	if err != nil {
		return false, fmt.Errorf("cannot read the trials: %w", err)
	}
	defer f.Close() // it is only read
	if _, torn, err = eachLine(f, use); err != nil {
		return false, fmt.Errorf("cannot read %s: %w", s.path(trialsFile), err)
	}
	return torn, nil
}

// decodeLine decodes a line of the store in dir.
func decodeLine(dir string, line []byte, v any) error {
	if err := input.Document("it", line); err != nil {
		return err
	}
	if bytes.HasPrefix(line, current()) {
		return json.Unmarshal(line, v)
	}
	return decode(dir, line, v)
}

// current says how every line of this schema begins, as written by AppendTrial; other lines are looked at twice.
func current() []byte { return []byte(`{"schema":` + strconv.Itoa(Schema) + `,`) }

// Figures returns the trials as Trials does, with their one-second points, and without what takes most room and only
// Full gives: counters, the profile, samples. replaced is how many were replaced by a later one of the same ID: those of
// blocks that were cut short, and run again whole.
func (s *Store) Figures() (trials []Trial, replaced int, err error) {
	s.places = map[string]int64{}
	_, err = s.lines(func(_ int, at int64, line []byte) error {
		var t Trial
		if err := decodeLine(s.dir, line, &t); err != nil {
			return err
		}
		t.Counters, t.Profile = nil, nil
		s.places[t.ID] = at
		trials = append(trials, t)
		return s.room.take(s.dir, t.bytes())
	})
	if err != nil {
		return nil, 0, err
	}
	all := len(trials)
	trials = latest(trials)
	for i, t := range trials {
		if trials[i].Points, err = s.points(t.ID); err != nil {
			return nil, 0, err
		}
	}
	return trials, all - len(trials), nil
}

// bytes is about what a trial without its points takes in memory.
func (t Trial) bytes() int {
	n := 1500 + 16*cap(t.Histogram) + 56*cap(t.Clients) + len(t.ID) + len(t.Arm) + len(t.EndedEarly)
	for _, g := range t.Gates {
		n += 64 + len(g.Name) + len(g.Detail)
	}
	for _, w := range t.Warnings {
		n += 64 + len(w.Kind) + len(w.Text)
	}
	for _, list := range [][]string{t.Unsafe, t.Sampling.Missing} {
		for _, text := range list {
			n += 32 + len(text)
		}
	}
	return n
}

// Full returns a trial of Figures with all that is stored of it.
func (s *Store) Full(t Trial) (Trial, error) {
	at, ok := s.places[t.ID]
	if !ok {
		return t, fmt.Errorf("cannot read trial %q: the store in %s has none of that ID", t.ID, s.dir)
	}
	f, _, err := input.Open(s.path(trialsFile))
	if err != nil {
		return t, fmt.Errorf("cannot read the trials: %w", err)
	}
	defer f.Close() // it is only read
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		return t, fmt.Errorf("cannot read the trials: %w", err)
	}
	in := lineReader{in: bufio.NewReader(f)}
	line, err := in.next()
	var whole Trial
	if err == nil {
		err = decodeLine(s.dir, line, &whole)
	}
	if err != nil {
		return t, fmt.Errorf("cannot read trial %s: %w", t.ID, err)
	}
	whole.Points = t.Points
	whole.Samples, err = s.samples(t.ID)
	return whole, err
}

// points reads a trial's seconds.
func (s *Store) points(id string) ([]Point, error) {
	points, err := getLines[Point](s, s.pointsPath, id, func([]byte) int { return 80 })
	if err != nil {
		return nil, fmt.Errorf("cannot read the points of trial %s: %w", id, err)
	}
	return points, nil
}

// samples reads what was read beside a trial; trials of an earlier david have none. They are held for one trial at a time.
func (s *Store) samples(id string) ([]Sample, error) {
	own := *s
	samples, err := getLines[Sample](&own, s.samplesPath, id, func(line []byte) int { return 3 * len(line) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot read the samples of trial %s: %w", id, err)
	}
	return samples, nil
}

// getLines reads what putLines wrote: a head, and values; bytes is about what that of a line takes in memory.
func getLines[T any](s *Store, path func(string) string, id string, bytes func(line []byte) int) (values []T, err error) {
	if !fileName.MatchString(id) {
		return nil, fmt.Errorf("%q is no trial's ID", id)
	}
	f, _, err := input.Open(path(id))
	if err != nil {
		return nil, err
	}
	defer f.Close() // it is only read
	in := lineReader{in: bufio.NewReader(f)}
	for n := 1; ; n++ {
		line, err := in.next()
		if err == io.EOF { // a line without its end is torn
			return values, nil
		}
		var v T
		switch {
		case err != nil:
		case n == 1:
			err = decodeLine(s.dir, line, new(pointsHead))
		default:
			if err = input.Document("it", line); err == nil {
				err = json.Unmarshal(line, &v)
			}
			values = append(values, v)
		}
		if err == nil {
			err = s.room.take(s.dir, bytes(line))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path(id), n, err)
		}
	}
}
