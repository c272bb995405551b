package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"

	"david/internal/input"
)

// fillFlags sets the flags that a YAML file names and the command line does not: one mapping from names to
// values.
func fillFlags(fs *pflag.FlagSet, file string) error {
	if file == "" {
		return nil
	}
	text, err := input.ReadDocument(file, longestCatalogue)
	if err != nil {
		return usage("cannot read the requirements: %w", err)
	}
	var doc yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&doc); err != nil {
		return usage("cannot read the requirements %s: it is no YAML", file)
	}
	if err := d.Decode(&yaml.Node{}); !errors.Is(err, io.EOF) {
		return usage("cannot read the requirements %s: it holds more than one document", file)
	}
	if doc.Content[0].Kind != yaml.MappingNode {
		return usage("cannot read the requirements %s: want flags as keys, as in \"data: 200GiB\"", file)
	}
	return fillFrom(fs, file, doc.Content[0].Content)
}

func fillFrom(fs *pflag.FlagSet, file string, pairs []*yaml.Node) error {
	seen := map[string]bool{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := pairs[i], pairs[i+1]
		at := fmt.Sprintf("%s:%d: ", file, key.Line)
		own := fs.Lookup(key.Value)
		switch {
		case own == nil || slices.Contains([]string{"requirements", "json", "why", "help"}, key.Value):
			return usage("%sunknown key %s; see: david plan -h", at, key.Value)
		case seen[key.Value]:
			return usage("%s%s stands twice", at, key.Value)
		case value.Kind != yaml.ScalarNode && !flat(value):
			return usage("%s%s: want one value", at, key.Value)
		}
		seen[key.Value] = true
		if own.Changed {
			continue
		}
		if err := setFlag(fs, key.Value, value); err != nil {
			return usage("%s%s: %w", at, key.Value, err)
		}
	}
	return nil
}

// flat tells a list of plain values.
func flat(n *yaml.Node) bool {
	return n.Kind == yaml.SequenceNode && !slices.ContainsFunc(n.Content, func(x *yaml.Node) bool { return x.Kind != yaml.ScalarNode })
}

// flagTakes says what a flag takes, in the place of the library's own words; "" for what it says well.
func flagTakes(f *pflag.Flag) string {
	return map[string]string{"bool": "true or false", "float64": "a number", "int": "a whole number", "duration": "a time, as in 15m"}[f.Value.Type()]
}

func setFlag(fs *pflag.FlagSet, name string, value *yaml.Node) error {
	if value.Kind == yaml.ScalarNode {
		err := fs.Set(name, value.Value)
		if want := flagTakes(fs.Lookup(name)); err != nil && want != "" {
			return fmt.Errorf("%q: want %s", value.Value, want)
		}
		return err
	}
	if fs.Lookup(name).Value.Type() != "stringSlice" {
		return errors.New("want one value, no list")
	}
	for _, x := range value.Content {
		if err := fs.Set(name, x.Value); err != nil {
			return err
		}
	}
	return nil
}
