package sandbox

import (
	"context"
	"os"
	"testing"
	"time"

	"david/internal/home"
	"david/internal/mysqld"
	"david/internal/testserver"
)

// TestVolumeShrinks: what the sparse volume takes of the disk falls when a clone is dropped, and falls again when
// the prepared data go. It is mounted with discard, so neither waits for a trim of the whole.
func TestVolumeShrinks(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("a volume needs root")
	}
	const written, slack = 192, 32 << 20 // MiB that the template and a clone write, each; bytes that the filesystem may take of that
	b, dir := testserver.Find(t, "mariadb"), newHome(t)
	w := open(t, dir, Options{Volume: true, Need: 1 << 30})
	g, err := filled(w, key(b), func(ctx context.Context, addr mysqld.Addr) error {
		if err := loadThree(ctx, addr); err != nil {
			return err
		}
		c, err := mysqld.Open(ctx, addr)
		if err != nil {
			return err
		}
		defer c.Close()
		return write(ctx, c, "prepared", written)
	})
	if err != nil {
		t.Fatal(err)
	}
	taken := func() int64 {
		t.Helper()
		if err := syncfs(w.data); err != nil {
			t.Fatal(err)
		}
		n, err := home.Allocated(VolumePath(dir))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	// below waits for it: the filesystem discards what is freed once its log is on the disk.
	below := func(what string, most int64, now func() int64) {
		t.Helper()
		var n int64
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(time.Second) {
			if n = now(); n <= most {
				t.Logf("%s: %d MiB", what, n>>20)
				return
			}
		}
		t.Errorf("%s: the volume takes %d MiB, want %d at most", what, n>>20, most>>20)
	}
	prepared := taken()
	s := start(t, w, g, StartOptions{})
	if err := write(context.Background(), connect(t, s), "cloned", written); err != nil {
		t.Fatal(err)
	}
	n := taken() // some of it is in the server's memory only
	t.Logf("prepared: %d MiB; with a clone that wrote %d MiB: %d MiB", prepared>>20, written, n>>20)
	if n < prepared+2*slack {
		t.Fatal("the clone took nothing of the volume")
	}
	stop(t, s)
	below("the clone is dropped", prepared+slack, taken)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	k, err := OpenKept(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}()
	copies, err := k.Copies()
	if err != nil || len(copies) != 1 {
		t.Fatalf("%d prepared copies, %v", len(copies), err)
	}
	if err := k.Drop(copies[0]); err != nil {
		t.Fatal(err)
	}
	below("the prepared data are gone", prepared-written<<20+slack, func() int64 {
		if err := syncfs(k.point); err != nil {
			t.Fatal(err)
		}
		v, _, err := k.Volume()
		if err != nil {
			t.Fatal(err)
		}
		return v.Bytes
	})
}

// write makes a table of so many MiB.
func write(ctx context.Context, c *mysqld.Conn, table string, mib int) error {
	if err := c.Exec(ctx, "CREATE TABLE sbtest."+table+" (id INT PRIMARY KEY AUTO_INCREMENT, pad LONGBLOB) ENGINE=InnoDB"); err != nil {
		return err
	}
	for range mib {
		if err := c.Exec(ctx, "INSERT INTO sbtest."+table+" (pad) VALUES (REPEAT(MD5(RAND()), 32768))"); err != nil {
			return err
		}
	}
	return nil
}
