package render

import (
	"bytes"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"david/internal/manifest/stream"
)

// Encode writes the resources as one YAML stream; what lies aside is left out. A reason whose path does not
// exist is an error.
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

// Folder gives the files of a database's kustomize folder by name: one for each object, and
// kustomization.yaml, which names the database.
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

// marker begins every file of a folder.
const marker = "# Rendered by david manifest; what is changed here is lost when it is rendered again.\n"

// Rendered tells whether a file's content is of david's making.
func Rendered(content []byte) bool { return bytes.HasPrefix(content, []byte(marker)) }

// Database names the database that a folder's kustomization.yaml was rendered for; "" where it does
// not say.
func Database(kustomization []byte) (string, error) {
	var k struct {
		Metadata struct {
			Name string `yaml:"name"`
		} `yaml:"metadata"`
	}
	err := yaml.Unmarshal(kustomization, &k)
	return k.Metadata.Name, err
}

// document writes an object as YAML, with its comments.
func document(o Object) ([]byte, error) {
	if o.Value == nil {
		return []byte(marker + o.Text), nil
	}
	text, err := stream.Write(o.Value, o.Reasons)
	if err != nil {
		return nil, fmt.Errorf("cannot encode %s: %w", o.File, err)
	}
	return text, nil
}
