package workload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"david/internal/mysqld"
	"david/internal/result"
)

// ErrRows says that a table does not hold the rows it should.
var ErrRows = errors.New("wrong row count")

// slowest says how many rows a second a load must reach before it is taken for hanging; spinning disks do ten
// times as many.
const slowest = 1000

// Prepare creates and loads the workload's tables in its schema, which must exist. It uses as many threads as
// asked, at most one a table. progress, which may be nil, is told how many of the tables are loaded, at first
// 0 and at last all. sysbench ends with status 0 even where loading failed, so VerifyRows must follow.
func Prepare(ctx context.Context, t Target, w result.Workload, threads int, progress func(done, total int)) error {
	if err := Validate(w); err != nil {
		return err
	}
	if threads < 1 {
		return fmt.Errorf("cannot load %s with %d threads: give 1 or more", w.Database, threads)
	}
	options, err := t.tableOptions(ctx)
	if err != nil {
		return err
	}
	tell := func(loaded int) {
		if progress != nil {
			progress(loaded, w.Tables)
		}
	}
	if err := t.load(ctx, w, min(threads, w.Tables), options, tell); err != nil {
		return fmt.Errorf("cannot load the tables of %s on %s: %w", w.Database, t.Addr, err)
	}
	tell(w.Tables)
	return nil
}

func (t Target) load(ctx context.Context, w result.Workload, threads int, options []string, tell func(loaded int)) error {
	var p Parser
	loaded := 0
	tell(loaded)
	onLine := func(line string) error {
		for range indexesBegun(line) {
			loaded++
			tell(loaded)
		}
		_, err := p.Line(line)
		return err
	}
	args := append(dataArgs(t.Addr, w), options...)
	args = append(args, fmt.Sprintf("--threads=%d", threads), "prepare")
	limit := startup + time.Duration(w.Tables)*time.Duration(w.TableSize)*time.Second/slowest
	err := t.execute(ctx, args, patience{quiet: limit, total: limit}, onLine) // tables load without a word
	if err == nil && len(p.out.Fatal) > 0 {
		err = errors.New("sysbench gave up")
	}
	return t.asWhom(explain(err, p.Output()))
}

// indexesBegun counts the tables a line says are loaded: the index comes after a table's rows. sysbench's
// threads write a text and its line end apart, so that one line can hold the texts of several.
func indexesBegun(line string) int { return strings.Count(line, "Creating a secondary index") }

// tableOptions has sysbench number the rows itself where the server would leave gaps (clusters do), as every
// query expects rows 1 to the table's size.
func (t Target) tableOptions(ctx context.Context) ([]string, error) {
	c, err := mysqld.Open(ctx, t.Addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var step int
	if err := c.Row(ctx, "SELECT @@global.auto_increment_increment", nil, &step); err != nil {
		return nil, err
	}
	if step > 1 {
		return []string{"--auto-inc=off"}, nil
	}
	return nil, nil
}

// VerifyRows counts the rows of every table of the workload and returns ErrRows with the tables that hold
// others than they should, or are missing.
func VerifyRows(ctx context.Context, c *mysqld.Conn, w result.Workload) error {
	if err := Validate(w); err != nil {
		return err
	}
	err := eachTable(w, func(number int) error { return verifyTable(ctx, c, w, number) })
	if err != nil {
		return fmt.Errorf("cannot use schema %s on %s: %w", w.Database, c.Addr(), err)
	}
	return nil
}

// Prewarm reads every table and its secondary index once, so that a run starts with as much of the data in
// the buffer pool as fits, and not with the time it takes random reads to bring it there. (sysbench's own
// prewarm copies every table into a temporary one and analyses it; this only reads.)
func Prewarm(ctx context.Context, c *mysqld.Conn, w result.Workload) error {
	err := eachTable(w, func(number int) error { return scanTable(ctx, c, w, number) })
	if err != nil {
		return fmt.Errorf("cannot read the tables of %s on %s: %w", w.Database, c.Addr(), err)
	}
	return nil
}

// scanTable reads all pages of the clustered index and of the secondary one. Rows of the first are counted
// without a look at any column, which MySQL does with several threads; of the second it would count the
// first's instead (manual, "Aggregate Function Descriptions"), so a column is asked for.
func scanTable(ctx context.Context, c *mysqld.Conn, w result.Workload, number int) error {
	table := fmt.Sprintf("%s.sbtest%d", quote(w.Database), number)
	var rows int
	if err := c.Row(ctx, "SELECT COUNT(*) FROM "+table+" FORCE INDEX (PRIMARY)", nil, &rows); err != nil {
		return err
	}
	return c.Row(ctx, fmt.Sprintf("SELECT COUNT(*) FROM %s FORCE INDEX (k_%d) WHERE k >= 0", table, number), nil, &rows)
}

// tablesAtOnce says how many tables are counted or read at a time.
const tablesAtOnce = 4

// eachTable calls do with the number of each of the workload's tables, several at a time, and joins the
// errors.
func eachTable(w result.Workload, do func(number int) error) error {
	found := make([]error, w.Tables)
	var group sync.WaitGroup
	slots := make(chan struct{}, tablesAtOnce)
	for i := range found {
		slots <- struct{}{}
		group.Go(func() {
			found[i] = do(i + 1)
			<-slots
		})
	}
	group.Wait()
	return errors.Join(found...)
}

// CountRows counts the rows of the workload's tables exactly, one after the other in an order that seed
// decides, and returns how many it checked; with ErrRows, table and count where one holds others than it
// should. It begins no further table once limit is over (but checks one at least): counts that are cut off
// would go on in the server. The workloads insert a row for each they delete, and a transaction that was cut
// off is rolled back, so the counts outlive any run.
func CountRows(ctx context.Context, c *mysqld.Conn, w result.Workload, seed uint64, limit time.Duration) (checked int, err error) {
	if err := Validate(w); err != nil {
		return 0, err
	}
	began := time.Now()
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(w.Tables) {
		if checked > 0 && time.Since(began) >= limit {
			break
		}
		if err := verifyTable(ctx, c, w, i+1); err != nil {
			return checked, fmt.Errorf("cannot trust schema %s on %s: %w", w.Database, c.Addr(), err)
		}
		checked++
	}
	return checked, nil
}

func verifyTable(ctx context.Context, c *mysqld.Conn, w result.Workload, number int) error {
	name := fmt.Sprintf("sbtest%d", number)
	var rows int
	err := c.Row(ctx, "SELECT COUNT(*) FROM "+quote(w.Database)+"."+name, nil, &rows)
	if mysqld.Number(err) == 1146 || mysqld.Number(err) == 1049 {
		return fmt.Errorf("%w: table %s is missing; load the tables", ErrRows, name)
	}
	if err == nil && rows != w.TableSize {
		return fmt.Errorf("%w: table %s holds %d rows instead of %d; load it again", ErrRows, name, rows, w.TableSize)
	}
	return err
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
