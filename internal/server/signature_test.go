package server

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"math/big"
	"strings"
	"testing"
	"time"
)

// signer has an OpenPGP key (RFC 4880, version 4, RSA): as much of it as apt's gpgv wants to see.
type signer struct {
	key    *rsa.PrivateKey
	public []byte // the body of the key's packet
	made   time.Time
}

func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	s := signer{key: key, made: time.Now().Add(-time.Hour)}
	s.public = append([]byte{4}, number(s.made.Unix(), 4)...)
	s.public = append(s.public, 1) // RSA
	s.public = append(append(s.public, mpi(key.N)...), mpi(big.NewInt(int64(key.E)))...)
	return s
}

// number is n in that many bytes.
func number(n int64, size int) []byte {
	b := binary.BigEndian.AppendUint64(nil, uint64(n))
	return b[8-size:]
}

func mpi(n *big.Int) []byte { return append(number(int64(n.BitLen()), 2), n.Bytes()...) }

// packet puts a body into a packet of the old format with a length of four bytes.
func packet(tag byte, body []byte) []byte {
	return append(append([]byte{0x80 | tag<<2 | 2}, number(int64(len(body)), 4)...), body...)
}

// framed is the key as it is hashed.
func (s signer) framed() []byte {
	return append(append([]byte{0x99}, number(int64(len(s.public)), 2)...), s.public...)
}

func (s signer) fingerprint() []byte {
	sum := sha1.Sum(s.framed())
	return sum[:]
}

// signature is a signature's packet of that type over some data.
func (s signer) signature(t *testing.T, kind byte, data []byte) []byte {
	t.Helper()
	hashed := append([]byte{5, 2}, number(s.made.Unix(), 4)...)
	hashed = append(append(hashed, 22, 33, 4), s.fingerprint()...)
	if kind == 0x13 { // over the key: it may sign
		hashed = append(hashed, 2, 27, 3)
	}
	head := append([]byte{4, kind, 1, 8}, number(int64(len(hashed)), 2)...)
	head = append(head, hashed...)
	trailer := append([]byte{4, 0xff}, number(int64(len(head)), 4)...)
	sum := sha256.Sum256(bytes.Join([][]byte{data, head, trailer}, nil))
	signed, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	issuer := append([]byte{9, 16}, s.fingerprint()[12:]...)
	body := append(append(head, number(int64(len(issuer)), 2)...), issuer...)
	return packet(2, append(append(body, sum[:2]...), mpi(new(big.Int).SetBytes(signed))...))
}

// keyring is the key with its name and the signature that binds them.
func (s signer) keyring(t *testing.T) []byte {
	t.Helper()
	const name = "david's test <test@localhost>"
	bound := append(append(s.framed(), 0xb4), number(int64(len(name)), 4)...)
	return bytes.Join([][]byte{packet(6, s.public), packet(13, []byte(name)), s.signature(t, 0x13, append(bound, name...))}, nil)
}

// detached is an armoured signature of a file.
func (s signer) detached(t *testing.T, data []byte) []byte {
	t.Helper()
	text := base64.StdEncoding.EncodeToString(s.signature(t, 0, data))
	var b strings.Builder
	b.WriteString("-----BEGIN PGP SIGNATURE-----\n\n")
	for len(text) > 64 {
		b.WriteString(text[:64] + "\n")
		text = text[64:]
	}
	b.WriteString(text + "\n-----END PGP SIGNATURE-----\n")
	return []byte(b.String())
}
