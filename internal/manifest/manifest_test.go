package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"david/internal/manifest/render"
	"david/internal/mycnf"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", "golden", name)
	if *update {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Split(string(want), "\n")
	for i, line := range strings.Split(string(got), "\n") {
		if i >= len(old) || line != old[i] {
			t.Fatalf("%s differs from line %d on; go test -update writes it anew. Got:\n%.300s", path, i+1, line)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s has more lines than it should", path)
	}
}

// tuned makes a request as david manifest --from makes it: from a tune of a smaller machine.
func tuned() render.Request {
	return render.Request{
		Name: "orders", Namespace: "databases", Flavor: render.StatefulSet, Server: mycnf.MySQL, Version: mycnf.Version{Major: 8, Minor: 4, Patch: 6},
		CPUs: 4, Memory: 16 << 30, Size: 50 << 30, Storage: "class:fast", Replicas: 1, HA: render.HANone, Expose: render.ClusterIP,
		Head:     []string{"Derived from a my.cnf that says of itself:", "Tuned by david on 2026-11-20; experiment tune-20261120-101010.", "Workload: oltp_read_write, 10 tables of 1000000 rows, 16 threads."},
		Measured: render.Measured{CPUs: 2, Memory: 8 << 30, Threads: 16, Tables: 10, WriteIOPS: 4800},
		Recovery: 40 * time.Second,
		Settings: []mycnf.Setting{
			{Name: "innodb_buffer_pool_size", Value: "6G", Group: "memory", Reason: "what the search found best within the memory there is", Effect: "without it 0.41x the throughput (4 short pairs, no interval)"},
			{Name: "innodb_redo_log_capacity", Value: "2G", Group: "redo", Reason: "what the search found best", Effect: "without it 0.80x the throughput (4 short pairs, no interval)"},
			{Name: "innodb_io_capacity", Value: "1400", Group: "flush", Reason: "30 % of what was measured"},
			{Name: "innodb_adaptive_hash_index", Value: "OFF", Group: "concurrency", Reason: "what the search found best", Effect: "without it 0.97x the throughput (4 short pairs, no interval)"},
			{Name: "innodb_flush_method", Value: "O_DIRECT", Group: "flush", Reason: "pages are cached once"},
			{Name: "innodb_dedicated_server", Value: "ON", Group: "memory"},
			{Name: "datadir", Value: "/srv/mysql"},
		},
	}
}

// storages make requests for every kind of storage, by the golden file's name.
func storages() map[string]render.Request {
	list := map[string]render.Request{}
	for _, name := range render.Storages() {
		req := tuned()
		req.Storage = name
		switch name {
		case render.Local:
			req.Nodes = []string{"node-1"}
			hostPath := req
			hostPath.HostPath, hostPath.Path = true, "/mnt/nvme0/mysql"
			list["local-hostpath"] = hostPath
		case render.GP3:
			req.IOPS, req.MiBps = 8000, 500
		case render.IO2:
			req.IOPS = 20000
		case render.Hyperdisk:
			req.IOPS, req.MiBps = 10000, 400
		case render.ClassPrefix + "NAME":
			req.Storage = "class:fast"
		}
		list[strings.ReplaceAll(strings.TrimSuffix(name, ":NAME"), ":", "-")] = req
	}
	return list
}

// others are requests that differ in something else.
func otherRequests() map[string]render.Request {
	mariadb, separate, secret := tuned(), tuned(), tuned()
	mariadb.Server, mariadb.Version, mariadb.Expose = mycnf.MariaDB, mycnf.Version{Major: 10, Minor: 11}, render.LoadBalancer
	mariadb.Settings, mariadb.Head, mariadb.Measured, mariadb.Recovery = nil, nil, render.Measured{}, 0
	separate.Server, separate.Replicas, separate.Expose, separate.Storage, separate.Nodes = mycnf.Percona, 2, render.NodePort, render.Local, []string{"node-1", "node-2"}
	secret.Password, secret.Namespace = "not-a-real-one", "default"
	host, second, jumbo := tuned(), tuned(), tuned()
	host.HostNetwork, second.Multus = true, "storage-net"
	jumbo.Multus, jumbo.MTU = "fast/storage-net@net1", 9000
	return map[string]render.Request{"mariadb-loadbalancer": mariadb, "percona-separate": separate, "generated-secret": secret,
		"host-network": host, "multus": second, "multus-mtu": jumbo}
}

func all() map[string]render.Request {
	list := storages()
	maps.Copy(list, otherRequests())
	return list
}

// archive writes a folder as one text.
func archive(t *testing.T, req render.Request) []byte {
	t.Helper()
	objects, err := Render(req)
	if err != nil {
		t.Fatal(err)
	}
	files, err := render.Folder("orders", objects)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&out, "-- %s --\n%s", name, files[name])
	}
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	for name, req := range all() {
		got := archive(t, req)
		golden(t, "statefulset-"+name+".txt", got)
		if again := archive(t, req); !bytes.Equal(got, again) {
			t.Errorf("%s: rendered again, it differs", name)
		}
	}
}

