//go:build results

package follower_test

import (
	"errors"
	"fmt"
	"testing"

	"david/internal/follower"
)

// TestResultsFollowers makes, compares, promotes and drops 50 followers of each flavour under load: no row
// differs, and nothing is left.
func TestResultsFollowers(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			x := newScene(t, flavour)
			defer x.load()()
			for i := range 50 {
				r := x.clone(fmt.Sprintf("cycle-%d", i))
				v, err := r.Verify(t.Context(), x.leader)
				if err != nil || v.Tables != 3 {
					t.Fatalf("cycle %d: %+v, %v", i, v, err)
				}
				t.Logf("cycle %d: %+v", i, r.Times)
				if err := errors.Join(r.Promote(t.Context(), x.leader), r.Drop(t.Context(), x.leader)); err != nil {
					t.Fatalf("cycle %d: %v", i, err)
				}
				x.nothingLeft()
			}
			if all, err := follower.List(x.home); len(all) > 0 || err != nil {
				t.Errorf("%v, %v", all, err)
			}
		})
	}
}
