package manifest

import (
	"maps"
	"strings"
	"testing"

	"david/internal/manifest/render"
	"david/internal/mycnf"
)

// TestUnappliable renders a folder twice: what no cluster would make of the first is told, with what to do,
// and nothing else is.
func TestUnappliable(t *testing.T) {
	files := func(req render.Request) map[string][]byte {
		objects, err := Render(req)
		if err != nil {
			t.Fatal(err)
		}
		files, err := render.Folder(req.Name, objects)
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	plain, ops := func(r *render.Request) {}, func(f render.Flavor) func(*render.Request) { return func(r *render.Request) { *r = operated(f, "") } }
	smaller := func(r *render.Request) { r.Size = 20 << 30 }
	larger := func(r *render.Request) { r.Size = 100 << 30 }
	on := func(storage string) func(*render.Request) { return func(r *render.Request) { r.Storage = storage } }
	local := func(node string) func(*render.Request) {
		return func(r *render.Request) { r.Storage, r.Nodes = render.Local, []string{node} }
	}
	folder := func(r *render.Request) { r.Storage, r.Nodes, r.HostPath = render.Local, []string{"node-1"}, true }
	for name, test := range map[string]struct {
		first, second []func(*render.Request)
		want          string
	}{
		"the same":              {[]func(*render.Request){plain}, []func(*render.Request){plain}, ""},
		"more CPUs and memory":  {[]func(*render.Request){plain}, []func(*render.Request){func(r *render.Request) { r.CPUs, r.Memory, r.Replicas, r.Image = 8, 32<<30, 2, "mysql:8.4.7" }}, ""},
		"smaller":               {[]func(*render.Request){plain}, []func(*render.Request){smaller}, "StatefulSet databases/orders have 50Gi, and this would be 20Gi: a volume cannot shrink; give --size 50Gi or more"},
		"larger":                {[]func(*render.Request){plain}, []func(*render.Request){larger}, `patch pvc data-orders-0 -p '{"spec":{"resources":{"requests":{"storage":"100Gi"}}}}', and so each replica's, then kubectl -n databases delete statefulset orders --cascade=orphan`},
		"larger, cannot":        {[]func(*render.Request){on(render.ZFS)}, []func(*render.Request){on(render.ZFS), larger}, "volumes of class david-zfs cannot grow; make a database of another --name"},
		"another class":         {[]func(*render.Request){plain}, []func(*render.Request){on(render.CephRBD)}, "on volumes of class fast, and this would put them on volumes of class david-ceph-rbd-orders: a volume stays what it is; make a database of another --name in a folder of its own, and copy the data, or keep the class with --storage class:fast"},
		"into a folder":         {[]func(*render.Request){local("node-1")}, []func(*render.Request){folder}, "this would put them in a folder of the node (--host-path)"},
		"another node":          {[]func(*render.Request){local("node-1")}, []func(*render.Request){local("node-2")}, "PersistentVolume databases.orders-0 has spec.nodeAffinity"},
		"another server":        {[]func(*render.Request){plain}, []func(*render.Request){func(r *render.Request) { r.Server = mycnf.Percona }}, "spec.selector"},
		"another namespace":     {[]func(*render.Request){plain}, []func(*render.Request){func(r *render.Request) { r.Namespace = "others" }}, "it makes StatefulSet databases/orders, and this would be StatefulSet others/orders: where the first was applied it would run on"},
		"another flavour":       {[]func(*render.Request){plain}, []func(*render.Request){ops(render.PerconaPXC)}, "this would be PerconaXtraDBCluster databases/orders"},
		"operator, smaller":     {[]func(*render.Request){ops(render.PerconaPXC)}, []func(*render.Request){ops(render.PerconaPXC), smaller}, "PerconaXtraDBCluster databases/orders have 50Gi, and this would be 20Gi: a volume cannot shrink"},
		"operator, larger":      {[]func(*render.Request){ops(render.MariaDBOperator)}, []func(*render.Request){ops(render.MariaDBOperator), larger}, ""},
		"operator, other class": {[]func(*render.Request){ops(render.KubeBlocks)}, []func(*render.Request){ops(render.KubeBlocks), on(render.ZFS)}, "Cluster databases/orders are on volumes of class fast"},
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

// TestSeries: the configuration for a series is that of its last release.
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
}
