package crash

import (
	"fmt"
	"maps"
	"reflect"
	"testing"

	"david/internal/result"
)

// book returns a ledger of two writers in its first round: 1 had 3 acknowledged and sent a fourth, 2 had 2
// acknowledged.
func book() *ledger {
	l := newLedger(7, 2)
	l.begin()
	l.pages[0].sent, l.pages[0].acked = 4, 3
	l.pages[1].sent, l.pages[1].acked = 2, 2
	return l
}

func rows(entries ...ledgerKey) (list []ledgerRow) {
	for _, e := range entries {
		list = append(list, written(7, e))
	}
	return list
}

// accounts returns those that agree with the rows.
func accounts(list []ledgerRow) []account {
	all := []account{{writer: 1}, {writer: 2}}
	for _, r := range list {
		a := &all[r.writer-1]
		a.transactions, a.balance = a.transactions+1, a.balance+r.amount
	}
	return all
}

func whole() []ledgerRow {
	return rows(ledgerKey{1, 1}, ledgerKey{1, 2}, ledgerKey{1, 3}, ledgerKey{2, 1}, ledgerKey{2, 2})
}

// TestSettled looks a second time at a server that lacks something, and remembers nothing of the first.
func TestSettled(t *testing.T) {
	for name, c := range map[string]struct {
		looks [][]ledgerRow
		late  int64
		lost  int64
	}{
		"all is there":             {[][]ledgerRow{whole()}, 0, 0},
		"one is there later":       {[][]ledgerRow{whole()[:4], whole()}, 1, 0},
		"one of two is there":      {[][]ledgerRow{whole()[:3], whole()[:4]}, 1, 1},
		"one stays away":           {[][]ledgerRow{whole()[:4], whole()[:4]}, 0, 1},
		"what is there disappears": {[][]ledgerRow{whole()[:4], whole()[:3]}, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			l, looks := book(), c.looks
			there, late, err := settled(t.Context(), l, func() (tables, error) {
				next := looks[0]
				looks = looks[1:]
				return tables{next, accounts(next)}, nil
			})
			if err != nil || late != c.late || len(looks) != 0 {
				t.Fatalf("late %d, want %d, looks left %d, %v", late, c.late, len(looks), err)
			}
			if k, _ := l.check(there); k.Lost != c.lost || k.Damage.Returned != 0 {
				t.Errorf("%+v, want %d lost", k, c.lost)
			}
		})
	}
}

// TestSettledHalf: half of a transaction that is whole at the second look is told.
func TestSettledHalf(t *testing.T) {
	looks := [][]account{accounts(whole())[:1], accounts(whole())}
	_, late, err := settled(t.Context(), book(), func() (tables, error) {
		next := looks[0]
		looks = looks[1:]
		return tables{whole(), next}, nil
	})
	if err != nil || late != 1 || len(looks) != 0 {
		t.Errorf("late %d, looks left %d, %v", late, len(looks), err)
	}
}

// TestMissing: what is counted as lost or as half a transaction is named, and nothing else.
func TestMissing(t *testing.T) {
	unsent := append(whole(), rows(ledgerKey{2, 3})...)
	both := accounts(whole())
	for name, c := range map[string]struct {
		there tables
		want  string
	}{
		"all is right":           {tables{whole(), both}, ""},
		"two are lost":           {tables{whole()[1:4], accounts(whole()[1:4])}, "1 of writer 1's 3 acknowledged transactions, from its 1 on; 1 of writer 2's 2 acknowledged transactions, from its 2 on"},
		"an account is gone":     {tables{whole(), both[:1]}, "writer 2 has 0 accounts"},
		"one is there twice":     {tables{whole(), append(both[:2:2], both[1])}, "writer 2 has 2 accounts"},
		"one is nobody's":        {tables{whole(), append(both[:2:2], account{writer: 7})}, "an account of writer 7, who is none"},
		"an unsent row does not": {tables{unsent, both}, ""},
		"a sum is another":       {tables{rows(ledgerKey{1, 1}), []account{{1, 2, 5}, {writer: 2}}}, fmt.Sprintf("2 of writer 1's 3 acknowledged transactions, from its 2 on; 2 of writer 2's 2 acknowledged transactions, from its 1 on; writer 1's account says 2 transactions, sum 5; its rows are 1, sum %d", rows(ledgerKey{1, 1})[0].amount)},
	} {
		l := book()
		k, _ := l.check(c.there)
		if k.Missing != c.want || (k.Lost > 0 || k.Damage.Half > 0) != (k.Missing != "") {
			t.Errorf("%s: %q, want %q; %+v", name, k.Missing, c.want, k)
		}
	}
}

