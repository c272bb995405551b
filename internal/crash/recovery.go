package crash

import (
	"bytes"
	"time"
)

// The lines of MySQL's error log around its recovery, by their codes, which its versions keep (MySQL error
// reference, "Server Error Message Reference").
const (
	innodbStarts = "[MY-013576]" // InnoDB initialization has started.
	innodbEnds   = "[MY-013577]" // InnoDB initialization has ended.
	xaEnds       = "[MY-010232]" // XA crash recovery finished.
)

// recovery returns how long a server says its recovery took: from the beginning of InnoDB's, which reads and
// applies the redo log, to the end of the binary log's. 0 where the log does not tell: MariaDB's lines have
// whole seconds only.
func recovery(log []byte) time.Duration {
	var began, ended time.Time
	for line := range bytes.Lines(log) {
		stamp, text, _ := bytes.Cut(line, []byte(" "))
		at, err := time.Parse(time.RFC3339Nano, string(stamp))
		if err != nil { // not a line of MySQL's log: MariaDB's, or one a library printed
			continue
		}
		switch {
		case bytes.Contains(text, []byte(innodbStarts)):
			began = at
		case bytes.Contains(text, []byte(innodbEnds)), bytes.Contains(text, []byte(xaEnds)):
			ended = at
		}
	}
	if began.IsZero() {
		return 0
	}
	return max(0, ended.Sub(began))
}
