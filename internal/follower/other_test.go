package follower_test

import (
	"errors"
	"strings"
	"testing"

	"david/internal/follower"
	"david/internal/mycnf"
	"david/internal/testserver"
)

// TestOtherLeader: whoever names another server than the leader is refused before anything is done. The password of the
// follower's account stands in no binary log.
func TestOtherLeader(t *testing.T) {
	t.Parallel()
	for flavour, kind := range map[string]mycnf.Flavour{"mysql": mycnf.MySQL, "mariadb": mycnf.MariaDB} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			r := x.clone("a")
			other := testserver.Start(t, kind).Root()
			_, promoted := r.Promote(t.Context(), other, quiet)
			for what, err := range map[string]error{"drop": r.Drop(t.Context(), other, false), "promote": promoted} {
				if !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "is not the leader of the follower a") || r.State != follower.Following {
					t.Errorf("%s: %v, %s", what, err, r.State)
				}
			}
			logs, err := x.conn.Records(t.Context(), "SHOW BINARY LOGS")
			if err != nil {
				t.Fatal(err)
			}
			made := ""
			for _, log := range logs {
				events, err := x.conn.Records(t.Context(), "SHOW BINLOG EVENTS IN '"+log["log_name"]+"'")
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range events {
					if strings.Contains(e["info"], "CREATE USER") {
						made += e["info"]
					}
				}
			}
			if !strings.Contains(made, "david_a") || strings.Contains(made, "-a1Z") {
				t.Errorf("the account was made by %q", made)
			}
			if err := r.Drop(t.Context(), x.leader, false); err != nil {
				t.Error(err)
			}
			x.nothingLeft()
		})
	}
}
