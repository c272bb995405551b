package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// commentWidth is where comment lines end, their indentation not counted.
const commentWidth = 110

// Encode writes the resources as one YAML stream; what lies aside is left out. A reason whose path does not exist is an error.
func Encode(w io.Writer, objects []Object) error {
	for _, o := range objects {
		if o.Aside {
			continue
		}
		text, err := document(o)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, "---\n"+string(text)); err != nil {
			return fmt.Errorf("cannot write the manifests: %w", err)
		}
	}
	return nil
}

// Folder gives the files of a database's kustomize folder by name: one for each object, and kustomization.yaml, which names the database.
func Folder(database string, objects []Object) (map[string][]byte, error) {
	files := map[string][]byte{}
	var resources []any
	for _, o := range objects {
		text, err := document(o)
		if err != nil {
			return nil, err
		}
		if _, twice := files[o.File]; twice {
			return nil, fmt.Errorf("cannot write two objects into %s", o.File)
		}
		files[o.File] = text
		if o.Value != nil {
			files[o.File] = append([]byte(marker), text...)
		}
		if !o.Aside {
			resources = append(resources, o.File)
		}
	}
	text, err := document(Object{File: KustomizationFile, Value: map[string]any{
		"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization", "metadata": map[string]any{"name": database}, "resources": resources,
		"sortOptions": map[string]any{"order": "fifo"},
	}, Reasons: map[string]string{"sortOptions": "applied in the order given here: kustomize's own would put custom resources that have to be there first behind others. kubectl 1.27 or later knows it",
		"": "\tkubectl apply -k THIS-FOLDER"}})
	files[KustomizationFile] = append([]byte(marker), text...)
	return files, err
}

// marker is the first line of every file of a folder.
const marker = "# Rendered by david manifest; what is changed here is lost when it is rendered again.\n"

// Rendered tells whether a file's content is of david's making.
func Rendered(content []byte) bool { return bytes.HasPrefix(content, []byte(marker)) }

// Database is the name of the database that a folder's kustomization.yaml was rendered for; "" where it does not say.
func Database(kustomization []byte) (string, error) {
	var k struct {
		Metadata struct {
			Name string `yaml:"name"`
		} `yaml:"metadata"`
	}
	err := yaml.Unmarshal(kustomization, &k)
	return k.Metadata.Name, err
}

// document is an object as YAML, with its comments.
func document(o Object) ([]byte, error) {
	if o.Value == nil {
		return []byte(marker + o.Text), nil
	}
	text, err := json.Marshal(o.Value)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", o.File, err)
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	root, err := node(dec)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", o.File, err)
	}
	prune(root, root)
	order(root)
	for _, path := range slices.Sorted(maps.Keys(o.Reasons)) {
		if err := annotate(root, path, o.Reasons[path]); err != nil {
			return nil, fmt.Errorf("cannot comment on %s in %s: %w", path, o.File, err)
		}
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", o.File, err)
	}
	return out.Bytes(), nil
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

// plain are the strings that no reader of YAML takes for anything else; words stands for the exceptions, YAML 1.1's among them,
// which Kubernetes reads.
var (
	plain = regexp.MustCompile(`^(?:[A-Za-z/][-A-Za-z0-9_./@%+=:]*[-A-Za-z0-9_./@%+=]|[A-Za-z/]|[0-9]+(?:Ki|Mi|Gi|Ti|[smhk]))$`)
	words = regexp.MustCompile(`^(?i:y|yes|n|no|true|false|on|off|null)$`)
)

// text is a string, quoted unless it is plain.
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

// prune drops what the types' encoding leaves behind: an empty status, a time of creation that is null, an empty spec of the whole object.
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

// split reads a path: names with dots between them, [0] for an element of a list, ["a.b"] for a name with dots.
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
