package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"david/internal/host"
	"david/internal/lab"
	"david/internal/manifest/check"
	"david/internal/manifest/stream"
)

// checkFlags are those of david manifest check.
type checkFlags struct {
	clusterFlags
	crds     string
	recovery time.Duration
	json     bool
	cluster  bool // --kubeconfig or --context was given
}

func (a *app) manifestCheckCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check DIR|FILE|-",
		Short: "Check manifests: strict schemas offline, the cluster's own opinion with --kubeconfig, and david's rules for database pods",
		Long: "Check manifests of Kubernetes, david's or anybody's: a kustomize folder, a folder of YAML files, a file, or standard input (-). Unknown and repeated fields\n" +
			"are errors, with file and line; custom resources are held against the definitions of --crds. With --kubeconfig or --context the cluster is asked too: a dry run of\n" +
			"each object by its API server, and its storage classes. For pods that run MySQL or MariaDB, and for the resources of\n" +
			"their operators, david's rules follow (docs/kubernetes.md names them). Exit code 2 where there are errors. Nothing is changed anywhere.",
		Args: exactArgs(1, "one folder, one file, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.cluster = cmd.Flags().Changed("kubeconfig") || cmd.Flags().Changed("context")
			if cmd.Flags().Changed("recovery") && f.recovery <= 0 {
				return usage("--recovery %s: give how long recovery from a crash took, as in 30s", f.recovery)
			}
			return a.manifestCheck(cmd.Context(), f, args[0], cmd.InOrStdin())
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.crds, "crds", "", "DIR or FILE with the definitions of custom resources, as the operators ship them")
	fs.DurationVar(&f.recovery, "recovery", 0, "how long recovery from a crash took, which the start-up probe has to outlast")
	f.clusterFlags.add(fs)
	fs.BoolVar(&f.json, "json", false, "print one JSON document")
	return cmd
}

// manifestCheck checks what a path holds.
func (a *app) manifestCheck(ctx context.Context, f checkFlags, path string, in io.Reader) error {
	docs, found, unseen, err := readManifests(ctx, path, in)
	if err != nil {
		return err
	}
	if len(docs) == 0 && len(found) == 0 {
		return usage("%s holds no objects of Kubernetes", path)
	}
	known := check.Known{Recovery: f.recovery}
	if f.crds != "" {
		if known.Schemas, err = readDefinitions(ctx, f.crds); err != nil {
			return err
		}
	}
	result, err := check.Inspect(docs, known)
	if err != nil {
		return err
	}
	result.Findings = append(result.Findings, found...)
	result.Unseen = append(result.Unseen, unseen...)
	if f.cluster {
		if err := a.askCluster(ctx, f, docs, &result); err != nil {
			return err
		}
	}
	result.Sort()
	if f.json {
		err = a.printJSON(result)
	} else {
		printInspection(a.out, path, result)
	}
	if n := result.Errors(); err == nil && n > 0 {
		return usage("%s: %s", path, pluralise(n, "error"))
	}
	return err
}

// printInspection prints one line for each finding: severity, place, object and field, why, what to do.
func printInspection(out io.Writer, path string, i check.Inspection) {
	for _, f := range i.Findings {
		object := strings.TrimSpace(f.Object + " " + f.Path)
		if object != "" {
			object += ": "
		}
		fmt.Fprintf(out, "%s %s [%s] %s%s; %s\n", f.Severity, f.Where(), f.Rule, object, f.Why, f.Do)
	}
	for _, u := range i.Unseen {
		fmt.Fprintf(out, "not seen: %s\n", u)
	}
	fmt.Fprintf(out, "%s: %s, %s, %s\n", path, pluralise(i.Objects, "object"), pluralise(i.Errors(), "error"), pluralise(len(i.Findings)-i.Errors(), "other finding"))
}

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
		if err := lab.Regular("kustomization", filepath.Join(path, name)); err != nil {
			return nil, nil, codedError{exitUsage, err}
		}
		text, err := os.ReadFile(filepath.Join(path, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, usage("cannot read the manifests: %w", err)
		}
		return kustomized(path, name, text)
	}
	entries, err := os.ReadDir(path)
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

// kustomized are the files that a kustomization names. david reads plain resources, and says what else there
// is.
func kustomized(path, name string, text []byte) (files, unseen []string, err error) {
	var k map[string]any
	if err := yaml.Unmarshal(text, &k); err != nil {
		return nil, nil, usage("cannot read %s: %w", filepath.Join(path, name), err)
	}
	named, _ := k["resources"].([]any)
	for _, r := range named {
		file := filepath.Join(path, fmt.Sprint(r))
		info, err := os.Stat(file)
		switch {
		case err != nil && !strings.Contains(fmt.Sprint(r), "://"):
			return nil, nil, usage("%s names %v: %w", filepath.Join(path, name), r, err)
		case err != nil || info.IsDir():
			unseen = append(unseen, fmt.Sprintf("resource %v of %s: david reads files only; check the output of kubectl kustomize instead", r, name))
		default:
			files = append(files, file)
		}
	}
	for _, key := range []string{"patches", "patchesStrategicMerge", "patchesJson6902", "components", "configMapGenerator", "secretGenerator", "helmCharts", "namePrefix", "nameSuffix",
		"namespace", "images", "replicas", "commonLabels", "labels", "replacements", "transformers", "generators"} {
		if _, there := k[key]; there {
			unseen = append(unseen, fmt.Sprintf("%s of %s: david does not apply it; check the output of kubectl kustomize instead", key, name))
		}
	}
	return files, unseen, nil
}

// readDefinitions reads custom resource definitions.
func readDefinitions(ctx context.Context, path string) (check.Schemas, error) {
	docs, found, _, err := readManifests(ctx, path, nil)
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
