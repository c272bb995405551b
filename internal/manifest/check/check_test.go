package check

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"david/internal/manifest/stream"

	"david/internal/manifest"
	"david/internal/manifest/render"
	"david/internal/mycnf"
)

var update = flag.Bool("update", false, "write the golden files anew")

// inspected checks one text.
func inspected(t *testing.T, text string, known Known) Inspection {
	t.Helper()
	docs, found := Read("x.yaml", []byte(text))
	result, err := Inspect(docs, known)
	if err != nil {
		t.Fatal(err)
	}
	result.Findings = append(found, result.Findings...)
	return result
}

// sound renders a stream with nothing to find.
func sound(t *testing.T) string {
	t.Helper()
	return encoded(t, soundRequest())
}

func soundRequest() render.Request {
	return render.Request{
		Name: "orders", Namespace: "databases", Flavor: render.StatefulSet, Server: mycnf.MySQL, Version: mycnf.Version{Major: 8, Minor: 4, Patch: 6},
		CPUs: 4, Memory: 16 << 30, Size: 50 << 30, Storage: render.GP3, IOPS: 6000, Replicas: 1, HA: render.HANone, Expose: render.ClusterIP, Recovery: 40 * time.Second,
		Settings: []mycnf.Setting{{Name: "innodb_buffer_pool_size", Value: "6G", Group: "memory"}, {Name: "innodb_flush_method", Value: "O_DIRECT", Group: "flush"}},
		Measured: render.Measured{CPUs: 2, Memory: 8 << 30, Threads: 16, Tables: 10, WriteIOPS: 4800},
	}
}

