package probe

import (
	"context"
	"os"
	"testing"
)

// TestWriteIOPS measures a real disk, and leaves nothing on it.
func TestWriteIOPS(t *testing.T) {
	dir := t.TempDir()
	iops, err := WriteIOPS(context.Background(), dir)
	if err != nil || iops <= 0 {
		t.Errorf("%.0f IOPS, %v", iops, err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if _, err := WriteIOPS(context.Background(), dir+"/missing"); err == nil {
		t.Error("a folder that is not there was measured")
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jobs":[{"write":{"iops":123.5}}]}`))
	f.Add([]byte(`{}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if iops, err := parseWriteIOPS(b); err == nil && iops <= 0 {
			t.Errorf("%v", iops)
		}
	})
}
