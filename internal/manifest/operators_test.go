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

	"david/internal/mycnf"
)

// operated is a request for an operator's flavour, with what it needs.
func operated(f Flavor, ha string) Request {
	req := tuned()
	req.Flavor = f
	req.HA, req.Replicas = f.Defaults(ha)
	switch f {
	case PerconaPXC, PerconaPS:
		req.Server = mycnf.Percona
	case Moco:
		req.Image = "example/moco-mysql:8.4.6"
	case MariaDBOperator:
		req.Server, req.Version, req.Settings = mycnf.MariaDB, mycnf.Version{Major: 11, Minor: 8}, nil
	}
	return req
}

// operatorRequests are those that have golden files, by name.
func operatorRequests() map[string]Request {
	list := map[string]Request{}
	for f := range managers() {
		list[string(f)] = operated(f, "")
	}
	list["kubeblocks-group-replication"] = operated(KubeBlocks, HAGroupReplication)
	list["mariadb-operator-semi-sync"] = operated(MariaDBOperator, HASemiSync)
	single, exposed, zfs := operated(PerconaPXC, HANone), operated(Oracle, ""), operated(Moco, "")
	single.Storage, single.Nodes, single.Secret = Local, []string{"node-1"}, "orders-root"
	exposed.Expose, exposed.Password, exposed.Storage, exposed.IOPS = LoadBalancer, "not-a-real-one", IO2, 12000
	zfs.Storage, zfs.Expose = ZFSLocalPV, NodePort
	list["percona-pxc-single-local"], list["oracle-exposed-io2"], list["moco-zfs"] = single, exposed, zfs
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

// TestOperatorsKeepTheConfiguration looks for what an operator would undo in what it is given.
func TestOperatorsKeepTheConfiguration(t *testing.T) {
	lines := func(f Flavor, own ...mycnf.Setting) map[string]string {
		req := operated(f, "")
		req.Settings = append(req.Settings, own...)
		d, err := managers()[f].deployment(req)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		m := map[string]string{}
		for _, s := range d.settings {
			m[s.Name] = s.Value
			if s.Reason == "" && s.Name != own[0].Name {
				t.Errorf("%s: %s has no reason", f, s.Name)
			}
		}
		for _, name := range []string{"server_id", "gtid_mode", "log_bin"} {
			if _, there := m[name]; there {
				t.Errorf("%s: %s is the operator's", f, name)
			}
		}
		return m
	}
	tunedLine := mycnf.Setting{Name: "performance_schema", Value: "OFF", Group: "logging"}
	for f := range managers() {
		got := lines(f, tunedLine, mycnf.Setting{Name: "server_id", Value: "7"}, mycnf.Setting{Name: "gtid_mode", Value: "OFF"}, mycnf.Setting{Name: "log_bin", Value: "OFF"})
		for name, want := range map[string]string{"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "max_connections": "151"} {
			if got[name] != want {
				t.Errorf("%s: %s=%q, want %s", f, name, got[name], want)
			}
		}
		if got["innodb_buffer_pool_size"] == "" {
			t.Errorf("%s: the operator would size the pool", f)
		}
		want := map[Flavor]string{PerconaPXC: "OFF", KubeBlocks: "OFF", MariaDBOperator: "OFF", PerconaPS: "ON", Oracle: "ON", Moco: "ON"}[f]
		if got["performance_schema"] != want {
			t.Errorf("%s: performance_schema=%s, want %s", f, got["performance_schema"], want)
		}
	}
	if got := lines(Moco, tunedLine); got["table_open_cache"] != "4000" || got["innodb_adaptive_hash_index"] != "OFF" || got["binlog_transaction_compression"] != "OFF" {
		t.Errorf("moco's own defaults stay: %v", got)
	}
	if got := lines(Moco, mycnf.Setting{Name: "table_open_cache", Value: "9000"}); got["table_open_cache"] != "9000" {
		t.Errorf("the tune's own line does not win: %v", got["table_open_cache"])
	}
	if got := lines(KubeBlocks, mycnf.Setting{Name: "innodb_page_size", Value: "16K"}); got["innodb_page_size"] != "" || got["general_log"] != "OFF" || got["slave_exec_mode"] != "STRICT" {
		t.Errorf("KubeBlocks: %v", got)
	}
}

// TestKustomizeKeepsTheOrder: KubeBlocks reads its Parameter before the Cluster, and kustomize's own order would be the other way round. What
// kubectl makes of the folder is looked at where there is one.
func TestKustomizeKeepsTheOrder(t *testing.T) {
	objects, err := Render(operated(KubeBlocks, ""))
	if err != nil {
		t.Fatal(err)
	}
	files, err := Folder("orders", objects)
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

func TestOperatorsSayWhatIsReplicated(t *testing.T) {
	for name, req := range operatorRequests() {
		notes, err := Notes(req)
		text := strings.Join(notes, "\n")
		if err != nil || !strings.Contains(text, "eplicated") {
			t.Errorf("%s: %v, %v", name, notes, err)
		}
		if body := string(archive(t, req)); !strings.Contains(strings.ReplaceAll(body, "\n# ", " "), "eplicated: ") && req.HA != HANone {
			t.Errorf("%s: the resource does not say what is replicated", name)
		}
	}
}

func TestOperatorsRefuse(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*Request)
		flavor Flavor
		want   string
	}{
		"server":        {func(r *Request) { r.Server = mycnf.MariaDB }, PerconaPXC, "--server percona"},
		"version":       {func(r *Request) { r.Version = mycnf.Version{Major: 9, Minor: 7} }, PerconaPXC, "8.0, 8.4, not 9.7"},
		"two of Galera": {func(r *Request) { r.Replicas = 2 }, PerconaPXC, "takes 3 to 5"},
		"even Galera":   {func(r *Request) { r.Replicas = 4 }, PerconaPXC, "give 3 or 5"},
		"even group":    {func(r *Request) { r.Replicas = 6 }, Oracle, "odd number"},
		"separate":      {func(r *Request) { r.HA, r.Replicas = HANone, 3 }, PerconaPS, "no separate servers"},
		"other ha":      {func(r *Request) { r.HA = HAGalera }, Oracle, "group-replication, none"},
		"no image":      {func(r *Request) { r.Image = "" }, Moco, "needs --image"},
		"hostPath": {func(r *Request) {
			r.Storage, r.Nodes, r.HostPath, r.HA, r.Replicas = Local, []string{"n"}, true, HANone, 1
		}, PerconaPXC, "hostPath does not"},
		"patch":          {func(r *Request) { r.Version = mycnf.Version{Major: 9, Minor: 7, Patch: mycnf.LastOfSeries} }, Oracle, "whole version of the server, as --server mysql:8.4.6; 9.7 is a series"},
		"small memory":   {func(r *Request) { r.Memory = 512 << 20 }, PerconaPXC, "what fits"},
		"name too long":  {func(r *Request) { r.Name = strings.Repeat("a", 30) }, PerconaPXC, "22"},
		"name of oracle": {func(r *Request) { r.Name = strings.Repeat("a", 41) }, Oracle, "40"},
	} {
		req := operated(test.flavor, "")
		test.change(&req)
		_, err := Render(req)
		if !errors.Is(err, ErrBad) || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
}

// TestHears: a flag that a flavour does nothing with is refused, and the flavours are named that do; the others take it.
func TestHears(t *testing.T) {
	for flag, want := range map[string]struct {
		deaf []Flavor
		says string
	}{
		"image":    {[]Flavor{Oracle, KubeBlocks}, "choose --flavor statefulset, percona-pxc, percona-ps, moco, mariadb-operator"},
		"secret":   {[]Flavor{Moco}, "choose --flavor statefulset, percona-pxc, percona-ps, oracle, kubeblocks, mariadb-operator"},
		"recovery": {}, // what was measured may be told to any
	} {
		for _, f := range Flavors() {
			err := f.Hears(func(given string) bool { return given == flag })
			if deaf := slices.Contains(want.deaf, f); deaf != (err != nil) || deaf && (!errors.Is(err, ErrBad) || !strings.Contains(err.Error(), want.says)) {
				t.Errorf("--%s with %s: %v", flag, f, err)
			}
		}
	}
}

// definitions are the operators' real definitions, from their Go modules; without those and a network it skips the test.
func definitions(t *testing.T) (Schemas, string) {
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
	schemas := Schemas{}
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs, found := Documents(filepath.Base(file), text)
		if len(found) > 0 {
			t.Fatalf("%s: %v", file, found)
		}
		if err := schemas.Define(docs); err != nil {
			t.Fatal(err)
		}
	}
	return schemas, string(out)
}

// stream is a request's resources as one stream, read back.
func stream(t *testing.T, req Request) []Document {
	t.Helper()
	objects, err := Render(req)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := Encode(&out, objects); err != nil {
		t.Fatal(err)
	}
	docs, found := Documents("stream.yaml", out.Bytes())
	if len(found) > 0 {
		t.Fatal(found)
	}
	return docs
}

// TestRenderedPassesCheck holds all that david renders against the operators' real definitions and david's own rules.
func TestRenderedPassesCheck(t *testing.T) {
	schemas, missing := definitions(t)
	requests := operatorRequests()
	for name, req := range all() {
		requests["statefulset-"+name] = req
	}
	for name, req := range requests {
		t.Run(name, func(t *testing.T) {
			result, err := Inspect(stream(t, req), Known{Schemas: schemas, Recovery: req.Recovery})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range result.Findings {
				expected := f.Rule == "no-replication" && name == "statefulset-percona-separate" // what was asked for, and david says so
				if f.Severity != SeverityNote && !expected {
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
