package crash

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"david/internal/result"
)

// ledgerRow describes one transaction's line in the ledger.
type ledgerRow struct {
	writer  int
	seq     int64 // 1, 2, ... of its writer
	amount  int64
	payload string
}

// account holds what a writer's transactions come to, kept by the server in the same transactions.
type account struct {
	writer       int
	transactions int64
	balance      int64
}

// tables are the ledger's, as a server has them at one moment.
type tables struct {
	rows     []ledgerRow
	accounts []account
}

// ledgerKey names a transaction.
type ledgerKey struct {
	writer int
	seq    int64
}

// written returns the row of a transaction: all of it follows from its name and the seed, so that every byte
// can be checked. The payload begins with the name, in a form that can be found in a binary log.
func written(seed uint64, e ledgerKey) ledgerRow {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d.%d.%d", seed, e.writer, e.seq)
	sum := h.Sum64()
	text := fmt.Sprintf("david.%d.%d.", e.writer, e.seq)
	for len(text) < payloadBytes {
		text += fmt.Sprintf("%016x", sum)
		sum = sum*6364136223846793005 + 1442695040888963407 // Knuth's MMIX: every 16 digits differ
	}
	return ledgerRow{e.writer, e.seq, int64(sum>>40) - 1<<23, text[:payloadBytes]}
}

// payloadBytes says what a row carries: about that of one of sysbench's.
const payloadBytes = 180

// writerPage keeps what david wrote down, outside the server, of one writer.
type writerPage struct {
	sent  int64 // the highest sequence whose COMMIT was sent
	acked int64 // the highest whose COMMIT was acknowledged: sent, or sent-1
	begun int64 // sent when the server was started last: what is above it belongs to this round
	// gone are those not there after an earlier recovery, for good: lost, and counted then, or never
	// acknowledged.
	gone map[int64]bool
	trail
}

// trail keeps when things were sent and acknowledged: of a test whose server is not killed but whose disk is
// cut off, at moments that are chosen later.
type trail struct {
	now             func() (int64, error) // the moment; nil where none is kept
	sentAt, ackedAt []int64               // of the first, the second, ...
}

// mark adds the moment to a list.
func (t *trail) mark(list *[]int64) error {
	if t.now == nil {
		return nil
	}
	at, err := t.now()
	*list = append(*list, at)
	return err
}

// until counts what was sent and acknowledged at a moment.
func (t *trail) until(moment int64) (sent, acked int64) {
	count := func(list []int64) int64 {
		n, _ := slices.BinarySearch(list, moment+1)
		return int64(n)
	}
	return count(t.sentAt), count(t.ackedAt)
}

// ledger keeps what david wrote down of all writers, whose numbers are 1, 2, ...
type ledger struct {
	seed   uint64
	pages  []writerPage
	schema *schema // changes of the schema that go beside; nil for none
}

func newLedger(seed uint64, writers int) *ledger {
	l := &ledger{seed: seed, pages: make([]writerPage, writers)}
	for i := range l.pages {
		l.pages[i].gone = map[int64]bool{}
	}
	return l
}

// connections says how many write: one for each page, and one that changes the schema.
func (l *ledger) connections() int {
	if l.schema != nil {
		return len(l.pages) + 1
	}
	return len(l.pages)
}

// keep has the moments of everything kept.
func (l *ledger) keep(now func() (int64, error)) {
	for i := range l.pages {
		l.pages[i].now = now
	}
	l.schema.now = now
}

// at returns the ledger as it was at a moment.
func (l *ledger) at(moment int64) *ledger {
	past := newLedger(l.seed, len(l.pages))
	for i := range l.pages {
		past.pages[i].sent, past.pages[i].acked = l.pages[i].until(moment)
	}
	return past
}

// look is check, and remembers nothing.
func (l *ledger) look(t tables) result.Kill {
	same := newLedger(l.seed, len(l.pages))
	for i, p := range l.pages {
		p.gone = maps.Clone(p.gone)
		same.pages[i] = p
	}
	k, _ := same.check(t)
	return k
}

// come returns what the rows whose COMMIT was sent come to, for each writer.
func (l *ledger) come(rows []ledgerRow) []account {
	sums := make([]account, len(l.pages))
	for _, r := range rows {
		if l.known(r) {
			sum := &sums[r.writer-1]
			sum.transactions, sum.balance = sum.transactions+1, sum.balance+r.amount
		}
	}
	return sums
}

// begin begins a round. Whatever check found there must stay there from now on.
func (l *ledger) begin() {
	for i := range l.pages {
		p := &l.pages[i]
		p.acked, p.begun = p.sent, p.sent
	}
}

