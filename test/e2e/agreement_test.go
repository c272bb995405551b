package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"david/internal/manifest/check"
	"david/internal/manifest/stream"
)

// variant is an object that was taken, with one thing changed.
type variant struct {
	kind, of string // "v1 Pod" and "v1 Pod a"
	change   string // ".spec.replicas removed"; "" of the sound one
	object   map[string]any
	refused  string // by the API server; "" where it takes it
	found    []check.Finding
}

// agreement changes objects that the API server takes, one field at a time, and holds what david finds
// against what it says: whatever david finds it refuses, and each field that the schemas ask for david misses
// where it is not there.
func (a *apiSaying) agreement(t *testing.T) {
	a.create(t, "v1 ServiceAccount", `{"metadata": {"name": "default"}}`) // no controller makes it here
	sound := accepted(t)
	variants, asked := slices.Clone(sound), map[string][]string{}
	for _, v := range sound {
		all := changes(v)
		inspect(t, append([]*variant{v}, all...)) // each for itself: rules look at all objects of a stream
		variants = append(variants, all...)
		a.schemas.met(v, asked)
	}
	variants = slices.DeleteFunc(variants, func(v *variant) bool { return v.change != "" && len(v.found) == 0 })
	a.judge(t, variants)
	found := map[string]bool{}
	for _, v := range variants {
		found[v.of+v.change] = true
		switch {
		case v.change == "" && (v.refused != "" || len(v.found) > 0):
			t.Errorf("%s: it is sound, and refused: %s%v", v.of, v.refused, v.found)
		case v.refused == "" && len(v.found) > 0:
			t.Errorf("%s: the API server takes it, and david does not: %+v", v.of+v.change, v.found)
		}
		if path, twice := repeated(v.found); twice {
			t.Errorf("%s: said twice of %s: %+v", v.of+v.change, path, v.found)
		}
	}
	for _, what := range a.schemas.asked() {
		if len(asked[what]) == 0 && !slices.Contains(unheld(), strings.TrimPrefix(what, "io.k8s.api.core.v1.")) {
			t.Errorf("no object in testdata/accepted has %s: nothing holds it against the API server", what)
		}
		for _, change := range asked[what] {
			if !found[change] {
				t.Errorf("%s: david finds nothing", change)
			}
		}
	}
}

// unheld lists what the schemas ask for and an API server as it comes cannot be asked about: what is created
// otherwise, and what a feature gate hides.
func unheld() []string {
	return []string{"Binding.target", "EphemeralContainer.name", "EphemeralContainer.imagePullPolicy among", "EphemeralContainer.terminationMessagePolicy among",
		"ConfigMapNodeConfigSource.kubeletConfigKey", "ConfigMapNodeConfigSource.name", "ConfigMapNodeConfigSource.namespace",
		"ClusterTrustBundleProjection.path", "ContainerRestartRule.action", "ContainerRestartRuleOnExitCodes.operator", "FileKeySelector.key", "FileKeySelector.path",
		"FileKeySelector.volumeName", "ImageVolumeSource.pullPolicy among", "Lifecycle.stopSignal among", "PodCertificateProjection.keyType", "PodCertificateProjection.signerName"}
}

// accepted are the objects that manifest's tests take for sound.
func accepted(t *testing.T) (list []*variant) {
	t.Helper()
	files, err := filepath.Glob("../../internal/manifest/check/testdata/accepted/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no accepted objects: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		docs, found := check.Read(file, text)
		if len(found) > 0 {
			t.Fatal(found)
		}
		for _, d := range docs {
			list = append(list, &variant{kind: d.APIVersion() + " " + d.Kind(), of: d.APIVersion() + " " + d.Object(), object: d.Value})
		}
	}
	return list
}

// changes are an object's variants: each field removed, empty, of another type, a text that nothing expects,
// a number out of most ranges.
func changes(v *variant) (list []*variant) {
	change := func(path, what string) {
		text, err := json.Marshal(v.object)
		if err != nil {
			panic(err) // it came out of YAML
		}
		one := &variant{kind: v.kind, of: v.of, change: path + " " + what}
		decoder := json.NewDecoder(bytes.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&one.object); err != nil {
			panic(err)
		}
		list = append(list, one)
	}
	var visit func(part any, path string)
	visit = func(part any, path string) {
		switch t := part.(type) {
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(t)) {
				at, was := path+"."+name, t[name]
				if slices.Contains([]string{".apiVersion", ".kind", ".status", ".metadata.name"}, at) {
					continue
				}
				visit(was, at)
				if at == ".metadata" {
					continue
				}
				for what, value := range instead(was) {
					t[name] = value
					change(at, what)
				}
				delete(t, name)
				change(at, "removed")
				t[name] = was
			}
		case []any:
			for i, was := range t {
				at := fmt.Sprintf("%s[%d]", path, i)
				visit(was, at)
				if _, is := was.(string); is {
					t[i] = "Nonsense"
					change(at, "Nonsense")
					t[i] = was
				}
			}
		}
	}
	visit(v.object, "")
	return list
}

// instead are values to put in the place of one.
func instead(value any) map[string]any {
	switch value.(type) {
	case string:
		return map[string]any{"empty": "", "Nonsense": "Nonsense", otherType: []any{}}
	case json.Number:
		return map[string]any{"-1": json.Number("-1"), "70000": json.Number("70000")}
	case []any:
		return map[string]any{"empty": []any{}, "a list of null": []any{nil}}
	case map[string]any:
		return map[string]any{"empty": map[string]any{}}
	}
	return nil
}

