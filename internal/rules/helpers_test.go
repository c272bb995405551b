package rules

import (
	"testing"

	"david/internal/mycnf"
)

func version(t *testing.T, s string) mycnf.Version {
	t.Helper()
	v, err := mycnf.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