// encoded renders a request as a stream.
func encoded(t *testing.T, req render.Request) string {
	t.Helper()
	objects, err := manifest.Render(req)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := render.Encode(&out, objects); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCheckFinds breaks a sound stream in one place at a time.
func TestCheckFinds(t *testing.T) {
	good := sound(t)
	if found := inspected(t, good, Known{}).Findings; len(found) > 0 {
		t.Fatalf("the sound stream: %+v", found)
	}
	const resources = "          resources:\n            limits:\n              cpu: \"4\"\n              memory: 16Gi\n            requests:\n              cpu: \"4\"\n              memory: 16Gi\n"
	for name, test := range map[string]struct {
		old, new string
		rule     string
		severity Severity
		path     string // ends with
		known    Known
	}{
		"unknown field":      {"  serviceName:", "  servicename:", "unknown-field", SeverityError, "spec.servicename", Known{}},
		"field twice":        {"  serviceName:", "  replicas: 1\n  replicas: 2\n  serviceName:", "duplicate-field", SeverityError, "spec.replicas", Known{}},
		"wrong type":         {"maxSkew: 1", "maxSkew: one", "schema", SeverityError, "maxSkew", Known{}},
		"quantity":           {"memory: 16Gi", "memory: 16GiB", "schema", SeverityError, "containers[0].resources", Known{}},
		"yes for a text":     {"david-ebs-gp3-6000iops\n", "yes\n", "schema", SeverityError, "name", Known{}},
		"no name":            {"kind: NetworkPolicy\nmetadata:\n  name: orders\n", "kind: NetworkPolicy\nmetadata:\n", "schema", SeverityError, "metadata", Known{}},
		"bad name":           {"kind: NetworkPolicy\nmetadata:\n  name: orders\n", "kind: NetworkPolicy\nmetadata:\n  name: Orders_1\n", "schema", SeverityError, "metadata.name", Known{}},
		"no kind":            {"kind: NetworkPolicy\n", "", "schema", SeverityError, "", Known{}},
		"no limits":          {resources, "", "qos", SeverityError, "spec.template.spec", Known{}},
		"no limit of memory": {resources, "          resources:\n            limits:\n              cpu: \"4\"\n", "memory", SeverityError, "resources", Known{}},
		"burstable":          {"            requests:\n              cpu: \"4\"", "            requests:\n              cpu: \"2\"", "qos", SeverityWarning, "containers[0].resources", Known{}},
		"half a CPU":         {"cpu: \"4\"", "cpu: 3500m", "qos", SeverityWarning, "resources", Known{}},
		"memory":             {"innodb_buffer_pool_size=12G", "innodb_buffer_pool_size=15G", "memory", SeverityError, `data["my.cnf"]`, Known{}},
		"memory, close":      {"innodb_buffer_pool_size=12G", "innodb_buffer_pool_size=13500M", "memory", SeverityWarning, `data["my.cnf"]`, Known{}},
		"connections":        {"max_connections=151", "max_connections=5000", "memory", SeverityError, `data["my.cnf"]`, Known{}},
		"dedicated":          {"sync_binlog=1\n", "sync_binlog=1\n    innodb_dedicated_server=ON\n", "dedicated-server", SeverityError, `data["my.cnf"]`, Known{}},
		"dedicated, bare":    {"sync_binlog=1\n", "sync_binlog=1\n    loose-innodb-dedicated-server\n", "dedicated-server", SeverityError, `data["my.cnf"]`, Known{}},
		"durability":         {"innodb_flush_log_at_trx_commit=1", "innodb_flush_log_at_trx_commit=2", "durability", SeverityError, `data["my.cnf"]`, Known{}},
		"no my.cnf":          {"[mysqld]", "[mysqld", "my-cnf", SeverityError, `data["my.cnf"]`, Known{}},
		"page size":          {"  type: gp3\n", "  type: gp3\n  recordsize: 128k\n", "page-size", SeverityWarning, "parameters", Known{}},
		"small record":       {"  type: gp3\n", "  type: gp3\n  recordsize: 4k\n", "page-size", SeverityWarning, "parameters", Known{}},
		"recovery":           {"sync_binlog=1", "sync_binlog=1", "startup-probe", SeverityError, "startupProbe", Known{Recovery: time.Hour}},
		"recovery, close":    {"sync_binlog=1", "sync_binlog=1", "startup-probe", SeverityWarning, "startupProbe", Known{Recovery: 5 * time.Minute}},
		"impatient":          {"failureThreshold: 10\n", "failureThreshold: 1\n", "liveness-probe", SeverityWarning, "livenessProbe", Known{}},
		"budget":             {"maxUnavailable: 1", "maxUnavailable: 0", "disruption-budget", SeverityError, "spec.maxUnavailable", Known{}},
		"budget, share":      {"maxUnavailable: 1", "maxUnavailable: 0%", "disruption-budget", SeverityError, "spec.maxUnavailable", Known{}},
		"budget, all":        {"maxUnavailable: 1", "minAvailable: 1", "disruption-budget", SeverityError, "spec.minAvailable", Known{}},
		"budget, 100 %":      {"maxUnavailable: 1", "minAvailable: 100%", "disruption-budget", SeverityError, "spec.minAvailable", Known{}},
		"root":               {"runAsUser: 999", "runAsUser: 0", "root", SeverityError, "securityContext", Known{}},
		"privileged":         {"allowPrivilegeEscalation: false", "privileged: true", "root", SeverityError, "securityContext", Known{}},
		"escalation":         {"allowPrivilegeEscalation: false", "allowPrivilegeEscalation: true", "root", SeverityWarning, "securityContext", Known{}},
		"clear password":     {"- name: MYSQL_ROOT_PASSWORD\n", "- name: MYSQL_PASSWORD\n              value: hunter2\n            - name: MYSQL_ROOT_PASSWORD\n", "clear-secret", SeverityError, "env[0]", Known{}},
		"password in my.cnf": {"    [mysqld]\n", "    [client]\n    password=hunter2\n\n    [mysqld]\n", "clear-secret", SeverityError, `data["my.cnf"]`, Known{}},
		"separate servers":   {"  replicas: 1\n", "  replicas: 3\n", "no-replication", SeverityWarning, "spec.replicas", Known{}},
		"class cannot grow":  {"allowVolumeExpansion: true\n", "", "storage-class", SeverityWarning, "allowVolumeExpansion", Known{}},
		"selector":           {"  selector:\n    matchLabels:\n      app.kubernetes.io/instance: orders\n", "  selector:\n    matchLabels:\n      app.kubernetes.io/instance: other\n", "selector", SeverityError, "spec.selector", Known{}},
		"no volume":          {"- name: tmp\n              mountPath", "- name: temp\n              mountPath", "volumes", SeverityError, "", Known{}},
		"object twice":       {"kind: NetworkPolicy\n", "kind: NetworkPolicy\nmetadata:\n  name: orders\n  namespace: databases\n---\napiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n", "duplicate-object", SeverityError, "metadata.name", Known{}},
		"a list at the top":  {"---\n", "---\n- a\n---\n", "syntax", SeverityError, "", Known{}},
		"no YAML":            {"kind: NetworkPolicy\n", "kind: [\n", "syntax", SeverityError, "", Known{}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(good, test.old, test.new)
			if test.known.Recovery == 0 && text == good {
				t.Fatalf("there is no %q to break", test.old)
			}
			found := inspected(t, text, test.known).Findings
			i := slices.IndexFunc(found, func(f Finding) bool {
				return f.Rule == test.rule && f.Severity == test.severity && strings.HasSuffix(f.Path, test.path)
			})
			if i < 0 {
				t.Fatalf("not found among %+v", found)
			}
			f := found[i]
			if f.Line == 0 || f.File != "x.yaml" || f.Why == "" || f.Do == "" {
				t.Errorf("it does not say where, why and what to do: %+v", f)
			}
			if lines := strings.Split(text, "\n"); f.Line > len(lines) {
				t.Errorf("line %d of %d", f.Line, len(lines))
			}
		})
	}
}

