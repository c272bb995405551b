package lab

import (
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/result"
)

// cuts is a test of so many cuts, of which the first ones went wrong as told.
func cuts(n int, cache string, wrong ...result.Kill) result.CrashTest {
	c := result.CrashTest{LimitMs: 1000, Power: &result.Power{Cache: cache}, Rounds: wrong}
	for len(c.Rounds) < n {
		c.Rounds = append(c.Rounds, result.Kill{Acknowledged: 9, RecoveryMs: 10, Cut: &result.Cut{}})
	}
	return c.Judge()
}

// TestAlike blames an arm's lines for what cuts found, but for what the control's server meets as well.
func TestAlike(t *testing.T) {
	torn := result.Kill{Cut: &result.Cut{Failed: "[InnoDB] Database page corruption on disk"}}
	first := result.Kill{Cut: &result.Cut{Failed: "Database page corruption on disk or a failed file read of page [page id: space=0, page number=5]."}}
	other := result.Kill{Cut: &result.Cut{Failed: "unknown variable"}}
	lost := result.Kill{Lost: 3, RecoveryMs: 10, Cut: &result.Cut{}}
	direct := map[string]string{"innodb_flush_method": "O_DIRECT", "innodb_doublewrite_files": "2"}
	fsync := map[string]string{"innodb_flush_method": "fsync", "innodb_doublewrite_files": "2"}
	bare := map[string]string{"innodb_flush_method": "O_DIRECT", "innodb_doublewrite_files": "2", "innodb_doublewrite": "OFF"}
	lazy := map[string]string{"innodb_flush_method": "fsync", "innodb_doublewrite_files": "2", "innodb_flush_log_at_trx_commit": "2"}
	many := []result.Kill{torn, torn, torn, torn, torn, torn, torn, torn}
	for name, c := range map[string]struct {
		arm, control     result.CrashTest
		armVars, itsVars map[string]string
		want             string // "": it is the arm's
		never            string // what must not be said
	}{
		"nothing wrong":                       {arm: cuts(9, "volatile"), control: cuts(9, "volatile"), armVars: direct, itsVars: direct},
		"both are hit":                        {arm: cuts(9, "volatile", torn), control: cuts(9, "volatile", torn, torn), armVars: direct, itsVars: direct, want: "1 of 9 cuts of the power were not survived, of the control's 2 of 9: the control's server meets the same"},
		"the control by chance not":           {arm: cuts(9, "volatile", torn), control: cuts(9, "volatile"), armVars: direct, itsVars: direct, want: "of the control's 0 of 9; a known cause, and no line of the tune's: neither's MySQL flushes"},
		"the arm alone leaves the flush out":  {arm: cuts(9, "volatile", torn), control: cuts(9, "volatile"), armVars: direct, itsVars: fsync},
		"the cause does not explain a loss":   {arm: cuts(9, "volatile", lost), control: cuts(9, "volatile"), armVars: direct, itsVars: direct},
		"nor that it does not start":          {arm: cuts(9, "volatile", torn, other), control: cuts(9, "volatile"), armVars: direct, itsVars: direct},
		"nor on a protected disk":             {arm: cuts(9, "protected", torn), control: cuts(9, "protected"), armVars: direct, itsVars: direct},
		"a loss, and the control only starts": {arm: cuts(9, "volatile", lost), control: cuts(9, "volatile", torn), armVars: direct, itsVars: direct},
		"both without the buffer": {arm: cuts(9, "volatile", torn), control: cuts(9, "volatile"), armVars: bare, itsVars: bare,
			want: "a known cause, and no line of the tune's: both run with innodb_doublewrite=OFF, which was unlocked", never: "flushes its doublewrite"},
		"both hit without it":         {arm: cuts(9, "volatile", torn), control: cuts(9, "volatile", torn), armVars: bare, itsVars: bare, want: "meets the same, and nothing shows that it does so less often; both run with innodb_doublewrite=OFF"},
		"a loss is not the buffer's":  {arm: cuts(9, "volatile", lost), control: cuts(9, "volatile"), armVars: bare, itsVars: bare},
		"the arm alone is without":    {arm: cuts(9, "volatile", torn), control: cuts(9, "volatile"), armVars: bare, itsVars: direct},
		"both flush once a second":    {arm: cuts(9, "volatile", lost), control: cuts(9, "volatile"), armVars: lazy, itsVars: lazy, want: "both run with innodb_flush_log_at_trx_commit=2, which was unlocked"},
		"which does not tear a page":  {arm: cuts(9, "volatile", lost, torn), control: cuts(9, "volatile"), armVars: lazy, itsVars: lazy},
		"the page that is read first": {arm: cuts(9, "volatile", first), control: cuts(9, "volatile"), armVars: fsync, itsVars: fsync, want: "no line of the tune's: MySQL reads page 5"},
		"no other page":               {arm: cuts(9, "volatile", torn), control: cuts(9, "volatile"), armVars: fsync, itsVars: fsync},
		"far more often":              {arm: cuts(9, "volatile", many...), control: cuts(9, "volatile", torn), armVars: direct, itsVars: direct},
	} {
		got := alike(mycnf.MySQL, c.arm, c.control, c.armVars, c.itsVars)
		if c.want == "" && got != "" || !strings.Contains(got, c.want) || c.never != "" && strings.Contains(got, c.never) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAlone: that few cuts took something of one server and nothing of the other may be chance, whatever they
// took: two servers with one configuration were told apart so.
func TestAlone(t *testing.T) {
	lost := result.Kill{Lost: 63, RecoveryMs: 10, Cut: &result.Cut{}}
	arm, control := cuts(6, "volatile", lost, lost), cuts(6, "volatile")
	if got := alone(result.Proof{Crash: &arm, Control: &control}); !strings.Contains(got, "the control survived 6 of 6 cuts, which may be chance") {
		t.Error(got)
	}
	arm = cuts(6, "volatile", lost, lost, lost, lost, lost)
	if got := alone(result.Proof{Crash: &arm, Control: &control}); got != "; the control survived 6 of 6 cuts; "+oneLoad {
		t.Error(got)
	}
}