func TestCheck(t *testing.T) {
	altered := whole()
	altered[1].payload = altered[1].payload[:len(altered[1].payload)-1] + "x"
	swapped := whole()
	swapped[1].payload = swapped[0].payload
	for name, c := range map[string]struct {
		rows []ledgerRow
		want result.Kill
	}{
		"all that was acknowledged": {whole(), result.Kill{}},
		"and what was sent":         {append(whole(), rows(ledgerKey{1, 4})...), result.Kill{Kept: 1}},
		"one is lost":               {whole()[:4], result.Kill{Lost: 1}},
		"one in the midst is lost":  {append(whole()[:1], whole()[2:]...), result.Kill{Lost: 1}},
		"all are lost":              {nil, result.Kill{Lost: 5}},
		"one is there twice":        {append(whole(), rows(ledgerKey{2, 2})...), result.Kill{Damage: result.Damage{Twice: 1}}},
		"one was never sent":        {append(whole(), rows(ledgerKey{2, 3})...), result.Kill{Damage: result.Damage{Uncommitted: 1, Half: 1}}},
		"one is altered":            {altered, result.Kill{Damage: result.Damage{Altered: 1}}},
		"one has another's payload": {swapped, result.Kill{Damage: result.Damage{Altered: 1}}},
	} {
		got, _ := book().check(tables{c.rows, accounts(c.rows)})
		if got.Missing = ""; !reflect.DeepEqual(got, c.want) { // TestMissing has it
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestAccounts has half of a transaction: the row or the account alone.
func TestAccounts(t *testing.T) {
	without := accounts(whole()[:4])
	amount := accounts(whole())
	amount[0].balance++
	for name, c := range map[string]struct {
		accounts []account
		want     int64
	}{
		"agree":                   {accounts(whole()), 0},
		"a row without the sum":   {without, 1},
		"another amount":          {amount, 1},
		"one is missing":          {accounts(whole())[:1], 1},
		"one is there twice":      {append(accounts(whole()), accounts(whole())[1]), 1},
		"one of nobody":           {append(accounts(whole()), account{writer: 3}), 1},
		"none has ever had a sum": {[]account{{writer: 1}, {writer: 2}}, 2},
	} {
		if got, _ := book().check(tables{whole(), c.accounts}); got.Damage.Half != c.want || got.Lost != 0 {
			t.Errorf("%s: %+v, want %d halves", name, got, c.want)
		}
	}
}

// TestRounds goes on after a loss: what is gone is counted once, may not come back, and what stayed has to
// stay.
func TestRounds(t *testing.T) {
	l := book()
	survived := append(whole()[:4:4], rows(ledgerKey{1, 4})...) // {2, 2} is lost, {1, 4} was kept unacknowledged
	if k, found := l.check(tables{survived, accounts(survived)}); k.Lost != 1 || k.Kept != 1 || len(found.fresh) != 5 {
		t.Errorf("first round: %+v, %d fresh", k, len(found.fresh))
	}
	l.begin()
	l.pages[0].sent, l.pages[0].acked = 5, 5
	if n := l.acknowledged(); n != 1 {
		t.Errorf("%d acknowledged, want 1", n)
	}
	more := append(survived[:len(survived):len(survived)], rows(ledgerKey{1, 5})...)
	k, found := l.check(tables{more, accounts(more)})
	if fresh := map[ledgerKey]bool{{1, 5}: true}; !reflect.DeepEqual(k, result.Kill{}) || !maps.Equal(found.fresh, fresh) {
		t.Errorf("second round: %+v, fresh %v", k, found.fresh)
	}
	l.begin()
	fewer := append(more[:4:4], rows(ledgerKey{1, 5}, ledgerKey{2, 2})...) // {1, 4} must stay now, and {2, 2} is back from the dead
	want := result.Kill{Lost: 1, Damage: result.Damage{Returned: 1}, Missing: "1 of writer 1's 5 acknowledged transactions, from its 4 on"}
	if k, found := l.check(tables{fewer, accounts(fewer)}); !reflect.DeepEqual(k, want) || !reflect.DeepEqual(found.lapsed, []ledgerKey{{1, 4}}) {
		t.Errorf("third round: %+v, lapsed %v, want %+v", k, found.lapsed, want)
	}
}

// TestKeptMustStay: what survived a kill unacknowledged is lost where the next one takes it, also where
// nothing was sent in between.
func TestKeptMustStay(t *testing.T) {
	l := book()
	kept := append(whole(), rows(ledgerKey{1, 4})...)
	if k, _ := l.check(tables{kept, accounts(kept)}); k.Kept != 1 || k.Lost != 0 {
		t.Fatalf("first round: %+v", k)
	}
	l.begin()
	if k, _ := l.check(tables{whole(), accounts(whole())}); k.Lost != 1 {
		t.Errorf("second round: %+v", k)
	}
}

// TestWritten has every transaction differ from every other, and fit its column.
func TestWritten(t *testing.T) {
	seen := map[string]bool{}
	for writer := range 3 {
		for seq := range int64(50) {
			r := written(7, ledgerKey{writer, seq})
			if len(r.payload) != payloadBytes || seen[r.payload] {
				t.Fatalf("%+v", r)
			}
			seen[r.payload] = true
		}
	}
	if r := written(7, ledgerKey{1, 1}); !seen[r.payload] || r.payload == written(8, ledgerKey{1, 1}).payload {
		t.Error("a row does not follow from seed and name")
	}
}

func TestCompare(t *testing.T) {
	fresher := map[ledgerKey]bool{{1, 12}: true, {2, 11}: true, {2, 12}: true}
	logged := map[ledgerKey]bool{{1, 1}: true, {2, 1}: true}
	maps.Copy(logged, fresher)
	r := round{fresh: map[ledgerKey]bool{{1, 11}: true, {1, 12}: true}, lapsed: []ledgerKey{{2, 1}, {2, 2}}}
	if only, not := r.compare(logged, fresher); only != 3 || not != 1 {
		t.Errorf("%d only logged, %d unlogged", only, not)
	}
}
