// Package hostile holds david against what somebody might give it to get a setting of the durability lock past it, to
// take its memory or time, or to write where it should not: option files, flags, records, names, specs and manifests, by
// hand (testdata) and generated from a seed. Each case is one command line of david, in a process of its own.
package hostile

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"david/internal/cli"
	"david/internal/mycnf"
	"david/internal/plain"
	"david/internal/server"
	"david/internal/testserver"
)

const (
	// asDavid makes the test binary be david, which then writes the most memory it had into the file that it names.
	asDavid = "DAVID_HOSTILE_AS_DAVID"
	// all says that every case is to be run, not a tenth of them; seed makes other cases.
	all  = "DAVID_HOSTILE"
	seed = "DAVID_HOSTILE_SEED"
	// least is how many cases there have to be.
	least = 2000
)

func TestMain(m *testing.M) {
	if path := os.Getenv(asDavid); path != "" {
		code := cli.Main(cli.Build{Version: "dev"})
		if most, err := peak(); err == nil && strings.HasPrefix(path, "/") {
			os.WriteFile(path, []byte(most), 0o600)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// peak is the most memory this process ever had, in KiB.
func peak() (string, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return "", err
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	return strings.Fields(after)[0], nil
}

// hostile is one case.
type hostile struct {
	class, name string
	files       map[string]string // what is in the case's folder, by path
	prepare     func(dir string) error
	args        []string // {dir} is the case's folder, {home} david's
	stdin       string
	secret      string // that nothing printed may have
	codes       []int  // it may exit with; refused ones are 2, 3 and 4
	// lock holds what david said, which is refused or taken, against the real server; "" is all well.
	lock func(*david, seen) string
}

// seen is what came of a case.
type seen struct {
	hostile
	dir, home, out, err string
	code, memory        int // KiB
}

// id names a case, for the terminal and for the choice of a tenth.
func (h hostile) id() string { return h.class + "/" + h.name }

// david runs cases, in homes of its own.
type david struct {
	t     *testing.T
	root  string
	homes chan string
	mu    sync.Mutex
	help  map[string]testserver.Help
	bin   map[mycnf.Flavour]server.Binary
	// refused and unlocked count the cases that david refused, and those in which a server had the lock not hold.
	refused, unlocked int
}

// cases lists all of them: the same for the same seed.
func cases(number uint64) []hostile {
	return slices.Concat(optionFiles(number), settings(number), records(number), names(number), specs(number), manifests(number), noFiles())
}

// TestHostile runs a tenth of the cases, drawn by the seed; all of them with DAVID_HOSTILE=all, and those whose name has
// the text of DAVID_HOSTILE otherwise.
func TestHostile(t *testing.T) {
	t.Parallel()
	number, err := strconv.ParseUint(cmp.Or(os.Getenv(seed), "1"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	list := cases(number)
	if len(list) < least {
		t.Errorf("%d cases, want %d", len(list), least)
	}
	unique(t, list)
	d := newDavid(t)
	ran, held := map[string]int{}, map[string]int{}
	var mu sync.Mutex
	work := make(chan hostile)
	var done sync.WaitGroup
	for range cap(d.homes) {
		done.Go(func() {
			for h := range work {
				why := d.try(h)
				mu.Lock()
				ran[h.class]++
				if why == "" {
					held[h.class]++
				} else {
					t.Errorf("%s: %s", h.id(), why)
				}
				mu.Unlock()
			}
		})
	}
	for _, h := range list {
		if chosen(h, os.Getenv(all), number) {
			work <- h
		}
	}
	close(work)
	done.Wait()
	d.left()
	total := 0
	for _, class := range slices.Sorted(maps.Keys(ran)) {
		t.Logf("%-28s %4d ran, %4d held", class, ran[class], held[class])
		total += ran[class]
	}
	t.Logf("%-28s %4d ran of %d; david refused %d; in %d a real server would not have kept the lock", "all classes", total, len(list), d.refused, d.unlocked)
	if os.Getenv(all) == "all" && (d.unlocked < total/20 || d.refused < total/3 || d.refused == total) {
		t.Error("these cases are no fair mixture")
	}
}

func unique(t *testing.T, list []hostile) {
	t.Helper()
	there := map[string]bool{}
	for _, h := range list {
		if there[h.id()] {
			t.Errorf("two cases are called %s", h.id())
		}
		there[h.id()] = true
	}
}

// chosen tells whether a case is one of those that are run.
func chosen(h hostile, which string, number uint64) bool {
	switch which {
	case "":
		sum := fnv.New32a()
		fmt.Fprint(sum, number, h.id())
		return sum.Sum32()%10 == 0
	case "all":
		return true
	}
	return strings.Contains(h.id(), which)
}

func newDavid(t *testing.T) *david {
	t.Helper()
	root, err := os.MkdirTemp("", "david-hostile-")
	if err == nil {
		err = os.Chmod(root, 0o711)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	d := &david{t: t, root: root, homes: make(chan string, max(2, runtime.NumCPU())), help: map[string]testserver.Help{}, bin: map[mycnf.Flavour]server.Binary{}}
	for _, f := range flavours() {
		d.bin[f] = testserver.Find(t, string(f))
	}
	for i := range cap(d.homes) {
		d.homes <- d.newHome(fmt.Sprint("home", i))
	}
	return d
}

func flavours() []mycnf.Flavour { return []mycnf.Flavour{mycnf.MySQL, mycnf.MariaDB} }

// newHome makes a home of david's, whose measurement somebody else makes: what david would measure, it does not begin.
func (d *david) newHome(name string) string {
	home := filepath.Join(d.root, name)
	err := os.Mkdir(home, 0o700)
	if installed := filepath.Join(server.Home(os.Getenv), "servers"); err == nil {
		if _, missing := os.Stat(installed); missing == nil {
			err = os.Symlink(installed, filepath.Join(home, "servers"))
		}
	}
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(filepath.Join(home, "measurement.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	}
	if err == nil {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { f.Close() })
	return home
}

// try runs a case, and says why it does not hold; "" where it does.
func (d *david) try(h hostile) string {
	home := <-d.homes
	defer func() { d.homes <- home }()
	dir, err := os.MkdirTemp(d.root, "case")
	if err != nil {
		return err.Error()
	}
	defer os.RemoveAll(dir)
	if err := h.lay(dir, home); err != nil {
		return err.Error()
	}
	before := inventory(d.root, home)
	s, why := h.run(dir, home)
	if !s.taken() {
		d.mu.Lock()
		d.refused++
		d.mu.Unlock()
	}
	switch {
	case why != "":
	case s.unsound() != "":
		why = s.unsound()
	case h.lock != nil:
		why = h.lock(d, s)
	}
	if left := inventory(d.root, home); why == "" && left != before {
		why = fmt.Sprintf("left behind:\n%s\nbefore:\n%s", left, before)
	}
	if why == "" {
		return ""
	}
	return fmt.Sprintf("%s\nargs %q, exit code %d, %d KiB\nfiles %.600q\nout %.400q\nerr %.600q", why, h.args, s.code, s.memory, h.files, s.out, s.err)
}

// lay writes a case's files.
func (h hostile) lay(dir, home string) error {
	err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700)
	for name, text := range h.files {
		path := filepath.Join(dir, name)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, []byte(fill(text, dir, home)), 0o600)
		}
	}
	if err == nil && h.prepare != nil {
		err = h.prepare(dir)
	}
	return err
}

func fill(text, dir, home string) string {
	return strings.NewReplacer("{dir}", dir, "{home}", home).Replace(text)
}

// deadline ends a david that does not end; no case takes a fraction of it.
const deadline = 2 * time.Minute

// run runs david. why says that it did not end as a command does.
func (h hostile) run(dir, home string) (s seen, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	args := slices.Clone(h.args)
	for i := range args {
		args[i] = fill(args[i], dir, home)
	}
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	memory := filepath.Join(dir, "memory")
	cmd.Env = append(os.Environ(), asDavid+"="+memory, "DAVID_HOME="+home, "HOME="+dir, "TMPDIR="+filepath.Join(dir, "tmp"))
	cmd.Dir, cmd.Stdin, cmd.WaitDelay = dir, strings.NewReader(h.stdin), 10*time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	out, errOut := &bounded{}, &bounded{}
	cmd.Stdout, cmd.Stderr = out, errOut
	err := cmd.Run()
	s = seen{hostile: h, dir: dir, home: home, out: out.String(), err: errOut.String()}
	if cmd.ProcessState == nil {
		return s, fmt.Sprint("david cannot be run: ", err)
	}
	s.code = cmd.ProcessState.ExitCode()
	if ctx.Err() != nil {
		return s, "it did not end"
	}
	text, err := os.ReadFile(memory)
	if err != nil {
		return s, "it fell over: " + err.Error()
	}
	os.Remove(memory)
	s.memory, err = strconv.Atoi(string(text))
	if err != nil {
		return s, err.Error()
	}
	return s, ""
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	if room := 4<<20 - b.Len(); room > 0 {
		b.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// mostMemory bounds what a case may take, in KiB: what an idle david takes as this test binary, and 64 MiB.
const mostMemory = (64 + 64) << 10

// unsound says what no case may do.
func (s seen) unsound() string {
	codes := s.codes
	if codes == nil {
		codes = []int{0, 2, 3, 4}
	}
	switch {
	case strings.Contains(s.err, "panic:") || strings.Contains(s.err, "goroutine "):
		return "it panicked"
	case s.busy():
	case !slices.Contains(codes, s.code):
		return fmt.Sprintf("exit code %d, want one of %v", s.code, codes)
	case s.code != 0 && s.err == "":
		return "it refused without a word"
	}
	switch {
	case s.memory > mostMemory:
		return fmt.Sprintf("it took %d MiB", s.memory>>10)
	case s.secret != "" && strings.Contains(s.out+s.err, s.secret):
		return "it printed a secret"
	case plain.Text(s.out) != s.out || plain.Text(s.err) != s.err:
		return "it printed control characters"
	}
	return ""
}

// busy tells whether david took all it was given, and ended where it would have begun to measure.
func (s seen) busy() bool { return strings.Contains(s.err, "is at work") }

// taken tells whether david took what it was given.
func (s seen) taken() bool { return s.code == 0 || s.busy() }

// inventory lists what is in the root but for cases' own folders, and in a home: where david may not leave anything new.
func inventory(root, home string) string {
	var list []string
	for _, dir := range []string{root, home, filepath.Join(home, "run"), filepath.Join(home, "experiments")} {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if !strings.HasPrefix(e.Name(), "case") {
				list = append(list, filepath.Join(dir, e.Name()))
			}
		}
	}
	return strings.Join(list, "\n")
}

// left looks for processes that davids of the cases left behind.
func (d *david) left() {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		d.t.Error(err)
	}
	for _, e := range entries {
		environ, err := os.ReadFile("/proc/" + e.Name() + "/environ")
		if err == nil && bytes.Contains(environ, []byte("DAVID_HOME="+d.root)) {
			d.t.Errorf("left behind: process %s", e.Name())
		}
	}
}

// asks is what a server of the flavour says of options, with --verbose --help.
func (d *david) asks(f mycnf.Flavour, key string, options ...string) testserver.Help {
	d.mu.Lock()
	h, there := d.help[string(f)+key]
	d.mu.Unlock()
	if there && key != "" {
		return h
	}
	h = testserver.AskHelp(context.Background(), d.bin[f], d.root, options...)
	d.mu.Lock()
	d.help[string(f)+key] = h
	d.mu.Unlock()
	return h
}

// asksFile is that of an option file.
func (d *david) asksFile(f mycnf.Flavour, key, path string) testserver.Help {
	return d.asks(f, key, "--defaults-file="+path)
}

// validates has MySQL look at a file as if it started, names that --help does not mind among it; what is wrong is "" where
// nothing is, and for MariaDB, which has no such option.
func (d *david) validates(f mycnf.Flavour, path string) (wrong string) {
	if f == mycnf.MariaDB {
		return ""
	}
	b := d.bin[f]
	argv := append(slices.Clone(b.Launch), "--defaults-file="+path, "--validate-config")
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	if os.Geteuid() == 0 {
		argv = append(argv, "--user=root")
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = d.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("%v: %.800s", err, out)
	}
	return ""
}

// unsafe names the members of the lock that do not hold by a server's own word. What it has without being told is safe,
// whatever it calls it.
func (d *david) unsafe(f mycnf.Flavour, h testserver.Help) (names []string) {
	empty := d.asks(f, "--no-defaults", "--no-defaults")
	for _, v := range mycnf.CheckLock(f, h.Values) {
		if got := h.Values[v.Name]; got != "" && got != empty.Values[v.Name] {
			names = append(names, v.Name)
		}
	}
	if len(names) > 0 {
		d.mu.Lock()
		d.unlocked++
		d.mu.Unlock()
	}
	return names
}
