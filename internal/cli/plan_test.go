package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/plan"
)

// TestPlanExamples runs the cases of docs/plan.md.
func TestPlanExamples(t *testing.T) {
	t.Parallel()
	runShown(t, "../../docs/plan.md", 12)
}

// TestManifestCommands has david manifest render what david plan --kubernetes says, with an option file in
// the place of a tune.
func TestManifestCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cnf := filepath.Join(dir, "my.cnf")
	if err := os.WriteFile(cnf, []byte("[mysqld]\ninnodb_buffer_pool_size=1G\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	rendered := 0
	for _, flavour := range []string{"mysql", "mariadb"} {
		out, errOut, code := david(t, dir, "plan", "--on", "EC2", "--data", "100GiB", "--tps", "50", "--kubernetes", "--flavour", flavour, "--sensitivity=false", "--json")
		if code != exitDone {
			t.Fatal(errOut)
		}
		var p plan.Plan
		if err := json.Unmarshal([]byte(out), &p); err != nil {
			t.Fatal(err)
		}
		for _, c := range p.Choices {
			for _, command := range c.Commands {
				args, ok := strings.CutPrefix(command, "david manifest ")
				if !ok {
					continue
				}
				rendered++
				args = strings.Replace(args, "--from latest", "--cnf "+cnf+" --recovery 60s --server "+flavour, 1)
				args = strings.Replace(strings.Replace(args, "--out k8s", "--stdout", 1), "IMAGE", "moco/mysql:8.4.7", 1)
				if _, errOut, code := david(t, dir, strings.Fields("manifest "+args)...); code != exitDone {
					t.Errorf("%s, %s: %s: exit code %d\n%s", flavour, c.Kind, command, code, errOut)
				}
			}
		}
	}
	if rendered < 7 {
		t.Errorf("%d manifests were rendered", rendered)
	}
}
