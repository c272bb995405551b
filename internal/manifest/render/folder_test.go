package render

import (
	"strings"
	"testing"
)

func TestFolder(t *testing.T) {
	files, err := Folder("orders", []Object{
		{File: "b.yaml", Value: map[string]any{"kind": "B"}}, {File: "a.yaml", Value: map[string]any{"kind": "A"}},
		{File: "NOTES.txt", Text: "read me\n", Aside: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(files["kustomization.yaml"]); !strings.Contains(got, "resources:\n  - b.yaml\n  - a.yaml\n") || strings.Contains(got, "NOTES") {
		t.Error(got)
	}
	if string(files["NOTES.txt"]) != marker+"read me\n" || string(files["a.yaml"]) != marker+"kind: A\n" {
		t.Error(files)
	}
	for name, text := range files {
		if !Rendered(text) {
			t.Errorf("%s is not known for david's", name)
		}
	}
	if name, err := Database(files[KustomizationFile]); err != nil || name != "orders" {
		t.Errorf("the folder is %q's: %v", name, err)
	}
	if _, err := Folder("orders", []Object{{File: "a.yaml", Value: 1}, {File: "a.yaml", Value: 2}}); err == nil {
		t.Error("two objects in one file")
	}
}