// otherType is a change that david and the API server find by the same decoding.
const otherType = "of another type"

// index is a list's in a path.
var index = regexp.MustCompile(`\[\d+\]`)

// judge has the API server say what it thinks of each, by a strict dry run; of one of several that differ in
// the place in a list alone.
func (a *apiSaying) judge(t *testing.T, variants []*variant) {
	var wg sync.WaitGroup
	next := make(chan *variant)
	for range 4 {
		wg.Go(func() {
			for v := range next {
				text, err := json.Marshal(v.object)
				if err != nil {
					t.Error(err)
				}
				v.refused = a.post(t, v.kind, "?dryRun=All&fieldValidation=Strict", text)
			}
		})
	}
	asked := map[string]*variant{}
	for _, v := range variants {
		key := v.kind + index.ReplaceAllString(v.change, "[]")
		if v.change == "" {
			key = v.of
		}
		if strings.HasSuffix(v.change, otherType) {
			v.refused = "it is of another type"
		} else if asked[key] == nil {
			asked[key] = v
			next <- v
		}
	}
	close(next)
	wg.Wait()
	for _, v := range variants {
		if first := asked[v.kind+index.ReplaceAllString(v.change, "[]")]; first != nil && v.change != "" {
			v.refused = first.refused
		}
	}
	t.Logf("the API server was asked about %d objects", len(asked))
}

func (a *apiSaying) create(t *testing.T, kind, text string) {
	t.Helper()
	if refused := a.post(t, kind, "", []byte(text)); refused != "" {
		t.Fatal(refused)
	}
}

// post sends an object to where its kind is created; what comes back is the reason against it.
func (a *apiSaying) post(t *testing.T, kind, query string, text []byte) (refused string) {
	client, err := rest.HTTPClientFor(a.config)
	if err != nil {
		t.Error(err)
		return ""
	}
	answer, err := client.Post(a.config.Host+strings.ReplaceAll(a.paths[kind], "{namespace}", "default")+query, "application/json", bytes.NewReader(text))
	if err != nil {
		t.Error(err)
		return ""
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Error(err)
	}
	if answer.StatusCode == http.StatusCreated {
		return ""
	}
	var status struct{ Message string }
	if err := json.Unmarshal(body, &status); err != nil || answer.StatusCode >= 500 && !strings.Contains(status.Message, "json: ") {
		t.Errorf("%s: %s: %s", kind, answer.Status, body)
	}
	return status.Message
}

// inspect has david say what it thinks of each.
func inspect(t *testing.T, variants []*variant) {
	var docs []stream.Document
	byFile := map[string]*variant{}
	for i, v := range variants {
		text, err := json.Marshal(v.object)
		if err != nil {
			t.Fatal(err)
		}
		file := fmt.Sprint(i)
		read, found := check.Read(file, text)
		docs, byFile[file] = append(docs, read...), v
		v.found = found
	}
	result, err := check.Inspect(docs, check.Known{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range result.Findings {
		if v := byFile[f.File]; slices.Contains([]string{"schema", "unknown-field", "selector"}, f.Rule) || f.Rule == "volumes" && strings.Contains(f.Why, "there is no volume") {
			v.found = append(v.found, f)
		}
	}
}

// repeated finds a field of which two things are said.
func repeated(found []check.Finding) (path string, twice bool) {
	seen := map[string]bool{}
	for _, f := range found {
		if seen[f.Path] {
			return f.Path, true
		}
		seen[f.Path] = true
	}
	return "", false
}

// met notes, for each thing that the schemas ask for, the changes of an object that lack it.
func (s served) met(v *variant, asked map[string][]string) {
	var visit func(one *trimmed, value any, name, path string)
	visit = func(one *trimmed, value any, name, path string) {
		if one == nil || value == nil || value == "" {
			return
		}
		if one.Ref != "" {
			visit(s.Defs[one.Ref], value, one.Ref, path)
			return
		}
		if len(one.Enum) > 0 {
			asked[name+" among"] = append(asked[name+" among"], v.of+path+" Nonsense")
		}
		switch t := value.(type) {
		case map[string]any:
			for field, part := range t {
				at, what := path+"."+field, name+"."+field
				if slices.Contains(one.Required, field) {
					asked[what] = append(asked[what], v.of+at+" removed")
				}
				visit(one.Properties[field], part, what, at)
				visit(one.Values, part, name, at)
			}
		case []any:
			for i, element := range t {
				visit(one.Items, element, name, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	visit(&trimmed{Ref: s.Kinds[v.kind]}, v.object, "", "")
}

// asked lists what the schemas ask for, as met notes it.
func (s served) asked() (list []string) {
	var visit func(one *trimmed, name string)
	visit = func(one *trimmed, name string) {
		if len(one.Enum) > 0 {
			list = append(list, name+" among")
		}
		for _, field := range one.Required {
			list = append(list, name+"."+field)
		}
		for field, p := range one.Properties {
			visit(p, name+"."+field)
		}
		for _, inner := range []*trimmed{one.Items, one.Values} {
			if inner != nil {
				visit(inner, name)
			}
		}
	}
	for name, def := range s.Defs {
		visit(def, name)
	}
	slices.Sort(list)
	return slices.Compact(list)
}
