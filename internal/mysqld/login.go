package mysqld

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The driver hands a password to whoever asks for it in the right words: to any server's RSA key, for one. So david logs in by
// itself, with the few methods that are safe on the way the connection takes, and the driver, which knows no password, gets a
// connection that has logged in.

// Capabilities of the protocol
// (https://dev.mysql.com/doc/dev/mysql-server/latest/group__group__cs__capabilities__flags.html).
const (
	clientSSL        = 1 << 11
	clientPluginAuth = 1 << 19
	// wanted are all that david and the driver ask for: LONG_PASSWORD, LONG_FLAG, PROTOCOL_41, TRANSACTIONS, SECURE_CONNECTION,
	// MULTI_RESULTS, PLUGIN_AUTH, DEPRECATE_EOF.
	wanted   = 1 | 1<<2 | 1<<9 | 1<<13 | 1<<15 | 1<<17 | clientPluginAuth | 1<<24
	required = 1<<9 | 1<<15 | clientPluginAuth // of every server since 5.5.7
)

const (
	utf8mb4    = 45       // utf8mb4_general_ci, the driver's own default
	maxPacket  = 16 << 20 // what clients say they take
	loginBytes = 64 << 10 // longest packet before the login; a greeting has about a hundred bytes
	loginSteps = 8        // packets a server may answer a login with
)

// dialer makes the connections of a pool.
type dialer struct {
	addr     Addr
	tls      *tls.Config // nil for none
	fallback bool        // plain will do where the server offers no TLS
	seen     atomic.Bool // the server has offered TLS: it is not believed later that it has none
}

// dial connects, encrypts the connection as the address says, and logs in.
func (d *dialer) dial(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout) // a hung server still accepts
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, d.addr.Network, d.addr.Address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) }) // ends whatever waits
	s, err := d.login(ctx, conn)
	if !stop() {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

func (d *dialer) login(ctx context.Context, conn net.Conn) (*session, error) {
	raw, ok := conn.(syscall.Conn)
	if !ok {
		return nil, fmt.Errorf("%T has no descriptor", conn)
	}
	l := &login{addr: d.addr, conn: conn, secure: d.addr.Network == "unix"}
	if err := l.greet(); err != nil {
		return nil, err
	}
	encrypt, err := d.encrypts(l.caps)
	if err != nil {
		return nil, err
	}
	if encrypt {
		if err := l.encrypt(ctx, d.tls); err != nil {
			return nil, err
		}
		d.seen.Store(true)
	}
	if err := l.authenticate(); err != nil {
		return nil, err
	}
	return newSession(l.conn, raw, l.caps&wanted, cmp.Or(d.addr.Answer, answerBytes)), nil
}

// encrypts decides whether to encrypt. A server that has no TLS where it is asked for, or that had it before, is refused: whoever
// sits in between need only say that it has none.
func (d *dialer) encrypts(caps uint32) (bool, error) {
	switch {
	case d.tls == nil:
		return false, nil
	case caps&clientSSL != 0:
		return true, nil
	case d.seen.Load():
		return false, classified{ErrTLS, errors.New("downgrade refused: the server offered TLS before and now says it has none"),
			"somebody in between may have taken it away: find out before you connect again"}
	case d.fallback:
		return false, nil
	}
	return false, classified{ErrTLS, fmt.Errorf("downgrade refused: the server offers no TLS, and ssl-mode=%s asks for it", d.addr.TLS.Mode),
		"somebody in between may have taken it away; where it has none, give it a certificate or set ssl-mode=DISABLED"}
}

// login is a connection on its way to being one that may be used.
type login struct {
	addr     Addr
	conn     net.Conn
	secure   bool // encrypted, or a unix socket
	sequence byte
	caps     uint32 // the server's
	method   string
	nonce    []byte
}

// read reads a packet. It is never empty.
func (l *login) read() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(l.conn, head[:]); err != nil {
		return nil, err
	}
	n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if n == 0 || n > loginBytes {
		return nil, hostile("a packet of %d bytes before the login", n)
	}
	l.sequence = head[3] + 1
	body := make([]byte, n)
	if _, err := io.ReadFull(l.conn, body); err != nil {
		return nil, err
	}
	if body[0] == 0xff {
		return nil, serverError(body[1:])
	}
	return body, nil
}

func (l *login) write(body []byte) error {
	n := len(body)
	_, err := l.conn.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), l.sequence}, body...))
	l.sequence++
	return err
}

