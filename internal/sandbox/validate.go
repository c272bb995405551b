package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"david/internal/mycnf"
	"david/internal/server"
)

// Validate lets the server judge settings without data and without starting: names it does not know, values
// it cannot read. What only a start shows, memory that is not there say, it does not find. The error is a
// *StartError with the server's own lines. (MySQL manual, --validate-config; MariaDB has no such option, and
// reads its settings before it prints its help.)
func (w *Workspace) Validate(ctx context.Context, binary server.Binary, settings []mycnf.Setting) error {
	b, err := w.reach(binary)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(w.run, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := w.owner.Own(dir); err != nil {
		return err
	}
	argv := append(append([]string{}, b.Launch...), "--no-defaults")
	for _, s := range settings {
		argv = append(argv, option(s))
	}
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	argv = append(argv, "--datadir="+dir, "--tmpdir="+dir)
	if b.Flavour == mycnf.MariaDB {
		argv = append(argv, "--help", "--verbose")
	} else {
		argv = append(argv, "--validate-config", "--secure-file-priv=NULL")
	}
	if err := w.runToEnd(ctx, binary.Path, argv, nil, dir); err != nil {
		return err
	}
	// MariaDB ends well also where InnoDB could not read its settings.
	said, err := w.readLog(filepath.Join(dir, "out"))
	if err != nil {
		return err
	}
	if lines := errorLines(said); len(lines) > 0 {
		return &StartError{Binary: filepath.Base(binary.Path), Lines: lines, Cause: errors.New("it refuses the settings")}
	}
	return nil
}
