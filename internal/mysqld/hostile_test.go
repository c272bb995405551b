package mysqld_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"david/internal/mysqld"
	"david/internal/testserver"
)

// fake is a server that lets everybody in, and answers every statement with what answer writes.
func fake(t *testing.T, answer func(io.Writer)) mysqld.Addr {
	return mysqld.Addr{Network: "tcp", User: "u", Address: testserver.Listen(t, func(conn net.Conn) {
		letIn(conn)
		for {
			command, _, err := testserver.ReadPacket(conn)
			switch {
			case err != nil || len(command) == 0 || command[0] == 1: // COM_QUIT
				return
			case command[0] == 14: // COM_PING
				testserver.WritePacket(conn, 1, []byte{0, 0, 0, 2, 0, 0, 0})
			default:
				answer(conn)
			}
		}
	})}
}

func letIn(conn net.Conn) {
	testserver.WritePacket(conn, 0, testserver.Greeting("mysql_native_password", bytes.Repeat([]byte("n"), 20), 0))
	testserver.ReadPacket(conn)
	testserver.WritePacket(conn, 2, []byte{0, 0, 0, 2, 0, 0, 0})
}

// one is a result of one column, without its rows.
func one() bytes.Buffer { return wide(1) }

// wide is one of so many columns.
func wide(columns int) (b bytes.Buffer) {
	column := append([]byte("\x03def\x00\x00\x00\x01a\x00\x0c\xff\x00"), make([]byte, 10)...)
	count := []byte{byte(columns)}
	if columns > 250 {
		count = []byte{0xfc, byte(columns), byte(columns >> 8)}
	}
	testserver.WritePacket(&b, 1, count)
	for i := range columns {
		testserver.WritePacket(&b, byte(2+i), column)
	}
	return b
}

// endless writes the packet again and again until nobody reads it.
func endless(w io.Writer, sequence int, packet []byte) {
	for {
		var some bytes.Buffer
		for first := true; first || some.Len() < 64<<10; first = false {
			testserver.WritePacket(&some, byte(sequence), packet)
			sequence++
		}
		if _, err := w.Write(some.Bytes()); err != nil {
			return
		}
	}
}

// answers are those of servers that mean harm.
func answers() map[string]func(io.Writer) {
	packet := func(bodies ...[]byte) func(io.Writer) {
		return func(w io.Writer) {
			for i, body := range bodies {
				testserver.WritePacket(w, byte(i+1), body)
			}
		}
	}
	return map[string]func(io.Writer){
		"2^63 columns":               packet(binary.LittleEndian.AppendUint64([]byte{0xfe}, 1<<63)),
		"2^40 columns":               packet(binary.LittleEndian.AppendUint64([]byte{0xfe}, 1<<40)),
		"16 million columns":         packet([]byte{0xfd, 0xff, 0xff, 0xff}),
		"many columns after an OK":   packet([]byte{0, 0, 0, 10, 0, 0, 0}, []byte{0xfd, 0xff, 0xff, 0xff}),
		"an error that is cut short": packet([]byte{0xff}),
		"a column that is cut short": packet([]byte{1}, []byte("\x03def\x00\x00\x00\x01a\x00\x0c")),
		"endless packets of one row": func(w io.Writer) { b := one(); w.Write(b.Bytes()); endless(w, 3, bytes.Repeat([]byte("x"), 1<<24-1)) },
		"an endless column":          func(w io.Writer) { w.Write([]byte{1, 0, 0, 1, 1}); endless(w, 2, bytes.Repeat([]byte("x"), 1<<24-1)) },
		"endless columns": func(w io.Writer) {
			w.Write([]byte{3, 0, 0, 1, 0xfc, 0, 16})
			endless(w, 2, append(make([]byte, 1<<20), 0))
		},
		"endless rows": func(w io.Writer) {
			b := one()
			w.Write(b.Bytes())
			endless(w, 3, append([]byte{0xfc, 0, 4}, make([]byte, 1024)...))
		},
		"endless rows of nothing": func(w io.Writer) { b := one(); w.Write(b.Bytes()); endless(w, 3, bytes.Repeat([]byte{0xfb}, 1)) },
		"endless wide rows of nothing": func(w io.Writer) {
			b := wide(4096)
			w.Write(b.Bytes())
			endless(w, 4098, bytes.Repeat([]byte{0xfb}, 4096))
		},
		"a row that is cut short":    func(w io.Writer) { b := one(); w.Write(b.Bytes()); testserver.WritePacket(w, 3, []byte{0xfc}) },
		"endless results of no rows": func(w io.Writer) { endless(w, 1, []byte{0, 0, 0, 10, 0, 0, 0}) },
		"a file that it asks for":    packet([]byte("\xfb/etc/passwd"), []byte{0xff}),
	}
}