// TestStrict decodes every rendered resource of the API's own kinds into its type: a field that the type does
// not have is an error.
func TestStrict(t *testing.T) {
	types := map[string]func() any{
		"Namespace": func() any { return &corev1.Namespace{} }, "Secret": func() any { return &corev1.Secret{} }, "ConfigMap": func() any { return &corev1.ConfigMap{} },
		"Service": func() any { return &corev1.Service{} }, "StatefulSet": func() any { return &appsv1.StatefulSet{} }, "StorageClass": func() any { return &storagev1.StorageClass{} },
		"PersistentVolume": func() any { return &corev1.PersistentVolume{} }, "PersistentVolumeClaim": func() any { return &corev1.PersistentVolumeClaim{} },
		"PodDisruptionBudget": func() any { return &policyv1.PodDisruptionBudget{} }, "NetworkPolicy": func() any { return &networkingv1.NetworkPolicy{} },
	}
	custom := []string{"CephBlockPool", "VolumeSnapshot", "VolumeSnapshotClass", "Kustomization"}
	seen := map[string]bool{}
	for name, req := range all() {
		objects, err := Render(req)
		if err != nil {
			t.Fatal(err)
		}
		files, err := render.Folder("orders", objects)
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range files {
			if !strings.HasSuffix(file, ".yaml") || strings.HasSuffix(file, ".values.yaml") {
				continue
			}
			var doc map[string]any
			if err := yaml.Unmarshal(text, &doc); err != nil {
				t.Fatalf("%s: %s: %v", name, file, err)
			}
			kind := doc["kind"].(string)
			seen[kind] = true
			if slices.Contains(custom, kind) {
				continue
			}
			if types[kind] == nil {
				t.Fatalf("%s: %s: kind %s has no type in this test", name, file, kind)
			}
			asJSON, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			dec := json.NewDecoder(bytes.NewReader(asJSON))
			dec.DisallowUnknownFields()
			if err := dec.Decode(types[kind]()); err != nil {
				t.Errorf("%s: %s: %v\n%s", name, file, err, text)
			}
		}
	}
	for kind := range types {
		if !seen[kind] {
			t.Errorf("no request renders a %s", kind)
		}
	}
}

// TestGuaranteed holds every rendered pod against what makes the QoS class, and against what a busy or
// recovering server needs.
func TestPod(t *testing.T) {
	for name, req := range all() {
		objects, err := Render(req)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(objects, func(o render.Object) bool { return o.File == "statefulset.yaml" })
		set := objects[i].Value.(*appsv1.StatefulSet)
		pod := set.Spec.Template.Spec
		for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
			for _, r := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
				request, limit := c.Resources.Requests[r], c.Resources.Limits[r]
				if request.IsZero() || request.Cmp(limit) != 0 || r == corev1.ResourceCPU && limit.MilliValue()%1000 != 0 {
					t.Errorf("%s: %s: %s: %v of %v is not Guaranteed with whole CPUs", name, c.Name, r, request, limit)
				}
			}
			for _, word := range slices.Concat(c.Command, c.Args, c.ReadinessProbe.Exec.Command) {
				if req.Password != "" && strings.Contains(word, req.Password) {
					t.Errorf("%s: the password is an argument", name)
				}
			}
			budget := time.Duration(c.StartupProbe.PeriodSeconds*c.StartupProbe.FailureThreshold) * time.Second
			if budget < 3*req.Recovery || req.Recovery == 0 && budget < 10*time.Minute {
				t.Errorf("%s: the start may take %s, and recovery took %s", name, budget, req.Recovery)
			}
		}
		if !isSubset(set.Spec.Selector.MatchLabels, set.Spec.Template.Labels) || set.Spec.Selector.MatchLabels["app.kubernetes.io/instance"] != req.Name {
			t.Errorf("%s: the selector does not find the pods", name)
		}
	}
}

