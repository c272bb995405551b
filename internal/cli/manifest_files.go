package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/input"
	"david/internal/manifest/check"
)

// manifestFiles lists the files of a path in the order they are applied; unseen says what a kustomization
// names that is not read.
func manifestFiles(path string) (files, unseen []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, usage("cannot read the manifests: %w", err)
	}
	if !info.IsDir() {
		return []string{path}, nil, nil
	}
	for _, name := range []string{"kustomization.yaml", "kustomization.yml", "Kustomization"} {
		text, err := input.ReadDocument(filepath.Join(path, name), largest)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, usage("cannot read the manifests: %w", err)
		}
		return kustomized(path, name, text)
	}
	entries, err := input.Folder(path)
	if err != nil {
		return nil, nil, usage("cannot read the manifests: %w", err)
	}
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, ext) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, nil, nil
}

// kustomized lists the files that a kustomization names.
func kustomized(path, name string, text []byte) (files, unseen []string, err error) {
	named, unseen, err := check.Kustomization(name, text)
	if err != nil {
		return nil, nil, usage("cannot read %s: %w", filepath.Join(path, name), err)
	}
	for _, r := range named {
		file := filepath.Join(path, r)
		info, err := os.Stat(file)
		switch {
		case err != nil && !strings.Contains(r, "://"):
			return nil, nil, usage("%s names %s: %w", filepath.Join(path, name), r, err)
		case err != nil || info.IsDir():
			unseen = append(unseen, check.NoFile(name, r))
		default:
			files = append(files, file)
		}
	}
	return files, unseen, nil
}

// readDefinitions reads custom resource definitions.
func readDefinitions(path string) (check.Schemas, error) {
	docs, found, _, err := manifestsIn(path)
	if err != nil {
		return nil, err
	}
	if len(found) > 0 {
		return nil, usage("--crds %s: %s: %s", path, found[0].Where(), found[0].Why)
	}
	schemas := check.Schemas{}
	if err := schemas.Define(docs); err != nil {
		return nil, usage("--crds %s: %w", path, err)
	}
	if len(schemas) == 0 {
		return nil, usage("--crds %s holds no CustomResourceDefinition", path)
	}
	return schemas, nil
}
