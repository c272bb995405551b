package manifest

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/manifest/check"
	"david/internal/manifest/operator"
	"david/internal/manifest/render"
	"david/internal/manifest/stream"
	"david/internal/mycnf"
)

// operated makes a request for an operator's flavour, with what it needs.
func operated(f render.Flavor, ha string) render.Request {
	req := tuned()
	req.Flavor = f
	req.HA, req.Replicas = operator.Defaults(f, ha)
	switch f {
	case render.PerconaPXC, render.PerconaPS:
		req.Server = mycnf.Percona
	case render.Moco:
		req.Image = "example/moco-mysql:8.4.6"
	case render.MariaDBOperator:
		req.Server, req.Version, req.Settings = mycnf.MariaDB, mycnf.Version{Major: 11, Minor: 8}, nil
	}
	return req
}

// operatorRequests lists those that have golden files, by name.
func operatorRequests() map[string]render.Request {
	list := map[string]render.Request{}
	for _, f := range render.Flavors()[1:] {
		list[string(f)] = operated(f, "")
	}
	list["kubeblocks-group-replication"] = operated(render.KubeBlocks, operator.HAGroupReplication)
	list["mariadb-operator-semi-sync"] = operated(render.MariaDBOperator, operator.HASemiSync)
	single, exposed, zfs := operated(render.PerconaPXC, render.HANone), operated(render.Oracle, ""), operated(render.Moco, "")
	single.Storage, single.Nodes, single.Secret = render.Local, []string{"node-1"}, "orders-root"
	exposed.Expose, exposed.Password, exposed.Storage, exposed.IOPS = render.LoadBalancer, "not-a-real-one", render.IO2, 12000
	zfs.Storage, zfs.Expose = render.ZFSLocalPV, render.NodePort
	list["percona-pxc-single-local"], list["oracle-exposed-io2"], list["moco-zfs"] = single, exposed, zfs
	for _, f := range []render.Flavor{render.Oracle, render.Moco} {
		host := operated(f, "")
		host.HostNetwork = true
		list[string(f)+"-host-network"] = host
	}
	return list
}

func TestOperatorsGolden(t *testing.T) {
	for name, req := range operatorRequests() {
		got := archive(t, req)
		golden(t, name+".txt", got)
		if again := archive(t, req); !bytes.Equal(got, again) {
			t.Errorf("%s: rendered again, it differs", name)
		}
	}
}

// TestKustomizeKeepsTheOrder: KubeBlocks reads its Parameter before the Cluster, and kustomize's own order
// would be the other way round. What kubectl makes of the folder is looked at where there is one.
func TestKustomizeKeepsTheOrder(t *testing.T) {
	objects, err := Render(operated(render.KubeBlocks, ""))
	if err != nil {
		t.Fatal(err)
	}
	files, err := render.Folder("orders", objects)
	if err != nil {
		t.Fatal(err)
	}
	inOrder := func(what, text, first, second string) {
		t.Helper()
		if a, b := strings.Index(text, first), strings.Index(text, second); a < 0 || b < a {
			t.Errorf("%s: %q at %d, %q at %d:\n%s", what, first, a, second, b, text)
		}
	}
	listed := string(files["kustomization.yaml"])
	inOrder("the folder", listed, "- parameter.yaml\n", "- cluster.yaml\n")
	if !strings.Contains(listed, "sortOptions:\n  order: fifo\n") {
		t.Errorf("kustomize would sort:\n%s", listed)
	}
	if _, err := exec.LookPath("kubectl"); err != nil {
		t.Log("no kubectl here: what it makes of the folder was not looked at")
		return
	}
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("kubectl", "kustomize", dir).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	inOrder("kubectl kustomize", string(out), "\nkind: Parameter\n", "\nkind: Cluster\n")
}

// TestMultus: every flavour's pods get the annotation of a second network where the flavour has it, and what the
// annotation says is what was asked for.
func TestMultus(t *testing.T) {
	for _, f := range render.Flavors() {
		req := tuned()
		if f != render.StatefulSet {
			req = operated(f, "")
		}
		for _, want := range []struct {
			multus string
			mtu    int
			text   string
		}{
			{"storage-net", 0, "storage-net"},
			{"fast/storage-net@net1", 0, "fast/storage-net@net1"},
			{"storage-net", 9000, `[{"name":"storage-net","cni-args":{"mtu":9000}}]`},
			{"fast/storage-net@net1", 9000, `[{"name":"storage-net","namespace":"fast","interface":"net1","cni-args":{"mtu":9000}}]`},
		} {
			req.Multus, req.MTU = want.multus, want.mtu
			found := 0
			for _, d := range readBack(t, req) {
				path := "spec.template.metadata.annotations"
				if view, ok := operator.ViewOf(d); ok {
					path = view.Annotations
				} else if d.Kind() != "StatefulSet" {
					continue
				}
				if got := stream.Text(d.Get(stream.Step(path, render.MultusKey))); got != want.text {
					t.Errorf("%s, %s with MTU %d: %q, not %q", f, want.multus, want.mtu, got, want.text)
				}
				found++
			}
			if found != 1 {
				t.Errorf("%s: %d resources with pods", f, found)
			}
		}
	}
}

