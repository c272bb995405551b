package testserver

import (
	"os"
	"path/filepath"
	"testing"
)

// TestClaim: nobody has a folder that another has, and what was left in one is found by the next.
func TestClaim(t *testing.T) {
	root := t.TempDir()
	first, free, err := Claim(root)
	if err != nil {
		t.Fatal(err)
	}
	second, freeSecond, err := Claim(root)
	if err != nil || second == first {
		t.Fatalf("%s and %s, %v", first, second, err)
	}
	defer freeSecond()
	left := filepath.Join(first, "left")
	if err := os.WriteFile(left, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	free()
	again, free, err := Claim(root)
	if err != nil || again != first {
		t.Fatalf("%s, %v: %s is free", again, err, first)
	}
	defer free()
	if _, err := os.Stat(left); err != nil {
		t.Error(err)
	}
	if _, free, err := Claim(filepath.Join(root, "none")); err == nil {
		free()
		t.Error("a folder was made below one that is not there")
	}
}