func TestStartupBudget(t *testing.T) {
	for recovery, want := range map[time.Duration]time.Duration{0: 10 * time.Minute, time.Second: 5 * time.Minute, 4 * time.Minute: 12 * time.Minute, 123 * time.Second: 370 * time.Second} {
		if got := (render.Request{Recovery: recovery}).StartupBudget(); got != want {
			t.Errorf("%s: %s, want %s", recovery, got, want)
		}
	}
}

func TestHashFollowsTheConfiguration(t *testing.T) {
	hash := func(req render.Request) string {
		objects, err := Render(req)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(objects, func(o render.Object) bool { return o.File == "statefulset.yaml" })
		return objects[i].Value.(*appsv1.StatefulSet).Spec.Template.Annotations["david/my-cnf-hash"]
	}
	a, b := tuned(), tuned()
	b.Settings[3].Value = "ON"
	if hash(a) == "" || hash(a) != hash(tuned()) || hash(a) == hash(b) {
		t.Error(hash(a), hash(b))
	}
}

// TestRecordSizeIsThePageSize: a dataset whose records are larger than the pages would read and write more
// than a page.
func TestRecordSizeIsThePageSize(t *testing.T) {
	for page, want := range map[string]string{"": "recordsize: 16k", "4K": "recordsize: 4k", "16384": "recordsize: 16k"} {
		req := tuned()
		req.Storage = render.ZFS
		if page != "" {
			req.Settings = append(req.Settings, mycnf.Setting{Name: "innodb_page_size", Value: page, Reason: "asked for"})
		}
		if got := string(archive(t, req)); strings.Count(got, want) != 2 { // of both drivers
			t.Errorf("innodb_page_size=%s: %d times %s", page, strings.Count(got, want), want)
		}
	}
}

