package cli

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"david/internal/host"
	"david/internal/input"
	"david/internal/manifest/check"
	"david/internal/manifest/stream"
)

// largest is the most that is read of manifests, all files together, in bytes.
const largest = 4 << 20

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
	return manifestsIn(path)
}

// manifestsIn is readManifests of a folder or a file.
func manifestsIn(path string) (docs []stream.Document, found []check.Finding, unseen []string, err error) {
	files, unseen, err := manifestFiles(path)
	if err != nil {
		return nil, nil, nil, err
	}
	bytes, values := 0, 0
	for _, file := range files {
		text, err := input.Read(file, largest)
		if err != nil {
			return nil, nil, nil, usage("cannot read the manifests: %w", err)
		}
		bytes, values = bytes+len(text), values+input.Values(text)
		if bytes > largest || values > input.MostValues {
			return nil, nil, nil, usage("%s holds more than the %s, or the %d values, that david reads of manifests: check it in parts", path, host.Size(largest), input.MostValues)
		}
		more, wrong := check.Read(nameIn(path, file), text)
		docs, found = append(docs, more...), append(found, wrong...)
	}
	return resources(docs), found, unseen, nil
}

// nameIn is the name of a file within a folder.
func nameIn(root, file string) string {
	name, err := filepath.Rel(root, file)
	if err != nil || name == "." {
		return filepath.Base(file)
	}
	return name
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
	text, err := input.All(in, name, largest)
	if err == nil {
		err = input.Document(name, text)
	}
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	return text, nil
}

// resources are the documents that go to a cluster: a kustomization does not.
func resources(docs []stream.Document) []stream.Document {
	return slices.DeleteFunc(docs, func(d stream.Document) bool { return d.Kind() == "Kustomization" })
}
