package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Remove deletes a server that david installed, by the name of its folder ("mysql-9.7.4-2"). It waits for an
// installation that is under way, as long as ctx lasts. The system's servers are never touched.
func Remove(ctx context.Context, home, name string) error {
	servers := serversDir(home)
	have := installed(servers)
	if !slices.Contains(have, name) {
		return fmt.Errorf("cannot remove the server %q: %s", name, inFolder(have))
	}
	unlock, err := lock(ctx, servers, io.Discard)
	if err != nil {
		return fmt.Errorf("cannot remove the server %s: %w", name, err)
	}
	defer unlock()
	// Renamed first, so that an interrupted removal leaves no half server: the next installation sweeps it.
	gone, err := os.MkdirTemp(servers, workPrefix)
	if err != nil {
		return fmt.Errorf("cannot remove the server %s: %w", name, err)
	}
	err = os.Rename(filepath.Join(servers, name), filepath.Join(gone, name))
	if err = errors.Join(err, os.RemoveAll(gone)); err != nil {
		return fmt.Errorf("cannot remove the server %s: %w", name, err)
	}
	return nil
}

func inFolder(have []string) string {
	if len(have) == 0 {
		return "david has installed none"
	}
	return "david has installed " + strings.Join(have, ", ")
}
