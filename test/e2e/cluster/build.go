package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// version of Kubernetes; kube/go.mod has it too, and a test holds them together.
const version = "1.34.4"

// recipe is one `go build` for each of the cluster's parts.
type recipe struct {
	folder   string // below this one
	packages []string
	output   string // below bin; a folder where it ends in /
	ldflags  string
}

func recipes() []recipe {
	const component = " -X k8s.io/component-base/version."
	stamp := "-s -w" + component + "gitVersion=v" + version + component + "gitMajor=1" + component + "gitMinor=34"
	const plugins = "github.com/containernetworking/plugins/plugins/"
	const sidecars = "github.com/kubernetes-csi/"
	return []recipe{
		{"kube", []string{"."}, "kube", stamp},
		{"coredns", []string{"."}, "coredns", "-s -w"},
		{"flannel", []string{"."}, "flanneld", "-s -w"},
		{"csi", []string{".", sidecars + "external-provisioner/v6/cmd/csi-provisioner", sidecars + "external-snapshotter/v8/cmd/csi-snapshotter", sidecars + "external-snapshotter/v8/cmd/snapshot-controller"}, "csi/", "-s -w"},
		{"cni", []string{plugins + "ipam/host-local", plugins + "main/bridge", plugins + "main/host-device", plugins + "main/loopback", plugins + "main/macvlan", plugins + "main/ptp", plugins + "meta/portmap"}, "cni/", "-s -w"},
	}
}

func (r recipe) args(bin string) []string {
	args := []string{"build", "-buildvcs=false", "-trimpath", "-ldflags", r.ldflags, "-o", filepath.Join(bin, r.output)}
	if strings.HasSuffix(r.output, "/") {
		args[len(args)-1] += "/"
	}
	return append(args, r.packages...)
}

// binaries are in the folder given, or found in the cache, or built with Go's ordinary caches; the folder's
// name says what they were built from.
func binaries(ctx context.Context, given string, say func(string, ...any)) (string, error) {
	if given != "" {
		if _, err := os.Stat(filepath.Join(given, "kube")); err != nil {
			return "", usageError{fmt.Errorf("--bin is not a folder that `cluster build` printed: %w", err)}
		}
		return given, nil
	}
	return cached(ctx, "Kubernetes v"+version+", etcd, CoreDNS, Flannel, network plugins and storage sidecars, the first time eleven minutes of CPU", recipes(),
		pauseSource(), func(source, folder string) error { return build(ctx, source, folder) }, say)
}

// cached returns the folder of what recipes make, which has been filled where it was not in the cache. Other folders count, too, for whether it is the same.
func cached(ctx context.Context, what string, list []recipe, others []string, make func(source, folder string) error, say func(string, ...any)) (string, error) {
	source, err := sourceFolder(ctx)
	if err != nil {
		return "", err
	}
	key, err := cacheKey(ctx, source, list, others)
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the cache for the cluster's binaries: %w", err)
	}
	folder := filepath.Join(cache, "david", "cluster", key)
	if _, err := os.Stat(folder); err == nil {
		return folder, nil
	}
	say("building %s, into %s", what, folder)
	start := time.Now()
	if err := make(source, folder); err != nil {
		return "", err
	}
	say("built in %s", time.Since(start).Round(time.Second))
	return folder, nil
}

// fill fills a new folder beside the one that is wanted, and renames it: nobody ever sees half a build.
func fill(folder string, with func(bin string) error) error {
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return fmt.Errorf("cannot make the cache for the cluster's binaries: %w", err)
	}
	bin, err := os.MkdirTemp(filepath.Dir(folder), "building-")
	if err != nil {
		return fmt.Errorf("cannot make the cache for the cluster's binaries: %w", err)
	}
	defer os.RemoveAll(bin)
	if err := os.Chmod(bin, 0o755); err != nil {
		return err
	}
	if err := with(bin); err != nil {
		return err
	}
	err = os.Rename(bin, folder)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody else built the same meanwhile
	}
	return err
}

