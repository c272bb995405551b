package mysqld

import (
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"fmt"

	"filippo.io/edwards25519"
)

// The methods of authentication that david knows. All but sha256Password prove that one has the password without telling it.
const (
	native         = "mysql_native_password"
	cachingSHA2    = "caching_sha2_password"
	sha256Password = "sha256_password"
	ed25519        = "client_ed25519"
)

// What a server says after an answer by caching_sha2_password.
const (
	knownAlready = 3 // it is let in
	tellAll      = 4 // the server has forgotten the password's hash, and wants the password
)

// answer is what the method makes of password and nonce.
func (l *login) answer() ([]byte, error) {
	password := []byte(l.addr.Password)
	switch {
	case l.method == sha256Password && l.encrypted():
		return append(password, 0), nil
	case l.method == native && len(l.nonce) == 20:
		return scramble(password, l.nonce, func(b []byte) []byte { h := sha1.Sum(b); return h[:] }, false), nil
	case l.method == cachingSHA2 && len(l.nonce) == 20:
		return scramble(password, l.nonce, func(b []byte) []byte { h := sha256.Sum256(b); return h[:] }, true), nil
	case l.method == ed25519 && len(l.nonce) == 32:
		return signed(password, l.nonce)
	case l.method == native, l.method == cachingSHA2, l.method == ed25519:
		return nil, hostile("a nonce of %d bytes for %s", len(l.nonce), l.method)
	}
	return nil, l.refused()
}

func (l *login) encrypted() bool { return l.secure && l.addr.Network != "unix" }

// refused says that a method would tell the password, or is not known.
func (l *login) refused() error {
	switch l.method {
	case sha256Password, "mysql_clear_password", "dialog", "mysql_old_password":
		return classified{ErrDowngrade, fmt.Errorf("downgrade refused: the server asks for the password by %s, which tells it", l.method),
			"somebody in between may ask; david logs in by mysql_native_password, caching_sha2_password, client_ed25519, and over TLS by sha256_password"}
	}
	return classified{ErrAccess, fmt.Errorf("the server asks for %.40q, a method david does not know", l.method),
		"use an account with caching_sha2_password, mysql_native_password or ed25519"}
}

// more answers a server that wants more by caching_sha2_password: the password itself, which it gets over TLS or a unix socket
// alone. Else it would go to the RSA key of whoever answers.
func (l *login) more(body []byte) error {
	switch {
	case l.method != cachingSHA2 || len(body) != 1:
	case body[0] == knownAlready:
		return nil
	case body[0] == tellAll && l.secure:
		return l.write(append([]byte(l.addr.Password), 0))
	case body[0] == tellAll:
		return classified{ErrDowngrade, fmt.Errorf("downgrade refused: the server asks for the password itself, and the connection is not encrypted"),
			"set ssl-mode=REQUIRED or stricter, or log in once so: then the server knows the account until it is restarted"}
	}
	return hostile("a step of %s that does not exist", l.method)
}

// scramble is H(password) xor H(nonce, H(H(password))), with the two in the other order for caching_sha2_password
// (https://dev.mysql.com/doc/dev/mysql-server/latest/page_caching_sha2_authentication_exchanges.html).
func scramble(password, nonce []byte, hash func([]byte) []byte, nonceLast bool) []byte {
	if len(password) == 0 {
		return nil
	}
	first := hash(password)
	second := hash(first)
	parts := append(append([]byte{}, nonce...), second...)
	if nonceLast {
		parts = append(second, nonce...)
	}
	for i, b := range hash(parts) {
		first[i] ^= b
	}
	return first
}

// signed is the nonce's signature by Ed25519, with a key that is the password's SHA-512
// (https://mariadb.com/kb/en/authentication-plugin-ed25519/). The standard library takes keys of 32 bytes alone.
func signed(password, nonce []byte) ([]byte, error) {
	key := sha512.Sum512(password)
	secret, err := new(edwards25519.Scalar).SetBytesWithClamping(key[:32])
	if err != nil {
		return nil, err
	}
	public := new(edwards25519.Point).ScalarBaseMult(secret).Bytes()
	r, err := reduced(key[32:], nonce)
	if err != nil {
		return nil, err
	}
	commitment := new(edwards25519.Point).ScalarBaseMult(r).Bytes()
	k, err := reduced(commitment, public, nonce)
	if err != nil {
		return nil, err
	}
	return append(commitment, k.MultiplyAdd(k, secret, r).Bytes()...), nil
}

// reduced is the SHA-512 of the parts as a scalar.
func reduced(parts ...[]byte) (*edwards25519.Scalar, error) {
	h := sha512.New()
	for _, p := range parts {
		h.Write(p)
	}
	return new(edwards25519.Scalar).SetUniformBytes(h.Sum(nil))
}
