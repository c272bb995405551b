package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

var update = flag.Bool("update", false, "write the schemas that david holds built-in kinds against anew, from what the API server says")

// servedFile has what david manifest check knows of the built-in kinds.
const servedFile = "../../internal/manifest/check/openapi.json.gz"

// TestServed holds the embedded schemas of built-in kinds against the API server they were made from: what it
// says under /openapi/v3, and what it refuses.
func TestServed(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("an API server takes longer than -short allows")
	}
	a := apiAlone(t)
	text, err := json.Marshal(a.schemas)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		var packed bytes.Buffer
		w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(servedFile, packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Logf("%d bytes, %d without compression", packed.Len(), len(text))
	}
	packed, err := os.Open(servedFile)
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	r, err := gzip.NewReader(packed)
	if err != nil {
		t.Fatal(err)
	}
	held, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(held, text) {
		t.Fatalf("the API server says something else than %s; go test ./test/e2e -run TestServed -update writes it anew", servedFile)
	}
	if *update {
		return // what is compiled in is what was before
	}
	t.Run("agreement", a.agreement)
}

// served are an API server's schemas of the kinds that can be created, trimmed to what decoding into the
// API's types does not find: fields that have to be there, and values out of a list.
type served struct {
	Version string              `json:"version"`
	Kinds   map[string]string   `json:"kinds"` // names of definitions, by "apiVersion Kind"
	Defs    map[string]*trimmed `json:"definitions"`
}

// trimmed is a schema in JSON Schema's draft 4, as OpenAPI's are.
type trimmed struct {
	Ref        string              `json:"$ref,omitempty"` // a definition's name
	Required   []string            `json:"required,omitempty"`
	Enum       []any               `json:"enum,omitempty"`
	Properties map[string]*trimmed `json:"properties,omitempty"`
	Items      *trimmed            `json:"items,omitempty"`
	Values     *trimmed            `json:"additionalProperties,omitempty"`

	empty bool // the API server takes an absent one for an empty one
}

const servedRef = "#/components/schemas/"

// groups lists those of the built-in kinds that david decodes.
func groups() []string {
	return []string{"api/v1", "apis/admissionregistration.k8s.io/v1", "apis/apps/v1", "apis/autoscaling/v1", "apis/autoscaling/v2", "apis/batch/v1", "apis/coordination.k8s.io/v1",
		"apis/discovery.k8s.io/v1", "apis/networking.k8s.io/v1", "apis/node.k8s.io/v1", "apis/policy/v1", "apis/rbac.authorization.k8s.io/v1", "apis/scheduling.k8s.io/v1", "apis/storage.k8s.io/v1"}
}

// apiSaying is an API server without a cluster, and what it says of its kinds.
type apiSaying struct {
	config  *rest.Config
	schemas served
	paths   map[string]string // where objects are created, by "apiVersion Kind"
}

