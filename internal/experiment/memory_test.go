package experiment

import (
	"context"
	"path/filepath"
	"testing"

	"david/internal/rules"
)

// TestMemoryProof has all connections of real servers sort: what they take is more than a server takes idle,
// less than 16 GiB, and more than a limit that no server keeps.
func TestMemoryProof(t *testing.T) {
	each(t, func(t *testing.T, _ *Engine, s *Sandboxed) {
		log := filepath.Join(t.TempDir(), "server.log")
		for limit, want := range map[int64]bool{16 << 30: true, 64 << 20: false} {
			m, err := MemoryProof(context.Background(), s, rules.Control(s.Binary.Flavour), small, limit, log)
			if err != nil {
				t.Fatal(err)
			}
			if m.OK != want || m.Connections != m.Allowed-1 || m.Peak < 64<<20 || m.Each <= 0 || m.Worst < m.Peak {
				t.Errorf("limit %d: %+v", limit, m)
			}
		}
	})
}
