package live

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"david/internal/mycnf"
	"david/internal/rules"
)

const (
	head     = `{"schema":2,"server":{"uuid":"u","hostname":"h","port":"3306","datadir":"/d/","network":"tcp","address":"127.0.0.1:3306"}}` + "\n"
	delayed  = `{"schema":2,"n":1,"event":"intended","step":"s","name":"innodb_spin_wait_delay","before":"6","after":"2"}` + "\n"
	poolOnly = `{"schema":2,"n":1,"event":"intended","step":"s","name":"innodb_buffer_pool_size","before":"134217728","after":"1G"}` + "\n"
)

// change returns a line of a change to be made.
func change(t *testing.T, name, before, after string) string {
	t.Helper()
	return line(t, recordLine{Schema: schema, N: 1, Event: intended, Step: "s", Name: name, Before: before, After: after})
}

func line(t *testing.T, l recordLine) string {
	t.Helper()
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}

// TestHostileRecord: a record that no david wrote is refused whole, before anything of it reaches a server.
func TestHostileRecord(t *testing.T) {
	huge := "70368744177665"
	sized := func(before, effective string) string {
		return change(t, "innodb_buffer_pool_size", before, "1G") + line(t, recordLine{Schema: schema, N: 1, Event: done, After: effective})
	}
	persistedAs := func(value string) string {
		return poolOnly + line(t, recordLine{Schema: schema, N: 1, Event: persisting, Persisted: &value})
	}
	for name, text := range map[string]string{
		"two variables in a name":      change(t, "innodb_spin_wait_delay = 1, innodb_flush_log_at_trx_commit", "0", "1"),
		"a second statement":           change(t, "innodb_spin_wait_delay = 1; DROP DATABASE shop; SET @a", "0", "1"),
		"a comment":                    change(t, "innodb_spin_wait_delay/**/", "0", "1"),
		"a space":                      change(t, " innodb_spin_wait_delay", "0", "1"),
		"another scope":                change(t, "@@persist.innodb_spin_wait_delay", "0", "1"),
		"capitals":                     change(t, "INNODB_SPIN_WAIT_DELAY", "0", "1"),
		"dashes":                       change(t, "innodb-spin-wait-delay", "0", "1"),
		"loose":                        change(t, "loose_innodb_spin_wait_delay", "0", "1"),
		"no name":                      change(t, "", "0", "1"),
		"flush at commit off":          change(t, "innodb_flush_log_at_trx_commit", "0", "1"),
		"flush at commit on":           change(t, "innodb_flush_log_at_trx_commit", "1", "0"),
		"sync_binlog":                  change(t, "sync_binlog", "0", "1"),
		"doublewrite":                  change(t, "innodb_doublewrite", "OFF", "ON"),
		"init_connect":                 change(t, "init_connect", "DROP DATABASE shop", ""),
		"a file":                       change(t, "general_log_file", "/etc/cron.d/x", "log"),
		"a variable others know":       change(t, "max_connections", "1", "151"),
		"a value that is SQL":          change(t, "innodb_spin_wait_delay", "6, GLOBAL sync_binlog = 0", "2"),
		"a subquery":                   change(t, "innodb_spin_wait_delay", "(SELECT SLEEP(9))", "2"),
		"a quoted value":               change(t, "innodb_spin_wait_delay", "'6'", "2"),
		"a newline in a value":         change(t, "innodb_spin_wait_delay", "6\n", "2"),
		"an empty value":               change(t, "innodb_spin_wait_delay", "", "2"),
		"a negative value":             change(t, "innodb_spin_wait_delay", "-1", "2"),
		"a signed value":               change(t, "innodb_spin_wait_delay", "+6", "2"),
		"a real value":                 change(t, "innodb_spin_wait_delay", "6e9", "2"),
		"DEFAULT":                      change(t, "innodb_spin_wait_delay", "DEFAULT", "2"),
		"spinning for ever":            change(t, "innodb_sync_spin_loops", "4294967295", "10"),
		"more than a number":           change(t, "innodb_io_capacity", "18446744073709551616", "200"),
		"a switch that is none":        change(t, "general_log", "2", "OFF"),
		"a switch that is SQL":         change(t, "general_log", "ON, GLOBAL init_connect = 'x'", "OFF"),
		"a pool larger than it was":    change(t, "innodb_buffer_pool_size", "64T", "128M"),
		"a pool larger than any":       change(t, "innodb_buffer_pool_size", huge, huge),
		"a pool of nothing":            change(t, "innodb_buffer_pool_size", "0", "1G"),
		"a pool that is larger by now": sized("536870912", "134217728"),
		"an effective value of SQL":    sized("134217728", "1, x = 1"),
		"a persisted value too large":  persistedAs("2147483648"),
		"a persisted value of SQL":     persistedAs("134217728, GLOBAL sync_binlog = 0"),
		"an escape sequence":           change(t, "\x1b]0;x\a", "0", "1"),
		"an effective value first":     line(t, recordLine{Schema: schema, N: 1, Event: done, After: "2"}),
		"a change that is not there":   delayed + line(t, recordLine{Schema: schema, N: 2, Event: undone}),
		"a change twice":               delayed + delayed,
		"an unknown event":             delayed + line(t, recordLine{Schema: schema, N: 1, Event: "\x1b[2J"}),
		"a later schema":               strings.Replace(delayed, `"schema":2`, `"schema":3`, 1),
		"no schema":                    strings.Replace(delayed, `"schema":2,`, "", 1),
		"a second server":              head,
	} {
		if r, _, err := parse([]byte(head + text)); err == nil {
			t.Errorf("%s: taken: %q", name, byHand(r.Pending()))
		} else if strings.ContainsAny(err.Error(), "\x1b\a\n") {
			t.Errorf("%s: the error has control characters: %q", name, err)
		}
	}
}

