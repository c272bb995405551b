package probe

import (
	"context"
	"os"
	"path/filepath"
	"testing"
)

// TestRandom reads and writes a real file.
func TestRandom(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a:b")
	if err := os.WriteFile(file, make([]byte, 8<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, write := range []bool{false, true} {
		r, err := Random(context.Background(), file, write, 1, nil)
		if err != nil || r.IOPS <= 0 || r.Bytes < 16000*r.IOPS {
			t.Errorf("write %v: %+v, %v", write, r, err)
		}
	}
	if _, err := Random(context.Background(), file+"missing", true, 1, nil); err == nil {
		t.Error("a file that is not there was written")
	}
}

func FuzzParseRate(f *testing.F) {
	f.Add([]byte(`{"jobs":[{"read":{"iops":123.5,"bw_bytes":2023424}}]}`))
	f.Add([]byte(`{"jobs":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parseRate(b, "read"); err == nil && !(r.IOPS > 0 && r.Bytes > 0) {
			t.Errorf("%+v", r)
		}
	})
}
