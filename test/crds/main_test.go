package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRun fetches the real modules; without network and an empty module cache it is skipped.
func TestRun(t *testing.T) {
	out := t.TempDir()
	var notes strings.Builder
	switch err := run(out, "", &notes); {
	case errors.Is(err, errDownload):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	for _, name := range []string{"perconaxtradbclusters.pxc.percona.com", "clusters.apps.kubeblocks.io", "parameters.parameters.kubeblocks.io",
		"mysqlclusters.moco.cybozu.com", "cephblockpools.ceph.rook.io", "volumesnapshotclasses.snapshot.storage.k8s.io"} {
		text, err := os.ReadFile(filepath.Join(out, name+".yaml"))
		if err != nil || !strings.Contains(string(text), "openAPIV3Schema") {
			t.Errorf("%s: %v, or it has no schema", name, err)
		}
	}
	for _, name := range unavailable() {
		if !strings.Contains(notes.String(), name) {
			t.Errorf("nothing says that %s is not there: %s", name, notes.String())
		}
	}
}

func TestExtraFolder(t *testing.T) {
	extra, out, written := t.TempDir(), t.TempDir(), map[string]bool{}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(extra, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("some.yaml", "# a comment\n---\nkind: ConfigMap\nmetadata: {name: x}\n---\nkind: CustomResourceDefinition\n"+
		"metadata:\n  name: mariadbs.k8s.mariadb.com\nspec:\n  names:\n    kind: MariaDB\n---\n"+
		"kind: CustomResourceDefinition\nmetadata:\n  name: others.example.com\n")
	if err := writeExtra(extra, out, written); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(out, "*"))
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "mariadbs.k8s.mariadb.com.yaml" {
		t.Fatalf("written: %v, %v", files, err)
	}
	write("torn.yaml", "kind: [")
	if err := writeExtra(extra, out, written); err == nil || !strings.Contains(err.Error(), "torn.yaml") {
		t.Errorf("a torn file: %v", err)
	}
}

func TestRefuses(t *testing.T) {
	if err := run("", "", io.Discard); err == nil {
		t.Error("no folder is accepted")
	}
	if _, err := pinned("example.com/none"); err == nil {
		t.Error("a module that go.mod does not name is taken")
	}
	none := source{module: "go.yaml.in/yaml/v3", files: []string{"*.yaml"}, kinds: []string{"Nothing"}}
	if err := none.write(t.TempDir(), map[string]bool{}); err == nil || !strings.Contains(err.Error(), "no definition of Nothing") {
		t.Errorf("a kind that is not there: %v", err)
	}
}
