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

// TestVolatileLeader: rows that a clone would lack, or that a crash may spoil, keep a server from being a leader; an empty MEMORY table
// does not.
func TestVolatileLeader(t *testing.T) {
	t.Parallel()
	for flavour, options := range map[mycnf.Flavour][]string{
		mycnf.MySQL:   {"--gtid-mode=ON", "--enforce-gtid-consistency=ON"},
		mycnf.MariaDB: {"--log-bin=changes", "--server-id=1"},
	} {
		t.Run(string(flavour), func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, flavour, options...)
			conn := s.Open()
			ask := func(says string) {
				t.Helper()
				_, err := follower.Ask(t.Context(), conn)
				if err = errors.Join(err, follower.Volatile(t.Context(), conn)); says == "" && err != nil || says != "" && (!errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), says)) {
					t.Errorf("%v, want %q", err, says)
				}
			}
			s.Exec("CREATE DATABASE app", "CREATE TABLE app.`in memory` (id INT PRIMARY KEY) ENGINE=MEMORY")
			ask("")
			s.Exec("INSERT INTO app.`in memory` VALUES (1)")
			ask("cannot clone rows of MEMORY tables: app.in memory; ")
			s.Exec("DELETE FROM app.`in memory`")
			ask("")
			if flavour == mycnf.MariaDB {
				s.Exec("CREATE SEQUENCE app.numbers ENGINE=MyISAM")
				ask("do not survive a crash, or are encrypted: app.numbers (MyISAM)")
			}
		})
	}
}