// TestRecordRead: what davids wrote is read, the first schema's among it.
func TestRecordRead(t *testing.T) {
	value := "6"
	text := strings.ReplaceAll(head+delayed, `"schema":2`, `"schema":1`) + line(t, recordLine{Schema: schema, Event: guarded, PID: 7}) +
		line(t, recordLine{Schema: schema, N: 1, Event: done, After: "2"}) + line(t, recordLine{Schema: schema, N: 1, Event: persisting, Persisted: &value}) +
		line(t, recordLine{Schema: schema, N: 1, Event: kept})
	r, whole, err := parse([]byte(text + `{"schema":2,"n":1,"ev`))
	if err != nil || whole != len(text) || len(r.unproven()) != 0 || len(r.Pending()) != 1 {
		t.Fatalf("%+v, %d of %d bytes, %v", r, whole, len(text), err)
	}
	const want = "SET PERSIST innodb_spin_wait_delay = 6; SET GLOBAL innodb_spin_wait_delay = 6;"
	if got := byHand(r.Pending()); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestJournal: a record is a plain file, whose torn last line is cut off when the next is written and not
// before.
func TestJournal(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, RecordFile)
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(head + delayed + `{"schema":2,"n":1,"ev`)
	r, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || !strings.HasSuffix(string(text), `"ev`) {
		t.Errorf("opening it left %q, %v", text, err)
	}
	for range 2 {
		if err := r.note(recordLine{N: 1, Event: undone}, recordLine{N: 1, Event: undone}); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := Open(dir); err != nil || len(again.Changes()) != 1 || len(again.Pending()) != 0 {
		t.Errorf("%+v, %v", again, err)
	}
	if err := r.note(recordLine{N: 2, Event: intended, Name: "sync_binlog", Before: "1", After: "0"}); err == nil {
		t.Error("a member of the durability lock is on record")
	}
	write(head + strings.Repeat(" ", longestRecord))
	if _, err := Open(dir); err == nil {
		t.Error("a record of any length is read")
	}
	real := filepath.Join(t.TempDir(), "elsewhere")
	if err := errors.Join(os.Remove(path), os.WriteFile(real, []byte(head), 0o644), os.Symlink(real, path)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link: %v", err)
	}
	if err := r.note(recordLine{N: 1, Event: undone}); err == nil {
		t.Error("a link is written through")
	}
}

// TestVouched: the address of a record is believed where nobody but the user can have written it.
func TestVouched(t *testing.T) {
	uid := os.Geteuid()
	for name, c := range map[string]struct {
		dir  string // below david's home
		do   func(t *testing.T, home, dir string) error
		uid  int
		want string
	}{
		"the user's own":        {dir: "experiments/a", uid: uid},
		"deeper":                {dir: "experiments/a/b", uid: uid},
		"beside":                {dir: "elsewhere/a", uid: uid, want: "not among the experiments"},
		"the folder itself":     {dir: "experiments", uid: uid, want: "not among the experiments"},
		"another's":             {dir: "experiments/a", uid: uid + 1, want: "does not belong to you"},
		"a file others write":   {"experiments/a", func(_ *testing.T, _, dir string) error { return os.Chmod(filepath.Join(dir, RecordFile), 0o666) }, uid, "others may write"},
		"a folder they write":   {"experiments/a", func(_ *testing.T, _, dir string) error { return os.Chmod(dir, 0o777) }, uid, "others may write"},
		"experiments of theirs": {"experiments/a", func(_ *testing.T, home, _ string) error { return os.Chmod(filepath.Join(home, "experiments"), 0o770) }, uid, "others may write"},
		"a link to the inside":  {"experiments/a", func(_ *testing.T, home, dir string) error { return os.Symlink(dir, filepath.Join(home, "link")) }, uid, ""},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			dir := filepath.Join(home, c.dir)
			if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, RecordFile), []byte(head), 0o644), os.Chmod(home, 0o700)); err != nil {
				t.Fatal(err)
			}
			if c.do != nil {
				if err := c.do(t, home, dir); err != nil {
					t.Fatal(err)
				}
			}
			if link := filepath.Join(home, "link"); c.do != nil && c.want == "" {
				dir = link
			}
			r, err := Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = r.Vouched(home, c.uid)
			if c.want == "" && err != nil || c.want != "" && (!errors.Is(err, ErrNotVouched) || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	outside, home := t.TempDir(), t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(home, "experiments"), 0o755), os.WriteFile(filepath.Join(outside, RecordFile), []byte(head), 0o644),
		os.Symlink(outside, filepath.Join(home, "experiments", "a")))
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(filepath.Join(home, "experiments", "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Vouched(home, uid); !errors.Is(err, ErrNotVouched) {
		t.Errorf("a link to the outside: %v", err)
	}
}

