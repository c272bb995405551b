package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"david/internal/input"
	"david/internal/lab"
	"david/internal/report"
)

// deliver proves the tuned configuration by starting a server with the very file, and writes the output folder. A user's own file, base, is
// handed over as it is with the changes at its end: only these were proved with a sandbox's port and data directory.
func deliver(ctx context.Context, out, base string, tuned lab.Tuned) error {
	data, err := load(tuned.Store)
	if err != nil {
		return err
	}
	cnf := filepath.Join(out, tunedCnf)
	if err := writeFile(cnf, func(w io.Writer) error { _, err := io.WriteString(w, data.Cnf); return err }); err != nil {
		return err
	}
	if err := tuned.Prove(ctx, cnf); err != nil {
		return err
	}
	if base != "" {
		changed, err := changedLines(data)
		if err != nil {
			return err
		}
		if err := uponBase(cnf, base, changed); err != nil {
			return err
		}
	}
	if err := writeReports(out, data); err != nil {
		return err
	}
	return os.Symlink(tuned.Store.Dir(), filepath.Join(out, recordLink))
}

// writeReports writes what goes with a my.cnf: the reports, and what could not be confirmed.
func writeReports(out string, d report.Data) error {
	text, err := candidate(d)
	if err != nil {
		return err
	}
	if text != nil {
		if err := writeFile(filepath.Join(out, candidateCnf), func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(out, reportHTML), func(w io.Writer) error { return report.HTML(w, d) }); err != nil {
		return err
	}
	return writeFile(filepath.Join(out, reportMD), func(w io.Writer) error { return report.Markdown(w, d) })
}

// longestBase bounds a user's own option file, in bytes.
const longestBase = 1 << 20

// uponBase writes the user's own file, word for word, and after it what is changed of it: servers take the last line of a variable. Its mode stays,
// as it may hold a password.
func uponBase(cnf, base string, changed []byte) error {
	info, err := os.Stat(base)
	if err != nil {
		return fmt.Errorf("cannot read the option file: %w", err)
	}
	text, err := input.Read(base, longestBase)
	if err != nil {
		return fmt.Errorf("cannot read the option file: %w", err)
	}
	return replaceFile(cnf, slices.Concat(bytes.TrimRight(text, "\n"), []byte("\n\n"), changed), info.Mode().Perm())
}
