package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"david/internal/input"
	"david/internal/plain"
)

// writeFile puts what is written into a file, as a whole or not at all, with the control characters in it made visible: much
// of it are others' words.
func writeFile(path string, write func(io.Writer) error) error {
	var content bytes.Buffer
	w := plain.NewWriter(&content)
	if err := errors.Join(write(w), w.Flush()); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return replaceFile(path, content.Bytes(), 0o644)
}

// replaceFile puts a file in place at once, with its mode from the beginning. What has the content already is
// left alone.
func replaceFile(path string, content []byte, mode fs.FileMode) (err error) {
	if info, err := os.Lstat(path); err == nil && info.Mode() == mode && info.Size() == int64(len(content)) {
		if old, err := input.Read(path, info.Size()); err == nil && bytes.Equal(old, content) {
			return nil
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".david-") // of mode 0600
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}
