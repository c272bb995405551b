package check

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"david/internal/manifest/stream"
)

// openAPIFile holds what an API server says of the built-in kinds under /openapi/v3, trimmed to what decoding
// does not find: which fields have to be there, and which values they may have. TestServed in test/e2e holds
// it against an API server, and writes it anew.
//
//go:embed openapi.json.gz
var openAPIFile []byte

// openAPI holds the API server's own schemas of the built-in kinds.
type openAPI struct {
	kinds       map[string]any // names of their definitions, by "apiVersion Kind"
	definitions map[string]any
	compiler    *jsonschema.Compiler
}

// definitionURL stands before the name of a definition; definitions refer to each other by name.
const definitionURL = "mem:///"

// Load gives a definition to the compiler, which thus reads only those that a kind consists of.
func (s *openAPI) Load(url string) (any, error) {
	definition, ok := s.definitions[strings.TrimPrefix(url, definitionURL)]
	if !ok {
		return nil, fmt.Errorf("there is no definition %s", url)
	}
	return definition, nil
}

// readOpenAPI unpacks the schemas; each is compiled when an object of its kind is met.
func readOpenAPI() (*openAPI, error) {
	packed, err := gzip.NewReader(bytes.NewReader(openAPIFile))
	if err != nil {
		return nil, err
	}
	doc, err := jsonschema.UnmarshalJSON(packed)
	if err != nil {
		return nil, err
	}
	s := &openAPI{compiler: jsonschema.NewCompiler()}
	s.kinds, _ = stream.Lookup(doc, "kinds").(map[string]any)
	s.definitions, _ = stream.Lookup(doc, "definitions").(map[string]any)
	s.compiler.DefaultDraft(jsonschema.Draft4) // OpenAPI's schemas are made from it
	s.compiler.UseLoader(s)
	return s, nil
}

// of finds the schema of a document's kind; nil for kinds that nobody creates, such as a list of Pods.
func (s *openAPI) of(d stream.Document) (*jsonschema.Schema, error) {
	name := stream.Text(s.kinds[d.APIVersion()+" "+d.Kind()])
	if name == "" {
		return nil, nil
	}
	schema, err := s.compiler.Compile(definitionURL + name)
	if err != nil {
		return nil, fmt.Errorf("of %s %s: %w", d.APIVersion(), d.Kind(), err)
	}
	return schema, nil
}

// given leaves out of a value what the API server takes for absent: fields that are null, an empty text or an
// empty list. A null in a list is an element of which nothing is given.
func given(v any) any {
	switch t := v.(type) {
	case map[string]any:
		fields := map[string]any{}
		for name, field := range t {
			if list := asList(field); field != nil && field != "" && !(isList(field) && len(list) == 0) {
				fields[name] = given(field)
			}
		}
		return fields
	case []any:
		list := make([]any, len(t))
		for i, element := range t {
			if list[i] = given(element); element == nil {
				list[i] = map[string]any{}
			}
		}
		return list
	}
	return v
}
