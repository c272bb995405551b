package follower

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// relayLog names a follower's relay logs: NAME.000001, and so on, listed in NAME.index.
const relayLog = "david-relay"

// relayed is what a follower of MariaDB has received and not applied. Its server says nothing of that once it was restarted.
type relayed struct {
	to    string   // the GTIDs that it ends with; "" where there is nothing
	from  int64    // where it begins in the first of the files
	files []string // whole paths
}

// byHand is how it is applied without the leader.
func (l relayed) byHand() string {
	return fmt.Sprintf("mariadb-binlog --start-position=%d %s | mariadb", l.from, strings.Join(l.files, " "))
}

// unapplied reads a follower's relay logs for whole transactions that it has not applied.
func (r *Record) unapplied(ctx context.Context, p pair) (l relayed, err error) {
	applied, logged, err := p.applies(ctx)
	if err != nil {
		return l, err
	}
	root, err := os.OpenRoot(r.data())
	if err != nil {
		return l, err
	}
	defer root.Close()
	list, err := readIn(root, relayLog+".index")
	if errors.Is(err, os.ErrNotExist) { // somebody has reset its replication
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("cannot see what the follower has received: %w", err)
	}
	last := map[uint32]string{}
	for name := range strings.FieldsSeq(string(list)) {
		name = filepath.Base(name)
		err := transactions(root, name, func(domain uint32, gtid string, at int64) {
			if ahead(applied, gtid) || includes(logged, gtid) {
				return
			}
			if len(last) == 0 {
				l.from = at
			}
			last[domain] = gtid
		})
		if err != nil {
			return l, fmt.Errorf("cannot read what the follower has received: %w", err)
		}
		if len(last) > 0 {
			l.files = append(l.files, filepath.Join(r.data(), name))
		}
	}
	var to []string
	for _, gtid := range last {
		to = append(to, gtid)
	}
	slices.Sort(to)
	l.to = strings.Join(to, ",")
	return l, nil
}

// The events of MariaDB's logs that begin and end a transaction (sql/log_event.h), and the flag of one that is a single statement.
const (
	queryEvent      = 2
	xidEvent        = 16
	prepareEvent    = 38
	gtidEvent       = 162
	compressedEvent = 165
	standalone      = 1

	logMagic    = 4  // bytes before the first event
	eventHeader = 19 // time 4, type 1, server 4, size 4, end 4, flags 2
	mostOfEvent = 4 << 10
)

// transactions tells of each whole transaction of a log and where it begins. A log whose server was killed may end within one, or
// within an event.
func transactions(root *os.Root, name string, do func(domain uint32, gtid string, at int64)) error {
	f, err := root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return torn(scan(bufio.NewReaderSize(f, 1<<20), do))
}

// scan reads a log to its end, which is an error as for a reader.
func scan(in *bufio.Reader, do func(domain uint32, gtid string, at int64)) error {
	at := int64(logMagic)
	if _, err := in.Discard(logMagic); err != nil {
		return err
	}
	var open struct {
		domain uint32
		gtid   string
		at     int64
		alone  bool
	}
	for {
		kind, server, size, body, err := event(in)
		if err != nil {
			return err
		}
		switch {
		case kind == gtidEvent && len(body) >= 13:
			open.domain, open.at, open.alone = binary.LittleEndian.Uint32(body[8:]), at, body[12]&standalone != 0
			open.gtid = fmt.Sprintf("%d-%d-%d", open.domain, server, binary.LittleEndian.Uint64(body))
		case open.gtid != "" && (kind == xidEvent || kind == prepareEvent || (kind == queryEvent || kind == compressedEvent) && (open.alone || ends(body))):
			do(open.domain, open.gtid, open.at)
			open.gtid = ""
		}
		at += size
	}
}

// event reads the next of a log, and the beginning of what it holds.
func event(in *bufio.Reader) (kind byte, server uint32, size int64, body []byte, err error) {
	var head [eventHeader]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, 0, 0, nil, err
	}
	kind, server, size = head[4], binary.LittleEndian.Uint32(head[5:]), int64(binary.LittleEndian.Uint32(head[9:]))
	if size < eventHeader {
		return 0, 0, 0, nil, io.ErrUnexpectedEOF
	}
	body = make([]byte, min(size-eventHeader, mostOfEvent))
	if _, err := io.ReadFull(in, body); err != nil {
		return 0, 0, 0, nil, err
	}
	_, err = io.CopyN(io.Discard, in, size-eventHeader-int64(len(body)))
	return kind, server, size, body, err
}

// ends tells whether a statement is the end of a transaction: behind 13 bytes, of which some tell the lengths of what stands between.
func ends(body []byte) bool {
	const fixed = 13
	if len(body) < fixed {
		return false
	}
	text := string(body[min(len(body), fixed+int(binary.LittleEndian.Uint16(body[11:]))+int(body[8])+1):])
	return strings.HasPrefix(text, "COMMIT") || strings.HasPrefix(text, "ROLLBACK") || strings.HasPrefix(text, "XA ")
}

// torn takes the end of a log for no error, wherever it is.
func torn(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
