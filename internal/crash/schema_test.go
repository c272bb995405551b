package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"david/internal/mysqld"
	"david/internal/result"
)

// schemaOf writes down the changes of n tables, each sent at 10, 30, ... and acknowledged 10 later.
func schemaOf(n int) *schema {
	s, tables := &schema{}, map[string]table{}
	s.states = []string{""}
	for i := range n {
		for _, one := range s.steps(i + 1) {
			one.does(tables)
			s.states = append(s.states, describe(tables))
			s.sentAt = append(s.sentAt, int64(20*len(s.sentAt)+10))
			s.ackedAt = append(s.ackedAt, int64(20*len(s.ackedAt)+20))
		}
	}
	return s
}

// TestSchema: what was acknowledged has to be there, and of the change under way all or nothing.
func TestSchema(t *testing.T) {
	s := schemaOf(3)
	for moment, allowed := range map[int64][]string{
		5:   {""},
		10:  {"", "made_1(id): "},
		20:  {"made_1(id): "},
		30:  {"made_1(id): ", "made_1(id): 1,2,3"},
		60:  {"made_1(id,extra): 1,2,3"},
		70:  {"made_1(id,extra): 1,2,3", "renamed_1(id,extra): 1,2,3"},
		90:  {"renamed_1(id,extra): 1,2,3", "renamed_1(id,extra): "},
		120: {"renamed_1(id,extra): 4"},
		999: {"renamed_2(id,extra): 4; renamed_3(id,extra): 4"}, // the first was dropped
	} {
		_, acked := s.until(moment)
		for n := range acked {
			if before := s.states[n]; !slices.Contains(allowed, before) && s.wrong(moment, before) == "" {
				t.Errorf("at %d what was there before the last acknowledged change is taken: %q", moment, before)
			}
		}
		for _, there := range allowed {
			if wrong := s.wrong(moment, there); wrong != "" {
				t.Errorf("at %d: %s", moment, wrong)
			}
		}
		for _, there := range []string{"made_1(id,extra): ", "renamed_1(id): 1,2,3", allowed[0] + "; more"} {
			if wrong := s.wrong(moment, there); !strings.Contains(wrong, allowed[0]) {
				t.Errorf("at %d %q is taken: %q", moment, there, wrong)
			}
		}
	}
}

// TestLedgerAt: at a moment counts what was sent and acknowledged until then, and no more.
func TestLedgerAt(t *testing.T) {
	l := newLedger(1, 2)
	l.pages[0].trail = trail{sentAt: []int64{10, 30, 50}, ackedAt: []int64{20, 40}}
	for moment, want := range map[int64][2]int64{9: {0, 0}, 10: {1, 0}, 20: {1, 1}, 39: {2, 1}, 40: {2, 2}, 1000: {3, 2}} {
		past := l.at(moment)
		if got := [2]int64{past.pages[0].sent, past.pages[0].acked}; got != want || past.acknowledged() != want[1] {
			t.Errorf("at %d: %v sent and acknowledged, want %v", moment, got, want)
		}
	}
	past := l.at(40)
	k, _ := past.check(tables{[]ledgerRow{written(1, ledgerKey{1, 1}), written(1, ledgerKey{1, 3})}, []account{{1, 0, 0}, {2, 0, 0}}})
	if k.Lost != 1 || k.Damage.Uncommitted != 1 {
		t.Errorf("%+v: want the second lost, and the third never committed by then", k)
	}
}

// TestPatience: a recovery that may take long is waited for.
func TestPatience(t *testing.T) {
	for limit, want := range map[time.Duration]time.Duration{time.Second: 2 * time.Minute, time.Hour: 2 * time.Hour} {
		if got := (Test{Limit: limit}).patience(); got != want {
			t.Errorf("of at most %s: %s, want %s", limit, got, want)
		}
	}
}

// TestCannotRead: a server that came back with a damaged table is a failure of the cut, not of the test.
func TestCannotRead(t *testing.T) {
	k := cannotRead(result.Kill{Acknowledged: 7, RecoveryMs: 300, Cut: &result.Cut{Torn: 2}}, errors.New("table entry is corrupted"))
	c := result.CrashTest{LimitMs: 1000, Power: &result.Power{}, Rounds: []result.Kill{k}}.Judge()
	if c.Proved || c.Power.DidNotReturn != 1 || c.Power.Torn != 2 || !strings.Contains(c.Verdict, "table entry is corrupted") {
		t.Errorf("%+v", c)
	}
}

// TestServerSays: what david itself cannot read is no failure of the server's.
func TestServerSays(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("read: %w", &mysql.MySQLError{Number: 1877, Message: "Table is corrupted"}): true,
		fmt.Errorf("cannot read the binary log: %w", errLog):                                   true,
		fmt.Errorf("%w: in the way", mysqld.ErrUnreachable):                                    false,
		fmt.Errorf("the answer: %w", mysqld.ErrProtocol):                                       false,
		&fs.PathError{Op: "open", Path: "binlog.000001", Err: fs.ErrPermission}:                false,
		errors.New("too large"): false,
	} {
		if got := serverSays(err); got != want {
			t.Errorf("%v: %t", err, got)
		}
	}
}
