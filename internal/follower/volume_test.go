package follower

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/ceph"
	"david/internal/host"
	"david/internal/mycnf"
)

// TestVolumeNames: two followers of one name, of two davids, have clones of two names, and no record makes david
// remove an image, or a folder, that it did not make.
func TestVolumeNames(t *testing.T) {
	leader := ceph.Image{Cluster: ceph.Cluster{Conf: filepath.Join(t.TempDir(), "gone.conf")}, Pool: "mysql", Name: "orders"}
	p := Place{Type: "xfs", Below: "data"}
	v, again := p.volume(leader, "reports"), p.volume(leader, "reports")
	if v.Name == again.Name || !strings.HasPrefix(v.Name, "david-reports-") || v.leaders() != leader {
		t.Errorf("%+v, %+v", v, again)
	}
	if err := v.check(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Volume){
		"another's image":  func(v *Volume) { v.Name = "orders" },
		"an option":        func(v *Volume) { v.Of = "--all" },
		"data elsewhere":   func(v *Volume) { v.Below = "../../etc" },
		"a pool's address": func(v *Volume) { v.Pool = "mysql/x" },
	} {
		bad := *v
		change(&bad)
		if bad.check() == nil {
			t.Errorf("%s is taken: %+v", name, bad)
		}
	}
}

// TestStands: a leader stands still for a snapshot of its image only where it does not write through.
func TestStands(t *testing.T) {
	through := map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1"}
	l := leaderWith(mycnf.MySQL, "9.7.4", through)
	l.Datadir = "/data"
	for way, want := range map[Way]bool{Image: false, Reflink: true} {
		if p := (Plan{Leader: l, Place: Place{Way: way}}); p.Stands() != want {
			t.Errorf("%s: stands %v", way, !want)
		}
	}
	through["sync_binlog"] = "1000"
	l = leaderWith(mycnf.MySQL, "9.7.4", through)
	l.Datadir = "/data"
	if !(Plan{Leader: l, Place: Place{Way: Image}}).Stands() {
		t.Error("sync_binlog=1000 goes on")
	}
}

// TestNotOnImage: a device that is no image is not taken for one.
func TestNotOnImage(t *testing.T) {
	for _, device := range []string{"/dev/vda", "/dev/loop99999", "/dev/rbd99999", "tmpfs", ""} {
		if onImage(device, ceph.Image{Pool: "mysql", Name: "orders"}) {
			t.Errorf("%q is taken for an image", device)
		}
	}
	p := Place{From: t.TempDir()}
	if err := p.imaged(t.Context(), host.Filesystem{Type: "xfs", Device: "/dev/vda"}, ceph.Image{Pool: "-p", Name: "orders"}); !errors.Is(err, ErrInput) {
		t.Error(err)
	}
}