// build runs go build.
func (r recipe) build(ctx context.Context, source, bin string) error {
	cmd := exec.CommandContext(ctx, "go", r.args(bin)...)
	cmd.Dir = filepath.Join(source, r.folder)
	if r.folder == "flannel" {
		cmd.Dir = filepath.Join(bin, "flannel")
		if err := flannelMain(ctx, filepath.Join(source, r.folder), cmd.Dir); err != nil {
			return err
		}
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=-mod=readonly")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("cannot build the cluster's %s (%w): %s", r.folder, err, lastLines(string(out), 5))
	}
	return nil
}

// build fills the folder of all that every cluster has.
func build(ctx context.Context, source, folder string) error {
	return fill(folder, func(bin string) error {
		for _, r := range recipes() {
			if err := r.build(ctx, source, bin); err != nil {
				return err
			}
		}
		if err := os.RemoveAll(filepath.Join(bin, "flannel")); err != nil {
			return err
		}
		if err := snapshotKinds(ctx, filepath.Join(source, "csi"), filepath.Join(bin, "csi", "crds")); err != nil {
			return err
		}
		if err := pauseImage(ctx, filepath.Join(source, imagesFolder), bin); err != nil {
			return err
		}
		for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"} {
			if err := os.Symlink("kube", filepath.Join(bin, name)); err != nil {
				return err
			}
		}
		return nil
	})
}

// snapshotKinds puts the definitions of snapshots beside the binaries, from the module that has them.
func snapshotKinds(ctx context.Context, source, to string) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/kubernetes-csi/external-snapshotter/client/v8")
	cmd.Dir = source
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot find the definitions of snapshots: %w", withStderr(err))
	}
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "config", "crd", "snapshot.storage.k8s.io_*.yaml"))
	if err != nil || len(files) == 0 {
		return errors.New("cannot find the definitions of snapshots in their module")
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// imagesFolder is the module that builds images, from here.
const imagesFolder = "../../../images"

// pauseSource is where what the pause image runs is, besides Debian's packages.
func pauseSource() []string { return []string{filepath.Join(imagesFolder, "pause")} }

// pauseImage puts the image that holds pods' namespaces beside the binaries, as pause.tar.
func pauseImage(ctx context.Context, images, bin string) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./testservers", "pause")
	cmd.Dir = images
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("cannot build the pause image: %w", withStderr(err))
	}
	_, tar, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	image, err := os.ReadFile(tar)
	if err != nil {
		return fmt.Errorf("cannot build the pause image: %w", err)
	}
	return os.WriteFile(filepath.Join(bin, "pause.tar"), image, 0o644)
}

// sourceFolder finds this program's own source: what has to be built is not in its module, so it cannot be
// embedded.
func sourceFolder(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "david/test/e2e/cluster").Output()
	if err != nil {
		return "", targetError{fmt.Errorf("cannot find the cluster's source, run this within david's repository: %w", withStderr(err))}
	}
	return strings.TrimSpace(string(out)), nil
}

// cacheKey is a hash of all that goes into the binaries: sources with go.mod and go.sum, the recipes, Go's
// version.
func cacheKey(ctx context.Context, source string, list []recipe, folders []string) (string, error) {
	goVersion, err := exec.CommandContext(ctx, "go", "env", "GOVERSION", "GOARCH").Output()
	if err != nil {
		return "", fmt.Errorf("cannot ask go for its version: %w", withStderr(err))
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n", goVersion)
	folders = slices.Clone(folders)
	for _, r := range list {
		fmt.Fprintf(hash, "%q\n", r.args(""))
		folders = append(folders, r.folder)
	}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(source, folder, "*.*")) // sorted by name
		if err != nil || len(files) == 0 {
			return "", fmt.Errorf("the cluster's source has no folder %s", folder)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return "", fmt.Errorf("cannot read the cluster's source: %w", err)
			}
			fmt.Fprintf(hash, "%s %x\n", filepath.Base(f), sha256.Sum256(text))
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil))[:16], nil
}

// withStderr adds what a command said before it failed.
func withStderr(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		return fmt.Errorf("%w: %s", err, lastLines(string(exit.Stderr), 3))
	}
	return err
}

// lastLines joins the last n lines of a text into one.
func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}
