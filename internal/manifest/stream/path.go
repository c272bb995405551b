package stream

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Step adds a field's name to a path, in brackets where it has dots.
func Step(path, name string) string {
	switch {
	case strings.ContainsAny(name, `.[]/"`) || name == "":
		return fmt.Sprintf("%s[%q]", path, name)
	case path == "":
		return name
	}
	return path + "." + name
}

// child finds a key's value or a list's element, and the node that carries its comment.
func child(n *yaml.Node, step string) (holder, value *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == step {
				return n.Content[i], n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i], n.Content[i]
		}
	}
	return nil, nil
}

var stepPattern = regexp.MustCompile(`^\.?(?:([^.\[\]"]+)|\[(\d+)\]|\["([^"]+)"\])`)

// split reads a path: names with dots between them, [0] for an element of a list, ["a.b"] for a name with
// dots.
func split(path string) (steps []string, err error) {
	for rest := path; rest != ""; {
		m := stepPattern.FindStringSubmatch(rest)
		if m == nil {
			return nil, fmt.Errorf("cannot read the path at %q", rest)
		}
		steps = append(steps, m[1]+m[2]+m[3])
		rest = rest[len(m[0]):]
	}
	return steps, nil
}
