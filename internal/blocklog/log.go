// Package blocklog records what a block device is told to write and to flush, and makes from the record what
// such a device may hold after its power was cut at any moment.
//
//	Serve (a file under a loop device; every write and flush goes to the log) -> Open -> Cuts -> Replay (an image for each)
//
// A device with a volatile cache may keep, lose or tear (in units of 512 B or 4 KiB) whatever it was given
// after the last flush that it had completed. Nothing else may happen to it.
package blocklog

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// The kinds of records.
const (
	write = 'W' // Length bytes follow in the log
	zero  = 'Z' // Length bytes became zeros
	flush = 'F' // all before it is durable
)

// headerBytes holds "david", the kind, two bytes of zeros, offset and length in little endian.
const headerBytes = 24

// Record tells of one write or flush.
type Record struct {
	kind   byte
	offset int64 // on the device, in bytes
	length int64
	data   int64 // where in the log what was written begins
	// End is the length of the log, in bytes, once it was recorded: the moment it happened, beside that of
	// other things.
	End int64
}

// Flush tells whether the device was told to make all before it durable.
func (r Record) Flush() bool { return r.kind == flush }

// Bytes says how much was written; 0 of a flush.
func (r Record) Bytes() int64 { return r.length }

// end is where on the device it ended.
func (r Record) end() int64 { return r.offset + r.length }

// recorder appends to a log.
type recorder struct {
	mu   sync.Mutex
	file *os.File
}

// record appends a record with what was written, and does the same to the device meanwhile: the order in the
// log is that on the device.
func (r *recorder) record(kind byte, offset, length int64, data []byte, do func() error) error {
	b := make([]byte, headerBytes, headerBytes+len(data))
	copy(b, "david")
	b[5] = kind
	binary.LittleEndian.PutUint64(b[8:], uint64(offset))
	binary.LittleEndian.PutUint64(b[16:], uint64(length))
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.file.Write(append(b, data...)); err != nil {
		return err
	}
	return do()
}

// Log holds what was recorded.
type Log struct {
	file    *os.File
	Records []Record
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
		r := Record{kind: header[5], offset: int64(binary.LittleEndian.Uint64(header[8:])), length: int64(binary.LittleEndian.Uint64(header[16:])), data: at + headerBytes}
		if string(header[:5]) != "david" || r.offset < 0 || r.length < 0 {
			return fmt.Errorf("there is no record at %d", at)
		}
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

// Close closes the file.
func (l *Log) Close() error { return l.file.Close() }

// apply does to an image what a record tells, in the part of the device from offset to end.
func (l *Log) apply(image io.WriterAt, r Record, offset, end int64) error {
	if r.kind == flush {
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
