//go:build results

package follower_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"david/internal/follower"
	"david/internal/mysqld"
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
				_, err = r.Promote(t.Context(), x.leader, quiet)
				if err := errors.Join(err, r.Drop(t.Context(), x.leader, false)); err != nil {
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

// TestResultsFollowerSizes makes followers of leaders with 1, 5 and 20 GiB of data, upwards and down again, five at each
// step: their times are flat within 20 %, and no row of the last one of each size differs. It takes 26 GiB of disk for
// some minutes.
func TestResultsFollowerSizes(t *testing.T) {
	t.Run("xfs", func(t *testing.T) { newRoomy(t, "mysql", 26<<30).sizes() })
	t.Run("btrfs", func(t *testing.T) {
		x, _ := newSubvolume(t, "26G")
		x.sizes()
	})
}

func (x *scene) sizes() {
	x.t.Helper()
	big := x.fill()
	defer x.load()()
	times := map[int][]follower.Times{}
	for i, n := range []int{1, 5, 20, 20, 5, 1} {
		big.have(n)
		for j := range 5 {
			r := x.clone(fmt.Sprintf("of-%d-%d-%d", n, i, j))
			times[n] = append(times[n], r.Times)
			if i >= 3 && j == 4 {
				x.same(r, n)
			}
			if err := r.Drop(x.t.Context(), x.leader, false); err != nil {
				x.t.Fatal(err)
			}
		}
	}
	x.flat(times)
}

// same compares all rows of a follower of so many GiB with the leader's.
func (x *scene) same(r *follower.Record, gib int) {
	x.t.Helper()
	began := time.Now()
	v, err := r.Verify(x.t.Context(), x.leader)
	if err != nil || v.Tables != 3+gib {
		x.t.Errorf("%d GiB: %+v, %v", gib, v, err)
	}
	x.t.Logf("%d GiB: the rows of %d tables are the same, compared in %s", gib, v.Tables, time.Since(began).Round(time.Second))
}

// flat says what of a follower's time was what part of it, and fails where the whole is not the same for all sizes.
func (x *scene) flat(times map[int][]follower.Times) {
	x.t.Helper()
	for _, part := range []struct {
		name string
		of   func(follower.Times) float64
	}{{"stood still", func(s follower.Times) float64 { return s.Held }}, {"data taken", func(s follower.Times) float64 { return s.Data }},
		{"server up", func(s follower.Times) float64 { return s.Start }}, {"all, until caught up", func(s follower.Times) float64 { return s.All }}} {
		base := 0.0
		for _, n := range []int{1, 5, 20} {
			var all []float64
			for _, s := range times[n] {
				all = append(all, part.of(s))
			}
			slices.Sort(all)
			median := (all[4] + all[5]) / 2
			if base == 0 {
				base = median
			}
			x.t.Logf("%-20s of %2d GiB: median %.3f s (%.3f to %.3f), %.2f times that of 1 GiB", part.name, n, median, all[0], all[9], median/base)
			if part.name == "all, until caught up" && median > 1.2*base {
				x.t.Errorf("%s of %d GiB: %.2f times that of 1 GiB", part.name, n, median/base)
			}
		}
	}
}

// bulk is tables of a GiB each of a scene's leader.
type bulk struct {
	x     *scene
	s     *mysqld.Single
	data  string
	there int
}

// fill makes the first. Nothing of it is in the binary log, which a follower would have to read.
func (x *scene) fill() *bulk {
	x.t.Helper()
	s, err := x.conn.Single(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { s.Close() })
	b := &bulk{x: x, s: s, there: 1}
	if err := x.conn.Row(x.t.Context(), "SELECT @@datadir", nil, &b.data); err != nil {
		x.t.Fatal(err)
	}
	b.does("SET SESSION sql_log_bin = 0", "CREATE TABLE app.big0 (id BIGINT AUTO_INCREMENT PRIMARY KEY, s VARBINARY(7500))", "INSERT INTO app.big0 (s) VALUES (RANDOM_BYTES(1024))")
	began := time.Now()
	const rows = 130000 // two to a page
	for n := 1; n < rows; n += min(n, 8000) {
		b.does(fmt.Sprintf("INSERT INTO app.big0 (s) SELECT CONCAT(s, REPEAT(RANDOM_BYTES(64), 100)) FROM (SELECT LEFT(s, 1024) AS s FROM app.big0 LIMIT %d) AS some", min(n, 8000)))
	}
	x.t.Logf("the first GiB: %s", time.Since(began).Round(time.Second))
	return b
}

func (b *bulk) does(statements ...string) {
	b.x.t.Helper()
	for _, text := range statements {
		if err := b.s.Exec(b.x.t.Context(), text); err != nil {
			b.x.t.Fatal(err)
		}
	}
}

// have makes or drops tables until there are n, each a copy of the first one's file.
func (b *bulk) have(n int) {
	b.x.t.Helper()
	began := time.Now()
	for ; b.there > n; b.there-- {
		b.does(fmt.Sprintf("DROP TABLE app.big%d", b.there-1))
	}
	for ; b.there < n; b.there++ {
		name := fmt.Sprintf("big%d", b.there)
		b.does("CREATE TABLE app."+name+" LIKE app.big0", "ALTER TABLE app."+name+" DISCARD TABLESPACE", "FLUSH TABLES app.big0 FOR EXPORT")
		for _, end := range []string{".cfg", ".ibd"} {
			from, to := filepath.Join(b.data, "app", "big0"+end), filepath.Join(b.data, "app", name+end)
			if out, err := exec.Command("cp", "--reflink=always", "--preserve=ownership,mode", from, to).CombinedOutput(); err != nil {
				b.x.t.Fatalf("%v: %s", err, out)
			}
		}
		b.does("UNLOCK TABLES", "ALTER TABLE app."+name+" IMPORT TABLESPACE")
	}
	info, err := os.Stat(filepath.Join(b.data, "app", "big0.ibd"))
	if err != nil || info.Size() < 1<<30 {
		b.x.t.Fatalf("the first table has %d bytes, %v", info.Size(), err)
	}
	b.x.t.Logf("%d GiB: %s", n, time.Since(began).Round(time.Second))
}
