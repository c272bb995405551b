package check

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	strictjson "sigs.k8s.io/json"

	"david/internal/manifest/stream"
)

// builtInKinds knows the kinds that every cluster has.
func builtInKinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	builder := runtime.SchemeBuilder{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, policyv1.AddToScheme, networkingv1.AddToScheme,
		storagev1.AddToScheme, rbacv1.AddToScheme, schedulingv1.AddToScheme, autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, discoveryv1.AddToScheme, nodev1.AddToScheme, coordinationv1.AddToScheme, admissionv1.AddToScheme}
	err := builder.AddToScheme(scheme)
	return scheme, err
}

// builtIn makes an empty object of a document's kind; ok is false where it is not built in.
func (c *checker) builtIn(d stream.Document) (object any, ok bool) {
	gv, err := schema.ParseGroupVersion(d.APIVersion())
	if err != nil {
		return nil, false
	}
	object, err = c.kinds.New(gv.WithKind(d.Kind()))
	return object, err == nil
}

// Beginnings of what a check without an API server cannot see.
const (
	unseenSchema = "the schema of "
	unseenRules  = "the rules in CEL of "
)

// SchemaUnseen tells whether a line of Inspection.Unseen is about a schema, which an API server has and
// evaluates.
func SchemaUnseen(line string) bool {
	return strings.HasPrefix(line, unseenSchema) || strings.HasPrefix(line, unseenRules)
}

// schema holds an object against the schema of its kind.
func (c *checker) schema(d stream.Document) {
	c.metadata(d)
	if object, ok := c.builtIn(d); ok {
		c.required(d, c.strict(d, object))
		c.apiRules(d)
		return
	}
	if d.Kind() == "CustomResourceDefinition" || d.Kind() == "Kustomization" {
		return
	}
	definition, ok := c.Schemas[d.APIVersion()+" "+d.Kind()]
	if !ok && c.noKind(d) {
		return
	}
	if !ok {
		c.unseen[fmt.Sprintf(unseenSchema+"%s %s: it is not built in, and --crds names no folder with its definition", d.APIVersion(), d.Kind())] = true
		return
	}
	if definition.rules > 0 {
		c.unseen[fmt.Sprintf(unseenRules+"%s %s (%d): only an API server evaluates them (--kubeconfig)", d.APIVersion(), d.Kind(), definition.rules)] = true
	}
	c.custom(d, definition)
}

// noKind reports an object of one of Kubernetes' own groups whose version or kind it does not have, or no
// longer has; false where the group is another's, or the kind may be there as a beta that a cluster has to
// switch on.
func (c *checker) noKind(d stream.Document) bool {
	gv, err := schema.ParseGroupVersion(d.APIVersion())
	if err != nil {
		c.report(SeverityError, "schema", d, "apiVersion", fmt.Sprintf("%q is no group and version", d.APIVersion()), "write it as in apps/v1")
		return true
	}
	var instead []string
	for gvk := range c.kinds.AllKnownTypes() {
		if gvk.Kind == d.Kind() {
			instead = append(instead, gvk.GroupVersion().String())
		}
	}
	slices.Sort(instead)
	own := !strings.Contains(gv.Group, ".") // only Kubernetes' own groups have no dot
	if !own {
		betas := []string{"VolumeAttributesClass", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "IPAddress", "ServiceCIDR"}
		stable := !strings.Contains(gv.Version, "alpha") && !strings.Contains(gv.Version, "beta")
		own = c.kinds.IsGroupRegistered(gv.Group) && (stable || c.kinds.Recognizes(schema.GroupVersionKind{Group: gv.Group, Version: "v1", Kind: d.Kind()}) && !slices.Contains(betas, d.Kind()))
	}
	if !own {
		return false
	}
	do := "correct apiVersion or kind"
	if len(instead) > 0 {
		do = "use apiVersion " + strings.Join(instead, " or ")
	}
	c.report(SeverityError, "schema", d, "apiVersion", fmt.Sprintf("Kubernetes has no %s %s, or no longer: the API server refuses it", d.APIVersion(), d.Kind()), do)
	return true
}

// required holds an object of a built-in kind against the API server's schema of it, but for the field that
// was found wrong already.
func (c *checker) required(d stream.Document, wrong string) {
	schema, err := c.openAPISchema(d)
	if err != nil {
		c.broken = errors.Join(c.broken, err)
	}
	if schema != nil {
		c.fits(d, schema, given(d.Value), wrong)
	}
}

