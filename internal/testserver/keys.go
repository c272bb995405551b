package testserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// writeKeys makes ca.pem, server.pem and server-key.pem, the server's for 127.0.0.1 and localhost.
func writeKeys(tb testing.TB, dir string) {
	tb.Helper()
	caKey, serverKey := newKey(tb), newKey(tb)
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "test server"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(serverKey)
	if err != nil {
		tb.Fatal(err)
	}
	caCert := sign(tb, ca, ca, &caKey.PublicKey, caKey)
	writePEM(tb, filepath.Join(dir, "ca.pem"), "CERTIFICATE", caCert)
	// as MySQL does with the keys it makes itself, the CA follows the server's certificate
	writePEM(tb, filepath.Join(dir, "server.pem"), "CERTIFICATE", sign(tb, server, ca, &serverKey.PublicKey, caKey), caCert)
	writePEM(tb, filepath.Join(dir, "server-key.pem"), "PRIVATE KEY", encoded)
}

func newKey(tb testing.TB) *ecdsa.PrivateKey {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		tb.Fatal(err)
	}
	return key
}

func sign(tb testing.TB, c, parent *x509.Certificate, public *ecdsa.PublicKey, key *ecdsa.PrivateKey) []byte {
	tb.Helper()
	der, err := x509.CreateCertificate(rand.Reader, c, parent, public, key)
	if err != nil {
		tb.Fatal(err)
	}
	return der
}

func writePEM(tb testing.TB, path, kind string, blocks ...[]byte) {
	tb.Helper()
	var text []byte
	for _, b := range blocks {
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b})...)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		tb.Fatal(err)
	}
}
