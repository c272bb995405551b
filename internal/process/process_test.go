package process

import "testing"

func TestParseStartTime(t *testing.T) {
	const stat = "42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 987654 1000 2 18446744073709551615\n"
	if n, err := parseStartTime(stat); err != nil || n != 987654 {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", ")", "1 (x) S 1", "1 (x) Z 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 987654"} {
		if _, err := parseStartTime(bad); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func FuzzParseStartTime(f *testing.F) {
	f.Add("42 (a (b) c) S 1 42 42 0 -1 4194560 100 0 0 0 1 2 0 0 20 0 1 0 987654 1000")
	f.Fuzz(func(t *testing.T, s string) { parseStartTime(s) })
}