// openAPISchema finds the API server's schema of a document's kind; nil where it has none. The schemas are
// read when the first is asked for.
func (c *checker) openAPISchema(d stream.Document) (schema *jsonschema.Schema, err error) {
	if c.openAPI == nil {
		if c.openAPI, err = readOpenAPI(); err != nil {
			return nil, err
		}
	}
	return c.openAPI.of(d)
}

func asList(v any) []any {
	list, _ := v.([]any)
	return list
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}

// metadata checks the name, which the typed decoding takes whatever it is.
func (c *checker) metadata(d stream.Document) {
	name := d.Name()
	if name == "" && stream.Text(d.Get("metadata.generateName")) == "" {
		c.report(SeverityError, "schema", d, "metadata", "metadata.name is missing", "name the object")
		return
	}
	if strings.HasPrefix(d.APIVersion(), "rbac.") || name == "" { // their names may hold colons
		return
	}
	if why := validation.IsDNS1123Subdomain(name); len(why) > 0 {
		c.report(SeverityError, "schema", d, "metadata.name", fmt.Sprintf("%q is no name that Kubernetes takes", name), "use lower case letters, digits and dashes")
	}
}

// strict decodes an object into its type and reports what does not fit; wrong is the field whose value does
// not.
func (c *checker) strict(d stream.Document, object any) (wrong string) {
	text, err := json.Marshal(d.Value)
	if err != nil {
		c.report(SeverityError, "schema", d, "", err.Error(), "correct it")
		return ""
	}
	unknown, err := strictjson.UnmarshalStrict(text, object)
	if err != nil {
		wrong = blame(d.Value, "", func(v map[string]any) bool { return c.decodes(v, d) })
		c.report(SeverityError, "schema", d, wrong, "its value does not fit: "+plainJSON(err), "give a value of the field's type")
		return wrong
	}
	for _, e := range unknown {
		path, duplicate := fieldOf(e)
		if duplicate {
			continue // found when the stream was read, with its line
		}
		c.report(SeverityError, "unknown-field", d, path, fmt.Sprintf("%s %s has no such field: the API server refuses or drops it", d.APIVersion(), d.Kind()),
			"correct its name or its place")
	}
	return ""
}

// decodes tells whether a value can be decoded into the document's type.
func (c *checker) decodes(v map[string]any, d stream.Document) bool {
	object, _ := c.builtIn(d)
	text, err := json.Marshal(v)
	if err != nil {
		return false
	}
	_, err = strictjson.UnmarshalStrict(text, object)
	return err == nil
}

// fieldPattern takes the path out of an error of the strict decoder.
var fieldPattern = regexp.MustCompile(`^(unknown|duplicate) field "(.*)"$`)

func fieldOf(err error) (path string, duplicate bool) {
	m := fieldPattern.FindStringSubmatch(err.Error())
	if m == nil {
		return "", false
	}
	return m[2], m[1] == "duplicate"
}

// plainJSON takes Go's words out of a decoder's error.
func plainJSON(err error) string {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if m := regexp.MustCompile(`^cannot unmarshal (\w+) into Go (?:struct field \S+|value) of type (\S+)$`).FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("it is a %s, not a %s", m[1], strings.TrimPrefix(m[2], "v1."))
	}
	return text
}

// blame finds the field without which a value is accepted: the path of what is wrong, where it is one field.
func blame(value any, path string, accepted func(map[string]any) bool) string {
	root, ok := value.(map[string]any)
	if !ok {
		return path
	}
	return blameIn(root, root, path, accepted)
}

// blameIn looks in one part of the root for the field to blame.
func blameIn(root map[string]any, part any, path string, accepted func(map[string]any) bool) string {
	switch t := part.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(t)) {
			kept := t[key]
			delete(t, key)
			fine := accepted(root)
			t[key] = kept
			if fine {
				return blameIn(root, kept, stream.Step(path, key), accepted)
			}
		}
	case []any:
		for i, kept := range t {
			t[i] = nil
			fine := accepted(root)
			t[i] = kept
			if fine {
				return blameIn(root, kept, fmt.Sprintf("%s[%d]", path, i), accepted)
			}
		}
	}
	return path
}

// Schemas hold the definitions of custom resources, by "apiVersion Kind".
type Schemas map[string]definition

