package crash

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"david/internal/mysqld"
	"david/internal/sandbox"
)

// stall says how long a server may take to acknowledge its first transaction.
const stall = 2 * time.Minute

// prepare makes the ledger's tables, with an account for each writer. The row's key is not its name, so that
// a row could be there twice.
func prepare(ctx context.Context, addr mysqld.Addr, writers int) error {
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, statement := range []string{
		"CREATE TABLE " + database + ".entry (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, writer INT NOT NULL, seq BIGINT NOT NULL, amount BIGINT NOT NULL," +
			" payload VARCHAR(255) NOT NULL, KEY (writer, seq)) ENGINE=InnoDB CHARACTER SET latin1",
		"CREATE TABLE " + database + ".account (writer INT NOT NULL PRIMARY KEY, transactions BIGINT NOT NULL, balance BIGINT NOT NULL) ENGINE=InnoDB",
	} {
		if err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	for writer := 1; writer <= writers; writer++ {
		if err := conn.Exec(ctx, fmt.Sprintf("INSERT INTO "+database+".account VALUES (%d, 0, 0)", writer)); err != nil {
			return err
		}
	}
	return nil
}

// write appends transactions to the ledger until the connection fails. It writes down before a COMMIT that it
// is sent, and after it that it was acknowledged.
func write(ctx context.Context, conn *mysqld.Single, seed uint64, writer int, p *writerPage, acked func()) error {
	for {
		r := written(seed, ledgerKey{writer, p.sent + 1})
		for _, statement := range []string{
			"BEGIN",
			fmt.Sprintf("INSERT INTO "+database+".entry (writer, seq, amount, payload) VALUES (%d, %d, %d, '%s')", r.writer, r.seq, r.amount, r.payload),
			fmt.Sprintf("UPDATE "+database+".account SET transactions = transactions + 1, balance = balance + (%d) WHERE writer = %d", r.amount, r.writer),
		} {
			if err := conn.Exec(ctx, statement); err != nil {
				return err
			}
		}
		p.sent++
		if err := p.mark(&p.sentAt); err != nil {
			return err
		}
		if err := conn.Exec(ctx, "COMMIT"); err != nil {
			return err
		}
		p.acked = p.sent
		if err := p.mark(&p.ackedAt); err != nil {
			return err
		}
		acked()
	}
}

// writers describes the connections of a round.
type writers struct {
	conn  *mysqld.Conn
	each  []*mysqld.Single
	first chan struct{} // has a value once a transaction was acknowledged
	ended chan error    // how each of them ended
}

// connect opens n connections, all of them before the first one writes.
func connect(ctx context.Context, addr mysqld.Addr, n int) (*writers, error) {
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return nil, err
	}
	w := &writers{conn: conn, first: make(chan struct{}, 1), ended: make(chan error, n)}
	for range n {
		one, err := conn.Single(ctx)
		if err != nil {
			return nil, errors.Join(err, w.close())
		}
		w.each = append(w.each, one)
	}
	return w, nil
}

func (w *writers) close() error {
	var errs error
	for _, one := range w.each {
		errs = errors.Join(errs, one.Close())
	}
	return errors.Join(errs, w.conn.Close())
}

func (w *writers) start(ctx context.Context, l *ledger) {
	for i, one := range w.each {
		if i == len(l.pages) {
			go func() { w.ended <- l.schema.change(ctx, one) }()
			continue
		}
		go func() {
			w.ended <- write(ctx, one, l.seed, i+1, &l.pages[i], func() {
				select {
				case w.first <- struct{}{}:
				default:
				}
			})
		}()
	}
}

// wait returns once all writers have ended. Each has to for want of the server that was killed.
func (w *writers) wait() error {
	var errs error
	for range w.each {
		if err := <-w.ended; !errors.Is(err, mysqld.ErrUnreachable) {
			errs = errors.Join(errs, fmt.Errorf("a connection of the ledger ended otherwise than by the kill: %w", err))
		}
	}
	return errs
}

// killUnderLoad writes to the ledger and kills the server so long after the first transaction was
// acknowledged. It returns how long the server had been under load, once all that its connections still hold
// has been read.
func killUnderLoad(ctx context.Context, s *sandbox.Server, l *ledger, after time.Duration) (took time.Duration, err error) {
	w, err := connect(ctx, s.Addr(), l.connections())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	began := time.Now()
	w.start(ctx, l)
	if err := w.until(ctx, after); err != nil {
		return 0, err
	}
	took = time.Since(began)
	if err := s.Kill(); err != nil {
		return 0, err
	}
	return took, w.wait()
}

// until returns when the moment of the kill has come. A load that ends before that proves nothing, and is an
// error.
func (w *writers) until(ctx context.Context, after time.Duration) error {
	timeout := time.After(stall)
	first, kill := w.first, (<-chan time.Time)(nil)
	for {
		select {
		case <-first:
			first, kill = nil, time.After(after)
			timeout = nil
		case <-kill:
			return nil
		case <-timeout:
			return errors.New("the server acknowledged no transaction within " + stall.String())
		case err := <-w.ended:
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("the load ended before the kill: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// died blames an error on the server's end, where it has ended before david killed it.
func died(s *sandbox.Server, err error) error {
	if errors.Is(err, mysqld.ErrUnreachable) && ended(s) {
		return fmt.Errorf("the server ended, and david had not killed it: %w", s.Alive())
	}
	return err
}

// read returns what the tables hold at one moment.
func read(ctx context.Context, conn *mysqld.Single) (t tables, err error) {
	for _, statement := range []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", // whatever the server's default: of the others none keeps a snapshot
		"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
	} {
		if err := conn.Exec(ctx, statement); err != nil {
			return t, err
		}
	}
	defer func() {
		if err == nil {
			err = conn.Exec(ctx, "COMMIT")
		}
	}()
	texts, err := conn.Rows(ctx, 4, "SELECT writer, seq, amount, payload FROM "+database+".entry")
	if err != nil {
		return t, err
	}
	for _, text := range texts {
		n, err := integers(text[:3])
		if err != nil {
			return t, err
		}
		t.rows = append(t.rows, ledgerRow{int(n[0]), n[1], n[2], text[3]})
	}
	if texts, err = conn.Rows(ctx, 3, "SELECT writer, transactions, balance FROM "+database+".account"); err != nil {
		return t, err
	}
	for _, text := range texts {
		n, err := integers(text)
		if err != nil {
			return t, err
		}
		t.accounts = append(t.accounts, account{int(n[0]), n[1], n[2]})
	}
	return t, nil
}

func integers(texts []string) (list []int64, err error) {
	for _, t := range texts {
		n, err := strconv.ParseInt(t, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("cannot read the ledger: %w", err)
		}
		list = append(list, n)
	}
	return list, nil
}
