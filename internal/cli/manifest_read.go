package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"david/internal/host"
	"david/internal/manifest/check"
	"david/internal/manifest/stream"
)

// largest is the most that is read of a file of manifests, in bytes.
const largest = 64 << 20

// readManifests reads a folder, a file, or standard input. A folder with a kustomization.yaml is what that
// names.
func readManifests(ctx context.Context, path string, in io.Reader) (docs []stream.Document, found []check.Finding, unseen []string, err error) {
	if path == "-" {
		text, err := interruptible(ctx, "standard input", func() ([]byte, error) { return readLimited(in, "standard input") })
		if err != nil {
			return nil, nil, nil, err
		}
		docs, found = check.Read("-", text)
		return resources(docs), found, nil, nil
	}
	files, unseen, err := manifestFiles(path)
	if err != nil {
		return nil, nil, nil, err
	}
	for _, file := range files {
		more, wrong, err := readDocuments(ctx, path, file)
		if err != nil {
			return nil, nil, nil, err
		}
		docs, found = append(docs, more...), append(found, wrong...)
	}
	return resources(docs), found, unseen, nil
}

// readDocuments reads one file of a folder, under its name there.
func readDocuments(ctx context.Context, root, file string) ([]stream.Document, []check.Finding, error) {
	text, err := interruptible(ctx, file, func() ([]byte, error) {
		f, err := os.Open(file) // of a named pipe waits for its writer
		if err != nil {
			return nil, usage("cannot read the manifests: %w", err)
		}
		defer f.Close()
		return readLimited(f, file)
	})
	if err != nil {
		return nil, nil, err
	}
	name, err := filepath.Rel(root, file)
	if err != nil || name == "." {
		name = filepath.Base(file)
	}
	docs, found := check.Read(name, text)
	return docs, found, nil
}

// interruptible reads what may never come, a pipe's text for one, until ctx ends. The read that is left
// behind ends with the process.
func interruptible(ctx context.Context, name string, read func() ([]byte, error)) ([]byte, error) {
	type answer struct {
		text []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		text, err := read()
		done <- answer{text, err}
	}()
	select {
	case a := <-done:
		return a.text, a.err
	case <-ctx.Done():
		return nil, codedError{exitInterrupted, fmt.Errorf("interrupted while reading %s; nothing was checked", name)}
	}
}

func readLimited(in io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(in, largest+1))
	switch {
	case err != nil:
		return nil, usage("cannot read %s: %w", name, err)
	case len(text) > largest:
		return nil, usage("%s is larger than %s: these are no manifests", name, host.Size(largest))
	}
	return text, nil
}

// resources are the documents that go to a cluster: a kustomization does not.
func resources(docs []stream.Document) []stream.Document {
	return slices.DeleteFunc(docs, func(d stream.Document) bool { return d.Kind() == "Kustomization" })
}