// serverError reads an error packet: number, "#" and SQL state, message. Before the login it has no state.
func serverError(body []byte) error {
	f := fields{rest: body}
	e := &mysql.MySQLError{Number: binary.LittleEndian.Uint16(f.take(2))}
	if len(f.rest) > 0 && f.rest[0] == '#' {
		copy(e.SQLState[:], f.take(6)[1:])
	}
	if f.short {
		return hostile("an error that is cut short")
	}
	e.Message = string(f.rest[:min(len(f.rest), 512)]) // the longest a server has
	return e
}

// greet reads the server's greeting
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_connection_phase_packets_protocol_handshake_v10.html).
func (l *login) greet() error {
	body, err := l.read()
	if err != nil {
		return err
	}
	f := fields{rest: body}
	if version := f.take(1)[0]; version != 10 {
		return hostile("protocol %d, not 10: it is no MySQL server, or an old one", version)
	}
	f.text()  // the server's version
	f.take(4) // the connection's number
	l.nonce = bytes.Clone(f.take(8))
	f.take(1)
	low := binary.LittleEndian.Uint16(f.take(2))
	f.take(3) // character set, status
	l.caps = uint32(low) | uint32(binary.LittleEndian.Uint16(f.take(2)))<<16
	second := max(13, int(f.take(1)[0])-8) // of the nonce, which ends with a zero
	f.take(10)
	l.nonce = append(l.nonce, f.take(second)[:second-1]...)
	l.method = f.text()
	if f.short || l.caps&required != required {
		return hostile("a greeting that is cut short, or of a server older than 5.5.7")
	}
	return nil
}

// encrypt asks for TLS. Nothing that came before it is in a buffer, so nobody can slip in what was not encrypted.
func (l *login) encrypt(ctx context.Context, config *tls.Config) error {
	if err := l.write(l.header(clientSSL)); err != nil {
		return err
	}
	conn := tls.Client(l.conn, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	l.conn, l.secure = conn, true
	return nil
}

// header begins what a client answers to a greeting.
func (l *login) header(extra uint32) []byte {
	if _, ok := l.conn.(*tls.Conn); ok {
		extra = clientSSL
	}
	h := make([]byte, 32)
	binary.LittleEndian.PutUint32(h, l.caps&wanted|extra)
	binary.LittleEndian.PutUint32(h[4:], maxPacket)
	h[8] = utf8mb4
	return h
}

// authenticate answers the greeting and what the server then asks until it lets david in.
func (l *login) authenticate() error {
	answer, err := l.answer()
	if err != nil { // of the server's default method, which need not be the user's
		l.method, answer = native, nil
	}
	body := append(l.header(0), l.addr.User...)
	body = append(body, 0, byte(len(answer)))
	body = append(body, answer...)
	if err := l.write(append(append(body, l.method...), 0)); err != nil {
		return err
	}
	for range loginSteps {
		body, err := l.read()
		if err != nil {
			return err
		}
		if body[0] == 0 {
			return nil
		}
		if err := l.step(body); err != nil {
			return err
		}
	}
	return hostile("a login that does not end")
}

// step answers a server that wants another method, or more.
func (l *login) step(body []byte) error {
	switch f := (fields{rest: body[1:]}); body[0] {
	case 0xfe:
		l.method = "mysql_old_password" // where it is not named
		if len(body) > 1 {
			l.method = f.text()
			l.nonce = f.rest
			if n := len(l.nonce); n == 21 || n == 33 { // with the zero that ends it
				l.nonce = l.nonce[:n-1]
			}
		}
		answer, err := l.answer()
		if err != nil {
			return err
		}
		return l.write(answer)
	case 1:
		return l.more(f.rest)
	}
	return hostile("an answer to a login that begins with %#x", body[0])
}

// fields cuts a packet up. Of one that is too short it gives zeroes, and says so.
type fields struct {
	rest  []byte
	short bool
}

func (f *fields) take(n int) []byte {
	if n > len(f.rest) {
		f.short, f.rest = true, nil
		return make([]byte, n)
	}
	taken := f.rest[:n:n]
	f.rest = f.rest[n:]
	return taken
}

// text takes what is before the next zero, or all.
func (f *fields) text() string {
	text, rest, _ := bytes.Cut(f.rest, []byte{0})
	f.rest = rest
	return string(text)
}
