package check

import (
	"slices"
	"strings"
	"testing"
)

func TestKustomization(t *testing.T) {
	named, unseen, err := Kustomization("kustomization.yaml", []byte("resources: [a.yaml, https://example.com/b]\nnamespace: x\npatches: []\ncommonLabels: {}\n"))
	if err != nil || !slices.Equal(named, []string{"a.yaml", "https://example.com/b"}) {
		t.Errorf("%q, %v", named, err)
	}
	for i, key := range []string{"patches", "namespace", "commonLabels"} {
		if len(unseen) != 3 || !strings.HasPrefix(unseen[i], key+" of kustomization.yaml: ") {
			t.Errorf("not said of %s: %q", key, unseen)
		}
	}
	if _, _, err := Kustomization("kustomization.yaml", []byte("a: [")); err == nil {
		t.Error("what is no YAML was read")
	}
}
