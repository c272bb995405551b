package move

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"david/internal/mycnf"
	"david/internal/testserver"
)

// asMover makes the test binary move what the variable says, so that it can be killed.
const asMover = "DAVID_TEST_AS_MOVER"

func TestMain(m *testing.M) {
	if text := os.Getenv(asMover); text != "" {
		if err := mover(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// mover moves, or goes back where the server runs on the new place or was on its way back.
func mover(text string) error {
	var q Request
	if err := json.Unmarshal([]byte(text), &q); err != nil {
		return err
	}
	q.Addr.Password, q.Say = testserver.Password, func(string) {}
	if r, err := Find(q.Home, q.Datadir); err == nil {
		if in, err := r.Route.at(); err == nil && (in == newSide || r.Phase == Returning || r.Phase == Leaving) {
			_, err := Return(context.Background(), q, r)
			return err
		}
	}
	p, err := Look(context.Background(), q)
	if err != nil {
		return err
	}
	_, _, err = Apply(context.Background(), q, p)
	return err
}

// killsVariable says how often david is killed on each flavour.
const killsVariable = "DAVID_KILLS"

// TestMoveKilled kills david at random moments of moves and of ways back, under load: each time the server
// starts on the old place or the new one, with all that was acknowledged, and the next command goes on.
// DAVID_KILLS=25 are 50 kills, DAVID_SEED other moments.
func TestMoveKilled(t *testing.T) {
	t.Parallel()
	seed := wanted(t, "DAVID_SEED", 17)
	each(t, func(t *testing.T, s *testserver.Server, _ string) {
		usual := map[mycnf.Flavour]int{mycnf.MySQL: 2, mycnf.MariaDB: 3}
		n := wanted(t, killsVariable, usual[s.Flavour])
		q := request(t, s)
		q.ProofWithin = 0
		l := clients(t, q.Addr, 2)
		began := time.Now()
		_, out := apply(t, q)
		k := &killed{s: s, q: q, l: l, whole: time.Since(began), away: time.Duration(out.Away * float64(time.Second))}
		for i := range n {
			k.once(t, rand.New(rand.NewPCG(uint64(seed), uint64(i))))
		}
		l.stop()
		r, err := Find(q.Home, q.Datadir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Return(t.Context(), q, r); err != nil && r.Phase != Back {
			t.Errorf("the way back after all of that: %v", err)
		}
		l.check()
	})
}

func wanted(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: give a number", name, text)
	}
	return n
}

// killed is a server on which davids die.
type killed struct {
	s           *testserver.Server
	q           Request
	l           *ledger
	whole, away time.Duration // how long a move takes, and its stop
}

// once kills one david: at any moment, or in two of three cases while the server is away.
func (k *killed) once(t *testing.T, random *rand.Rand) {
	t.Helper()
	text, err := json.Marshal(k.q)
	if err != nil {
		t.Fatal(err)
	}
	before := k.steps(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asMover+"="+string(text))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	after := time.Duration(random.Int64N(int64(k.whole)))
	if random.IntN(3) > 0 {
		k.await(t, cmd.Process.Pid, before)
		after = time.Duration(random.Int64N(int64(k.away) * 3 / 4)) // what follows the start is short
	}
	time.Sleep(after)
	alive := exists(cmd.Process.Pid)
	cmd.Process.Kill()
	if cmd.Wait(); said.Len() > 0 {
		t.Errorf("david fails: %s", &said)
	}
	if random.IntN(3) == 0 { // by david, else by an administrator who knows nothing of it
		r, err := Find(k.q.Home, k.q.Datadir)
		if err == nil {
			err = Wake(t.Context(), k.q, r)
		}
		if err != nil {
			t.Error(err)
		}
	}
	phase, in := k.up(t)
	t.Logf("killed: phase %s, the data in use are on side %d; david still ran: %t", phase, in, alive)
	k.l.check()
}

// await waits until david stops the server.
func (k *killed) await(t *testing.T, pid, before int) {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
		r, err := Find(k.q.Home, k.q.Datadir)
		if err != nil {
			t.Fatal(err)
		}
		if (r.Phase == Stopping || r.Phase == Leaving) && len(r.Steps) > before || !exists(pid) {
			return
		}
	}
	t.Error("david did not stop the server")
}

// steps are those on record so far.
func (k *killed) steps(t *testing.T) int {
	r, err := Find(k.q.Home, k.q.Datadir)
	if err != nil {
		t.Fatal(err)
	}
	return len(r.Steps)
}

func exists(pid int) bool {
	stat, err := os.ReadFile(proc(pid, "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

// up starts the server as an administrator would, with nothing of david's, unless it runs.
func (k *killed) up(t *testing.T) (Phase, side) {
	t.Helper()
	r, err := Find(k.q.Home, k.q.Datadir)
	if err != nil {
		t.Fatal(err)
	}
	in, err := r.Route.at()
	if err != nil {
		t.Fatal(err)
	}
	folder := r.Route.folder(in, in)
	d := k.q.daemon(r)
	quiet := 0
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if d.answers(t.Context(), folder) == nil {
			return r.Phase, in
		}
		if quiet++; len(k.s.Processes()) > 0 { // the server that stops, or what david's own start command has begun
			quiet = 0
		}
		if quiet == 5 {
			if err := exec.Command(k.q.Start[0]).Run(); err != nil {
				t.Fatal(err)
			}
		}
	}
	log, _ := os.ReadFile(filepath.Join(filepath.Dir(k.q.Datadir), "error.log"))
	t.Fatalf("the server does not start:\n%s", log[max(0, len(log)-3000):])
	return "", oldSide
}
