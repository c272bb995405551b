package workload

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"david/internal/mysqld"
)

// sysbench 1.0.20 has no options for keys: with --mysql-ssl=on it wants cacert.pem, client-cert.pem and
// client-key.pem in its working directory, and the client library then insists on a server certificate that
// cacert.pem vouches for.

// keyFolder is such a directory; the zero value is a run without TLS.
type keyFolder struct{ path string }

func (k keyFolder) folder() string {
	if k.path == "" {
		return "/"
	}
	return k.path
}

func (k keyFolder) args() []string {
	if k.path == "" {
		return nil
	}
	return []string{"--mysql-ssl=on"}
}

func (k keyFolder) remove() error {
	if k.path == "" {
		return nil
	}
	return os.RemoveAll(k.path)
}

// prepareTLS connects once as the address says, which also checks the server's name where that is wanted
// (sysbench cannot), and where that connection is encrypted makes the folder with the keys for sysbench to do
// the same.
func (t Target) prepareTLS(ctx context.Context) (k keyFolder, err error) {
	if t.Addr.Network == "unix" { // which never leaves the machine
		return k, nil
	}
	chain, err := mysqld.PeerChain(ctx, t.Addr)
	if err != nil || len(chain) == 0 {
		return k, err
	}
	if k.path, err = os.MkdirTemp(t.Dir, "david-tls-"); err != nil {
		return k, fmt.Errorf("cannot make a folder for the TLS keys: %w", err)
	}
	if err := k.fill(t.Addr.TLS, chain); err != nil {
		return k, errors.Join(fmt.Errorf("cannot write the TLS keys: %w", err), k.remove())
	}
	return k, nil
}

func (k keyFolder) fill(t mysqld.TLS, chain []*x509.Certificate) error {
	ca, err := trusted(t.CA, chain)
	if err != nil {
		return err
	}
	cert, key, err := clientPair(t)
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{"cacert.pem": ca, "client-cert.pem": cert, "client-key.pem": key} {
		if err := os.WriteFile(filepath.Join(k.path, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// trusted returns the user's CA, or where none was given the certificates the server has just shown: without
// a CA, REQUIRED means encryption with whoever answers.
func trusted(file string, chain []*x509.Certificate) ([]byte, error) {
	if file != "" {
		return os.ReadFile(file)
	}
	var out []byte
	for _, c := range chain {
		out = append(out, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})...)
	}
	return out, nil
}

// clientPair returns the user's certificate and key, or a throwaway pair, since sysbench needs one. A server
// with a CA refuses a client certificate that its CA did not sign, though it needs none; so the throwaway one
// has a P-224 key, which TLS 1.3 has no signature for: the client library loads it, finds it useless and
// sends none.
func clientPair(t mysqld.TLS) (cert, key []byte, err error) {
	if t.Cert == "" {
		return throwaway()
	}
	if cert, err = os.ReadFile(t.Cert); err != nil {
		return nil, nil, err
	}
	key, err = os.ReadFile(t.Key)
	return cert, key, err
}

func throwaway() (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P224(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(48 * time.Hour)}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed})
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}