// definition holds one version of a custom resource.
type definition struct {
	raw      map[string]any
	compiled *jsonschema.Schema
	rules    int // in CEL
}

// Define reads the custom resource definitions of a stream into the schemas. Other objects are passed over.
func (s Schemas) Define(docs []stream.Document) error {
	for _, d := range docs {
		if d.Kind() != "CustomResourceDefinition" {
			continue
		}
		group, kind := stream.Text(d.Get("spec.group")), stream.Text(d.Get("spec.names.kind"))
		versions, _ := d.Get("spec.versions").([]any)
		for _, v := range versions {
			if err := s.define(group, kind, v); err != nil {
				return fmt.Errorf("cannot read the definition of %s in %s: %w", kind, d.File, err)
			}
		}
	}
	return nil
}

func (s Schemas) define(group, kind string, version any) error {
	name := stream.Text(stream.Lookup(version, "name"))
	raw, ok := stream.Lookup(version, "schema.openAPIV3Schema").(map[string]any)
	if !ok || name == "" || group == "" || kind == "" {
		return fmt.Errorf("version %q has no schema", name)
	}
	def := definition{raw: raw, rules: countRules(raw)}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	const url = "definition.json"
	if err := compiler.AddResource(url, translated(raw)); err != nil {
		return fmt.Errorf("version %s: %w", name, err)
	}
	compiled, err := compiler.Compile(url)
	if err != nil {
		return fmt.Errorf("version %s: %w", name, err)
	}
	def.compiled = compiled
	s[group+"/"+name+" "+kind] = def
	return nil
}

// countRules counts the CEL rules of a schema.
func countRules(v any) (n int) {
	switch t := v.(type) {
	case map[string]any:
		if rules, ok := t["x-kubernetes-validations"].([]any); ok {
			n += len(rules)
		}
		for _, key := range slices.Sorted(maps.Keys(t)) {
			if key != "x-kubernetes-validations" {
				n += countRules(t[key])
			}
		}
	case []any:
		for _, c := range t {
			n += countRules(c)
		}
	}
	return n
}

// translated makes JSON schema of a structural schema of OpenAPI 3.0.
func translated(v any) any {
	s, ok := v.(map[string]any)
	if !ok {
		return v
	}
	out := map[string]any{}
	for key, value := range s {
		switch key {
		case "description", "default", "example", "nullable", "format", "externalDocs", "title":
		case "properties", "patternProperties":
			out[key] = each(value)
		case "items", "additionalProperties", "not":
			out[key] = translated(value)
		case "allOf", "anyOf", "oneOf":
			list, _ := value.([]any)
			all := []any{}
			for _, one := range list {
				all = append(all, translated(one))
			}
			out[key] = all
		case "exclusiveMinimum", "exclusiveMaximum":
			bound := strings.ToLower(strings.TrimPrefix(key, "exclusive"))
			if value == true && s[bound] != nil {
				out[key] = s[bound]
			}
		default:
			if !strings.HasPrefix(key, "x-kubernetes-") {
				out[key] = value
			}
		}
	}
	if s["x-kubernetes-int-or-string"] == true {
		out["type"] = []any{"integer", "string"}
	}
	if kind, is := out["type"].(string); is && s["nullable"] == true {
		out["type"] = []any{kind, "null"}
		if choices, limited := out["enum"].([]any); limited {
			out["enum"] = append(slices.Clone(choices), nil)
		}
	}
	return out
}

func each(v any) any {
	out := map[string]any{}
	if m, ok := v.(map[string]any); ok {
		for name, schema := range m {
			out[name] = translated(schema)
		}
	}
	return out
}

// custom holds a custom resource against its definition.
func (c *checker) custom(d stream.Document, def definition) {
	for _, path := range unknownFields(d.Value, def.raw, "", true) {
		c.report(SeverityError, "unknown-field", d, path, fmt.Sprintf("%s %s has no such field: the API server refuses or drops it", d.APIVersion(), d.Kind()),
			"correct its name or its place; the definition given is of one release of the operator")
	}
	c.objectMeta(d)
	c.fits(d, def.compiled, d.Value, "")
}

