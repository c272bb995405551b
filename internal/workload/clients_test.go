package workload_test

import (
	"context"
	"errors"
	"os/exec"
	"strings"
	"testing"
	"time"

	"david/internal/mysqld"
	"david/internal/testserver"
	"david/internal/workload"
)

// TestClients spreads a load over two clients of a real server, and over one that fails.
func TestClients(t *testing.T) {
	testserver.Each(t, func(t *testing.T, s *testserver.Server) {
		load(t, s)
		testClients(t, s)
		testClientsLate(t, s)
		testClientsFails(t, s)
	})
}

// work drives a share in the background for the clients of that name; its error comes over the channel.
func work(t *testing.T, s *testserver.Server, id string, target workload.Target) <-chan error {
	ended := make(chan error, 1)
	conn := s.Open()
	w := workload.Worker{Conn: conn, Target: target, Database: "sbtest", ID: id, Number: 1, Clients: 2, Name: "worker", Say: func(string) {}}
	go func() { ended <- w.Work(t.Context()) }()
	return ended
}

func join(t *testing.T, conn *mysqld.Conn, id string) *workload.Clients {
	t.Helper()
	clients, err := workload.Join(t.Context(), conn, "sbtest", id, 2, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return clients
}

func testClients(t *testing.T, s *testserver.Server) {
	own := target(t, s.Socket("david"))
	ended := work(t, s, "one", target(t, s.Socket("david")))
	clients := join(t, s.Open(), "one")
	w := small("oltp_read_write")
	w.Threads = 3
	for round := range 2 {
		warm, seconds, _, err := clients.Warm(t.Context(), own, w, nil, nil)
		if err != nil || len(warm) != w.Warmup || seconds <= 0 {
			t.Fatalf("round %d: %d points in %g s of warming up, %v", round, len(warm), seconds, err)
		}
		got, err := clients.Run(t.Context(), own, nil)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		var counted, sum int64
		for _, b := range got.Histogram {
			counted += b.Count
		}
		for _, c := range got.Clients {
			sum += c.Transactions
		}
		if got.Transactions == 0 || counted != got.Transactions || sum != got.Transactions || got.Workload != w {
			t.Errorf("round %d: %d transactions, %d in the histogram, %d of the clients, workload %+v", round, got.Transactions, counted, sum, got.Workload)
		}
		if len(got.Clients) != 2 || got.Clients[0].Threads != 2 || got.Clients[1].Threads != 1 || got.Clients[1].Name != "worker" || len(got.Points) < 1 {
			t.Errorf("round %d: clients %+v, %d points", round, got.Clients, len(got.Points))
		}
	}
	if state, err := workload.Inspect(t.Context(), s.Open(), small("oltp_read_write")); err != nil || state != workload.OursMatching {
		t.Errorf("with the clients' table the schema is %s, %v", state, err)
	}
	if err := clients.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the worker: %v", err)
	}
	var left int
	if err := s.Open().Row(t.Context(), "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'sbtest' AND table_name = 'david_crew'", nil, &left); err != nil || left != 0 {
		t.Errorf("%d tables of the clients are left, %v", left, err)
	}
}

// testClientsLate has a worker whose sysbench begins late: by how much, is told.
func testClientsLate(t *testing.T, s *testserver.Server) {
	const late = 1500 * time.Millisecond
	slow := target(t, s.Socket("david"))
	slow.Start = func(cmd *exec.Cmd) error {
		time.Sleep(late)
		return cmd.Start()
	}
	ended := work(t, s, "late", slow)
	clients := join(t, s.Open(), "late")
	w := small("oltp_read_write")
	w.Warmup = 0
	if _, _, _, err := clients.Warm(t.Context(), target(t, s.Socket("david")), w, nil, nil); err != nil {
		t.Fatal(err)
	}
	got, err := clients.Run(t.Context(), target(t, s.Socket("david")), nil)
	if err != nil || len(got.Clients) != 2 || got.Clients[1].LateMs < 1000 || got.Clients[0].LateMs != 0 {
		t.Errorf("%+v, %v", got.Clients, err)
	}
	if err := errors.Join(clients.Release(t.Context()), <-ended); err != nil {
		t.Error(err)
	}
}

// testClientsFails has a worker whose sysbench cannot log in: the first client says whose failure it was.
func testClientsFails(t *testing.T, s *testserver.Server) {
	wrong := target(t, s.Socket("david"))
	wrong.Addr.Password = "wrong"
	ended := work(t, s, "two", wrong)
	clients := join(t, s.Open(), "two")
	w := small("oltp_read_write")
	w.Warmup = 0
	if _, _, _, err := clients.Warm(t.Context(), target(t, s.Socket("david")), w, nil, nil); err != nil {
		t.Fatal(err)
	}
	_, err := clients.Run(t.Context(), target(t, s.Socket("david")), nil)
	if !errors.Is(err, workload.ErrClients) || !strings.Contains(err.Error(), "client 2 of 2 (worker)") {
		t.Errorf("the lead: %v", err)
	}
	if err := <-ended; !errors.Is(err, workload.ErrClients) {
		t.Errorf("the worker: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := workload.Join(ctx, s.Open(), "sbtest", "three", 2, func(string) {}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a worker that never comes: %v", err)
	}
}
