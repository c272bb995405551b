package host

import "testing"

func TestParseLimit(t *testing.T) {
	for text, want := range map[string]int64{"max": 0, "-1": 0, "9223372036854771712": 0, "9223372036854710272": 0, "18446744073709551615": 0,
		"4294967296": 1 << 32, "0": 0} {
		if got, err := parseLimit(text); err != nil || got != want {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "lots", "-2", "1G", "1.5"} {
		if got, err := parseLimit(bad); err == nil {
			t.Errorf("accepted %q as %d", bad, got)
		}
	}
}

func TestParseQuota(t *testing.T) {
	for text, want := range map[string]float64{"max 100000": 0, "150000 100000": 1.5, "50000 100000": 0.5} {
		if got, err := parseQuota(text); err != nil || got != want {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "max", "1 0", "a b", "1 2 3"} {
		if got, err := parseQuota(bad); err == nil {
			t.Errorf("accepted %q as %v", bad, got)
		}
	}
}

func TestCountList(t *testing.T) {
	for text, want := range map[string]int{"0": 1, "0-1": 2, "0-3,8\n": 5, "0,2,4-5": 4} {
		if got, err := countList(text); err != nil || got != want {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
	for _, bad := range []string{"", "a", "3-1", "0-", "0,", "-1"} {
		if got, err := countList(bad); err == nil {
			t.Errorf("accepted %q as %d", bad, got)
		}
	}
}

func TestInsideAndLevels(t *testing.T) {
	for _, c := range [][3]string{{"/a/b", "/", "a/b"}, {"/docker/x", "/docker/x", "."}, {"/", "/docker/x", "."}, {"/../other", "/", "other"}} {
		if got := inside(c[0], c[1]); got != c[2] {
			t.Errorf("%v: %q", c, got)
		}
	}
	if got := levels("/m", "a/b"); len(got) != 3 || got[0] != "/m/a/b" || got[1] != "/m/a" || got[2] != "/m" {
		t.Error(got)
	}
}

func FuzzParsers(f *testing.F) {
	for _, s := range []string{"max 100000", "0-3,8", "none [mq-deadline] kyber", "4:memory:/a\n0::/", "PRETTY_NAME=\"x\"", "9223372036854771712"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := parseLimit(s); err == nil && (n < 0 || n >= unlimited) {
			t.Errorf("limit %q is %d", s, n)
		}
		if q, err := parseQuota(s); err == nil && q < 0 {
			t.Errorf("quota %q is %v", s, q)
		}
		if n, err := countList(s); err == nil && n < 1 {
			t.Errorf("list %q has %d", s, n)
		}
		if list, err := parseMemberships(s); err == nil {
			for _, m := range list {
				if m.path[0] != '/' {
					t.Errorf("member %+v", m)
				}
				for _, dir := range levels("/m", inside(m.path, "/a")) {
					if dir[:2] != "/m" {
						t.Errorf("%q leads out to %s", s, dir)
					}
				}
			}
		}
		Selected(s)
		prettyName(s)
	})
}
