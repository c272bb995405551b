// Package blocklog records what a block device is told to write and to flush, and makes from the record what
// such a device may hold after its power was cut at any moment.
//
//	Serve (a file under a loop device; every write and flush goes to the log) -> Open -> Cuts -> Replay (an image for each)
//
// A device may keep, lose or tear (in units of 512 B or 4 KiB) each write that is at risk when its power is
// cut; which these are is a matter of its cache. Nothing else may happen to it.
package blocklog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
)

// The kinds of records.
const (
	write = 'W' // length bytes follow in the log
	zero  = 'Z' // length bytes became zeros
	done  = 'D' // the write whose record ends at offset was acknowledged
	flush = 'F' // all that was acknowledged when the log had offset bytes is durable
)

// headerBytes holds "david", the kind, two bytes of zeros, offset and length in little endian.
const headerBytes = 24

// Record tells of one write, of its end, or of a flush.
type Record struct {
	kind   byte
	offset int64 // in bytes: of a write on the device, of other kinds in the log
	length int64 // of a write, in bytes
	data   int64 // where in the log the bytes that were written begin
	done   int64 // of a write: the moment when it was acknowledged
	// End is the moment when it happened. Moments are lengths of the log, in bytes: this one with the record.
	End int64
}

// Flush tells whether all that was done when the device was asked is durable from now on.
func (r Record) Flush() bool { return r.kind == flush }

// Write tells whether something was written.
func (r Record) Write() bool { return r.kind == write || r.kind == zero }

// end is where on the device it ended.
func (r Record) end() int64 { return r.offset + r.length }

// recorder appends to a log.
type recorder struct {
	mu     sync.Mutex
	file   *os.File
	length int64 // of the log
}

// record appends a record with what was written, does the same to the device, and returns the length of the
// log. Nothing else is recorded meanwhile, so that log and device have all writes in one order.
func (r *recorder) record(kind byte, offset, length int64, data []byte, do func() error) (int64, error) {
	b := make([]byte, headerBytes, headerBytes+len(data))
	copy(b, "david")
	b[5] = kind
	binary.LittleEndian.PutUint64(b[8:], uint64(offset))
	binary.LittleEndian.PutUint64(b[16:], uint64(length))
	r.mu.Lock()
	defer r.mu.Unlock()
	n, err := r.file.Write(append(b, data...))
	r.length += int64(n)
	if err != nil {
		return r.length, err
	}
	return r.length, do()
}

// now returns the length of the log.
func (r *recorder) now() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.length
}

// Log holds what was recorded.
type Log struct {
	file    *os.File
	Records []Record
	safe    []int64 // for each record: what was done by that moment is durable for sure, by a flush
	latest  []int64 // for each record: the latest end of a write so far
}

// Open reads a log. A last record that is not whole is left out: its recorder was ended meanwhile.
func Open(path string) (*Log, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the log of the block device: %w", err)
	}
	l := &Log{file: f}
	if err := l.index(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot read the log of the block device: %w", err), f.Close())
	}
	l.match()
	return l, nil
}

// index reads the headers.
func (l *Log) index() error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	in, at := bufio.NewReaderSize(l.file, 1<<20), int64(0)
	for header := make([]byte, headerBytes); ; {
		_, err := io.ReadFull(in, header)
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r, ok := parse(header)
		if !ok {
			return fmt.Errorf("there is no record at %d", at)
		}
		r.data = at + headerBytes
		r.End = r.data
		if r.kind == write {
			if r.length > info.Size()-r.data {
				return nil
			}
			r.End += r.length
		}
		if _, err := in.Discard(int(r.End - r.data)); err != nil {
			return err
		}
		l.Records, at = append(l.Records, r), r.End
	}
}

// parse reads a header.
func parse(header []byte) (r Record, ok bool) {
	number := func(at int) int64 { return int64(binary.LittleEndian.Uint64(header[at:])) }
	r = Record{kind: header[5], offset: number(8), length: number(16)}
	return r, string(header[:5]) == "david" && r.offset >= 0 && r.length >= 0
}

// match tells each write when it was done, and sums up what flushes have made durable.
func (l *Log) match() {
	writes := map[int64]int{} // by the moment of their record
	for i, r := range l.Records {
		if l.Records[i].done = math.MaxInt64; r.Write() {
			writes[r.End] = i
		} else if at, ok := writes[r.offset]; ok && r.kind == done {
			l.Records[at].done = r.End
		}
	}
	safe, latest := int64(0), int64(0)
	for _, r := range l.Records {
		if r.Flush() {
			safe = max(safe, r.offset)
		} else if r.Write() {
			latest = max(latest, r.done)
		}
		l.safe, l.latest = append(l.safe, safe), append(l.latest, latest)
	}
}

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// apply does to an image what a record tells, in the part of the device from offset to end.
func (l *Log) apply(image io.WriterAt, r Record, offset, end int64) error {
	if !r.Write() {
		return nil
	}
	const most = 1 << 20
	for ; offset < end; offset += most {
		b := make([]byte, min(end-offset, most))
		if r.kind == write {
			if _, err := l.file.ReadAt(b, r.data+offset-r.offset); err != nil {
				return fmt.Errorf("cannot read the log of the block device: %w", err)
			}
		}
		if _, err := image.WriteAt(b, offset); err != nil {
			return fmt.Errorf("cannot write the image of the block device: %w", err)
		}
	}
	return nil
}