func TestOperatorsSayWhatIsReplicated(t *testing.T) {
	for name, req := range operatorRequests() {
		notes, err := Notes(req)
		text := strings.Join(notes, "\n")
		if err != nil || !strings.Contains(text, "eplicated") {
			t.Errorf("%s: %v, %v", name, notes, err)
		}
		if body := string(archive(t, req)); !strings.Contains(strings.ReplaceAll(body, "\n# ", " "), "eplicated: ") && req.HA != render.HANone {
			t.Errorf("%s: the resource does not say what is replicated", name)
		}
	}
}

func TestOperatorsRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*render.Request)
		flavor render.Flavor
		want   string
	}{
		"server":        {func(r *render.Request) { r.Server = mycnf.MariaDB }, render.PerconaPXC, "--server percona"},
		"version":       {func(r *render.Request) { r.Version = mycnf.Version{Major: 9, Minor: 7} }, render.PerconaPXC, "8.0, 8.4, not 9.7"},
		"two of Galera": {func(r *render.Request) { r.Replicas = 2 }, render.PerconaPXC, "takes 3 to 5"},
		"even Galera":   {func(r *render.Request) { r.Replicas = 4 }, render.PerconaPXC, "give 3 or 5"},
		"even group":    {func(r *render.Request) { r.Replicas = 6 }, render.Oracle, "odd number"},
		"separate":      {func(r *render.Request) { r.HA, r.Replicas = render.HANone, 3 }, render.PerconaPS, "no separate servers"},
		"other ha":      {func(r *render.Request) { r.HA = operator.HAGalera }, render.Oracle, "group-replication, none"},
		"no image":      {func(r *render.Request) { r.Image = "" }, render.Moco, "needs --image"},
		"hostPath": {func(r *render.Request) {
			r.Storage, r.Nodes, r.HostPath, r.HA, r.Replicas = render.Local, []string{"n"}, true, render.HANone, 1
		}, render.PerconaPXC, "hostPath does not"},
		"host network of PXC":        {func(r *render.Request) { r.HostNetwork = true }, render.PerconaPXC, "has no field for its pods' network; choose --flavor statefulset, oracle, moco"},
		"host network of PS":         {func(r *render.Request) { r.HostNetwork = true }, render.PerconaPS, "has no field"},
		"host network of KubeBlocks": {func(r *render.Request) { r.HostNetwork = true }, render.KubeBlocks, "has no field"},
		"host network of MariaDB":    {func(r *render.Request) { r.HostNetwork = true }, render.MariaDBOperator, "has no field"},
		"patch":                      {func(r *render.Request) { r.Version = mycnf.Version{Major: 9, Minor: 7, Patch: mycnf.LastOfSeries} }, render.Oracle, "whole version of the server, as --server mysql:8.4.6; 9.7 is a series"},
		"small memory":               {func(r *render.Request) { r.Memory = 512 << 20 }, render.PerconaPXC, "what fits"},
		"name too long":              {func(r *render.Request) { r.Name = strings.Repeat("a", 30) }, render.PerconaPXC, "22"},
		"name of oracle":             {func(r *render.Request) { r.Name = strings.Repeat("a", 41) }, render.Oracle, "40"},
	} {
		req := operated(test.flavor, "")
		test.change(&req)
		_, err := Render(req)
		if !errors.Is(err, render.ErrBad) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestHears: a flag that a flavour does nothing with is refused, and the flavours are named that do; the
// others take it.
func TestHears(t *testing.T) {
	for flag, want := range map[string]struct {
		deaf []render.Flavor
		says string
	}{
		"image":        {[]render.Flavor{render.Oracle, render.KubeBlocks}, "choose --flavor statefulset, percona-pxc, percona-ps, moco, mariadb-operator"},
		"secret":       {[]render.Flavor{render.Moco}, "choose --flavor statefulset, percona-pxc, percona-ps, oracle, kubeblocks, mariadb-operator"},
		"host-network": {[]render.Flavor{render.PerconaPXC, render.PerconaPS, render.KubeBlocks, render.MariaDBOperator}, "choose --flavor statefulset, oracle, moco"},
		"recovery":     {}, // what was measured may be told to any
	} {
		for _, f := range render.Flavors() {
			err := operator.Hears(f, func(given string) bool { return given == flag })
			if deaf := slices.Contains(want.deaf, f); deaf != (err != nil) || deaf && (!errors.Is(err, render.ErrBad) || !strings.Contains(err.Error(), want.says)) {
				t.Errorf("--%s with %s: %v", flag, f, err)
			}
		}
	}
}

// definitions are the operators' real definitions, from their Go modules; without those and a network it
// skips the test.
func definitions(t *testing.T) (check.Schemas, string) {
	t.Helper()
	folder := t.TempDir()
	cmd := exec.Command("go", "run", "-C", "../../test/crds", ".", "-out", folder)
	out, err := cmd.CombinedOutput()
	if err != nil && strings.Contains(string(out), "cannot download") {
		t.Skipf("the operators' definitions cannot be had: %s", out)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	schemas := check.Schemas{}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs, found := check.Read(filepath.Base(file), text)
		if len(found) > 0 {
			t.Fatalf("%s: %v", file, found)
		}
		if err := schemas.Define(docs); err != nil {
			t.Fatal(err)
		}
	}
	return schemas, string(out)
}

// readBack is a request's resources as one stream, read back.
func readBack(t *testing.T, req render.Request) []stream.Document {
	t.Helper()
	objects, err := Render(req)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := render.Encode(&out, objects); err != nil {
		t.Fatal(err)
	}
	docs, found := check.Read("stream.yaml", out.Bytes())
	if len(found) > 0 {
		t.Fatal(found)
	}
	return docs
}

// TestRenderedPassesCheck holds all that david renders against the operators' real definitions and david's
// own rules.
func TestRenderedPassesCheck(t *testing.T) {
	schemas, missing := definitions(t)
	requests := operatorRequests()
	for name, req := range all() {
		requests["statefulset-"+name] = req
	}
	for _, f := range render.Flavors()[1:] {
		req := operated(f, "")
		req.Multus, req.MTU = "storage-net", 9000
		requests[string(f)+"-multus"] = req
	}
	for name, req := range requests {
		t.Run(name, func(t *testing.T) {
			result, err := check.Inspect(readBack(t, req), check.Known{Schemas: schemas, Recovery: req.Recovery})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range result.Findings {
				expected := f.Rule == "no-replication" && name == "statefulset-percona-separate" // what was asked for, and david says so
				if f.Severity != check.SeverityNote && !expected {
					t.Errorf("%s %s %s %s: %s", f.Severity, f.Where(), f.Object, f.Path, f.Why)
				}
			}
			for _, unseen := range result.Unseen {
				if strings.HasPrefix(unseen, "the schema of") {
					t.Skipf("%s; %s", unseen, missing)
				}
			}
		})
	}
}

// TestCheckOperators breaks operators' resources.
func TestCheckOperators(t *testing.T) {
	for name, test := range map[string]struct {
		flavor         render.Flavor
		old, new, rule string
	}{
		"PXC memory":          {render.PerconaPXC, "innodb_buffer_pool_size=12G", "innodb_buffer_pool_size=16G", "memory"},
		"PXC durability":      {render.PerconaPXC, "innodb_flush_log_at_trx_commit=1", "innodb_flush_log_at_trx_commit=0", "durability"},
		"PS budget":           {render.PerconaPS, "maxUnavailable: 1", "minAvailable: 3", "disruption-budget"},
		"Oracle dedicated":    {render.Oracle, "sync_binlog=1\n", "sync_binlog=1\n    innodb_dedicated_server=ON\n", "dedicated-server"},
		"moco memory":         {render.Moco, `innodb_buffer_pool_size: "12G"`, `innodb_buffer_pool_size: "16G"`, "memory"},
		"KubeBlocks memory":   {render.KubeBlocks, `max_connections: "151"`, `max_connections: "9000"`, "memory"},
		"MariaDB requests":    {render.MariaDBOperator, "    requests:\n      cpu: \"4\"", "    requests:\n      cpu: \"2\"", "qos"},
		"MariaDB alone":       {render.MariaDBOperator, "    enabled: true\n", "    enabled: false\n", "no-replication"},
		"password in the PXC": {render.PerconaPXC, "    [mysqld]\n", "    [client]\n    password=hunter2\n    [mysqld]\n", ""},
	} {
		objects, err := Render(operated(test.flavor, ""))
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := render.Encode(&out, objects); err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(out.String(), test.old, test.new)
		if text == out.String() {
			t.Fatalf("%s: there is no %q to break", name, test.old)
		}
		docs, _ := check.Read("x.yaml", []byte(text))
		result, err := check.Inspect(docs, check.Known{})
		if err != nil {
			t.Fatal(err)
		}
		if test.rule != "" && !slices.ContainsFunc(result.Findings, func(f check.Finding) bool { return f.Rule == test.rule }) {
			t.Errorf("%s: not found among %+v", name, result.Findings)
		}
	}
}
