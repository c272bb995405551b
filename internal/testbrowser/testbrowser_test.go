package testbrowser

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"testing"
)

// TestAxe: the library is the one that README.md names.
func TestAxe(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(axe))
	if !strings.Contains(string(readme), hex.EncodeToString(sum[:])) {
		t.Errorf("axe.min.js has the SHA-256 %x, which README.md does not name", sum)
	}
}
