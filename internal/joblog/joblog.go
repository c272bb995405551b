// Package joblog carries the record of an experiment over the log of a pod: what a Job leaves when it ends is
// its log.
//
// A Writer writes each document (the experiment, an arm, a trial, the finish) as lines of their own, numbered
// and with a checksum, among whatever else is written there. A Reader is given a log's lines, in any number
// of passes, and hands out the documents, each once and in their order; what it does not know as its own it
// leaves to others.
package joblog

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"david/internal/result"
)

// Document holds one part of a record: one of the pointers or texts is set, or End.
type Document struct {
	Experiment *result.Experiment `json:"experiment,omitempty"`
	Arm        *result.Arm        `json:"arm,omitempty"`
	Trial      *result.Trial      `json:"trial,omitempty"` // with its points and samples
	Log        string             `json:"log,omitempty"`   // what sysbench printed in that trial
	Finish     *result.Finish     `json:"finish,omitempty"`
	Tune       json.RawMessage    `json:"tune,omitempty"`    // what a live tune prints with --json
	Network    json.RawMessage    `json:"network,omitempty"` // what a client found that measures a network alone
	Files      map[string]string  `json:"files,omitempty"`   // of the experiment's folder, by name
	End        bool               `json:"end,omitempty"`     // nothing follows
	// Failed and Code are, at the end, the client's error and its exit code, where it has one.
	Failed string `json:"failed,omitempty"`
	Code   int    `json:"code,omitempty"`
}

// mark begins every line of a record. A newer format gets another number.
const mark = "david-record/1 "

const (
	// lineBytes of base64 a line: container runtimes split lines at 16 KiB.
	lineBytes = 8 << 10
	// A document has at most so many lines, and so many bytes: more is no record.
	maxParts = 1 << 14
	maxBytes = 256 << 20
	// maxAhead is how far beyond the next document a line's may be: more than a record has, and little to keep.
	maxAhead = 1 << 14
)

// Writer writes documents. It is not safe for concurrent use.
type Writer struct {
	out  io.Writer
	next int
}

// NewWriter writes to out, which must take a line in one piece.
func NewWriter(out io.Writer) *Writer { return &Writer{out: out} }

// Write writes one document.
func (w *Writer) Write(d Document) error {
	text, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("cannot write the record to the log: %w", err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	data := base64.StdEncoding.EncodeToString(packed.Bytes())
	parts := (len(data) + lineBytes - 1) / lineBytes
	for i := range parts {
		line := fmt.Sprintf("%s%d %d %d %s %s\n", mark, w.next, i, parts, sum(packed.Bytes()), data[i*lineBytes:min(len(data), (i+1)*lineBytes)])
		if _, err := io.WriteString(w.out, line); err != nil {
			return fmt.Errorf("cannot write the record to the log: %w", err)
		}
	}
	w.next++
	return nil
}

const sumBytes = 6

// sum finds what was cut or mixed up, not what was forged, and so is short.
func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:sumBytes])
}

// Reader puts documents together. The zero value is ready to use.
type Reader struct {
	next  int
	parts map[int]*pieces
	held  int // bytes in them
	ended bool
}

// pieces gather the lines of one document.
type pieces struct {
	sum   string
	count int            // of its lines
	data  map[int]string // those that have come
}

// ErrBroken says that a line of a record cannot be read.
var ErrBroken = errors.New("the record in the log is broken")

// Ours tells whether a line belongs to a record.
func Ours(line string) bool { return strings.HasPrefix(line, mark) }

// Ended tells whether the record's end was read.
func (r *Reader) Ended() bool { return r.ended }

// Line takes a line and returns the documents that are complete with it, in order. A line it had before, or
// that is no record's, is passed over.
func (r *Reader) Line(line string) ([]Document, error) {
	if !Ours(line) {
		return nil, nil
	}
	l, err := parse(line)
	if err != nil {
		return nil, err
	}
	if l.number < r.next {
		return nil, nil
	}
	if err := r.keep(l); err != nil {
		return nil, err
	}
	return r.complete()
}

// keep puts a line to its document. It takes no more memory than lines that have come.
func (r *Reader) keep(l piece) error {
	if l.number-r.next > maxAhead {
		return fmt.Errorf("%w: document %d after %d", ErrBroken, l.number, r.next)
	}
	if r.parts == nil {
		r.parts = map[int]*pieces{}
	}
	have := r.parts[l.number]
	if have == nil {
		have = &pieces{sum: l.sum, count: l.parts, data: map[int]string{}}
		r.parts[l.number] = have
	}
	if have.sum != l.sum || have.count != l.parts {
		return fmt.Errorf("%w: two documents of number %d", ErrBroken, l.number)
	}
	if have.data[l.part] == "" {
		have.data[l.part] = l.data
		r.held += len(l.data)
	}
	if r.held > maxBytes {
		return fmt.Errorf("%w: more than %d MiB wait for document %d", ErrBroken, maxBytes>>20, r.next)
	}
	return nil
}

// complete hands out what is complete from the next on.
func (r *Reader) complete() (list []Document, err error) {
	for {
		p := r.parts[r.next]
		if p == nil || len(p.data) < p.count {
			return list, nil
		}
		text := p.text()
		d, err := document(text, p.sum)
		if err != nil {
			return list, err
		}
		r.held -= len(text)
		delete(r.parts, r.next)
		r.next++
		r.ended = r.ended || d.End
		list = append(list, d)
	}
}

// piece holds one line of a document: part of so many parts.
type piece struct {
	number, part, parts int
	sum, data           string
}

func parse(line string) (p piece, err error) {
	fields := strings.Fields(strings.TrimPrefix(line, mark))
	if len(fields) != 5 {
		return p, fmt.Errorf("%w: %.80q", ErrBroken, line)
	}
	for i, to := range []*int{&p.number, &p.part, &p.parts} {
		if *to, err = strconv.Atoi(fields[i]); err != nil {
			return p, fmt.Errorf("%w: %.80q", ErrBroken, line)
		}
	}
	if p.number < 0 || p.part < 0 || p.part >= p.parts || p.parts > maxParts || len(fields[3]) > 2*sumBytes {
		return p, fmt.Errorf("%w: %.80q", ErrBroken, line)
	}
	p.sum, p.data = strings.Clone(fields[3]), strings.Clone(fields[4]) // without the rest of the line
	return p, nil
}

// text is what the lines hold, in order.
func (p *pieces) text() string {
	var b strings.Builder
	for i := range p.count {
		b.WriteString(p.data[i])
	}
	return b.String()
}

func document(data, want string) (d Document, err error) {
	packed, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if sum(packed) != want {
		return d, fmt.Errorf("%w: its checksum is wrong", ErrBroken)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	text, err := io.ReadAll(io.LimitReader(z, maxBytes))
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return d, nil
}
