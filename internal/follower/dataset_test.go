package follower

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"david/internal/host"
	"david/internal/mycnf"
)

// TestDatasetNames: a clone lies beside the leader's dataset, and no record makes david destroy what it did not make.
func TestDatasetNames(t *testing.T) {
	p := Place{Dataset: "tank/db/mysql", Pool: "17", Below: "."}
	z, again := p.named("reports"), p.named("reports")
	if !strings.HasPrefix(z.Clone, "tank/db/david-reports-") || z.Clone == again.Clone || !strings.HasPrefix(z.snapshot(), "tank/db/mysql@david-reports-") {
		t.Errorf("%+v, %+v", z, again)
	}
	if first := (Place{Dataset: "tank", Below: "."}).named("a"); !strings.HasPrefix(first.Clone, "tank/david-a-") || first.check("a") != nil {
		t.Errorf("%+v", first)
	}
	if err := z.check("reports"); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*ZFS){
		"another's dataset":  func(z *ZFS) { z.Clone = "tank/db/mysql" },
		"another follower's": func(z *ZFS) { z.Clone = "tank/david-other-x" },
		"a snapshot":         func(z *ZFS) { z.Clone += "@david-reports-x" },
		"an option":          func(z *ZFS) { z.Of = "-r" },
		"another pool":       func(z *ZFS) { z.Of = "dozer/mysql" },
		"data elsewhere":     func(z *ZFS) { z.Below = "../../etc" },
	} {
		bad := *z
		change(&bad)
		if bad.check("reports") == nil {
			t.Errorf("%s is taken: %+v", name, bad)
		}
	}
}

// TestTears: a leader stands still for a snapshot of its dataset only where a page could be in it by half, and have no
// other copy.
func TestTears(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "t.ibd"), make([]byte, 64<<10), 0o600); err != nil { // in blocks of 4 KiB, as it lies on no ZFS
		t.Fatal(err)
	}
	for _, c := range []struct {
		doublewrite, page, record string
		from                      string
		want                      bool
	}{
		{"ON", "16384", "8192", dir, false},
		{"DETECT_AND_RECOVER", "16384", "8192", dir, false},
		{"OFF", "16384", "8192", t.TempDir(), true},
		{"DETECT_ONLY", "16384", "131072", dir, true},
		{"0", "16384", "131072", t.TempDir(), false},
		{"OFF", "4096", "16384", dir, false},
		{"OFF", "16384", "", t.TempDir(), true},
	} {
		l := leaderWith(mycnf.MariaDB, "10.11.6", map[string]string{"innodb_doublewrite": c.doublewrite, "innodb_page_size": c.page, "sync_binlog": "0"})
		p := Place{Way: Dataset, From: c.from, Like: map[string]string{"recordsize": c.record}}
		var err error
		if p.Tears, err = p.tears(l); err != nil || (Plan{Leader: l, Place: p}).Stands() != c.want {
			t.Errorf("%+v: stands %v, %v", c, p.Tears, err)
		}
	}
}

// tank is a pool that a script of the name zfs knows: a file for each dataset, and each snapshot, whose content is that of
// its property owned, or else what is wrong with it.
type tank struct {
	t   *testing.T
	dir string
}

func newTank(t *testing.T) tank {
	t.Helper()
	x := tank{t, t.TempDir()}
	script := `#!/bin/sh
for name; do :; done
cd ` + x.dir + `
echo "$1 $name" >>log
file=$(echo "$name" | tr / +)
[ "$1" = mount ] || [ -e "$file" ] || { echo "cannot open '$name': dataset does not exist" >&2; exit 1; }
case "$*" in
*,source\ guid*) printf 'guid\t17\t-\n' ;;
*,source\ origin*) printf 'origin\t%s\t-\n' "$(cat origin)" ;;
*,source\ clones*) printf 'clones\t%s\t-\n' "$(cat clones)" ;;
*,source\ david:follower*) printf 'david:follower\t%s\tlocal\n' "$(cat "$file")" ;;
list*) ls | tr + / | grep "^$name" ;;
destroy*) rm "$file" ;;
esac
`
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "zfs"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	return x
}

func (x tank) has(files map[string]string) {
	x.t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(x.dir, strings.ReplaceAll(name, "/", "+")), []byte(text), 0o600); err != nil {
			x.t.Fatal(err)
		}
	}
}

