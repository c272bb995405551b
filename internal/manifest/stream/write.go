package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// commentWidth bounds comment lines, their indentation not counted.
const commentWidth = 110

// Write writes a value as one YAML document. reasons are comments, by the path of the field they stand above:
// "spec", `data["my.cnf"]`; "" is the document itself. A path that does not exist is an error.
func Write(value any, reasons map[string]string) ([]byte, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	root, err := node(dec)
	if err != nil {
		return nil, err
	}
	prune(root, root)
	order(root)
	for _, path := range slices.Sorted(maps.Keys(reasons)) {
		if err := annotate(root, path, reasons[path]); err != nil {
			return nil, fmt.Errorf("cannot comment on %s: %w", path, err)
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	err = enc.Encode(root)
	return out.Bytes(), err
}

// node reads the next JSON value as a YAML node; keys keep their order.
func node(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		return collection(dec, t)
	case string:
		return text(t), nil
	case json.Number:
		return &yaml.Node{Kind: yaml.ScalarNode, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}

func collection(dec *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	if open == '[' {
		n = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	}
	for dec.More() {
		child, err := node(dec) // keys of a mapping come as values of their own
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	_, err := dec.Token()
	return n, err
}

// plain matches the strings that no reader of YAML takes for anything else; words stands for the exceptions,
// YAML 1.1's among them, which Kubernetes reads.
var (
	plain = regexp.MustCompile(`^(?:[A-Za-z/][-A-Za-z0-9_./@%+=:]*[-A-Za-z0-9_./@%+=]|[A-Za-z/]|[0-9]+(?:Ki|Mi|Gi|Ti|[smhk]))$`)
	words = regexp.MustCompile(`^(?i:y|yes|n|no|true|false|on|off|null)$`)
)

// text writes a string, quoted unless it is plain.
func text(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case strings.Contains(s, "\n"):
		n.Style = yaml.LiteralStyle
	case !plain.MatchString(s) || words.MatchString(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// prune drops what the types' encoding leaves behind: an empty status, a time of creation that is null, an
// empty spec of the whole object.
func prune(n, root *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		var kept []*yaml.Node
		for i := 0; i < len(n.Content); i += 2 {
			key, value := n.Content[i].Value, n.Content[i+1]
			empty := value.Kind == yaml.MappingNode && len(value.Content) == 0 && n == root
			if key == "creationTimestamp" && value.Tag == "!!null" || key == "status" && blank(value) || key == "spec" && empty {
				continue
			}
			kept = append(kept, n.Content[i], value)
		}
		n.Content = kept
	}
	for _, c := range n.Content {
		prune(c, root)
	}
}

// blank tells whether a value holds nothing but zeros.
func blank(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 1; i < len(n.Content); i += 2 {
			if !blank(n.Content[i]) {
				return false
			}
		}
		return true
	case yaml.SequenceNode:
		return len(n.Content) == 0
	}
	return n.Tag == "!!null" || n.Value == "0" || n.Value == ""
}

// order puts apiVersion, kind, metadata and spec first; the other keys keep their order.
func order(n *yaml.Node) {
	first := []string{"apiVersion", "kind", "metadata", "spec"}
	rank := func(key string) int {
		if i := slices.Index(first, key); i >= 0 {
			return i
		}
		return len(first)
	}
	pairs := slices.Collect(slices.Chunk(n.Content, 2))
	slices.SortStableFunc(pairs, func(a, b []*yaml.Node) int { return rank(a[0].Value) - rank(b[0].Value) })
	n.Content = slices.Concat(pairs...)
}

// annotate puts a comment above the field of a path.
func annotate(root *yaml.Node, path, comment string) error {
	at, holder := root, root
	steps, err := split(path)
	if err != nil {
		return err
	}
	for _, step := range steps {
		if holder, at = child(at, step); at == nil {
			return fmt.Errorf("there is no %s", step)
		}
	}
	if holder == root && len(root.Content) > 0 {
		holder = root.Content[0] // above the first key
	}
	holder.HeadComment = wrap(comment)
	return nil
}

// wrap breaks a comment into lines. A paragraph that begins with a tab is a command, and stays on its line.
func wrap(comment string) string {
	var lines []string
	for paragraph := range strings.Lines(comment) {
		if strings.HasPrefix(paragraph, "\t") {
			lines = append(lines, "#   "+strings.TrimSpace(paragraph))
			continue
		}
		line := "#"
		for _, w := range strings.Fields(paragraph) {
			if len(line)+1+len(w) > commentWidth && line != "#" {
				lines, line = append(lines, line), "#"
			}
			line += " " + w
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