// TestClassesOfTheirOwn: two databases whose classes have other parameters have classes of other names, as a
// class cannot be changed.
func TestClassesOfTheirOwn(t *testing.T) {
	class := func(change func(*render.Request)) (string, string) {
		req := tuned()
		change(&req)
		objects, err := Render(req)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			if c, ok := o.Value.(*storagev1.StorageClass); ok {
				if name := req.StorageClassName(); name != c.Name {
					t.Errorf("the claims are of class %s, and it is %s", name, c.Name)
				}
				return c.Name, fmt.Sprint(c.Parameters)
			}
		}
		t.Fatal("no class")
		return "", ""
	}
	named := map[string]string{} // parameters by name
	for what, change := range map[string]func(*render.Request){
		"ceph":              func(r *render.Request) { r.Storage = render.CephRBD },
		"ceph, another":     func(r *render.Request) { r.Storage, r.Name = render.CephRBD, "users" },
		"zfs":               func(r *render.Request) { r.Storage = render.ZFSLocalPV },
		"zfs, another name": func(r *render.Request) { r.Storage, r.Name = render.ZFSLocalPV, "users" },
		"zfs, another pool": func(r *render.Request) { r.Storage, r.Pool = render.ZFSLocalPV, "tank" },
		"zfs, capitals":     func(r *render.Request) { r.Storage, r.Pool = render.ZFSLocalPV, "Tank_1" },
		"zfs, small pages": func(r *render.Request) {
			r.Storage, r.Settings = render.ZFSLocalPV, []mycnf.Setting{{Name: "innodb_page_size", Value: "4K", Reason: "asked for"}}
		},
		"zfs, pool and pages": func(r *render.Request) {
			r.Storage, r.Pool, r.Settings = render.ZFSLocalPV, "tank", []mycnf.Setting{{Name: "innodb_page_size", Value: "4K", Reason: "asked for"}}
		},
		"gp3":               func(r *render.Request) { r.Storage = render.GP3 },
		"gp3, figures":      func(r *render.Request) { r.Storage, r.IOPS, r.MiBps = render.GP3, 6000, 250 },
		"gp3, another name": func(r *render.Request) { r.Storage, r.IOPS, r.MiBps, r.Name = render.GP3, 6000, 250, "users" },
		"gp3, other IOPS":   func(r *render.Request) { r.Storage, r.IOPS, r.MiBps = render.GP3, 7000, 250 },
		"gp3, throughput":   func(r *render.Request) { r.Storage, r.MiBps = render.GP3, 250 },
		"hyperdisk":         func(r *render.Request) { r.Storage, r.IOPS, r.MiBps = render.Hyperdisk, 6000, 250 },
	} {
		name, parameters := class(change)
		if other, there := named[name]; there && other != parameters {
			t.Errorf("%s: class %s has parameters %s, and another's are %s", what, name, parameters, other)
		}
		if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
			t.Errorf("%s: %s: %v", what, name, why)
		}
		named[name] = parameters
	}
	if len(named) != 12 {
		t.Errorf("%d classes, want 12: %v", len(named), named)
	}
	if _, ok := named["david-ebs-gp3-6000iops-250mibps"]; !ok {
		t.Errorf("no class has the figures in its name: %v", named)
	}
}

// TestFollowerRecipe: the claim is cloned in its namespace, with the first server's passwords in it, and the
// recipe's server finds both.
func TestFollowerRecipe(t *testing.T) {
	req := tuned()
	req.Storage = render.CephRBD
	text := string(archive(t, req))
	for _, want := range []string{"--name orders-follower --namespace databases --secret orders-credentials --storage class:david-ceph-rbd-orders\n", "name: data-orders-follower-0\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q", want)
		}
	}
	req.Secret = "mine"
	if text := string(archive(t, req)); !strings.Contains(text, "--secret mine ") {
		t.Error("the recipe names another Secret than the first server has")
	}
}

