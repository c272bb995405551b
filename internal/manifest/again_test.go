package manifest

import (
	"maps"
	"strings"
	"testing"

	"david/internal/mycnf"
)

// TestUnappliable renders a folder twice: what no cluster would make of the first is told, with what to do, and nothing else is.
func TestUnappliable(t *testing.T) {
	files := func(req Request) map[string][]byte {
		objects, err := Render(req)
		if err != nil {
			t.Fatal(err)
		}
		files, err := Folder(req.Name, objects)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	plain, ops := func(r *Request) {}, func(f Flavor) func(*Request) { return func(r *Request) { *r = operated(f, "") } }
	smaller := func(r *Request) { r.Size = 20 << 30 }
	larger := func(r *Request) { r.Size = 100 << 30 }
	on := func(storage string) func(*Request) { return func(r *Request) { r.Storage = storage } }
	local := func(node string) func(*Request) {
		return func(r *Request) { r.Storage, r.Nodes = Local, []string{node} }
	}
	folder := func(r *Request) { r.Storage, r.Nodes, r.HostPath = Local, []string{"node-1"}, true }
	for name, test := range map[string]struct {
		first, second []func(*Request)
		want          string
	}{
		"the same":              {[]func(*Request){plain}, []func(*Request){plain}, ""},
		"more CPUs and memory":  {[]func(*Request){plain}, []func(*Request){func(r *Request) { r.CPUs, r.Memory, r.Replicas, r.Image = 8, 32<<30, 2, "mysql:8.4.7" }}, ""},
		"smaller":               {[]func(*Request){plain}, []func(*Request){smaller}, "StatefulSet databases/orders have 50Gi, and this would be 20Gi: a volume cannot shrink; give --size 50Gi or more"},
		"larger":                {[]func(*Request){plain}, []func(*Request){larger}, `patch pvc data-orders-0 -p '{"spec":{"resources":{"requests":{"storage":"100Gi"}}}}', and so each replica's, then kubectl -n databases delete statefulset orders --cascade=orphan`},
		"larger, cannot":        {[]func(*Request){on(ZFS)}, []func(*Request){on(ZFS), larger}, "volumes of class david-zfs cannot grow; make a database of another --name"},
		"another class":         {[]func(*Request){plain}, []func(*Request){on(CephRBD)}, "on volumes of class fast, and this would put them on volumes of class david-ceph-rbd-orders: a volume stays what it is; make a database of another --name in a folder of its own, and copy the data, or keep the class with --storage class:fast"},
		"into a folder":         {[]func(*Request){local("node-1")}, []func(*Request){folder}, "this would put them in a folder of the node (--host-path)"},
		"another node":          {[]func(*Request){local("node-1")}, []func(*Request){local("node-2")}, "PersistentVolume databases.orders-0 has spec.nodeAffinity"},
		"another server":        {[]func(*Request){plain}, []func(*Request){func(r *Request) { r.Server = mycnf.Percona }}, "spec.selector"},
		"another namespace":     {[]func(*Request){plain}, []func(*Request){func(r *Request) { r.Namespace = "others" }}, "it makes StatefulSet databases/orders, and this would be StatefulSet others/orders: where the first was applied it would run on"},
		"another flavour":       {[]func(*Request){plain}, []func(*Request){ops(PerconaPXC)}, "this would be PerconaXtraDBCluster databases/orders"},
		"operator, smaller":     {[]func(*Request){ops(PerconaPXC)}, []func(*Request){ops(PerconaPXC), smaller}, "PerconaXtraDBCluster databases/orders have 50Gi, and this would be 20Gi: a volume cannot shrink"},
		"operator, larger":      {[]func(*Request){ops(MariaDBOperator)}, []func(*Request){ops(MariaDBOperator), larger}, ""},
		"operator, other class": {[]func(*Request){ops(KubeBlocks)}, []func(*Request){ops(KubeBlocks), on(ZFS)}, "Cluster databases/orders are on volumes of class fast"},
	} {
		first, second := tuned(), tuned()
		for _, change := range test.first {
			change(&first)
		}
		for _, change := range test.second {
			change(&second)
		}
		got := Unappliable(files(first), files(second))
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	changed := files(tuned())
	changed["storageclass.yaml"] = []byte("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\nparameters: {type: gp2}\n")
	again := maps.Clone(changed)
	again["storageclass.yaml"] = []byte("apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: c}\nparameters: {type: gp3}\n")
	if got := Unappliable(changed, again); !strings.Contains(got, `has parameters {"type":"gp2"}, and this would be {"type":"gp3"}`) || !strings.Contains(got, "kubectl delete storageclass c first") {
		t.Error(got)
	}
}

// TestSeries: the configuration for a series is that of its last release, and an image's tag that names a series means it.
func TestSeries(t *testing.T) {
	series := func(major, minor int) mycnf.Version {
		return mycnf.Version{Major: major, Minor: minor, Patch: mycnf.LastOfSeries}
	}
	req := tuned()
	req.Version, req.Settings, req.FromTune = series(8, 0), nil, false
	if got := valuesOf(t, req); got["innodb_redo_log_capacity"] == "" || got["innodb_log_file_size"] != "" {
		t.Errorf("8.0 is taken for 8.0.0: %v", got)
	}
	if text := string(archive(t, req)); !strings.Contains(text, "image: mysql:8.0\n") || !strings.Contains(text, "the configuration is for mysql 8.0\n") {
		t.Error(text)
	}
	for image, want := range map[string]mycnf.Version{"mysql:8.0": series(8, 0), "docker.io/library/mysql:8.0-oracle": series(8, 0), "percona/percona-server:8.0": series(8, 0), "mariadb:10.6": series(10, 6),
		"mysql:8.0.29": {Major: 8, Minor: 0, Patch: 29}, "mysql": series(8, 4), "mysql:lts": series(8, 4), "mariadb:lts": series(11, 4)} {
		if _, v, ok := serverImage(image); !ok || v != want {
			t.Errorf("%s: %v, want %v", image, v, want)
		}
	}
}