// destroyed lists what was destroyed, in its order.
func (x tank) destroyed() (list string) {
	text, _ := os.ReadFile(filepath.Join(x.dir, "log")) // none where nothing was asked for
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "destroy "); ok {
			list += strings.TrimSpace(name) + " "
		}
	}
	return list
}

// TestDispose: a clone is destroyed, then its snapshot; what others have made of it, and what is not david's, is not.
func TestDispose(t *testing.T) {
	const clone, snapshot, moved = "tank/david-a-x", "tank/mysql@david-a-x", "tank/david-a-x@david-a-x"
	for name, c := range map[string]struct {
		pool      map[string]string // of the name "", the value of the property owned
		refused   string            // by Drop
		left      string            // by dispose
		destroyed string
	}{
		"whole":                 {map[string]string{"tank": "", clone: "mine", snapshot: "mine", "origin": snapshot}, "", "", clone + " " + snapshot + " "},
		"half-made":             {map[string]string{"tank": "", snapshot: "mine"}, "", "", snapshot + " "},
		"nothing made":          {map[string]string{"tank": ""}, "", "", ""},
		"half-dropped":          {map[string]string{"tank": "", snapshot: "mine"}, "", "", snapshot + " "},
		"the leader renamed":    {map[string]string{"tank": "", clone: "mine", "tank/old@david-a-x": "mine", "origin": "tank/old@david-a-x"}, "", "", clone + " tank/old@david-a-x "},
		"another's dataset":     {map[string]string{"tank": "", clone: "theirs", snapshot: "mine", "origin": snapshot}, clone + " is not david's", "is not david's", ""},
		"another's snapshot":    {map[string]string{"tank": "", clone: "mine", snapshot: "theirs", "origin": snapshot}, "", "tank/mysql@david-a-x is not david's", clone + " "},
		"snapshots of it":       {map[string]string{"tank": "", clone: "mine", clone + "@daily": "mine", snapshot: "mine", "origin": snapshot}, "has others' below it (tank/david-a-x@daily)", "-", "-"},
		"promoted":              {map[string]string{"tank": "", clone: "mine", moved: "mine", "clones": "tank/mysql", "origin": "-"}, "zfs promote tank/mysql, and drop it then", "-", "-"},
		"promoted, leader gone": {map[string]string{"tank": "", clone: "mine", moved: "mine", "clones": "", "origin": "-"}, "", "", moved + " " + clone + " "},
		"no pool":               {nil, "", "the pool tank does not answer", ""},
	} {
		t.Run(name, func(t *testing.T) {
			x := newTank(t)
			r := &Record{Name: "a", Way: Dataset, State: Following, Made: time.Now(), Dir: filepath.Join(t.TempDir(), folderOf("a")),
				ZFS: &ZFS{Clone: clone, Of: "tank/mysql", Pool: "17", Below: "."}}
			if err := create(t.TempDir(), r); err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			for name, text := range c.pool {
				if text == "mine" {
					c.pool[name] = r.mine()
				}
			}
			x.has(c.pool)
			err := r.elsewhere(t.Context())
			if c.refused == "" && err != nil || c.refused != "" && (!errors.Is(err, ErrInput) || !strings.Contains(err.Error(), c.refused)) {
				t.Errorf("drop: %v, want %q", err, c.refused)
			}
			if c.left == "-" { // ZFS itself refuses
				return
			}
			err = r.discard(t.Context())
			if c.left == "" && (err != nil || r.ZFS != nil) || c.left != "" && (!errors.Is(err, ErrDatasetLeft) || !strings.Contains(err.Error(), c.left)) {
				t.Errorf("%v, want %q", err, c.left)
			}
			if got := x.destroyed(); got != c.destroyed {
				t.Errorf("destroyed %q, want %q", got, c.destroyed)
			}
		})
	}
}

// TestNoZFS: without the program, or with what is no dataset, it is said what is missing.
func TestNoZFS(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("root's errors")
	}
	newTank(t)
	p := Place{From: t.TempDir()}
	if err := p.dataset(t.Context(), Leader{}, host.Filesystem{Type: "zfs", Device: "tank/mysql@daily"}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "no name of a ZFS dataset") {
		t.Error(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := p.dataset(t.Context(), Leader{}, host.Filesystem{Type: "zfs", Device: "tank/mysql"}); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "there is no program zfs; apt-get install zfsutils-linux") {
		t.Error(err)
	}
}
