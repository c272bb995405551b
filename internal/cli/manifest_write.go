package cli

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"david/internal/input"
	"david/internal/manifest/render"
)

// writeManifests writes the files of a folder, each as a whole, and removes those of an earlier rendering
// that are not among them. A Secret stays: its password is nowhere else.
func writeManifests(out string, files map[string][]byte) error {
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("cannot make the folder: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		mode := fs.FileMode(0o644)
		if name == render.SecretFile {
			mode = 0o600
		}
		if err := replaceFile(filepath.Join(out, name), files[name], mode); err != nil {
			return err
		}
	}
	entries, err := input.Folder(out)
	if err != nil {
		return fmt.Errorf("cannot read the folder: %w", err)
	}
	for _, e := range entries {
		path := filepath.Join(out, e.Name())
		own, err := isRendered(path, e)
		if err != nil {
			return err
		}
		if _, now := files[e.Name()]; own && !now && e.Name() != render.SecretFile {
			if err := os.Remove(path); err != nil {
				return fmt.Errorf("cannot remove what an earlier rendering left: %w", err)
			}
		}
	}
	return nil
}