// TestNetworkCost: of a pod in its node's network, of one with a second network and of an MTU it is said what that
// was measured to cost here, or that nobody measured it; of others nothing is said.
func TestNetworkCost(t *testing.T) {
	measured := func() (NetworkCosts, error) {
		at := time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
		of := func(network, against string) []NetworkCost {
			return []NetworkCost{{Network: network, Against: against, Ratio: 0.806, Interval: [2]float64{0.752, 0.863}, Differs: true, Experiment: "compare-1", Measured: at}}
		}
		return NetworkCosts{Pods: of("vxlan", "host"), Macvlan: of("macvlan", "host"), MTU: of("vxlan-mtu9000", "vxlan")}, nil
	}
	const figures = " gave 0.81 [0.75, 0.86] of the transactions/s over "
	for name, test := range map[string]struct {
		change func(*render.Request)
		path   string
		says   []string // where it was measured
		not    []string // where it was not
	}{
		"the usual network": {func(*render.Request) {}, "", nil, nil},
		"the node's": {func(r *render.Request) { r.HostNetwork = true }, "spec.template.spec.hostNetwork",
			[]string{"pod networks cost against that was measured here: vxlan" + figures + "host (compare-1, 2026-11-24)"}, []string{"pod networks cost against that was not measured here"}},
		"a second": {func(r *render.Request) { r.Multus = "storage-net" }, `spec.template.metadata.annotations["k8s.v1.cni.cncf.io/networks"]`,
			[]string{"a second network, storage-net, which Services do not lead to", "macvlan" + figures + "host"}, []string{"was not measured here"}},
		"a second's MTU": {func(r *render.Request) { r.Multus, r.MTU = "fast/storage-net", 9000 }, `spec.template.metadata.annotations["k8s.v1.cni.cncf.io/networks"]`,
			[]string{"macvlan" + figures, "an MTU of 9000", "vxlan-mtu9000" + figures + "vxlan"}, []string{"What another MTU gives was not measured here"}},
	} {
		req := soundRequest()
		test.change(&req)
		for known, says := range map[*Known][]string{{}: test.not, {Networks: measured}: test.says} {
			text := ""
			for _, f := range inspected(t, encoded(t, req), *known).Findings {
				if f.Severity != SeverityNote || f.Rule != "network-cost" || f.Path != test.path || f.Line == 0 {
					t.Errorf("%s: %+v", name, f)
				}
				text += f.Why + "; " + f.Do + "\n"
			}
			for _, want := range says {
				if !strings.Contains(text, want) {
					t.Errorf("%s: without %q: %s", name, want, text)
				}
			}
			if len(says) == 0 && text != "" {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
}

// TestNetworkCostText: a ratio is said as a cost where the record concluded one, and nowhere else.
func TestNetworkCostText(t *testing.T) {
	const figures = "0.97 [0.91, 1.04] of the transactions/s"
	for want, n := range map[string]NetworkCost{
		"vxlan gave " + figures + " over host (study-1, 2026-11-24)":                    {Differs: true},
		"vxlan is equivalent to host: " + figures + " (study-1, 2026-11-24)":            {Alike: true},
		"vxlan is not shown to differ from host: " + figures + " (study-1, 2026-11-24)": {},
	} {
		n.Network, n.Against, n.Ratio, n.Interval, n.Experiment = "vxlan", "host", 0.97, [2]float64{0.91, 1.04}, "study-1"
		n.Measured = time.Date(2026, 11, 24, 0, 0, 0, 0, time.UTC)
		if got := n.text(); got != want {
			t.Errorf("%s; want %s", got, want)
		}
	}
}

// TestCheckNamesTheLine holds the lines of findings against the text.
func TestCheckNamesTheLine(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {x: y1}\ndata:\n  a: b\n  a: c\nimmutabel: true\n"
	found := inspected(t, text, Known{}).Findings
	want := map[string]int{"data.a": 8, "immutabel": 9}
	for _, f := range found {
		if want[f.Path] != f.Line {
			t.Errorf("%s: line %d, want %d", f.Path, f.Line, want[f.Path])
		}
		delete(want, f.Path)
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
}

func TestCheckReadsListsAnchorsAndJSON(t *testing.T) {
	list := `{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "dato": {}}, 7]}`
	if found := inspected(t, list, Known{}).Findings; len(found) != 2 || found[0].Path != "items[1]" || found[1].Path != "dato" {
		t.Errorf("%+v", found)
	}
	anchors := "apiVersion: v1\nkind: ConfigMap\nmetadata: &m\n  name: a\ndata: &d {a: b}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\ndata:\n  <<: {x: y1}\n"
	if found := inspected(t, anchors, Known{}).Findings; len(found) != 0 {
		t.Errorf("%+v", found)
	}
	if found := inspected(t, "", Known{}).Findings; len(found) != 0 {
		t.Errorf("%+v", found)
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n" // ten times ten times ...
	for c := 'b'; c <= 'j'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+",", 10), ",") + "]\n"
	}
	if found := inspected(t, bomb, Known{}).Findings; len(found) != 1 || found[0].Rule != "syntax" {
		t.Errorf("%d findings, %+v", len(found), found[:min(1, len(found))])
	}
}

// TestCheckDefinitions holds custom resources against a definition written for the purpose.
func TestCheckDefinitions(t *testing.T) {
	const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.example.com}
spec:
  group: example.com
  names: {kind: Thing, plural: things}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          required: [spec]
          x-kubernetes-validations: [{rule: "true"}]
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: {type: integer, minimum: 1, maximum: 5}
                share: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
                mode: {type: string, enum: [a, b], nullable: true}
                free: {type: object, x-kubernetes-preserve-unknown-fields: true}
                labels: {type: object, additionalProperties: {type: string}}
                more: {type: number, minimum: 0, exclusiveMinimum: true}
                list: {type: array, items: {type: object, properties: {name: {type: string}}}}
`
	docs, found := stream.Documents("crd.yaml", []byte(definition))
	schemas := Schemas{}
	if err := schemas.Define(docs); err != nil || len(found) > 0 {
		t.Fatal(err, found)
	}
	head := "apiVersion: example.com/v1\nkind: Thing\nmetadata: {name: a}\n"
	for spec, path := range map[string]string{
		"{size: 3, share: 50%, mode: null, free: {x: {y: 1}}, labels: {a: b}, more: 1, list: [{name: x}]}": "",
		"{size: 3, share: 1}":               "",
		"{size: 3, extra: 1}":               "spec.extra",
		"{size: 3, list: [{nam: x}]}":       "spec.list[0].nam",
		"{size: 9}":                         "spec.size",
		"{size: three}":                     "spec.size",
		"{size: 3, share: [1]}":             "spec.share",
		"{size: 3, mode: c}":                "spec.mode",
		"{size: 3, labels: {a: 1}}":         "spec.labels.a",
		"{size: 3, more: 0}":                "spec.more",
		"{}":                                "spec.size",
		"{size: 3}\nmore: 1":                "more",
		"{size: 3}\nmetadata2: {name: a}\n": "metadata2",
	} {
		result := inspected(t, head+"spec: "+spec+"\n", Known{Schemas: schemas})
		switch {
		case path == "" && len(result.Findings) > 0:
			t.Errorf("%s: %+v", spec, result.Findings)
		case path != "" && !slices.ContainsFunc(result.Findings, func(f Finding) bool { return f.Path == path && f.Severity == SeverityError }):
			t.Errorf("%s: %s is not found among %+v", spec, path, result.Findings)
		}
		if len(result.Unseen) != 1 || !strings.Contains(result.Unseen[0], "CEL") {
			t.Errorf("nothing is said of the rules in CEL: %v", result.Unseen)
		}
	}
	result := inspected(t, head+"spec: {size: 3}\n", Known{})
	if len(result.Unseen) != 1 || !strings.Contains(result.Unseen[0], "the schema of example.com/v1 Thing") {
		t.Errorf("an unknown kind: %v", result.Unseen)
	}
	if err := (Schemas{}).Define([]stream.Document{{Value: map[string]any{"kind": "CustomResourceDefinition", "spec": map[string]any{"versions": []any{map[string]any{"name": "v1"}}}}}}); err == nil {
		t.Error("a definition without a schema is taken")
	}
}

// TestCheckOfHandWritten holds a hand-written stream, such as people have, against the rules: it finds what
// an expert would.
func TestCheckOfHandWritten(t *testing.T) {
	text, err := os.ReadFile("testdata/check/by-hand.yaml")
	if err != nil {
		t.Fatal(err)
	}
	result := inspected(t, string(text), Known{})
	got, err := json.MarshalIndent(result, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	const path = "testdata/golden/check-by-hand.json"
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs (%v); go test -update writes it anew. Got:\n%s", path, err, got)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {my.cnf: \"[mysqld]\\nport=1\"}\n---\n")
	f.Add("a: &a [*a]")
	f.Add("? [x]\n: 1")
	f.Add("apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {template: {spec: {containers: [{name: m, image: mysql, volumeMounts: [{name: d, mountPath: /var/lib/mysql}]}]}}}")
	f.Add("apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: {name: a}\nspec: {minAvailable: 1e400}")
	f.Add("<<: {a: b}\nkind: List\napiVersion: v1\nitems: [1]")
	f.Fuzz(func(t *testing.T, text string) {
		docs, _ := stream.Documents("f.yaml", []byte(text))
		result, err := Inspect(docs, Known{Recovery: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range result.Findings {
			if found.Why == "" || found.Do == "" || found.Severity.rank() < 0 {
				t.Errorf("%+v", found)
			}
		}
		if _, err := json.Marshal(result); err != nil {
			t.Error(err)
		}
	})
}

// TestImageOfSeries: an image's tag that names a series means its last release.
func TestImageOfSeries(t *testing.T) {
	series := func(major, minor int) mycnf.Version {
		return mycnf.Version{Major: major, Minor: minor, Patch: mycnf.LastOfSeries}
	}
	for image, want := range map[string]mycnf.Version{"mysql:8.0": series(8, 0), "docker.io/library/mysql:8.0-oracle": series(8, 0), "percona/percona-server:8.0": series(8, 0), "mariadb:10.6": series(10, 6),
		"mysql:8.0.29": {Major: 8, Minor: 0, Patch: 29}, "mysql": series(8, 4), "mysql:lts": series(8, 4), "mariadb:lts": series(11, 4)} {
		if _, v, ok := serverImage(image); !ok || v != want {
			t.Errorf("%s: %v, want %v", image, v, want)
		}
	}
}
