package follower

import "testing"

// TestSpot: a MariaDB is told by three of four things, as one may have been changed; by both where an earlier david noted two.
func TestSpot(t *testing.T) {
	was, old := Spot{3306, "/data/", "db1", "7"}, Spot{Port: 3306, Datadir: "/data/"}
	for now, want := range map[Spot]struct{ is, old bool }{
		{3306, "/data/", "db1", "7"}:  {true, true},
		{3307, "/data/", "db1", "7"}:  {true, false},
		{3306, "/moved/", "db1", "7"}: {true, false},
		{3306, "/data/", "db2", "7"}:  {true, true},
		{3306, "/data/", "db1", "8"}:  {true, true},
		{3306, "/data/", "db2", "8"}:  {false, true}, // another machine, set up alike
		{3307, "/moved/", "db1", "7"}: {false, false},
		{3306, "/moved/", "db2", "7"}: {false, false},
		{3307, "/data/", "db1", "8"}:  {false, false}, // another server of the same machine
		{}:                            {false, false},
	} {
		if is, of := was.is(now), old.is(now); is != want.is || of != want.old {
			t.Errorf("%+v: %t, by an earlier record %t", now, is, of)
		}
	}
}
