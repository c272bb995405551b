package cli

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"david/internal/input"
	"david/internal/manifest"
	"david/internal/manifest/render"
)

// ownFolder refuses an output folder that holds what david did not render, unless it may be written into all
// the same.
func ownFolder(out string, force bool) error {
	entries, err := input.Folder(out)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(filepath.Clean(out))); err != nil {
			return usage("--out %s: %w", out, err)
		}
		return nil
	case err != nil:
		return usage("--out %s: cannot read the folder: %w", out, err)
	}
	var foreign []string
	for _, e := range entries {
		own, err := isRendered(filepath.Join(out, e.Name()), e)
		if err != nil {
			return usage("--out %s: %w", out, err)
		}
		if !own {
			foreign = append(foreign, e.Name())
		}
	}
	if len(foreign) > 0 && !force {
		return usage("--out %s holds what david did not render: %s; name another folder, or --force writes beside it (a file of the same name is replaced)", out, strings.Join(foreign[:min(3, len(foreign))], ", "))
	}
	return nil
}

// ownDatabase refuses the folder of a database of another name, whose objects would be replaced.
func ownDatabase(out, name string) error {
	path := filepath.Join(out, render.KustomizationFile)
	content, err := input.ReadDocument(path, largest)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return usage("--out %s: %w", out, err)
	}
	switch database, err := render.Database(content); {
	case err != nil:
		return usage("--out %s: cannot read %s, which tells whose folder it is: %w", out, path, err)
	case database != "" && database != name:
		return usage("--out %s is the folder of the database %s, whose objects --name %s would replace: name another folder", out, database, name)
	}
	return nil
}

// earlier are the files that a folder has of an earlier rendering; nil where it was not rendered before.
func earlier(out string) (before map[string][]byte, err error) {
	if _, err := os.Stat(filepath.Join(out, render.KustomizationFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	entries, err := input.Folder(out)
	if err != nil {
		return nil, fmt.Errorf("cannot read the folder: %w", err)
	}
	before = map[string][]byte{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		content, err := rendered(filepath.Join(out, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("cannot read the folder: %w", err)
		}
		if content != nil {
			before[e.Name()] = content
		}
	}
	return before, nil
}

// sameData refuses a rendering that the data of the folder's database do not go with: pages of another size,
// volumes that no cluster makes of those that are there. With force the user says that there are none, or has
// made way.
func sameData(out string, files map[string][]byte, force bool) error {
	before, err := earlier(out)
	if err != nil || before == nil || force {
		return err
	}
	if was, now := manifest.PageSize(before), manifest.PageSize(files); was != now {
		return usage("--out %s has innodb_page_size %s, and this would be %s: a server does not start on data that were made with other pages; name another folder for a new database, or --force where there are no data yet", out, was, now)
	}
	if why := manifest.Unappliable(before, files); why != "" {
		return usage("--out %s: %s; --force where nothing was applied yet", out, why)
	}
	return nil
}

// isRendered tells whether a file is one of david's.
func isRendered(path string, e fs.DirEntry) (bool, error) {
	if !e.Type().IsRegular() {
		return false, nil
	}
	content, err := rendered(path)
	return content != nil, err
}

// rendered reads a file of david's; nil is any other.
func rendered(path string) ([]byte, error) {
	content, err := input.Read(path, largest)
	if errors.Is(err, input.ErrLong) {
		return nil, nil
	}
	if err != nil || !render.Rendered(content) {
		return nil, err
	}
	return content, input.Document(path, content)
}

// passwordOf gives the request a password where its flavour wants one and it names no Secret: that of the
// folder's, or a new one. A folder that was rendered before and has no Secret gets none without force: its
// database, if it runs, has another password.
func passwordOf(req *render.Request, out string, force bool) error {
	key := req.SecretKey()
	if req.Secret != "" || key == "" {
		return nil
	}
	path := filepath.Join(out, render.SecretFile)
	content, err := input.ReadDocument(path, largest)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(out, render.KustomizationFile)); err == nil && !force {
			return usage("--out %s was rendered before and has no %s: with a new password a running database would let nobody in; put the file back, or name the Secret in the cluster with --secret, or --force makes a new password", out, render.SecretFile)
		}
		random := make([]byte, 24)
		rand.Read(random) // it never fails, and ends the program where the system has no randomness
		req.Password = base64.RawURLEncoding.EncodeToString(random)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the folder's Secret: %w", err)
	}
	if req.Password = render.PasswordIn(content, key); req.Password == "" {
		return usage("%s has no stringData with %s, so the password cannot be kept: mend it, or remove it for a new one", path, key)
	}
	return nil
}
