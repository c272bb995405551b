package stream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// most bounds what is read: beyond them lies no manifest, or one made to exhaust the reader.
const (
	mostDepth = 200
	mostNodes = 1_000_000
)

// Documents reads a YAML stream, JSON included, as Kubernetes does: yes, no, on and off are switches, a List
// is its items, empty documents are nothing. What is no YAML, or no object, is a finding, and so is a key
// that stands twice; what follows a syntax error cannot be read.
func Documents(file string, text []byte) (docs []Document, found []Problem) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		err := decode(dec, &n)
		if errors.Is(err, io.EOF) {
			return docs, found
		}
		if err != nil {
			return docs, append(found, Problem{Rule: "syntax", File: file, Line: lineOf(err),
				Why: "it is no YAML: " + strings.TrimPrefix(err.Error(), "yaml: "), Do: "correct it: nothing from here on was read"})
		}
		docs = append(docs, documents(file, &n, &found)...)
	}
}

// decode makes errors of the decoder's panics on odd input.
func decode(dec *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: cannot read it: %v", r)
		}
	}()
	return dec.Decode(n)
}

// lineOf finds the line that the YAML reader names in its error; 0 where it names none.
func lineOf(err error) int {
	_, after, _ := strings.Cut(err.Error(), "line ")
	digits, _, _ := strings.Cut(after, ":")
	n, convErr := strconv.Atoi(digits)
	if convErr != nil {
		return 0
	}
	return n
}

// documents gives the objects of one document.
func documents(file string, n *yaml.Node, found *[]Problem) []Document {
	for n.Kind == yaml.DocumentNode && len(n.Content) > 0 {
		n = n.Content[0]
	}
	if n.Kind == 0 || n.Kind == yaml.DocumentNode || n.ShortTag() == "!!null" {
		return nil
	}
	d := Document{File: file, Line: n.Line, node: n}
	report := func(rule, path string, at *yaml.Node, why, do string) {
		*found = append(*found, Problem{Rule: rule, File: file, Line: at.Line, Path: path, Object: d.Object(), Why: why, Do: do})
	}
	if n.Kind != yaml.MappingNode {
		report("syntax", "", n, "the document is no object", "write fields: apiVersion, kind, metadata, spec")
		return nil
	}
	before := len(*found)
	r := reader{duplicate: func(path string, key *yaml.Node) {
		report("duplicate-field", path, key, "the field stands twice", "remove one: readers differ in which of them counts")
	}}
	value, err := r.value(n, "", 0)
	if err != nil {
		report("syntax", "", n, err.Error(), "write it out")
		return nil
	}
	d.Value = value.(map[string]any)
	for i := before; i < len(*found); i++ { // only now is it known which object this is
		(*found)[i].Object = d.Object()
	}
	if items, list := d.Value["items"].([]any); list && d.Kind() == "List" {
		return d.items(items, report)
	}
	if d.Kind() == "" || d.APIVersion() == "" {
		report("schema", "", n, "apiVersion or kind is missing", "every object names both")
		return nil
	}
	return []Document{d}
}

// items lists the documents of a List.
func (d Document) items(items []any, report func(rule, path string, at *yaml.Node, why, do string)) (docs []Document) {
	for i, item := range items {
		path := fmt.Sprintf("items[%d]", i)
		at := d.at(path)
		value, ok := item.(map[string]any)
		one := Document{File: d.File, Line: at.Line, node: at, Value: value}
		if !ok || one.Kind() == "" || one.APIVersion() == "" {
			report("schema", path, at, "the item is no object with apiVersion and kind", "every object names both")
			continue
		}
		docs = append(docs, one)
	}
	return docs
}

// reader turns YAML nodes into values.
type reader struct {
	duplicate func(path string, key *yaml.Node)
	nodes     int
}

func (r *reader) value(n *yaml.Node, path string, depth int) (any, error) {
	if r.nodes++; r.nodes > mostNodes || depth > mostDepth {
		return nil, fmt.Errorf("it is nested or repeated too much: over %d fields or %d levels", mostNodes, mostDepth)
	}
	switch n.Kind {
	case yaml.AliasNode:
		return r.value(n.Alias, path, depth+1)
	case yaml.MappingNode:
		return r.mapping(n, path, depth)
	case yaml.SequenceNode:
		list := []any{}
		for i, c := range n.Content {
			v, err := r.value(c, fmt.Sprintf("%s[%d]", path, i), depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return scalar(n), nil
}

func (r *reader) mapping(n *yaml.Node, path string, depth int) (any, error) {
	m := map[string]any{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, at := n.Content[i], n.Content[i+1]
		if key.ShortTag() == "!!merge" {
			merged, err := r.value(at, path, depth+1)
			if err != nil {
				return nil, err
			}
			if from, ok := merged.(map[string]any); ok {
				for k, v := range from {
					if _, there := m[k]; !there {
						m[k] = v
					}
				}
			}
			continue
		}
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("line %d: a field's name is no text", key.Line)
		}
		child := Step(path, key.Value)
		if _, twice := m[key.Value]; twice && r.duplicate != nil {
			r.duplicate(child, key)
		}
		v, err := r.value(at, child, depth+1)
		if err != nil {
			return nil, err
		}
		m[key.Value] = v
	}
	return m, nil
}

// scalar reads a value as Kubernetes' reader of YAML 1.1 takes it.
func scalar(n *yaml.Node) any {
	text := n.Value
	switch {
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle|yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return text
	case n.ShortTag() == "!!str" && words.MatchString(text): // YAML 1.1's
		switch strings.ToLower(text) {
		case "y", "yes", "on":
			return true
		case "n", "no", "off":
			return false
		}
	case n.ShortTag() == "!!bool":
		return strings.EqualFold(text, "true")
	case n.ShortTag() == "!!null":
		return nil
	case n.ShortTag() == "!!int":
		var i int64
		if n.Decode(&i) == nil {
			return json.Number(strconv.FormatInt(i, 10))
		}
	case n.ShortTag() == "!!float":
		var f float64
		if n.Decode(&f) == nil && f-f == 0 {
			return json.Number(strconv.FormatFloat(f, 'g', -1, 64))
		}
	}
	return text
}