// TestHostileServer has david ask servers that mean harm: each answer ends with an error, and takes little memory.
func TestHostileServer(t *testing.T) {
	for name, answer := range answers() {
		t.Run(name, func(t *testing.T) {
			addr := fake(t, answer)
			addr.Answer = 16 << 20
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			c, err := mysqld.Open(t.Context(), addr)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			testHarmless(t, c)
			runtime.ReadMemStats(&after)
			sys := int64(after.Sys-before.Sys) >> 20 // with what the fake itself takes
			if t.Logf("%d MiB", sys); sys > 256 {
				t.Errorf("it took %d MiB", sys)
			}
		})
	}
	t.Run("greetings", testGreetings)
	t.Run("noise", testNoise)
}

// testHarmless asks in every way there is. An error is the least.
func testHarmless(t *testing.T, c *mysqld.Conn) {
	ctx := t.Context()
	if _, err := c.Pairs(ctx, "SHOW GLOBAL STATUS"); err == nil {
		t.Error("no error of Pairs")
	}
	var n int
	if err := c.Row(ctx, "SELECT ?", []any{1}, &n); err == nil {
		t.Error("no error of Row")
	}
	if err := c.Exec(ctx, "SET x = ?", 1); err == nil {
		t.Error("no error of Exec")
	}
	single, err := c.Single(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	if _, err := single.Rows(ctx, 1, "SELECT 1"); err == nil {
		t.Error("no error of Rows")
	}
}

func testGreetings(t *testing.T) {
	long := append([]byte{10}, bytes.Repeat([]byte("v"), 1<<24-2)...)
	sane := testserver.Greeting("mysql_native_password", make([]byte, 20), 0)
	for name, serve := range map[string]func(net.Conn){
		"endless":          func(conn net.Conn) { endless(conn, 0, long) },
		"nothing":          func(conn net.Conn) { testserver.WritePacket(conn, 0, nil) },
		"another protocol": func(conn net.Conn) { io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n") },
		"cut short":        func(conn net.Conn) { testserver.WritePacket(conn, 0, sane[:40]) },
		"an error cut off": func(conn net.Conn) { testserver.WritePacket(conn, 0, []byte{0xff, 1}) },
		"endless steps": func(conn net.Conn) {
			testserver.WritePacket(conn, 0, sane)
			endless(conn, 2, []byte("\xfemysql_native_password\x0012345678901234567890\x00"))
		},
	} {
		addr := mysqld.Addr{Network: "tcp", User: "u", Password: "p", Address: testserver.Listen(t, serve)}
		if _, err := mysqld.Open(t.Context(), addr); !errors.Is(err, mysqld.ErrProtocol) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// testNoise answers with packets that begin as sane ones do, and go on at random.
func testNoise(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		c, err := mysqld.Open(t.Context(), fake(t, func(w io.Writer) {
			b := one()
			w.Write(b.Bytes()[:r.IntN(b.Len()+1)])
			for i := range 1 + r.IntN(4) {
				body := make([]byte, r.IntN(40))
				for j := range body {
					body[j] = byte(r.Uint32())
				}
				if len(body) > 0 {
					body[0] = []byte{0, 0xff, 0xfe, 0xfb, 1, 3}[r.IntN(6)]
				}
				testserver.WritePacket(w, byte(i+1+2*r.IntN(2)), body)
			}
			w.(net.Conn).Close()
		}))
		if err != nil {
			t.Fatal(err)
		}
		c.Pairs(t.Context(), "SELECT 1, 2")
		c.Exec(t.Context(), "DO ?", 1)
		c.Close()
	}
}

// TestTooFewColumns has a server answer with well-formed rows that have fewer columns than were asked for.
func TestTooFewColumns(t *testing.T) {
	t.Parallel()
	c, err := mysqld.Open(t.Context(), fake(t, func(w io.Writer) {
		b := one()
		testserver.WritePacket(&b, 3, []byte("\x01a"))
		testserver.WritePacket(&b, 4, []byte{0xfe, 0, 0, 2, 0})
		w.Write(b.Bytes())
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	single, err := c.Single(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer single.Close()
	if rows, err := single.Rows(t.Context(), 1, "SELECT 1"); err != nil || len(rows) != 1 || rows[0][0] != "a" {
		t.Fatalf("one column: %q, %v", rows, err)
	}
	other, err := c.Single(t.Context()) // as such an answer is the end of a connection
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	_, pairs := c.Pairs(t.Context(), "SHOW GLOBAL STATUS")
	_, identity := c.Identity(t.Context())
	_, one := single.Pairs(t.Context(), "SHOW GLOBAL STATUS")
	_, four := other.Rows(t.Context(), 4, "SELECT 1, 2, 3, 4")
	for name, err := range map[string]error{"Pairs": pairs, "Identity": identity, "Pairs of one": one, "Rows": four} {
		if !errors.Is(err, mysqld.ErrProtocol) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestStatementDeadline has real servers take their time.
func TestStatementDeadline(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		addr := s.TCP("david")
		addr.Deadline, addr.Longer = 500*time.Millisecond, "be patient"
		c, err := mysqld.Open(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var n int
		single, err := c.Single(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer single.Close()
		_, rows := single.Rows(t.Context(), 1, "SELECT SLEEP(10)")
		_, pairs := c.Pairs(t.Context(), "SELECT SLEEP(10), 1")
		for what, err := range map[string]error{
			"Exec": c.Exec(t.Context(), "DO SLEEP(10)"), "Row": c.Row(t.Context(), "SELECT SLEEP(10)", nil, &n), "Rows": rows, "Pairs": pairs,
		} {
			if !errors.Is(err, mysqld.ErrDeadline) || !strings.HasSuffix(err.Error(), "; be patient") {
				t.Errorf("%s: got %v", what, err)
			}
		}
		err = c.Exec(t.Context(), "DO 1")
		for tries := 0; errors.Is(err, mysqld.ErrDeadline) && tries < 50; tries++ { // half a second is little on a busy machine
			err = c.Exec(t.Context(), "DO 1")
		}
		if err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

// TestNoAnswerAfterLogin: a server that lets david in and then says nothing, or nothing sane, keeps it no longer than it may.
func TestNoAnswerAfterLogin(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(net.Conn)
		want   error
	}{
		"nothing":      {func(conn net.Conn) { io.Copy(io.Discard, conn) }, mysqld.ErrDeadline},
		"nothing sane": {func(conn net.Conn) { testserver.ReadPacket(conn); testserver.WritePacket(conn, 1, []byte{1}) }, mysqld.ErrProtocol},
		"out of order": {func(conn net.Conn) {
			testserver.ReadPacket(conn)
			testserver.WritePacket(conn, 7, []byte{0, 0, 0, 2, 0, 0, 0})
		}, mysqld.ErrProtocol},
	} {
		addr := mysqld.Addr{Network: "tcp", User: "u", Deadline: 2 * time.Second, Address: testserver.Listen(t, func(conn net.Conn) { letIn(conn); c.answer(conn) })}
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		if _, err := mysqld.Open(ctx, addr); !errors.Is(err, c.want) || ctx.Err() != nil {
			t.Errorf("%s: got %v", name, err)
		}
		cancel()
	}
}

// TestEndlessIsInterruptible cancels statements whose answers do not end, and which no limit ends.
func TestEndlessIsInterruptible(t *testing.T) {
	for _, name := range []string{"endless rows of nothing", "endless results of no rows"} {
		begun := make(chan bool, 8)
		addr := fake(t, func(w io.Writer) { begun <- true; answers()[name](w) })
		addr.Answer = 1 << 50
		c, err := mysqld.Open(t.Context(), addr)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-begun; cancel() }()
		single, err := c.Single(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := single.Rows(ctx, 0, "SELECT 1"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v", name, err)
		}
		if err := single.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
