package follower_test

import (
	"errors"
	"strings"
	"testing"

	"david/internal/follower"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// TestFilteredLeader: a leader that leaves databases out of its binary log is none, as a follower would miss their changes.
func TestFilteredLeader(t *testing.T) {
	t.Parallel()
	for flavour, options := range map[mycnf.Flavour][]string{
		mycnf.MySQL:   {"--binlog-do-db=app", "--gtid-mode=ON", "--enforce-gtid-consistency=ON"},
		mycnf.MariaDB: {"--binlog-ignore-db=app", "--log-bin=changes", "--server-id=1"},
	} {
		t.Run(string(flavour), func(t *testing.T) {
			t.Parallel()
			conn, err := mysqld.Open(t.Context(), testserver.Start(t, flavour, options...).Root())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := follower.Ask(t.Context(), conn); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), "leaves databases out of its binary log") || !strings.Contains(err.Error(), "_db=app") {
				t.Error(err)
			}
		})
	}
}
