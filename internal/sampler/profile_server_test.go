package sampler

import (
	"context"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/testserver"
)

// single connects to the schema of the load.
func single(t *testing.T, c *mysqld.Conn) func(statement string) error {
	t.Helper()
	one, err := c.Single(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { one.Close() })
	run := func(statement string) error {
		_, err := one.Rows(context.Background(), 0, statement)
		return err
	}
	if err := run("USE sbtest"); err != nil {
		t.Fatal(err)
	}
	return run
}

func table(server *testserver.Server) {
	server.Exec("CREATE DATABASE sbtest", "CREATE TABLE sbtest.t (id INT PRIMARY KEY, v INT)", "INSERT INTO sbtest.t VALUES (1, 0)")
}

// scene puts four connections into a state each: idle in a transaction, waiting for its row's lock, asleep,
// idle. What it gives waits until all are idle, which happens at the test's end too.
func scene(t *testing.T, server *testserver.Server) (end func()) {
	t.Helper()
	c := server.Open()
	holder, waiter, sleeper := single(t, c), single(t, c), single(t, c)
	single(t, c)
	for _, statement := range []string{"BEGIN", "UPDATE t SET v = 1 WHERE id = 1"} {
		if err := holder(statement); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 2)
	go func() { ended <- waiter("update t SET v = 2 WHERE id = 1") }()
	go func() { ended <- sleeper("SELECT SLEEP(5)") }()
	end = sync.OnceFunc(func() {
		for _, err := range []error{<-ended, holder("ROLLBACK"), <-ended} { // the sleeper ends by itself
			if err != nil {
				t.Error(err)
			}
		}
	})
	t.Cleanup(end)
	return end
}

func profiled(t *testing.T, o Options) *result.Profile {
	t.Helper()
	o.Schema = "sbtest"
	r := sampled(t, o)
	if r.Profile == nil {
		t.Fatal("no profile")
	}
	for _, s := range r.Profile.States {
		t.Logf("%+v", s)
	}
	t.Logf("%d polls at %.1f connections; missing %q; %+v", r.Profile.Looks, r.Profile.Connections, r.Profile.Missing, r.Sampling)
	return r.Profile
}

// share returns how many connections, at a poll, were found in states of that kind.
func share(p *result.Profile, is func(result.State) bool) (found float64) {
	for _, s := range p.States {
		if is(s) {
			found += float64(s.Count) / float64(p.Looks)
		}
	}
	return found
}

// almost allows for what was found before the scene was set.
func almost(t *testing.T, what string, got, want float64) {
	t.Helper()
	if got < 0.8*want || got > want+1e-9 {
		t.Errorf("%s: %.2f connections a poll, want %v", what, got, want)
	}
}

func TestProfile(t *testing.T) { testserver.Each(t, testProfile) }

func testProfile(t *testing.T, server *testserver.Server) {
	table(server)
	scene(t, server)
	p := profiled(t, optionsFor(t, server))
	almost(t, "all", p.Connections, 4)
	almost(t, "waiting for the lock", share(p, func(s result.State) bool {
		return s.Command == "Query" && s.Statement == "UPDATE" && s.Kernel == "futex" && s.File == ""
	}), 1)
	almost(t, "asleep", share(p, func(s result.State) bool {
		return s.Statement == "SELECT" && strings.EqualFold(s.Stage, "user sleep") && s.Kernel == "futex"
	}), 1)
	almost(t, "idle", share(p, func(s result.State) bool { return s.Command == "Sleep" && s.Statement == "" && s.File == "socket" }), 2)
	if p.Looks < 5 || p.Looks > 30 || len(p.Threads) < 2 || p.Threads[0].Name != "connection" || p.Threads[0].Count != 4 {
		t.Errorf("%d polls, threads %+v", p.Looks, p.Threads)
	}
}

