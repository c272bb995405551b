// Package oci puts layers together to an image and writes it as an OCI archive: an OCI image layout in a tar
// file, which `ctr images import` takes. The same layers and settings give the same bytes.
package oci

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"david/images/internal/root"
)

// Layer is a layer of an image, and what it holds in a few words.
type Layer struct {
	What  string
	Files *root.Root
}

// epoch is the creation time of all images: a real one would make each build another image.
func epoch() v1.Time { return v1.Time{Time: time.Unix(0, 0).UTC()} }

// Image puts an image for this machine's architecture together. Layers are gzipped, at the level given (1 is
// fast, 9 small).
func Image(config v1.Config, level int, layers ...Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	file, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Created, file.Config = "linux", runtime.GOARCH, epoch(), config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, err
	}
	for _, l := range layers {
		layer, err := gzipped(l.Files, level)
		if err != nil {
			return nil, err
		}
		history := v1.History{Created: epoch(), CreatedBy: l.What}
		if image, err = mutate.Append(image, mutate.Addendum{Layer: layer, History: history, MediaType: types.OCILayer}); err != nil {
			return nil, err
		}
	}
	return image, nil
}

func gzipped(files *root.Root, level int) (v1.Layer, error) {
	var text bytes.Buffer
	w, err := gzip.NewWriterLevel(&text, level)
	if err != nil {
		return nil, err
	}
	if err := files.WriteTar(w); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	open := func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil }
	return tarball.LayerFromOpener(open, tarball.WithMediaType(types.OCILayer))
}

// Write writes an image under a name such as localhost/david:dev to the file at path, whole or not at all.
func Write(path, name string, image v1.Image) error {
	if err := write(path, name, image); err != nil {
		return fmt.Errorf("cannot write the image %s to %s: %w", name, path, err)
	}
	return nil
}

func write(path, name string, image v1.Image) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".image-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already where all went well
	defer f.Close()
	if err := Archive(f, name, image); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// Archive writes the OCI archive.
func Archive(w io.Writer, name string, image v1.Image) error {
	index, err := index(name, image)
	if err != nil {
		return err
	}
	out := &archive{tar.NewWriter(w), map[string]bool{}}
	err = errors.Join(out.file("oci-layout", []byte(`{"imageLayoutVersion":"1.0.0"}`)), out.file("index.json", index), out.blobs(image))
	return errors.Join(err, out.tar.Close())
}

// index is the index.json with the one image in it. containerd takes the name from an annotation of its own;
// the other is the standard's, a tag only.
func index(name string, image v1.Image) ([]byte, error) {
	manifest, err := image.RawManifest()
	if err != nil {
		return nil, err
	}
	digest, err := image.Digest()
	if err != nil {
		return nil, err
	}
	return json.Marshal(v1.IndexManifest{
		SchemaVersion: 2,
		MediaType:     types.OCIImageIndex,
		Manifests: []v1.Descriptor{{
			MediaType: types.OCIManifestSchema1, Size: int64(len(manifest)), Digest: digest,
			Annotations: map[string]string{
				"io.containerd.image.name":          name,
				"org.opencontainers.image.ref.name": name[strings.LastIndex(name, ":")+1:],
			},
			Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH},
		}},
	})
}

type archive struct {
	tar  *tar.Writer
	seen map[string]bool // two layers with the same content are one blob
}

func (a *archive) blobs(image v1.Image) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	for _, layer := range layers {
		if err := a.layer(layer); err != nil {
			return err
		}
	}
	for _, part := range []struct {
		text   func() ([]byte, error)
		digest func() (v1.Hash, error)
	}{{image.RawConfigFile, image.ConfigName}, {image.RawManifest, image.Digest}} {
		text, err := part.text()
		if err != nil {
			return err
		}
		digest, err := part.digest()
		if err != nil {
			return err
		}
		if err := a.file("blobs/sha256/"+digest.Hex, text); err != nil {
			return err
		}
	}
	return nil
}

func (a *archive) layer(layer v1.Layer) error {
	digest, err := layer.Digest()
	if err != nil {
		return err
	}
	body, err := layer.Compressed()
	if err != nil {
		return err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	return a.file("blobs/sha256/"+digest.Hex, text)
}

// file adds a file unless it is there already.
func (a *archive) file(name string, text []byte) error {
	if a.seen[name] {
		return nil
	}
	a.seen[name] = true
	h := tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text)), ModTime: time.Unix(0, 0)}
	if err := a.tar.WriteHeader(&h); err != nil {
		return err
	}
	_, err := a.tar.Write(text)
	return err
}
