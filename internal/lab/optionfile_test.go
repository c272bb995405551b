package lab

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestIncludes reads what an option file includes where it includes it, a folder's .cnf files in the order of
// their names.
func TestIncludes(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "conf.d"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"my.cnf":       "[mysqld]\nport=0\n!includedir " + dir + "/conf.d\nback_log=6\n",
		"conf.d/1.cnf": "[mysqld]\nport=1\n", "conf.d/2.cnf": "[mysqld]\nport=2\nback_log=5\n", "conf.d/3.txt": "no option file",
		"gone.cnf": "!include " + dir + "/nowhere.cnf\n",
		"loop.cnf": "!include " + dir + "/loop.cnf\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := ReadCnf(filepath.Join(dir, "my.cnf"))
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Settings("mysqld"); len(got) != 2 || got[0].Value != "2" || got[1].Value != "6" {
		t.Errorf("%+v", got)
	}
	for name, want := range map[string]string{"gone.cnf": "cannot include " + dir + "/nowhere.cnf at", "loop.cnf": "more than 10 files deep"} {
		if _, err := ReadCnf(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) || FaultOf(err) != Input {
			t.Errorf("%s: %v", name, err)
		}
	}
}