// startAPI starts an API server without nodes, and returns the folder of its programs and that of its files. The test's end takes it down.
func startAPI(t *testing.T) (bin, dir string) {
	t.Helper()
	program, bin, dir := envtestPrograms(t, nil)
	t.Cleanup(func() {
		if out, err := exec.Command(program, "down", "--dir", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	if out, err := exec.Command(program, "envtest", "--dir", dir, "--bin", bin).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return bin, dir
}

// apiAlone starts an API server and asks it for its schemas.
func apiAlone(t *testing.T) *apiSaying {
	t.Helper()
	_, dir := startAPI(t)
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(dir, "admin.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	a := &apiSaying{config: config, paths: map[string]string{}, schemas: served{Kinds: map[string]string{}, Defs: map[string]*trimmed{}}}
	var version struct{ GitVersion string }
	a.get(t, "version", &version)
	a.schemas.Version = version.GitVersion
	for _, group := range groups() {
		a.read(t, group)
	}
	a.schemas.lenient(t)
	a.schemas.demand()
	a.schemas.prune()
	return a
}

// get asks the API server for a document.
func (a *apiSaying) get(t *testing.T, path string, into any) {
	t.Helper()
	client, err := rest.HTTPClientFor(a.config)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := client.Get(a.config.Host + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(into); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%s: %s: %v", path, answer.Status, err)
	}
}

// read takes over one group's document.
func (a *apiSaying) read(t *testing.T, group string) {
	t.Helper()
	var said struct {
		Paths map[string]struct {
			Post *struct {
				RequestBody struct {
					Content map[string]struct {
						Schema struct {
							Ref string `json:"$ref"`
						}
					}
				}
				Kind struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
			}
		}
		Components struct{ Schemas map[string]map[string]any }
	}
	a.get(t, "openapi/v3/"+group, &said)
	for path, op := range said.Paths {
		if op.Post == nil || strings.Contains(path, "{name}") { // of a subresource
			continue
		}
		kind := strings.TrimPrefix(op.Post.Kind.Group+"/"+op.Post.Kind.Version+" "+op.Post.Kind.Kind, "/")
		for _, content := range op.Post.RequestBody.Content {
			a.schemas.Kinds[kind] = strings.TrimPrefix(content.Schema.Ref, servedRef)
		}
		a.paths[kind] = path
	}
	for name, schema := range said.Components.Schemas {
		def, err := trim(schema)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if schema["x-kubernetes-group-version-kind"] != nil {
			delete(def.Properties, "status") // nobody writes it
		}
		a.schemas.Defs[name] = def
	}
}

// trim takes out of a schema what is of use. A word of the language that no schema has had yet is an error:
// it may say something that counts.
func trim(schema map[string]any) (s *trimmed, err error) {
	s = &trimmed{}
	for word, value := range schema {
		switch word {
		case "description", "type", "format": // decoding knows types
		case "oneOf": // of quantities and int-or-string: decoding knows them
		case "default":
			object, is := value.(map[string]any)
			s.empty = is && len(object) == 0
		case "$ref":
			s.Ref = strings.TrimPrefix(value.(string), servedRef)
		case "allOf":
			err = s.merge(value.([]any))
		case "required":
			for _, name := range value.([]any) {
				s.Required = append(s.Required, name.(string))
			}
		case "enum":
			s.Enum = value.([]any)
		case "properties":
			s.Properties = map[string]*trimmed{}
			for name, property := range value.(map[string]any) {
				if s.Properties[name], err = trim(property.(map[string]any)); err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
			}
		case "items":
			s.Items, err = trim(value.(map[string]any))
		case "additionalProperties":
			if of, is := value.(map[string]any); is {
				s.Values, err = trim(of)
			}
		default:
			if !strings.HasPrefix(word, "x-kubernetes-") {
				err = fmt.Errorf("%q in a schema is new: say what becomes of it", word)
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// merge takes over the one reference that a field's schema wraps to describe it.
func (s *trimmed) merge(all []any) error {
	if len(all) != 1 {
		return fmt.Errorf("allOf of %d schemas is new: say what becomes of it", len(all))
	}
	of, err := trim(all[0].(map[string]any))
	if err == nil {
		s.Ref = of.Ref
	}
	return err
}

// children are the schemas in a schema.
func (s *trimmed) children() []*trimmed {
	list := slices.Collect(maps.Values(s.Properties))
	for _, one := range []*trimmed{s.Items, s.Values} {
		if one != nil {
			list = append(list, one)
		}
	}
	return list
}

// lenient drops what the schemas ask for and the API server does without, as agreement finds.
func (s served) lenient(t *testing.T) {
	t.Helper()
	for name, fields := range map[string][]string{
		"apps.v1.ControllerRevision":                      {"revision"},
		"batch.v1.PodFailurePolicy":                       {"rules"},
		"batch.v1.PodFailurePolicyOnPodConditionsPattern": {"status"},
		"core.v1.Event":                                   {"involvedObject", "metadata"},
		"core.v1.HTTPHeader":                              {"value"},
		"core.v1.ISCSIPersistentVolumeSource":             {"lun"},
		"core.v1.ISCSIVolumeSource":                       {"lun"},
		"core.v1.LimitRangeSpec":                          {"limits"},
		"core.v1.PreferredSchedulingTerm":                 {"preference"},
		"core.v1.ScaleIOPersistentVolumeSource":           {"secretRef"},
		"core.v1.ScaleIOVolumeSource":                     {"secretRef"},
		"core.v1.SleepAction":                             {"seconds"},
		"core.v1.Sysctl":                                  {"value"},
		"core.v1.TypedLocalObjectReference":               {"kind", "name"},
		"discovery.v1.EndpointSlice":                      {"endpoints"},
		"discovery.v1.ForZone":                            {"name"},
		"rbac.v1.RoleRef":                                 {"apiGroup"},
		"scheduling.v1.PriorityClass":                     {"value"},
		"storage.v1.CSIDriver":                            {"spec"},
		"storage.v1.CSINode":                              {"spec"},
		"storage.v1.CSINodeSpec":                          {"drivers"},
		"storage.v1.TokenRequest":                         {"audience"},
	} {
		def := s.Defs["io.k8s.api."+name]
		for _, field := range fields {
			at := slices.Index(def.Required, field)
			if at < 0 {
				t.Errorf("%s does not ask for %s: take it from the list", name, field)
				continue
			}
			def.Required = slices.Delete(def.Required, at, at+1)
		}
	}
}

// demand asks for fields that, absent, are taken for empty objects, which lack something: a Deployment
// without a spec has no selector.
func (s served) demand() {
	for changed := true; changed; {
		changed = false
		for _, def := range s.Defs {
			for name, p := range def.Properties {
				of := s.Defs[p.Ref]
				if p.empty && of != nil && len(of.Required) > 0 && !slices.Contains(def.Required, name) {
					def.Required = append(def.Required, name)
					changed = true
				}
			}
		}
	}
	for _, def := range s.Defs {
		slices.Sort(def.Required)
	}
}

// prune drops the schemas that ask for nothing, and those that no kind has.
func (s served) prune() {
	asking := map[string]bool{}
	for before := -1; before != len(asking); {
		before = len(asking)
		for name, def := range s.Defs {
			if def.asks(asking) {
				asking[name] = true
			}
		}
	}
	kept := map[string]bool{}
	for _, name := range s.Kinds {
		if !asking[name] {
			s.Defs[name], kept[name] = &trimmed{}, true // it is known all the same
		}
		s.keep(name, asking, kept)
	}
	maps.DeleteFunc(s.Defs, func(name string, _ *trimmed) bool { return !kept[name] })
}

// asks tells whether a schema asks for anything, given the definitions that do.
func (s *trimmed) asks(asking map[string]bool) bool {
	return len(s.Required) > 0 || len(s.Enum) > 0 || asking[s.Ref] ||
		slices.ContainsFunc(s.children(), func(c *trimmed) bool { return c.asks(asking) })
}

// keep keeps a definition and what it refers to.
func (s served) keep(name string, asking, kept map[string]bool) {
	if kept[name] {
		return
	}
	kept[name] = true
	var visit func(*trimmed)
	visit = func(one *trimmed) {
		if asking[one.Ref] {
			s.keep(one.Ref, asking, kept)
		} else {
			one.Ref = ""
		}
		maps.DeleteFunc(one.Properties, func(_ string, p *trimmed) bool { return !p.asks(asking) })
		if one.Items != nil && !one.Items.asks(asking) {
			one.Items = nil
		}
		if one.Values != nil && !one.Values.asks(asking) {
			one.Values = nil
		}
		for _, c := range one.children() {
			visit(c)
		}
	}
	visit(s.Defs[name])
}
