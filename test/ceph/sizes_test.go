package main

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"david/internal/ceph"
)

// testSizes makes followers of a MySQL with so many GiB of data, each time three: what they took, and that no row of the
// last differs. Each GiB takes as much of the cluster for each copy.
func testSizes(t *testing.T, sizes []string, c ceph.Cluster, pool ceph.Pool) {
	var all []int
	for _, text := range sizes {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			t.Fatalf("DAVID_SIZES: %q is no number of GiB", text)
		}
		all = append(all, n)
	}
	x := newLarge(t, "mysql", c, pool, int64(slices.Max(all)+4)<<30)
	base := 0.0
	for _, n := range all {
		x.fill(n)
		end := x.load()
		var took []float64
		for i := range 3 {
			r := x.clone(fmt.Sprintf("of-%d-%d", n, i))
			took = append(took, r.Times.All)
			if i == 2 {
				end()
				x.sameOf(r, 1+n)
			}
			if err := r.Drop(t.Context(), x.leader, false); err != nil {
				t.Fatal(err)
			}
		}
		slices.Sort(took)
		if base == 0 {
			base = took[1]
		}
		t.Logf("%d GiB: followers after %.1f s, %.2f times %d GiB's", n, took, took[1]/base, all[0])
	}
	x.nothingLeft()
}

// fill makes tables of a GiB each until there are n. Nothing of it is in the binary log, which a follower would have to
// read.
func (x *imaged) fill(n int) {
	x.t.Helper()
	s, err := x.conn.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	defer s.Close()
	does := func(statement string) {
		if err := s.Exec(x.t.Context(), statement); err != nil {
			x.t.Fatal(err)
		}
	}
	does("SET SESSION sql_log_bin = 0")
	defer does("SET SESSION sql_log_bin = 1") // the connection goes back to those that the load is written by
	const rows, batch = 130000, 4000          // two rows to a page
	for i := range n {
		name := fmt.Sprintf("app.big%d", i)
		does("CREATE TABLE IF NOT EXISTS " + name + " (id BIGINT AUTO_INCREMENT PRIMARY KEY, s VARBINARY(7500))")
		var there int
		if err := x.conn.Row(x.t.Context(), "SELECT COUNT(*) FROM "+name, nil, &there); err != nil {
			x.t.Fatal(err)
		}
		for ; there < rows; there += batch {
			does(fmt.Sprintf("INSERT INTO %s (s) WITH RECURSIVE some (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM some WHERE n < %d) SELECT /*+ SET_VAR(cte_max_recursion_depth = %d) */ CONCAT(RANDOM_BYTES(1000), REPEAT(RANDOM_BYTES(64), 100)) FROM some", name, batch, batch+1))
		}
	}
}
