package move

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"david/internal/mysqld"
)

// What a server's shutdown has to write is written before: with this variable at 0 it keeps few dirty pages.
// MySQL lowers the second with the first.
const (
	dirtyPages = "innodb_max_dirty_pages_pct"
	lowWater   = "innodb_max_dirty_pages_pct_lwm"
)

// calm has the server write its dirty pages, as far as its load lets it: what is left over is written at the
// shutdown, while clients wait. The variables are on record before they are changed.
func calm(ctx context.Context, conn *mysqld.Conn, r *Record) error {
	v, err := conn.Pairs(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('"+dirtyPages+"', '"+lowWater+"')")
	if err != nil {
		return err
	}
	if r.Pages == nil {
		r.Pages = v
		if err := r.save(); err != nil {
			return err
		}
	}
	if err := conn.Exec(ctx, "SET GLOBAL "+dirtyPages+" = 0"); err != nil {
		return err
	}
	return settle(ctx, conn)
}

// The wait for dirty pages to be written: until there are few, or as many as a second ago, and at most so long.
const (
	fewPages   = 500
	mostCalm   = 30 * time.Second
	calmPauses = time.Second
)

func settle(ctx context.Context, conn *mysqld.Conn) error {
	last := -1
	for end := time.Now().Add(mostCalm); time.Now().Before(end); {
		status, err := conn.Pairs(ctx, "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_pages_dirty'")
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(status["innodb_buffer_pool_pages_dirty"])
		if err != nil || n < fewPages || last >= 0 && n >= last {
			return err
		}
		last = n
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(calmPauses):
		}
	}
	return nil
}

// uncalm sets back what calm set, where the server was not restarted since, which does the same.
func uncalm(ctx context.Context, conn *mysqld.Conn, r *Record) error {
	if r.Pages == nil {
		return nil
	}
	for _, name := range []string{dirtyPages, lowWater} { // the first bounds the second
		value, ok := r.Pages[name]
		if _, err := strconv.ParseFloat(value, 64); !ok || err != nil {
			continue
		}
		if err := conn.Exec(ctx, "SET GLOBAL "+name+" = "+value); err != nil {
			return fmt.Errorf("cannot set %s back to %s: %w", name, value, err)
		}
	}
	r.Pages = nil
	return r.save()
}
