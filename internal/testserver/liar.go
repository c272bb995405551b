package testserver

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"david/internal/mysqld"
)

// Lie says what whoever sits between a client and a server does to get at a password.
type Lie struct {
	Honest int    // so many connections first are passed on to the real server
	Strip  bool   // the others too, but for TLS, which the server is said not to have
	Method string // ... or are asked to log in by this method
	Forgot bool   // and, by caching_sha2_password, told that the server wants the password itself
	TLS    bool   // with TLS, and a certificate of the liar's own
}

// Liar sits between clients and a server, and tells a lie.
type Liar struct {
	lie     Lie
	real    string
	key     func() *rsa.PrivateKey // made when it is asked for
	config  *tls.Config
	nonce   []byte
	mu      sync.Mutex
	taken   int
	heard   bytes.Buffer
	decoded []byte
}

// Between puts a liar before a server until the test ends, and returns where it listens.
func (s *Server) Between(lie Lie) (*Liar, mysqld.Addr) {
	s.tb.Helper()
	addr := s.TCP("david")
	l := &Liar{lie: lie, real: addr.Address, nonce: bytes.Repeat([]byte("n"), 20), key: sync.OnceValue(newRSA)}
	if lie.TLS {
		l.config = foreignKeys(s.tb)
	}
	addr.Address = Listen(s.tb, l.serve)
	return l, addr
}

const rsaBits = 2048

func newRSA() *rsa.PrivateKey {
	key, err := rsa.GenerateKey(rand.Reader, rsaBits)
	if err != nil {
		panic(err)
	}
	return key
}

// Listen hands every connection to a handler, in a goroutine of its own, until the test ends.
func Listen(tb testing.TB, handler func(net.Conn)) (address string) {
	tb.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { defer conn.Close(); handler(conn) }()
		}
	}()
	return listener.Addr().String()
}

// foreignKeys makes a certificate for 127.0.0.1 by a CA that nobody knows.
func foreignKeys(tb testing.TB) *tls.Config {
	dir := tb.TempDir()
	writeKeys(tb, dir)
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem"))
	if err != nil {
		tb.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}}
}

// Told tells whether the liar has learned the password.
func (l *Liar) Told() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.heard.Bytes(), []byte(Password)) || bytes.Contains(l.decoded, []byte(Password))
}

// Lied says how many connections the liar has lied to.
func (l *Liar) Lied() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taken - l.lie.Honest
}

func (l *Liar) serve(conn net.Conn) {
	l.mu.Lock()
	l.taken++
	honest := l.taken <= l.lie.Honest
	l.mu.Unlock()
	if honest || l.lie.Strip {
		l.pass(conn, honest)
		return
	}
	l.trick(conn)
}

// pass passes everything on, and where it is not honest takes TLS out of the server's greeting.
func (l *Liar) pass(client net.Conn, honest bool) {
	server, err := net.Dial("tcp", l.real)
	if err != nil {
		return
	}
	defer server.Close()
	if !honest {
		greeting, _, err := ReadPacket(server)
		if err != nil {
			return
		}
		low := bytes.IndexByte(greeting[1:], 0) + 1 + 1 + 4 + 8 + 1 // after version, number, nonce, filler
		greeting[low+1] &^= 1 << 3
		WritePacket(client, 0, greeting)
	}
	go func() { io.Copy(client, server); client.Close() }()
	io.Copy(server, io.TeeReader(client, (*listener)(l)))
}

// listener remembers what a client says.
type listener Liar

func (l *listener) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard.Write(b)
}

// Greeting is one of a server with those capabilities beside the usual ones, which asks for a method.
func Greeting(method string, nonce []byte, capabilities uint32) []byte {
	capabilities |= 1 | 1<<2 | 1<<3 | 1<<9 | 1<<13 | 1<<15 | 1<<16 | 1<<17 | 1<<19 | 1<<21 | 1<<24
	b := append([]byte{10}, "8.4.0\x00\x01\x00\x00\x00"...)
	b = append(append(b, nonce[:8]...), 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(capabilities))
	b = append(b, 45, 2, 0)
	b = binary.LittleEndian.AppendUint16(b, uint16(capabilities>>16))
	b = append(append(b, 21), make([]byte, 10)...)
	b = append(append(b, nonce[8:20]...), 0)
	return append(append(b, method...), 0)
}

// trick asks for the password in the way of the lie.
func (l *Liar) trick(conn net.Conn) {
	var capabilities uint32
	if l.lie.TLS {
		capabilities = 1 << 11
	}
	WritePacket(conn, 0, Greeting("mysql_native_password", l.nonce, capabilities))
	body, sequence, err := l.read(conn)
	if err == nil && l.lie.TLS && len(body) == 32 {
		secured := tls.Server(conn, l.config)
		conn = secured
		_, sequence, err = l.read(conn)
	}
	if err != nil {
		return
	}
	with := string(l.nonce)
	if l.lie.Method == "dialog" {
		with = "\x04Password: " // a question whose answer is not shown
	}
	WritePacket(conn, sequence+1, []byte("\xfe"+l.lie.Method+"\x00"+with+"\x00"))
	for forgot := l.lie.Forgot; ; {
		body, sequence, err := l.read(conn)
		switch {
		case err != nil:
			return
		case len(body) == 1 && (body[0] == 1 || body[0] == 2): // a client that asks for the server's RSA key
			WritePacket(conn, sequence+1, append([]byte{1}, l.publicKey()...))
		case len(body) == rsaBits/8:
			l.decode(body)
			WritePacket(conn, sequence+1, []byte{0, 0, 0, 2, 0, 0, 0})
			return
		case forgot:
			forgot = false
			WritePacket(conn, sequence+1, []byte{1, 4})
		default:
			WritePacket(conn, sequence+1, []byte{0, 0, 0, 2, 0, 0, 0})
			return
		}
	}
}

// read reads a packet of a client, and remembers it.
func (l *Liar) read(conn net.Conn) ([]byte, byte, error) {
	body, sequence, err := ReadPacket(conn)
	(*listener)(l).Write(body)
	return body, sequence, err
}

func (l *Liar) publicKey() []byte {
	der, err := x509.MarshalPKIXPublicKey(&l.key().PublicKey)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}

// decode reads a password that was encrypted for the liar's key.
func (l *Liar) decode(body []byte) {
	text, err := rsa.DecryptOAEP(sha1.New(), nil, l.key(), body, nil)
	if err != nil {
		return
	}
	for i := range text {
		text[i] ^= l.nonce[i%len(l.nonce)]
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.decoded = append(l.decoded, text...)
}

// ReadPacket reads a packet of MySQL's protocol.
func ReadPacket(r io.Reader) (body []byte, sequence byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, 0, err
	}
	body = make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err = io.ReadFull(r, body)
	return body, head[3], err
}

// WritePacket writes one. Where it fails the other side is gone, which reading from it shows.
func WritePacket(w io.Writer, sequence byte, body []byte) {
	n := len(body)
	w.Write(append([]byte{byte(n), byte(n >> 8), byte(n >> 16), sequence}, body...))
}
