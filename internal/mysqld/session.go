package mysqld

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// What a server may answer to one statement.
const (
	answerBytes = 64 << 20 // where the address names no other limit
	columnsMost = 4096     // of a table, and so of a sane answer
	packetCost  = 60       // what an empty packet counts for, in bytes: it takes time
)

// session is a connection that has logged in, for the driver. It lets the driver believe that it logs in, as the driver insists
// on it, and hands it no more than it can take: packets are announced with a length and rows with a number of columns, and the
// driver makes room for whatever is announced.
type session struct {
	net.Conn
	raw    syscall.Conn // under the TLS
	in     *bufio.Reader
	staged []byte // what the driver is to read of its login
	greets bool   // its login has not come yet
	caps   uint32
	most   int64 // bytes of an answer
	left   int64 // bytes of this answer
	packet int   // bytes left of this packet
	begins bool  // a result begins with the next packet
	err    error // why the server is not read any more
}

func newSession(conn net.Conn, raw syscall.Conn, caps uint32, most int64) *session {
	return &session{Conn: conn, raw: raw, in: bufio.NewReader(conn), caps: caps, greets: true, staged: greeting(caps), most: most}
}

// greeting is one of a server that wants no password.
func greeting(caps uint32) []byte {
	body := append([]byte{10, 'd', 'a', 'v', 'i', 'd', 0}, 1, 0, 0, 0)
	body = append(body, "12345678"...)
	body = append(body, 0)
	body = binary.LittleEndian.AppendUint16(body, uint16(caps))
	body = append(body, utf8mb4, 2, 0)
	body = binary.LittleEndian.AppendUint16(body, uint16(caps>>16))
	body = append(body, 21)
	body = append(body, make([]byte, 10)...)
	body = append(body, "123456789012\x00"+native+"\x00"...)
	return append([]byte{byte(len(body)), 0, 0, 0}, body...)
}

// Write sends a statement, and first takes the driver's login for what it is.
func (s *session) Write(b []byte) (int, error) {
	if !s.greets {
		s.left, s.begins = s.most, true
		return s.Conn.Write(b)
	}
	s.greets = false
	if len(b) < 8 || binary.LittleEndian.Uint32(b[4:]) != s.caps {
		s.err = errors.New("the driver asks for other capabilities than david has agreed on")
		return 0, s.err
	}
	s.staged = append(s.staged, 7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0) // OK, autocommit
	return len(b), nil
}

// Read gives out what the server sends, at most one packet at a time.
func (s *session) Read(b []byte) (int, error) {
	if len(s.staged) > 0 {
		n := copy(b, s.staged)
		s.staged = s.staged[n:]
		return n, nil
	}
	if s.packet == 0 {
		if err := s.announced(); err != nil {
			return 0, err
		}
	}
	n, err := s.in.Read(b[:min(len(b), s.packet)])
	s.packet -= n
	return n, err
}

// announced looks at what a packet announces before the driver believes it.
func (s *session) announced() error {
	if s.err != nil {
		return s.err
	}
	head, err := s.in.Peek(4)
	if err != nil {
		return err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	s.packet = 4 + n
	if s.left -= int64(s.packet) + packetCost; s.left < 0 {
		s.err = hostile("an answer of more than %d MiB", s.most>>20)
		return s.err
	}
	if !s.begins || n == 0 {
		return nil
	}
	head, err = s.in.Peek(4 + min(n, 9))
	if err != nil {
		return err
	}
	if columns(head[4:]) > columnsMost {
		s.err = hostile("an answer of more than %d columns", columnsMost)
	}
	s.begins = head[4] == 0 // OK: another result may follow
	return s.err
}

// columns reads the number of columns that a result begins with; what begins otherwise has none
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_dt_integers.html).
func columns(packet []byte) uint64 {
	var wide [8]byte
	switch size := map[byte]int{0xfc: 2, 0xfd: 3, 0xfe: 8}[packet[0]]; {
	case size == 0:
		return 0
	case size > len(packet)-1: // cut short: an EOF, or none at all
		return 0
	default:
		copy(wide[:], packet[1:1+size])
	}
	return binary.LittleEndian.Uint64(wide[:])
}

// SyscallConn lets the driver see whether the server has hung up.
func (s *session) SyscallConn() (syscall.RawConn, error) { return s.raw.SyscallConn() }

// hostile is the error of what no server of MySQL's says.
func hostile(format string, args ...any) error {
	return classified{ErrProtocol, fmt.Errorf("the server sent "+format, args...), "it is broken, no MySQL server, or hostile"}
}
