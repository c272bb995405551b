package mysqld

import (
	"bytes"
	"crypto/aes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// loginFile writes a file as mysql_config_editor does.
func loginFile(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	raw := []byte("abcdefghijklmnopqrst")
	key := make([]byte, aes.BlockSize)
	for i, c := range raw {
		key[i%aes.BlockSize] ^= c
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	b := append(make([]byte, 4), raw...)
	for line := range strings.Lines(text) {
		n := aes.BlockSize - len(line)%aes.BlockSize
		padded := append([]byte(line), bytes.Repeat([]byte{byte(n)}, n)...)
		for i := 0; i < len(padded); i += aes.BlockSize {
			block.Encrypt(padded[i:], padded[i:i+aes.BlockSize])
		}
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(padded))), padded...)
	}
	path := filepath.Join(t.TempDir(), ".mylogin.cnf")
	if err := os.WriteFile(path, b, mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestReadLoginPath reads a login path over [client], and refuses what is not there, damaged, or others'.
func TestReadLoginPath(t *testing.T) {
	t.Parallel()
	const text = "[client]\nuser = \"app\"\nhost = \"db1\"\n[prod]\nhost = \"db2\"\npassword = \"a#b secret\"\n"
	got, err := ReadLoginPath(loginFile(t, text, 0o600), "prod")
	if err != nil || got["host"] != "db2" || got["user"] != "app" || got["password"] != "a#b secret" {
		t.Errorf("%v, %v", got, err)
	}
	path := loginFile(t, text, 0o600)
	for _, c := range []struct{ path, name, want string }{
		{path, "nosuch", "has none of that name"},
		{loginFile(t, text, 0o644), "prod", "chmod 600"},
		{filepath.Join(t.TempDir(), "none"), "prod", "mysql_config_editor"},
	} {
		if _, err := ReadLoginPath(c.path, c.name); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := range len(whole) { // a file cut anywhere is an error or fewer lines, never a panic
		if text, err := readable(whole[:n]); err == nil && len(text) > len(whole) {
			t.Errorf("%d bytes: %q", n, text)
		}
	}
}
