package follower_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"david/internal/follower"
	"david/internal/mycnf"
)

// TestDropFollowed: a follower that another server replicates from is not dropped until that has stopped.
func TestDropFollowed(t *testing.T) {
	for _, flavour := range []string{"mysql", "mariadb"} {
		t.Run(flavour, func(t *testing.T) {
			t.Parallel()
			x := newScene(t, flavour)
			one, two := x.clone("one"), x.clone("two")
			change := []string{"STOP SLAVE", fmt.Sprintf("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = %d", one.Port), "START SLAVE"}
			if one.Flavour == mycnf.MySQL {
				change = []string{"STOP REPLICA", fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST = '127.0.0.1', SOURCE_PORT = %d", one.Port), "START REPLICA"}
			}
			x.exec(x.open(x.own(two)), change...)
			replicas := func() []string {
				names, err := one.Replicas(t.Context(), x.leader)
				if err != nil {
					t.Fatal(err)
				}
				return names
			}
			for end := time.Now().Add(30 * time.Second); len(replicas()) == 0; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("it does not replicate")
				}
			}
			if err := one.Drop(t.Context(), x.leader, false); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), fmt.Sprintf("server_id %d", two.ID)) || one.State != follower.Following {
				t.Fatalf("dropped under a server that replicates from it: %v", err)
			}
			stranger := x.leader
			stranger.User = "nobody"
			if err := one.Drop(t.Context(), stranger, false); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "does not tell who replicates from it") {
				t.Fatalf("dropped by one whom its server does not let in: %v", err)
			}
			if err := two.Drop(t.Context(), x.leader, false); err != nil {
				t.Fatal(err)
			}
			for i := 0; len(replicas()) > 0; i++ { // what is sent has it see that nobody is there
				x.exec(x.conn, fmt.Sprintf("UPDATE app.t0 SET n = %d", i))
				time.Sleep(50 * time.Millisecond)
			}
			if err := one.Drop(t.Context(), x.leader, false); err != nil {
				t.Error(err)
			}
			x.nothingLeft()
		})
	}
}
