package workload

import "testing"

func TestBrief(t *testing.T) {
	for said, want := range map[string]string{
		"gave up": "gave up",
		"error 1114 (full) for query 'INSERT INTO t VALUES(1)'":                                                                  "error 1114 (full) for query 'INSERT INTO t VALUES(1)'",
		"error 1114 (full) for query 'INSERT INTO sbtest1(k, c, pad) VALUES(17266, '30607806992-98348546669-13214302611', 'x')'": "error 1114 (full) for query 'INSERT INTO sbtest1(k, c, pad) VALUES(17266, '30607806992-98...'",
	} {
		if got := brief(said); got != want {
			t.Errorf("%s\nbecame %s\nwant   %s", said, got, want)
		}
	}
}
