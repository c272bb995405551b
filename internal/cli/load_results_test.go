//go:build results

package cli

import (
	"david/internal/report"
	"david/internal/result"
)

// loadDir loads an experiment without a limit.
func loadDir(dir string) (report.Data, error) {
	store, err := result.Open(dir)
	if err != nil {
		return report.Data{}, err
	}
	return load(store)
}