func TestBadRequests(t *testing.T) {
	for want, change := range map[string]func(*render.Request){
		"no DNS label": func(r *render.Request) { r.Name = "Orders_DB" },
		"no DNS label: lower case letters, digits and dashes, a": func(r *render.Request) { r.Name = "0rders" },
		"45 at most":                  func(r *render.Request) { r.Name = strings.Repeat("a", 46) },
		"--namespace":                 func(r *render.Request) { r.Namespace = "a.b" },
		"belongs to the cluster":      func(r *render.Request) { r.Namespace = "kube-system" },
		"flavour \"helm\" is none":    func(r *render.Request) { r.Flavor = "helm" },
		"is none of zfs":              func(r *render.Request) { r.Storage = "floppy" },
		"no name of a StorageClass":   func(r *render.Request) { r.Storage = "class:" },
		"--secret":                    func(r *render.Request) { r.Secret = "A b" },
		"--image":                     func(r *render.Request) { r.Image = "my sql" },
		"whole CPUs":                  func(r *render.Request) { r.CPUs = 0 },
		"1Gi at least":                func(r *render.Request) { r.Size = 1 << 20 },
		"--replicas 0":                func(r *render.Request) { r.Replicas = 0 },
		"choose clusterip":            func(r *render.Request) { r.Expose = "ingress" },
		"choose mysql":                func(r *render.Request) { r.Server = "oracle" },
		"--recovery":                  func(r *render.Request) { r.Recovery = -time.Second },
		"takes neither":               func(r *render.Request) { r.IOPS = 5000 },
		"give --iops":                 func(r *render.Request) { r.Storage = render.IO2 },
		"has 3000 to 16000":           func(r *render.Request) { r.Storage, r.IOPS = render.GP3, 20000 },
		"has 100 to 50000":            func(r *render.Request) { r.Storage, r.IOPS = render.IO2, 60000 },
		"16384 GiB at most":           func(r *render.Request) { r.Storage, r.Size = render.GP3, 20<<40 },
		"what fits: --throughput 750": func(r *render.Request) { r.Storage, r.MiBps = render.GP3, 1000 },
		"125 to 1000 MiB/s":           func(r *render.Request) { r.Storage, r.MiBps = render.GP3, 50 },
		"follows from its IOPS":       func(r *render.Request) { r.Storage, r.IOPS, r.MiBps = render.IO2, 9000, 500 },
		"give --node NAME":            func(r *render.Request) { r.Storage = render.Local },
		"1 of --node for 2 replicas":  func(r *render.Request) { r.Storage, r.Nodes, r.Replicas = render.Local, []string{"n"}, 2 },
		"--host-path goes":            func(r *render.Request) { r.HostPath = true },
		"cannot share one folder": func(r *render.Request) {
			r.Storage, r.Nodes, r.Replicas, r.HostPath = render.Local, []string{"n", "m"}, 2, true
		},
		"a node is named twice":     func(r *render.Request) { r.Storage, r.Nodes, r.Replicas = render.Local, []string{"n", "n"}, 2 },
		"nobody could connect":      func(r *render.Request) { r.Settings = []mycnf.Setting{{Name: "max_connections", Value: "0"}} },
		"whoever connects would be": func(r *render.Request) { r.Settings = []mycnf.Setting{{Name: "skip_grant_tables"}} },
		"--path \"mnt\"":            func(r *render.Request) { r.Storage, r.Nodes, r.Path = render.Local, []string{"n"}, "mnt" },
		"--path \"/\"":              func(r *render.Request) { r.Storage, r.Nodes, r.Path = render.Local, []string{"n"}, "/" },
		"--node \"A B\"":            func(r *render.Request) { r.Storage, r.Nodes = render.Local, []string{"A B"} },
		"--node and --path go":      func(r *render.Request) { r.Path = "/mnt/x" },
		"no name of a ZFS pool":     func(r *render.Request) { r.Storage, r.Pool = render.ZFS, "a b" },
		"--pool is for zfs and":     func(r *render.Request) { r.Storage, r.Pool = render.GP3, "tank" },
		"lie in it; local":          func(r *render.Request) { r.Storage, r.Nodes, r.Pool = render.Local, []string{"n"}, "david" },
		"nothing is replicated":     func(r *render.Request) { r.HA = "galera" },
		"in its node's network":     func(r *render.Request) { r.HostNetwork, r.Multus = true, "storage" },
		"no pod's to change":        func(r *render.Request) { r.HostNetwork, r.MTU = true, 9000 },
		"add --multus NETWORK":      func(r *render.Request) { r.MTU = 9000 },
		"give 576 to 65535":         func(r *render.Request) { r.Multus, r.MTU = "storage", 90000 },
		"576 to 65535 bytes":        func(r *render.Request) { r.Multus, r.MTU = "storage", -1 },
		"NetworkAttachmentDefinit":  func(r *render.Request) { r.Multus = "a,b" },
		"--multus \"/storage\"":     func(r *render.Request) { r.Multus = "/storage" },
		"--multus \"fast/\"":        func(r *render.Request) { r.Multus = "fast/" },
		"is no name of a link":      func(r *render.Request) { r.Multus = "storage@" },
		"has a link eth0 already":   func(r *render.Request) { r.Multus = "storage@eth0" },
		"has a link lo already":     func(r *render.Request) { r.Multus, r.MTU = "storage@lo", 9000 },
		"\"a/b\" is no name":        func(r *render.Request) { r.Multus = "storage@a/b" },
		"what fits: memory":         func(r *render.Request) { r.Memory = 700 << 20 },
	} {
		req := tuned()
		change(&req)
		_, err := Render(req)
		if !errors.Is(err, render.ErrBad) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

func isSubset(part, whole map[string]string) bool {
	for key, value := range part {
		if whole[key] != value {
			return false
		}
	}
	return true
}
