package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the cluster's certificates; they are for days, and its key never leaves the cluster's
// folder.
type authority struct {
	dir  string // where certificates and keys are written
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

const validity = 30 * 24 * time.Hour

// newAuthority writes ca.crt and ca.key, and the key pair with which service accounts' tokens are signed,
// sa.key and sa.pub.
func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("cannot make certificates: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("cannot make certificates: %w", err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "david-e2e"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign | x509.KeyUsageDigitalSignature,
	}
	a := &authority{dir: dir, cert: &template, key: key}
	if err := a.write("ca", &template, key); err != nil {
		return nil, err
	}
	if a.cert, err = readCertificate(filepath.Join(dir, "ca.crt")); err != nil { // with what signing added
		return nil, err
	}
	return a, a.serviceAccounts()
}

func (a *authority) serviceAccounts() error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	if err := writePEM(filepath.Join(a.dir, "sa.pub"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writeKey(filepath.Join(a.dir, "sa.key"), key)
}

// issue writes NAME.crt and NAME.key for a user of a group, or a server at addresses and names.
func (a *authority) issue(name, user, group string, at ...string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("cannot make certificates: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("cannot make certificates: %w", err)
	}
	template := x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user, Organization: []string{group}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, a := range at {
		if ip := net.ParseIP(a); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, a)
		}
	}
	return a.write(name, &template, key)
}

func (a *authority) write(name string, template *x509.Certificate, key *ecdsa.PrivateKey) error {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("cannot make the certificate %s: %w", name, err)
	}
	if err := writePEM(filepath.Join(a.dir, name+".crt"), "CERTIFICATE", der); err != nil {
		return err
	}
	return writeKey(filepath.Join(a.dir, name+".key"), key)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("cannot make a key: %w", err)
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("cannot write a certificate: %w", err)
	}
	return nil
}

func readCertificate(path string) (*x509.Certificate, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s holds no certificate", path)
	}
	return x509.ParseCertificate(block.Bytes)
}

// kubeconfig writes NAME.kubeconfig for the certificate NAME.
func (s *state) kubeconfig(name string) error {
	var data [3]string
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		text, err := os.ReadFile(s.path("pki", file))
		if err != nil {
			return fmt.Errorf("cannot write a kubeconfig: %w", err)
		}
		data[i] = base64.StdEncoding.EncodeToString(text)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
- name: e2e
  cluster: {server: "https://%s:%d", certificate-authority-data: %s}
users:
- name: %s
  user: {client-certificate-data: %s, client-key-data: %s}
contexts:
- name: e2e
  context: {cluster: e2e, user: %s}
current-context: e2e
`, s.HostIP, s.Ports.API, data[0], name, data[1], data[2], name)
	if err := os.WriteFile(s.path(name+".kubeconfig"), []byte(text), 0o600); err != nil {
		return fmt.Errorf("cannot write a kubeconfig: %w", err)
	}
	return nil
}
