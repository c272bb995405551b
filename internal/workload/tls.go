package workload

import (
	"context"
	"crypto/sha1"
	"crypto/x509"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/input"
	"david/internal/mysqld"
)

// sysbench logs in by its client library, which by itself tells the password to whoever asks for it, drops TLS where a server says
// that it has none, and cannot be told otherwise by sysbench's options. But MariaDB's takes "key=value;..." for a host's name, and
// there one can say which methods may be used, which certificate the server must show, and which RSA key is the server's.

// methods are all that sysbench may log in by. None tells the password, but caching_sha2_password, which may do so over TLS or to
// an RSA key; the library looks for a method's name anywhere in this text.
const methods = "mysql_native_password:caching_sha2_password:client_ed25519"

// way is how sysbench gets to a server: its options, and the private folder with the files they name, "" for none.
type way struct {
	path    string
	options []string
}

func (w way) folder() string {
	if w.path == "" {
		return "/"
	}
	return w.path
}

func (w way) remove() error {
	if w.path == "" {
		return nil
	}
	return os.RemoveAll(w.path)
}

// findWay connects once by itself, which checks what sysbench cannot, and over TCP has sysbench keep to what was seen: the very
// certificate, or that the account needs no TLS. What never leaves the machine needs no care.
func (t Target) findWay(ctx context.Context) (w way, err error) {
	if t.Addr.Network == "unix" {
		return way{options: []string{"--mysql-socket=" + t.Addr.Address}}, nil
	}
	deaf := t.Sysbench.obeys()
	if deaf != nil && (!t.Addr.Local() || t.Addr.TLS.Asked()) { // it cannot keep to what was asked
		return w, deaf
	}
	certificate, err := mysqld.Certificate(ctx, t.Addr)
	if err != nil {
		return w, err
	}
	if deaf != nil { // to this machine, or into a tunnel, and nobody asked for more
		host, port := hostPort(t.Addr.Address)
		return way{options: []string{"--mysql-host=" + host, "--mysql-port=" + port}}, nil
	}
	if w.path, err = os.MkdirTemp(t.Dir, "david-keys-"); err != nil {
		return w, fmt.Errorf("cannot make a folder for sysbench's keys: %w", err)
	}
	if err := w.fill(t.Addr, certificate); err != nil {
		return w, errors.Join(err, w.remove())
	}
	return w, nil
}

// obeys makes sure that sysbench's client library is MariaDB's. MySQL's cannot be told to keep to a certificate, and tells the
// password to whoever has any.
func (s Sysbench) obeys() error {
	f, err := elf.Open(s.Path)
	if err != nil {
		return fmt.Errorf("cannot see which client library %s has: %w", s.Path, err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		return fmt.Errorf("cannot see which client library %s has: %w", s.Path, err)
	}
	if !slices.ContainsFunc(libraries, func(l string) bool { return strings.HasPrefix(l, "libmariadb.") }) {
		return fmt.Errorf("%w: %s has MySQL's client library, which may tell the password to whoever sits in between; use a sysbench with "+
			"MariaDB's (Debian's), or the server's socket, be it by ssh -L SOCKET:/var/run/mysqld/mysqld.sock", mysqld.ErrDowngrade, s.Path)
	}
	return nil
}

// fill writes the files and the options. The RSA key is none, so that no password is told to the key of whoever answers: the
// library asks for the server's where it is given no file, and gives up where the file is no key.
func (w *way) fill(a mysqld.Addr, certificate *x509.Certificate) error {
	files := map[string]string{"rsa-key": "none: the password is not for whoever answers\n"}
	host, port := hostPort(a.Address)
	keys := []string{"host", host, "restricted-auth", methods, "server-public-key", filepath.Join(w.path, "rsa-key")}
	if certificate != nil {
		// SHA-1 is all that the library took before 3.4; finding another certificate with the same takes 2^160 tries
		keys = append(keys, "ssl-fp", fmt.Sprintf("%X", sha1.Sum(certificate.Raw)))
		if a.TLS.Cert != "" {
			for _, own := range []struct{ name, file string }{{"ssl-cert", a.TLS.Cert}, {"ssl-key", a.TLS.Key}} {
				text, err := input.Read(own.file, mysqld.PEMBytes)
				if err != nil {
					return fmt.Errorf("cannot read %s: %w", own.name, err)
				}
				files[own.name], keys = string(text), append(keys, own.name, filepath.Join(w.path, own.name))
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(w.path, name), []byte(text), 0o600); err != nil {
			return fmt.Errorf("cannot write sysbench's keys: %w", err)
		}
	}
	text, err := connection(keys)
	w.options = []string{"--mysql-host=" + text, "--mysql-port=" + port}
	return err
}

// connection writes keys and values as MariaDB's client library reads them: key={value};... sysbench splits it at commas.
func connection(keys []string) (string, error) {
	var text strings.Builder
	for i := 0; i < len(keys); i += 2 {
		if strings.ContainsAny(keys[i+1], "{},;") {
			return "", fmt.Errorf("cannot tell sysbench %s %q: it must not hold any of { } , ;", keys[i], keys[i+1])
		}
		fmt.Fprintf(&text, "%s={%s};", keys[i], keys[i+1])
	}
	return text.String(), nil
}
