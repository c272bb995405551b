package mysqld

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"

	"david/internal/input"
)

// TestKeysAreFiles has files of TLS that are endless, or that nobody ever writes to.
func TestKeysAreFiles(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tls := range []TLS{{CA: pipe}, {CA: "/dev/zero"}, {Cert: pipe, Key: "/dev/null"}, {Cert: "/proc/version", Key: pipe}} {
		if _, _, err := tlsConfig(Addr{Network: "tcp", Address: "h:1", TLS: tls}); !errors.Is(err, input.ErrKind) {
			t.Errorf("%+v: got %v", tls, err)
		}
	}
}
