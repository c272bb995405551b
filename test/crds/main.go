// Command crds writes the custom resource definitions of the operators that david renders for into a folder,
// one file each, so that tests can check david's resources against them, offline or on an API server:
//
//	go run -C test/crds . -out FOLDER
//
// They come unchanged from the operators' Go modules, which the go command downloads in the versions of
// go.mod and holds against go.sum. Some operators have no Go module that could be had: their definitions are
// taken from the YAML files of the folder in $DAVID_CRDS, and named on stderr where there is none.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// source is one module, the files in it that hold definitions (patterns of filepath.Match), and the kinds
// wanted of them.
type source struct {
	module string
	files  []string
	kinds  []string
}

func sources() []source {
	return []source{
		{"github.com/percona/percona-xtradb-cluster-operator", []string{"config/crd/bases/*.yaml"}, []string{"PerconaXtraDBCluster"}},
		{"github.com/apecloud/kubeblocks", []string{"config/crd/bases/apps.kubeblocks.io_clusters.yaml", "config/crd/bases/parameters.kubeblocks.io_*.yaml"},
			[]string{"Cluster", "Parameter", "ComponentParameter"}},
		{"github.com/cybozu-go/moco", []string{"config/crd/bases/*.yaml"}, []string{"MySQLCluster"}},
		{"github.com/rook/rook", []string{"deploy/examples/crds.yaml"}, []string{"CephBlockPool", "CephCluster"}},
		{"github.com/kubernetes-csi/external-snapshotter/client/v8", []string{"config/crd/snapshot.storage.k8s.io_*.yaml"},
			[]string{"VolumeSnapshot", "VolumeSnapshotClass", "VolumeSnapshotContent"}},
	}
}

// unavailable are the definitions that no Go module could be had for, by the names of their resources.
func unavailable() []string {
	return []string{"innodbclusters.mysql.oracle.com", "mariadbs.k8s.mariadb.com", "perconaservermysqls.ps.percona.com"}
}

// errDownload is the cause of an error where a module cannot be had: no network, or it was taken down.
var errDownload = errors.New("cannot download")

func main() {
	out := flag.String("out", "", "folder to write the definitions into")
	flag.Parse()
	err := run(*out, os.Getenv("DAVID_CRDS"), os.Stderr)
	switch {
	case errors.Is(err, errDownload):
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(4)
	case err != nil:
		fmt.Fprintln(os.Stderr, "crds:", err)
		os.Exit(1)
	}
}

// run writes all definitions to a folder; extra is the folder of those that are in no module, or empty.
func run(out, extra string, notes io.Writer) error {
	if out == "" {
		return errors.New("say where to write to: -out FOLDER")
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	written := map[string]bool{}
	for _, s := range sources() {
		if err := s.write(out, written); err != nil {
			return err
		}
	}
	if extra != "" {
		if err := writeExtra(extra, out, written); err != nil {
			return err
		}
	}
	for _, name := range unavailable() {
		if !written[name] {
			fmt.Fprintf(notes, "crds: %s is in no Go module: set DAVID_CRDS to a folder with its definition\n", name)
		}
	}
	return nil
}

// write puts one module's definitions into the folder. A kind that is not found is an error: the pinned
// version has it.
func (s source) write(out string, written map[string]bool) error {
	root, err := download(s.module)
	if err != nil {
		return err
	}
	missing := slices.Clone(s.kinds)
	for _, pattern := range s.files {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, file := range files {
			found, err := writeFile(file, out, written, func(d definition) bool { return slices.Contains(s.kinds, d.Spec.Names.Kind) })
			if err != nil {
				return err
			}
			missing = slices.DeleteFunc(missing, func(kind string) bool { return slices.Contains(found, kind) })
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("%s has no definition of %s in %s", s.module, strings.Join(missing, ", "), strings.Join(s.files, ", "))
	}
	return nil
}

// writeExtra puts the definitions of a folder beside those of the modules, which have precedence.
func writeExtra(folder, out string, written map[string]bool) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range files {
		_, err := writeFile(file, out, written, func(d definition) bool { return slices.Contains(unavailable(), d.Metadata.Name) })
		if err != nil {
			return err
		}
	}
	return nil
}

// definition holds what is read of a custom resource definition.
type definition struct {
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec struct {
		Names struct {
			Kind string `yaml:"kind"`
		} `yaml:"names"`
	} `yaml:"spec"`
}

// writeFile writes the wanted definitions of a YAML stream to files of their names, and gives their kinds.
func writeFile(file, out string, written map[string]bool, wanted func(definition) bool) (kinds []string, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for _, document := range bytes.Split(append([]byte("\n"), text...), []byte("\n---")) {
		var d definition
		if err := yaml.Unmarshal(document, &d); err != nil {
			return nil, fmt.Errorf("cannot read %s: %w", file, err)
		}
		if d.Kind != "CustomResourceDefinition" || !wanted(d) || written[d.Metadata.Name] {
			continue
		}
		if err := os.WriteFile(filepath.Join(out, d.Metadata.Name+".yaml"), bytes.TrimLeft(document, "\n"), 0o644); err != nil {
			return nil, err
		}
		written[d.Metadata.Name] = true
		kinds = append(kinds, d.Spec.Names.Kind)
	}
	return kinds, nil
}

// download gives the folder of a module of go.mod, which the go command fetches where it is not in its cache
// yet. Only the module itself is fetched, not what it requires.
func download(module string) (string, error) {
	version, err := pinned(module)
	if err != nil {
		return "", err
	}
	answer, err := goCommand("mod", "download", "-json", module+"@"+version)
	var got struct{ Dir, Error string }
	if jsonErr := json.Unmarshal(answer, &got); jsonErr != nil {
		return "", fmt.Errorf("%w %s@%s: %w", errDownload, module, version, errors.Join(err, jsonErr))
	}
	switch {
	case strings.Contains(got.Error, "checksum mismatch"):
		return "", fmt.Errorf("%s@%s is not what go.sum says: %s", module, version, got.Error)
	case got.Error != "" || got.Dir == "":
		return "", fmt.Errorf("%w %s@%s: %s", errDownload, module, version, got.Error)
	}
	return got.Dir, nil
}

// pinned is the version of a module in go.mod.
func pinned(module string) (string, error) {
	text, err := goCommand("mod", "edit", "-json")
	if err != nil {
		return "", err
	}
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(text, &mod); err != nil {
		return "", fmt.Errorf("cannot read go.mod: %w", err)
	}
	for _, r := range mod.Require {
		if r.Path == module {
			return r.Version, nil
		}
	}
	return "", fmt.Errorf("go.mod does not require %s", module)
}

// goCommand runs the go command here and gives its standard output, also where it failed: it may say why.
func goCommand(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(complaint.String()))
	}
	return out, err
}
