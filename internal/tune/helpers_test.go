package tune

import (
	"testing"

	"david/internal/mycnf"
)

const gib = int64(1) << 30

func version(t *testing.T, s string) mycnf.Version {
	t.Helper()
	v, err := mycnf.ParseVersion(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}
