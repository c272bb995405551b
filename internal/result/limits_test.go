package result

import (
	"os"
	"testing"
)

// TestKeepLimits keeps limits and finds them again, those of their key only.
func TestKeepLimits(t *testing.T) {
	home := t.TempDir()
	if _, ok, err := KeptLimits(home, "a-1"); ok || err != nil {
		t.Errorf("found %v, %v before any were kept", ok, err)
	}
	one := Limits{Key: "a-1", Syncs: []SyncLimit{{Way: Append, Bytes: 512}}, IO: []IOLimit{{Way: Read, Depth: 8, IOPS: Figure{Value: 5}}}}
	if err := KeepLimits(home, one); err != nil {
		t.Fatal(err)
	}
	got, ok, err := KeptLimits(home, "a-1")
	if err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, found := got.Sync(Append, 512); !found {
		t.Error("the sync is lost")
	}
	if _, found := got.Sync(Overwrite, 512); found {
		t.Error("a sync was found that nobody measured")
	}
	if io, found := got.Find(Read, 8); !found || io.IOPS.Value != 5 {
		t.Errorf("found %+v, %v", io, found)
	}
	if _, found := got.Find(Read, 1); found {
		t.Error("I/O was found that nobody measured")
	}
	if _, ok, _ := KeptLimits(home, "a-2"); ok {
		t.Error("another key's limits were found")
	}
	if err := KeepLimits(home, Limits{Key: "../x"}); err == nil {
		t.Error("a key that is no file name was taken")
	}
	if err := os.WriteFile(limitsPath(home, "a-1"), []byte(`{"schema":1,"syncs":`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := KeptLimits(home, "a-1"); ok || err == nil {
		t.Error("a torn file was read")
	}
}
