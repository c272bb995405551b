package mysqld

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"

	"david/internal/input"
)

// tlsConfig is the Go configuration for a TLS mode; nil for none. fallback says that plaintext will do where the server
// offers no TLS. A unix socket needs no TLS, as for MySQL's clients, unless it is asked for.
func tlsConfig(a Addr) (config *tls.Config, fallback bool, err error) {
	mode := a.TLS.Mode
	if mode == "DISABLED" || a.Network == "unix" && (mode == "" || mode == "PREFERRED") {
		return nil, false, nil
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: cmp.Or(a.TLS.Name, hostOf(a))}
	if config.RootCAs, err = roots(a.TLS.CA); err != nil {
		return nil, false, err
	}
	if a.TLS.Cert != "" {
		pair, err := keyPair(a.TLS)
		if err != nil {
			return nil, false, fmt.Errorf("cannot load ssl-cert %s with ssl-key %s: %w", a.TLS.Cert, a.TLS.Key, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	switch mode {
	case "", "PREFERRED":
		config.InsecureSkipVerify = true
		return config, true, nil
	case "REQUIRED":
		config.InsecureSkipVerify = true
	case "VERIFY_CA": // Go checks chain and name together, so the chain alone is checked by hand
		config.InsecureSkipVerify = true
		config.VerifyConnection = func(s tls.ConnectionState) error {
			return verified(s, config.RootCAs)
		}
	}
	return config, false, nil
}

// PEMBytes is room enough for a file of certificates or keys: the system's bundle of all authorities has a fifth.
const PEMBytes = 1 << 20

func keyPair(t TLS) (tls.Certificate, error) {
	cert, err := input.Read(t.Cert, PEMBytes)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := input.Read(t.Key, PEMBytes)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// At is the same server by one of its addresses, HOST:PORT; its certificate has to be of the same name as before.
func (a Addr) At(address string) Addr {
	a.TLS.Name, a.Address = cmp.Or(a.TLS.Name, hostOf(a)), address
	return a
}

func hostOf(a Addr) string {
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil { // a socket
		return "localhost"
	}
	return host
}

// roots reads a CA file; nil, the system's, where none is given.
func roots(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	pem, err := input.Read(file, PEMBytes)
	if err != nil {
		return nil, fmt.Errorf("cannot read ssl-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("cannot use ssl-ca %s: it holds no PEM certificate", file)
	}
	return pool, nil
}

func verified(s tls.ConnectionState, pool *x509.CertPool) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the server sent no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: intermediates})
	return err
}

func newDialer(a Addr) (*dialer, error) {
	config, fallback, err := tlsConfig(a)
	d := &dialer{addr: a, tls: config, fallback: fallback}
	d.seen.Store(a.TLS.Seen)
	return d, err
}

// Certificate connects and logs in once as the address says, and returns the certificate that the server has shown and that was
// checked as TLS.Mode says. It is nil where the connection is not encrypted.
func Certificate(ctx context.Context, a Addr) (*x509.Certificate, error) {
	d, err := newDialer(a)
	if err != nil {
		return nil, err
	}
	s, err := d.dial(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot connect to %s: %w", a, classify(err))
	}
	defer s.Close()
	if conn, ok := s.Conn.(*tls.Conn); ok {
		return conn.ConnectionState().PeerCertificates[0], nil
	}
	return nil, nil
}