// settingBack matches all SQL that a record can end in.
var settingBack = regexp.MustCompile(`^(SET (GLOBAL|PERSIST) ([a-z_]+) = [0-9]{1,20}|RESET PERSIST IF EXISTS ([a-z_]+))$`)

// FuzzRecord: whatever is on record, only numbers are set, only of david's own variables, and none of the
// durability lock.
func FuzzRecord(f *testing.F) {
	for _, text := range []string{"", head, head + delayed, head + poolOnly, head + delayed + `{"schema":2,"n":1,"event":"set","after":"2"}` + "\n",
		head + delayed + `{"schema":2,"n":1,"event":"persisting","persisted":"6"}` + "\n" + `{"schema":2,"n":1,"event":"kept"}` + "\n",
		head + delayed + `{"schema":2,"event":"watchdog","pid":7}` + "\n" + `{"schema":2,"n":1,"event":"undone"}` + "\n",
		head + `{"schema":2,"n":1,"event":"intended","name":"general_log","before":"ON","after":"OFF"}` + "\n", "{}\n" + delayed, head + delayed[:40]} {
		f.Add([]byte(text))
	}
	locked := map[string]bool{}
	for _, flavour := range []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} {
		for _, l := range mycnf.Lock(flavour) {
			locked[l.Name] = true
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, whole, err := parse(b)
		if err != nil {
			return
		}
		if whole > len(b) {
			t.Errorf("%d bytes of %d are whole", whole, len(b))
		}
		for _, c := range r.Pending() {
			for _, statement := range c.backStatements() {
				parts := settingBack.FindStringSubmatch(statement)
				if parts == nil || locked[parts[3]+parts[4]] || rules.Reversible(c.Name, c.Before, c.Before) != nil {
					t.Errorf("%q", statement)
				}
			}
		}
	})
}
