package crash

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"strconv"

	"david/internal/sandbox"
)

// The parts of a binary log's file that are read here, alike in MySQL and MariaDB (MySQL internals manual,
// "Binary Log").
const (
	headerBytes = 19 // of an event: time, type (1 byte), server, size (4 bytes at 9), position, flags
	xidEvent    = 16 // ends a transaction of InnoDB's that was committed
)

// logMagic begins a binary log that is not encrypted.
func logMagic() []byte { return []byte("\xfebin") }

// logged returns the ledger's transactions that a binary log holds whole, up to the event that commits them.
// A torn tail, as a crash leaves it, ends the log: the server does not read further either. ok is false where
// it is no binary log, or an encrypted one.
func logged(log []byte) (all map[ledgerKey]bool, ok bool) {
	log, ok = bytes.CutPrefix(log, logMagic())
	all = map[ledgerKey]bool{}
	name := regexp.MustCompile(`david\.(\d{1,9})\.(\d{1,18})\.`)
	var open []ledgerKey // of the transaction that is being read
	for ok && len(log) >= headerBytes {
		size := int(binary.LittleEndian.Uint32(log[9:]))
		if size < headerBytes || size > len(log) {
			break
		}
		for _, m := range name.FindAllSubmatch(log[headerBytes:size], -1) {
			open = append(open, ledgerKey{number(m[1]), int64(number(m[2]))})
		}
		if log[4] == xidEvent {
			for _, e := range open {
				all[e] = true
			}
			open = nil
		}
		log = log[size:]
	}
	return all, ok
}

// number reads digits, 18 at most.
func number(digits []byte) int {
	n, err := strconv.Atoi(string(digits))
	if err != nil {
		panic(err) // the expression lets no more through than fits
	}
	return n
}

// blank tells a file whose beginning was never written, as a power cut may leave it.
func blank(log []byte) bool {
	return len(bytes.TrimLeft(log[:min(len(log), headerBytes)], "\x00")) == 0
}

// errLog says that a binary log is damaged.
var errLog = errors.New("it begins otherwise than one that is not encrypted")

// mostLog bounds a binary log, in bytes; a round writes for some seconds.
const mostLog = 512 << 20

// addLogged adds the transactions of a binary log's file.
func addLogged(all map[ledgerKey]bool, s *sandbox.Server, name string) error {
	b, err := s.ReadData(name, mostLog)
	if errors.Is(err, fs.ErrNotExist) { // as a power cut may leave it
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the binary log: %w", err)
	}
	found, ok := logged(b)
	if !ok && !blank(b) {
		return fmt.Errorf("cannot read the binary log %q: %w", name, errLog)
	}
	maps.Copy(all, found)
	return nil
}