// Without performance_schema MySQL does not tell which thread serves a connection: the two halves stand
// apart.
func TestProfileWithoutThreads(t *testing.T) {
	server := testserver.Start(t, mycnf.MySQL, "--performance-schema=OFF")
	table(server)
	o := optionsFor(t, server)
	o.Schema = "sbtest"
	s := start(t, o)
	s.Mark() // the load connects afterwards
	end := scene(t, server)
	end()
	time.Sleep(time.Second) // a thread is known by that it waits for its client at some poll
	r, err := s.Stop(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	p := r.Profile
	t.Logf("%+v", p)
	list := share(p, func(s result.State) bool { return s.Command != "" })
	kernel := share(p, func(s result.State) bool { return s.Command == "" })
	if math.Abs(list-p.Connections) > 1e-9 || kernel < 0.9*list || kernel > 1.1*list || p.Threads[0].Count != 4 {
		t.Errorf("%v connections a poll, %v in the process list, %v threads", p.Connections, list, kernel)
	}
	asleep := share(p, func(s result.State) bool { return s.Command == "" && s.Kernel == "futex" })
	listed := share(p, func(s result.State) bool { return s.Command == "Query" })
	if listed < 1 || asleep < 0.8*listed || asleep > 1.2*listed {
		t.Errorf("%v threads a poll in futex, %v connections at work", asleep, listed)
	}
	if c := r.Sampling.ServerCPU; c <= 0 || c > 0.1 {
		t.Errorf("%+v", r.Sampling)
	}
	if !strings.Contains(strings.Join(p.Missing, "; "), "performance_schema is off") || len(p.Waits) > 0 {
		t.Errorf("missing %q, waits %v", p.Missing, p.Waits)
	}
}

// A remote server shows no process, and may admit a user who sees only his own connections.
func TestProfileFewPrivileges(t *testing.T) {
	testserver.Each(t, func(t *testing.T, server *testserver.Server) {
		server.Exec("CREATE USER nobody@'%'", "CREATE DATABASE sbtest", "GRANT ALL ON sbtest.* TO nobody@'%'")
		a := server.Socket("nobody")
		a.Password = ""
		c, err := mysqld.Open(context.Background(), a)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		single(t, c)
		p := profiled(t, Options{Conn: c, Flavour: server.Flavour})
		almost(t, "idle", share(p, func(s result.State) bool { return s.Command == "Sleep" && s.Kernel == "" }), 1)
		missing := strings.Join(p.Missing, "; ")
		if len(p.Threads) > 0 || !strings.Contains(missing, "threads: ") {
			t.Errorf("threads %v, missing %q", p.Threads, missing)
		}
	})
}

// checkProfile judges the profile of a load of four connections for four seconds.
func checkProfile(t *testing.T, r Record, out string, client *os.ProcessState) {
	t.Helper()
	p := r.Profile
	if p == nil {
		t.Fatal("no profile")
	}
	for _, s := range p.States[:min(12, len(p.States))] {
		t.Logf("%+v", s)
	}
	t.Logf("%d polls at %.1f connections, client %+v, missing %q\nthreads %+v\nwaits %+v\nstatements %+v", p.Looks, p.Connections, p.Client, p.Missing,
		p.Threads, p.Waits, p.Statements)
	if p.Looks < 8 || p.Connections < 3.5 || p.Connections > 4 {
		t.Errorf("%d polls at %v connections", p.Looks, p.Connections)
	}
	for what, is := range map[string]func(result.State) bool{
		"committing": func(s result.State) bool { return s.Statement == "COMMIT" && s.Kernel != "" },
		// Of one kind of statement a busy machine's few looks may find none.
		"reading or changing rows": func(s result.State) bool {
			return slices.Contains([]string{"SELECT", "UPDATE", "DELETE", "INSERT"}, s.Statement) && s.Kernel != ""
		},
		"running": func(s result.State) bool { return s.Kernel == "running" },
	} {
		if share(p, is) <= 0 {
			t.Errorf("no connection was found %s", what)
		}
	}
	checkThreads(t, r)
	whole := (client.UserTime() + client.SystemTime()).Seconds()
	if c := p.Client; c.Name != "sysbench" || c.Count < 5 || c.CPU < 0.75*whole || c.CPU > 1.25*whole {
		t.Errorf("client %+v; its exit status says %.2f s", c, whole)
	}
	// Statements that are prepared count as no question, those of connecting do.
	asked, told := float64(printed(t, out, "total")), r.Counters["questions"]-float64(r.Statements)
	if told < asked || told > 1.01*asked+20 {
		t.Errorf("sysbench counts %v queries, the server %v without david's", asked, told)
	}
}

// checkThreads holds what the threads used against the process's own account.
func checkThreads(t *testing.T, r Record) {
	t.Helper()
	sum := 0.0
	for _, one := range r.Profile.Threads {
		sum += one.CPU
	}
	first := r.Profile.Threads[0]
	if all := *r.usage.serverCPU; sum < 0.9*all || sum > 1.1*all || first.Name != "connection" || first.Count != 4 || first.CPU < 0.3*sum || first.Wait <= 0 {
		t.Errorf("the threads used %.2f s, their process %.2f s; %+v", sum, all, first)
	}
}