// acknowledged returns how many transactions were since the round began.
func (l *ledger) acknowledged() (n int64) {
	for _, p := range l.pages {
		n += p.acked - p.begun
	}
	return n
}

// round are the transactions that a check found, or found gone.
type round struct {
	fresh  map[ledgerKey]bool // of this round, that are there
	lapsed []ledgerKey        // of earlier ones, that were there after their recovery and are not any more
}

// check holds what is in the tables against what was written down, and remembers what is gone. Lost, Kept, Damage and
// Missing of the kill are filled in.
func (l *ledger) check(t tables) (k result.Kill, found round) {
	there := make([]map[int64]bool, len(l.pages))
	for i := range there {
		there[i] = map[int64]bool{}
	}
	found.fresh = map[ledgerKey]bool{}
	for _, r := range t.rows {
		if !l.known(r) {
			k.Damage.Uncommitted++
			continue
		}
		p, seen := l.pages[r.writer-1], there[r.writer-1]
		count(&k.Damage.Twice, seen[r.seq])
		count(&k.Damage.Returned, p.gone[r.seq])
		count(&k.Damage.Altered, r != written(l.seed, ledgerKey{r.writer, r.seq}))
		count(&k.Kept, r.seq > p.acked && !seen[r.seq])
		seen[r.seq] = true
		if r.seq > p.begun {
			found.fresh[ledgerKey{r.writer, r.seq}] = true
		}
	}
	var missing []string
	for i := range l.pages {
		p := &l.pages[i]
		lost, lapsed := p.miss(there[i])
		for _, seq := range lapsed {
			found.lapsed = append(found.lapsed, ledgerKey{i + 1, seq})
		}
		if len(lost) > 0 {
			k.Lost += int64(len(lost))
			missing = append(missing, fmt.Sprintf("%d of writer %d's %d acknowledged transactions, from its %d on", len(lost), i+1, p.acked, lost[0]))
		}
	}
	half := disagree(l.come(t.rows), t.accounts)
	k.Damage.Half, k.Missing = int64(len(half)), strings.Join(append(missing, half...), "; ")
	return k, found
}

func count(n *int64, is bool) {
	if is {
		*n++
	}
}

// known tells whether the COMMIT of a row was sent.
func (l *ledger) known(r ledgerRow) bool {
	return r.writer >= 1 && r.writer <= len(l.pages) && r.seq >= 1 && r.seq <= l.pages[r.writer-1].sent
}

// miss remembers what is not there, and lists what of it was acknowledged, and what was there after an earlier recovery.
func (p *writerPage) miss(there map[int64]bool) (lost, lapsed []int64) {
	for seq := int64(1); seq <= p.sent; seq++ {
		if there[seq] || p.gone[seq] {
			continue
		}
		p.gone[seq] = true
		if seq <= p.acked {
			lost = append(lost, seq)
		}
		if seq <= p.begun {
			lapsed = append(lapsed, seq)
		}
	}
	return lost, lapsed
}

// disagree lists the accounts that are not the sums of their writer's rows, or are missing, or there twice.
func disagree(sums, accounts []account) (list []string) {
	found := make([]int, len(sums))
	for _, a := range accounts {
		if a.writer < 1 || a.writer > len(sums) {
			list = append(list, fmt.Sprintf("an account of writer %d, who is none", a.writer))
			continue
		}
		found[a.writer-1]++
		if sum := sums[a.writer-1]; a.transactions != sum.transactions || a.balance != sum.balance {
			list = append(list, fmt.Sprintf("writer %d's account says %d transactions, sum %d; its rows are %d, sum %d",
				a.writer, a.transactions, a.balance, sum.transactions, sum.balance))
		}
	}
	for i, times := range found {
		if times != 1 {
			list = append(list, fmt.Sprintf("writer %d has %d accounts", i+1, times))
		}
	}
	return list
}

// compare counts the transactions that only the binary log has, and those that only the tables have. logged are
// those that the logs of all rounds have, fresher those of this round's logs.
//
// What a recovery takes from the binary log can be gone again after the next kill: MariaDB 10.11 does not sync it
// with innodb_flush_log_at_trx_commit=0, and then looks into the newest binary log only.
func (r round) compare(logged, fresher map[ledgerKey]bool) (onlyLogged, unlogged int64) {
	for e := range fresher {
		count(&onlyLogged, !r.fresh[e])
	}
	for _, e := range r.lapsed {
		count(&onlyLogged, logged[e])
	}
	for e := range r.fresh {
		count(&unlogged, !fresher[e])
	}
	return onlyLogged, unlogged
}
