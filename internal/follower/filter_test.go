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

// TestSighted: an account that may not read all schemas is no account to clone by, as tables that no clone has the rows of may be there.
// Its roles count where they are on.
func TestSighted(t *testing.T) {
	t.Parallel()
	for flavour, options := range map[mycnf.Flavour][]string{
		mycnf.MySQL:   {"--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--partial-revokes=ON"},
		mycnf.MariaDB: {"--log-bin=changes", "--server-id=1"},
	} {
		t.Run(string(flavour), func(t *testing.T) {
			t.Parallel()
			s := testserver.Start(t, flavour, options...)
			s.Exec("CREATE DATABASE app", "CREATE TABLE app.t (id INT PRIMARY KEY) ENGINE=MyISAM", "CREATE USER short@localhost", "CREATE ROLE reader", "GRANT REPLICATION CLIENT ON *.* TO short@localhost")
			if flavour == mycnf.MariaDB {
				s.Exec("GRANT REPLICA MONITOR ON *.* TO short@localhost")
			}
			ask := func(says string) {
				t.Helper()
				short := s.Root()
				short.User, short.Password = "short", ""
				conn, err := mysqld.Open(t.Context(), short)
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				if _, err := follower.Ask(t.Context(), conn); !errors.Is(err, follower.ErrInput) || !strings.Contains(err.Error(), says) {
					t.Errorf("%v, want %q", err, says)
				}
			}
			ask("the account short has no SELECT on *.*, and the server does not tell it what is there; GRANT SELECT ON *.* to it")
			s.Exec("GRANT SELECT ON mysql.* TO short@localhost", "GRANT SELECT ON *.* TO reader", "GRANT reader TO short@localhost")
			ask("has no SELECT on *.*")
			s.Exec(map[mycnf.Flavour]string{mycnf.MySQL: "SET DEFAULT ROLE reader TO short@localhost", mycnf.MariaDB: "SET DEFAULT ROLE reader FOR short@localhost"}[flavour])
			ask("do not survive a crash, or are encrypted: app.t (MyISAM)")
			if flavour == mycnf.MySQL {
				s.Exec("REVOKE reader FROM short@localhost", "GRANT SELECT ON *.* TO short@localhost", "REVOKE SELECT ON sys.* FROM short@localhost")
				ask("app.t (MyISAM)")
				s.Exec("REVOKE SELECT ON app.* FROM short@localhost")
				ask("has no SELECT on `app`.*")
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
			s.Exec("CREATE DATABASE SYS", "CREATE TABLE SYS.m (id INT PRIMARY KEY) ENGINE=MEMORY", "INSERT INTO SYS.m VALUES (1)")
			ask("cannot clone rows of MEMORY tables: SYS.m; ")
			s.Exec("ALTER TABLE SYS.m ENGINE=MyISAM")
			ask("do not survive a crash, or are encrypted: SYS.m (MyISAM)")
			if flavour == mycnf.MariaDB {
				s.Exec("DROP TABLE SYS.m", "CREATE SEQUENCE app.numbers ENGINE=MyISAM")
				ask("do not survive a crash, or are encrypted: app.numbers (MyISAM)")
			}
		})
	}
}
