package crash

import (
	"encoding/binary"
	"maps"
	"testing"
	"time"
)

// event is one of a binary log.
func event(kind byte, body string) []byte {
	b := make([]byte, headerBytes, headerBytes+len(body))
	b[4] = kind
	binary.LittleEndian.PutUint32(b[9:], uint32(headerBytes+len(body)))
	return append(b, body...)
}

// sample returns a binary log of one whole transaction and one whose end is torn off.
func sample() []byte {
	log := logMagic()
	for _, e := range [][]byte{
		event(2, "BEGIN"), event(30, "\x00\x07david.1.12.abcdef"), event(31, "account"), event(xidEvent, "12345678"),
		event(2, "BEGIN"), event(30, "david.2.3.abcdef"), event(xidEvent, "12345678"),
	} {
		log = append(log, e...)
	}
	return log
}

func TestLogged(t *testing.T) {
	first := map[ledgerKey]bool{{1, 12}: true}
	both := map[ledgerKey]bool{{1, 12}: true, {2, 3}: true}
	whole := sample()
	end := len(event(xidEvent, "12345678"))
	for name, c := range map[string]struct {
		log  []byte
		want map[ledgerKey]bool
		ok   bool
	}{
		"whole":            {whole, both, true},
		"torn":             {whole[:len(whole)-1], first, true},
		"without a commit": {whole[:len(whole)-end], first, true},
		"empty":            {logMagic(), map[ledgerKey]bool{}, true},
		"encrypted":        {[]byte("\xfdbin...................."), map[ledgerKey]bool{}, false},
		"nothing":          {nil, map[ledgerKey]bool{}, false},
	} {
		if got, ok := logged(c.log); ok != c.ok || !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", name, got, ok)
		}
	}
}

func FuzzLogged(f *testing.F) {
	f.Add(sample())
	f.Add(sample()[:40])
	f.Fuzz(func(t *testing.T, log []byte) {
		all, ok := logged(log)
		if !ok && len(all) > 0 {
			t.Error("transactions of what is no log")
		}
		for e := range all {
			if e.writer < 0 || e.seq < 0 {
				t.Errorf("%+v", e)
			}
		}
	})
}

const mysqlLog = `2026-11-21T18:55:57.044099Z 1 [System] [MY-013576] [InnoDB] InnoDB initialization has started.
2026-11-21T18:56:01.043534Z 1 [System] [MY-013577] [InnoDB] InnoDB initialization has ended.
2026-11-21T18:56:02.350978Z 0 [System] [MY-010229] [Server] Starting XA crash recovery...
2026-11-21T18:56:02.544099Z 0 [System] [MY-010232] [Server] XA crash recovery finished.
2026-11-21T18:56:03.143600Z 0 [System] [MY-010931] [Server] mysqld: ready for connections.
`

const mariadbLog = `2026-11-21 18:57:10 0 [Note] InnoDB: Starting crash recovery from checkpoint LSN=47763
2026-11-21 18:57:11 0 [Note] mariadbd: ready for connections.
`

func TestRecovery(t *testing.T) {
	for log, want := range map[string]time.Duration{mysqlLog: 5500 * time.Millisecond, mariadbLog: 0, "": 0, mysqlLog[100:]: 0} {
		if got := recovery([]byte(log)); got != want {
			t.Errorf("%s, want %s, of %.60q", got, want, log)
		}
	}
}

func FuzzRecovery(f *testing.F) {
	f.Add([]byte(mysqlLog))
	f.Add([]byte(mariadbLog))
	f.Fuzz(func(t *testing.T, log []byte) {
		if d := recovery(log); d < 0 {
			t.Errorf("%s", d)
		}
	})
}
