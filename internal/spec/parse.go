package spec

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"david/internal/mycnf"
)

// Parse reads a spec, fills in the defaults and checks it. name is that of the file; errors name it, the line
// and the key.
func Parse(r io.Reader, name string) (Spec, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return Spec{}, fmt.Errorf("cannot read spec %s: %w", name, err)
	}
	s := Default()
	lines, err := decode(text, &s)
	if err == nil {
		err = givenZero(s, lines)
	}
	if err == nil {
		s, err = s.Checked()
	}
	if err != nil {
		return Spec{}, located(err, name, lines)
	}
	return s, nil
}

// keyError says what is wrong with the value of a key.
type keyError struct {
	key string // "arms[1].name"
	err error
}

func (e keyError) Error() string {
	if e.key == "" { // the document as a whole
		return e.err.Error()
	}
	return e.key + ": " + e.err.Error()
}

func (e keyError) Unwrap() error { return e.err }

func wrong(key, format string, args ...any) error { return keyError{key, fmt.Errorf(format, args...)} }

// located adds to an error where in the file it is.
func located(err error, name string, lines map[string]int) error {
	var k keyError
	if !errors.As(err, &k) {
		return fmt.Errorf("cannot use spec %s: %w", name, err)
	}
	for key := k.key; key != ""; key = parent(key) {
		if line := lines[key]; line > 0 {
			return fmt.Errorf("cannot use spec %s:%d: %w", name, line, err)
		}
	}
	return fmt.Errorf("cannot use spec %s: %w", name, err)
}

// parent is the key a key stands in: of a missing one, that is the best place to show.
func parent(key string) string { return key[:max(0, strings.LastIndexAny(key, ".["))] }

// decode reads one YAML document strictly into the struct v points to, and returns the line of every key.
func decode(text []byte, v any) (map[string]int, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return nil, notYAML(err)
	}
	if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
		return nil, errors.New("it is empty; see: david experiment sample")
	}
	if !meant(doc.Content[0], keysOf(reflect.TypeOf(v).Elem())) {
		return nil, errors.New("want a mapping of a spec's keys, which this is not; see: david experiment sample")
	}
	w := walker{lines: map[string]int{}}
	if err := w.walk(doc.Content[0], reflect.TypeOf(v).Elem(), ""); err != nil {
		return w.lines, err
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true) // what walk checks too, but where the two should differ the stricter wins
	if err := d.Decode(v); err != nil {
		return w.lines, plain(err)
	}
	if err := d.Decode(&doc); !errors.Is(err, io.EOF) {
		return w.lines, errors.New("it holds more than one document: make each a file of its own")
	}
	return w.lines, nil
}

// meant tells a document that was meant to be a spec from any other, of which nothing may stand in an error: it may be
// secret. It has half of its keys in common with a spec.
func meant(n *yaml.Node, keys []string) bool {
	if n.Kind != yaml.MappingNode {
		return false
	}
	known := 0
	for i := 0; i < len(n.Content); i += 2 {
		if slices.Contains(keys, n.Content[i].Value) {
			known++
		}
	}
	return 4*known >= len(n.Content)
}

// notYAML is plain without the one text of the file that the library quotes of what is no YAML.
func notYAML(err error) error {
	if strings.Contains(err.Error(), "unknown anchor") {
		return errors.New("it refers to an anchor that is not there")
	}
	return plain(err)
}

// quoted is a text of the file in an error, not all of a long one.
func quoted(text string) string {
	const longest = 64
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return strconv.Quote(text)
}

// plain is an error of the YAML library in one line.
func plain(err error) error {
	return errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
}

// walker holds a document against the type it is for, before it is decoded: the library's own errors name
// neither the key nor what was meant.
type walker struct{ lines map[string]int }

func (w walker) walk(n *yaml.Node, t reflect.Type, key string) error {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	w.lines[key] = n.Line
	switch {
	case n.Tag == "!!null":
		return wrong(key, "it has no value: give one, or leave the key out")
	case t.Kind() == reflect.Struct:
		return w.mapping(n, t, key)
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		return w.list(n, t.Elem(), key)
	}
	if err := n.Decode(reflect.New(t).Interface()); err != nil {
		return keyError{key, scalarError(n, t, err)}
	}
	return nil
}

// scalarError says which kind of value is wanted where the library names a Go type.
func scalarError(n *yaml.Node, t reflect.Type, err error) error {
	var types *yaml.TypeError
	if !errors.As(err, &types) && n.Kind == yaml.ScalarNode || t.Kind() == reflect.Slice {
		return plain(err)
	}
	want := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Int64: "a whole number", reflect.Uint64: "a whole number, not negative",
		reflect.Float64: "a number", reflect.Bool: "true or false", reflect.String: "a text"}[t.Kind()]
	if n.Kind != yaml.ScalarNode {
		return fmt.Errorf("want %s, not a list or a mapping", want)
	}
	return fmt.Errorf("%s is not %s", quoted(n.Value), want)
}

func (w walker) mapping(n *yaml.Node, t reflect.Type, key string) error {
	if n.Kind != yaml.MappingNode {
		return wrong(key, "want a mapping of keys to values")
	}
	for i := 0; i < len(n.Content); i += 2 {
		name := n.Content[i].Value
		path := strings.TrimPrefix(key+"."+name, ".")
		w.lines[path] = n.Content[i].Line
		field, ok := fieldOf(t, name)
		if !ok {
			return wrong(path, "unknown key%s", suggestion(name, keysOf(t)))
		}
		if err := w.walk(n.Content[i+1], field, path); err != nil {
			return err
		}
		w.lines[path] = n.Content[i].Line
	}
	return nil
}

func (w walker) list(n *yaml.Node, t reflect.Type, key string) error {
	if n.Kind != yaml.SequenceNode {
		return wrong(key, "want a list: each item on a line of its own that begins with -")
	}
	for i, item := range n.Content {
		if err := w.walk(item, t, fmt.Sprintf("%s[%d]", key, i)); err != nil {
			return err
		}
	}
	return nil
}

// keysOf lists a struct's keys.
func keysOf(t reflect.Type) []string {
	var keys []string
	for i := range t.NumField() {
		if key := t.Field(i).Tag.Get("yaml"); key != "-" {
			keys = append(keys, key)
		}
	}
	return keys
}

func fieldOf(t reflect.Type, key string) (reflect.Type, bool) {
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("yaml") == key && key != "-" {
			return t.Field(i).Type, true
		}
	}
	return nil, false
}

func suggestion(name string, known []string) string {
	if near, ok := mycnf.Nearest(name, known); ok {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return fmt.Sprintf(" (known: %s)", strings.Join(known, ", "))
}

// givenZero refuses a 0 that was written down where a missing key would mean a default.
func givenZero(s Spec, lines map[string]int) error {
	for _, v := range []struct {
		key  string
		zero bool
	}{{"blocks", s.Blocks == 0}, {"precision", s.Precision == 0}, {"budget", s.Budget == 0}} {
		if lines[v.key] > 0 && v.zero {
			return wrong(v.key, "it must be more than 0; leave the key out for the default")
		}
	}
	return nil
}
