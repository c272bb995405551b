package follower

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
)

// eventOf is an event of a MariaDB log.
func eventOf(kind byte, server uint32, body ...byte) []byte {
	b := make([]byte, eventHeader)
	b[4] = kind
	binary.LittleEndian.PutUint32(b[5:], server)
	binary.LittleEndian.PutUint32(b[9:], uint32(eventHeader+len(body)))
	return append(b, body...)
}

// gtidOf is the body of an event that begins a transaction.
func gtidOf(number uint64, domain uint32, flags byte) []byte {
	b := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, number), domain)
	return append(b, flags, 0, 0, 0, 0, 0, 0)
}

// FuzzTransactions: whatever is in a log, reading it ends, with transactions within it in their order.
func FuzzTransactions(f *testing.F) {
	query := append(make([]byte, 13), "\x00COMMIT"...)
	log := bytes.Join([][]byte{[]byte("\xfebin"), eventOf(gtidEvent, 7, gtidOf(1, 0, 0)...), eventOf(xidEvent, 7, make([]byte, 8)...),
		eventOf(gtidEvent, 7, gtidOf(2, 3, standalone)...), eventOf(queryEvent, 7, query...), eventOf(gtidEvent, 7, gtidOf(3, 0, 0)...)}, nil)
	f.Add(log)
	f.Add(log[:len(log)-30])
	var seen []string
	if err := scan(bufio.NewReader(bytes.NewReader(log)), func(_ uint32, gtid string, _ int64) { seen = append(seen, gtid) }); err != io.EOF || len(seen) != 2 || seen[0] != "0-7-1" || seen[1] != "3-7-2" {
		f.Errorf("%v, %v", seen, err)
	}
	f.Fuzz(func(t *testing.T, log []byte) {
		last := int64(0)
		err := scan(bufio.NewReader(bytes.NewReader(log)), func(_ uint32, gtid string, at int64) {
			if at <= last || at > int64(len(log)) || gtid == "" {
				t.Errorf("%q at %d after %d of %d", gtid, at, last, len(log))
			}
			last = at
		})
		if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%v", err)
		}
	})
}
