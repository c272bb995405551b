package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestConfigWithoutHome: a service's user may have no home, or one that is no folder; then there is no config file, least of
// all the working directory's.
func TestConfigWithoutHome(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.MkdirAll(filepath.Join(dir, ".config", "david"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".config", "david", "config.yaml"), []byte("quiet: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, home := range []string{"", ".", "/dev/null", "/nonexistent"} {
		c, err := readConfig(func(name string) string { return map[string]string{"HOME": home}[name] })
		if err != nil || len(c.values) > 0 {
			t.Errorf("HOME=%q: %v, %v", home, c.values, err)
		}
	}
	c, err := readConfig(func(name string) string { return map[string]string{"HOME": dir}[name] })
	if err != nil || c.values["quiet"] != "true" {
		t.Errorf("of a home: %v, %v", c.values, err)
	}
}