// fits holds an object's value against a schema, but for a field of which something was said already.
func (c *checker) fits(d stream.Document, schema *jsonschema.Schema, value any, said string) {
	invalid, ok := schema.Validate(value).(*jsonschema.ValidationError)
	if !ok {
		return
	}
	for _, leaf := range leaves(invalid) {
		path := pathOf(leaf.InstanceLocation, d.Value)
		switch t := leaf.ErrorKind.(type) {
		case *kind.Required:
			for _, name := range t.Missing {
				if field := stream.Step(path, name); field != said {
					c.missing(d, field)
				}
			}
		case *kind.Enum:
			c.among(d, path, t)
		default:
			c.report(SeverityError, "schema", d, path, "its value does not fit: "+whyOf(leaf), "give a value that the definition allows")
		}
	}
}

// missing reports a field that has to be there.
func (c *checker) missing(d stream.Document, path string) {
	what := "missing"
	if d.Get(path) != nil {
		what = "empty"
	}
	c.report(SeverityError, "schema", d, path, "it is "+what+": the API server refuses the object without it", "give it")
}

// among reports a value that is none of those there are; what is of another type than they are is found for
// that.
func (c *checker) among(d stream.Document, path string, found *kind.Enum) {
	same := false
	choices := []string{}
	for _, v := range found.Want {
		if v != nil && v != "" {
			same = same || fmt.Sprintf("%T", v) == fmt.Sprintf("%T", found.Got)
			choices = append(choices, fmt.Sprint(v))
		}
	}
	if same {
		c.report(SeverityError, "schema", d, path, fmt.Sprintf("%q is none of %s", fmt.Sprint(found.Got), strings.Join(choices, ", ")), "give one of them")
	}
}

// whyOf tells the reason in the validator's words.
func whyOf(leaf *jsonschema.ValidationError) string {
	if output := leaf.BasicOutput(); output.Error != nil {
		return output.Error.String()
	}
	return strings.TrimSpace(leaf.Error())
}

// leaves lists the errors at the bottom of a tree of them.
func leaves(e *jsonschema.ValidationError) (list []*jsonschema.ValidationError) {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	for _, cause := range e.Causes {
		list = append(list, leaves(cause)...)
	}
	return list
}

// pathOf writes a location as a path.
func pathOf(location []string, value any) (path string) {
	for _, s := range location {
		if list, ok := value.([]any); ok {
			path = fmt.Sprintf("%s[%s]", path, s)
			value = stream.Lookup(list, "["+s+"]")
			continue
		}
		path = stream.Step(path, s)
		value = stream.Lookup(value, stream.Step("", s))
	}
	return path
}

// objectMeta decodes metadata strictly: definitions leave it to the API server.
func (c *checker) objectMeta(d stream.Document) {
	text, err := json.Marshal(d.Value["metadata"])
	if err != nil {
		return
	}
	unknown, err := strictjson.UnmarshalStrict(text, &metav1.ObjectMeta{})
	if err != nil {
		c.report(SeverityError, "schema", d, "metadata", "its value does not fit: "+plainJSON(err), "give values of the fields' types")
	}
	for _, e := range unknown {
		if path, duplicate := fieldOf(e); !duplicate {
			c.report(SeverityError, "unknown-field", d, "metadata."+path, "metadata has no such field", "correct its name or its place")
		}
	}
}

// unknownFields lists what a value has and its schema does not: the API server would drop it.
func unknownFields(value any, schema map[string]any, path string, root bool) (paths []string) {
	switch v := value.(type) {
	case map[string]any:
		return unknownIn(v, schema, path, root)
	case []any:
		items, ok := schema["items"].(map[string]any)
		for i, one := range v {
			if ok {
				paths = append(paths, unknownFields(one, items, fmt.Sprintf("%s[%d]", path, i), false)...)
			}
		}
	}
	return paths
}

func unknownIn(v, schema map[string]any, path string, root bool) (paths []string) {
	properties, _ := schema["properties"].(map[string]any)
	additional, free := schema["additionalProperties"]
	preserved := schema["x-kubernetes-preserve-unknown-fields"] == true || free && additional == true
	object := root || schema["x-kubernetes-embedded-resource"] == true
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if object && slices.Contains([]string{"apiVersion", "kind", "metadata"}, key) {
			continue
		}
		child := stream.Step(path, key)
		if s, ok := properties[key].(map[string]any); ok {
			paths = append(paths, unknownFields(v[key], s, child, false)...)
		} else if s, ok := additional.(map[string]any); ok {
			paths = append(paths, unknownFields(v[key], s, child, false)...)
		} else if _, named := properties[key]; !preserved && !named {
			paths = append(paths, child)
		}
	}
	return paths
}
