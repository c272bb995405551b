package result

import "testing"

// TestProofs keeps the last proof of each arm, in the order in which they came.
func TestProofs(t *testing.T) {
	s := newStore(t)
	if list, err := s.Proofs(); err != nil || list != nil {
		t.Errorf("of none: %v, %v", list, err)
	}
	for _, p := range []Proof{{Arm: "winner"}, {Arm: "rival"}, {Arm: "winner", OK: true}} {
		if err := s.PutProof(p); err != nil {
			t.Fatal(err)
		}
	}
	list, err := s.Proofs()
	if err != nil || len(list) != 2 || list[0].Arm != "rival" || !list[1].OK {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestMemoryProof counts what was not seen: pages of the pool that nothing has touched yet, and connections
// beyond those opened.
func TestMemoryProof(t *testing.T) {
	m := MemoryProof{Connections: 500, Allowed: 1500, Peak: 1 << 30, Empty: 1 << 29, Each: 1 << 20, Limit: 2 << 30}
	if m = m.Judge(); m.Worst != 1<<30+1<<29+1000<<20 || m.OK {
		t.Errorf("%+v", m)
	}
	m.Allowed = 500
	if m = m.Judge(); m.Worst != 1<<30+1<<29 || !m.OK {
		t.Errorf("%+v", m)
	}
}
