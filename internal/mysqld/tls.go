package mysqld

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// tlsConfig is the Go configuration for a TLS mode; nil for none. fallback says that plaintext will do where the server
// offers no TLS. A unix socket needs no TLS, as for MySQL's clients, unless it is asked for.
func tlsConfig(a Addr) (config *tls.Config, fallback bool, err error) {
	mode := a.TLS.Mode
	if mode == "DISABLED" || a.Network == "unix" && (mode == "" || mode == "PREFERRED") {
		return nil, false, nil
	}
	config = &tls.Config{MinVersion: tls.VersionTLS12, ServerName: hostOf(a)}
	if config.RootCAs, err = roots(a.TLS.CA); err != nil {
		return nil, false, err
	}
	if a.TLS.Cert != "" {
		pair, err := tls.LoadX509KeyPair(a.TLS.Cert, a.TLS.Key)
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
			_, err := verifiedChain(s, config.RootCAs)
			return err
		}
	}
	return config, false, nil
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
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read ssl-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("cannot use ssl-ca %s: it holds no PEM certificate", file)
	}
	return pool, nil
}

func verifiedChain(s tls.ConnectionState, pool *x509.CertPool) ([]*x509.Certificate, error) {
	if len(s.PeerCertificates) == 0 {
		return nil, errors.New("the server sent no certificate")
	}
	intermediates := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	chains, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: pool, Intermediates: intermediates})
	if err != nil {
		return nil, err
	}
	return chains[0], nil
}

// PeerChain connects once as TLS.Mode says and returns the certificates a client that insists on checking must trust: the verified chain for
// the VERIFY modes, else what the server sent. It is empty where the connection is not encrypted.
func PeerChain(ctx context.Context, a Addr) ([]*x509.Certificate, error) {
	config, fallback, err := tlsConfig(a)
	if err != nil || config == nil {
		return nil, err
	}
	var chain []*x509.Certificate
	inner := config.VerifyConnection
	config.VerifyConnection = func(s tls.ConnectionState) (err error) {
		chain = s.PeerCertificates
		if inner != nil {
			chain, err = verifiedChain(s, config.RootCAs)
		} else if len(s.VerifiedChains) > 0 {
			chain = s.VerifiedChains[0]
		}
		return err
	}
	c, err := connect(ctx, a, config, fallback)
	if err != nil {
		return nil, err
	}
	return chain, c.Close()
}
