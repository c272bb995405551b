// Package stream reads and writes streams of YAML as Kubernetes does: objects with the lines they stand on,
// paths into them, and comments by path.
package stream

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Document holds one object of a stream: its YAML with the lines it stands on, and its value as Kubernetes
// reads it.
type Document struct {
	File string
	Line int // of its first field
	node *yaml.Node
	// Value holds maps, lists, strings, json.Number, bool and nil.
	Value map[string]any
}

// Problem says what is wrong with a stream: a cluster, or david, cannot read it.
type Problem struct {
	Rule, Object, File string
	Line               int // 0: not known
	Path               string
	Why, Do            string
}

// Kind reads the object's kind; "" where it names none.
func (d Document) Kind() string { return Text(d.Value["kind"]) }

// APIVersion reads the object's group and version; "" where it names none.
func (d Document) APIVersion() string { return Text(d.Value["apiVersion"]) }

// Name reads metadata.name.
func (d Document) Name() string { return Text(d.Get("metadata.name")) }

// Namespace reads metadata.namespace; "" where it names none.
func (d Document) Namespace() string { return Text(d.Get("metadata.namespace")) }

// Object names the object as kubectl does: "StatefulSet databases/orders".
func (d Document) Object() string {
	name := d.Name()
	if ns := d.Namespace(); ns != "" {
		name = ns + "/" + name
	}
	return strings.TrimSpace(d.Kind() + " " + name)
}

// Get finds the value at a path; nil where there is none.
func (d Document) Get(path string) any { return Lookup(d.Value, path) }

// Lookup finds the value at a path in a part of an object; nil where there is none.
func Lookup(v any, path string) any {
	steps, err := split(path)
	if err != nil {
		return nil
	}
	for _, s := range steps {
		switch t := v.(type) {
		case map[string]any:
			v = t[s]
		case []any:
			i, err := strconv.Atoi(s)
			if err != nil || i < 0 || i >= len(t) {
				return nil
			}
			v = t[i]
		default:
			return nil
		}
	}
	return v
}

// Text gives a value that is a text; "" for others.
func Text(v any) string {
	s, _ := v.(string)
	return s
}

// LineAt finds the line of a path, or of the nearest above it that is there.
func (d Document) LineAt(path string) int {
	if n := d.at(path); n != nil && n.Line > 0 {
		return n.Line
	}
	return d.Line
}

// at finds the node of a path, or the nearest above it that is there.
func (d Document) at(path string) *yaml.Node {
	n := d.node
	steps, err := split(path)
	if err != nil {
		return n
	}
	place := n
	for _, s := range steps {
		for n.Kind == yaml.AliasNode {
			n = n.Alias
		}
		holder, value := child(n, s)
		if value == nil {
			return place
		}
		n, place = value, holder
	}
	return place
}

// Literal tells whether a text stands line by line below its key.
func (d Document) Literal(path string) bool {
	steps, err := split(path)
	if err != nil {
		return false
	}
	n := d.node
	for _, s := range steps {
		if n == nil {
			return false
		}
		_, n = child(n, s)
	}
	return n != nil && n.Style&yaml.LiteralStyle != 0
}

// Bytes reads a quantity in bytes; ok is false where there is none.
func (d Document) Bytes(path string) (n int64, ok bool) {
	q, err := resource.ParseQuantity(fmt.Sprint(d.Get(path)))
	if err != nil {
		return 0, false
	}
	return q.Value(), true
}
