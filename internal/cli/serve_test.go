package cli

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"david/internal/result"
	"david/internal/testbrowser"
)

// address starts david serve and returns the address that it prints.
func address(t *testing.T, home string) (*exec.Cmd, string) {
	t.Helper()
	cmd := at{home: home, dir: t.TempDir()}.command("serve")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill() // the test has failed
			_ = cmd.Wait()
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line)
}

// page starts david serve and returns where it is, and who has its cookie.
func page(t *testing.T, home string) (*exec.Cmd, string, *http.Client) {
	t.Helper()
	cmd, line := address(t, home)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	if text := fetch(t, client, line); !strings.Contains(text, "Experiments") {
		t.Fatalf("%s gives %s", line, text)
	}
	base, _, _ := strings.Cut(line, "/?")
	return cmd, base, client
}

func fetch(t *testing.T, client *http.Client, address string) string {
	t.Helper()
	got, err := client.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestServe: a bench that somebody else began is seen second by second, by the page and by --metrics; Ctrl-C ends the page.
func TestServe(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	cmd, base, client := page(t, home)
	bench, seen := spawn(t, home, append([]string{"bench", "--server", "mariadb", "--metrics", "127.0.0.1:0"}, append(small, "--time", "6s")...)...)
	if !seen.waitFor("/metrics", time.Minute) {
		t.Fatalf("no figures: %s", seen)
	}
	events, err := client.Get(base + "/events")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	figures, points, ended := "", 0, false
	for lines := bufio.NewScanner(events.Body); !ended && lines.Scan(); {
		if strings.Contains(lines.Text(), `"point":`) && !strings.Contains(lines.Text(), `"warm":true`) {
			if points++; points == 2 {
				figures = fetch(t, client, regexp.MustCompile(`http://\S+/metrics`).FindString(seen.String()))
			}
		}
		ended = strings.Contains(lines.Text(), `"ended":"bench-`)
	}
	if kept := secondsOf(t, home); points != kept || kept < 4 { // on a busy machine sysbench itself may pass one over
		t.Errorf("%d seconds were told, and %d are in the record", points, kept)
	}
	for _, want := range []string{"david_measuring 1", `kind="bench"`, `david_transactions_per_second{arm="`} {
		if !strings.Contains(figures, want) {
			t.Errorf("no %s in the figures:\n%s", want, figures)
		}
	}
	_ = bench.Wait()                                                                    // its code says it
	if code := bench.ProcessState.ExitCode(); code != exitDone && code != exitInvalid { // on a busy machine a gate may fail
		t.Errorf("bench: exit code %d\n%s", code, seen)
	}
	if text := fetch(t, client, base+"/"); !strings.Contains(text, `href="/report/bench-`) {
		t.Errorf("the list has no bench: %s", text)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("david serve ends with %v", err)
	}
}

// TestServeIdles: with a page open in a browser and nothing measured, david serve takes next to nothing of the CPUs.
func TestServeIdles(t *testing.T) {
	t.Parallel()
	cmd, line := address(t, testHome(t))
	browser := testbrowser.New(t)
	browser.Run(t, chromedp.Navigate(line), chromedp.WaitReady("footer"))
	const watched, most = 10 * time.Second, 0.05 // of a core; 0.01 is what is aimed at
	before := cpuTime(t, cmd.Process.Pid)
	time.Sleep(watched)
	took := cpuTime(t, cmd.Process.Pid) - before
	share := took.Seconds() / watched.Seconds()
	if t.Logf("%.2f %% of a core in %v", 100*share, watched); share > most {
		t.Errorf("david serve takes %.1f %% of a core with nothing to do", 100*share)
	}
	var open bool
	if browser.Eval(t, `document.querySelector('footer') !== null`, &open); !open {
		t.Error("the page was not open all the time")
	}
}

// cpuTime is what a process had of the CPUs so far.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	const tick = 10 * time.Millisecond // USER_HZ
	fields, sum := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])), 0
	for _, field := range fields[11:13] { // utime, stime: the 14th and the 15th of proc(5)
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return time.Duration(sum) * tick
}

// secondsOf counts the measured seconds in the record of the newest bench.
func secondsOf(t *testing.T, home string) (n int) {
	t.Helper()
	store, err := result.Open(filepath.Join(home, "experiments", newest(t, home, result.KindBench)))
	if err != nil {
		t.Fatal(err)
	}
	trials, err := store.Trials()
	if err == nil {
		trials, err = store.WithPoints(trials)
	}
	if err != nil || len(trials) != 1 {
		t.Fatalf("%d trials, %v", len(trials), err)
	}
	for _, p := range trials[0].Points {
		if !p.Warm {
			n++
		}
	}
	return n
}

// TestServeKilled: a tune that was started by the page ends in good order when david serve is killed.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	cmd, base, client := page(t, home)
	form := regexp.MustCompile(`name="form" value="([^"]+)"`).FindStringSubmatch(fetch(t, client, base+"/"))
	got, err := client.PostForm(base+"/tune", url.Values{"form": {form[1]}, "choice": {"quick"}})
	if err != nil {
		t.Fatal(err)
	}
	got.Body.Close()
	if got.StatusCode != http.StatusOK {
		t.Fatalf("%s", got.Status)
	}
	lock := filepath.Join(home, "measurement.lock")
	await(t, "the tune does not start", func() bool { text, _ := os.ReadFile(lock); return strings.Contains(string(text), "david tune") })
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed
	await(t, "the tune outlives david serve", func() bool { return free(lock) })
	await(t, "something is left", func() bool { return len(unreaped(home)) == 0 })
	if dir, err := result.Running(home); dir != "" || err != nil {
		t.Errorf("%q is on, %v", dir, err)
	}
}

// await waits until something holds.
func await(t *testing.T, otherwise string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(otherwise)
		}
	}
}

// free tells whether nobody holds a lock file.
func free(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil
}

// TestServeRefuses: addresses that cannot be, before anything is done.
func TestServeRefuses(t *testing.T) {
	t.Parallel()
	home := testHome(t)
	for _, args := range [][]string{{"serve", "--listen", "8080"}, {"serve", "--listen", "203.0.113.1:1"}, {"serve", "--metrics", "nowhere"}, {"bench", "--metrics", "127.0.0.1:99999"}} {
		if _, errOut, code := david(t, home, args...); code != exitUsage || !strings.Contains(errOut, args[1]) {
			t.Errorf("%q: exit code %d: %s", args, code, errOut)
		}
	}
}
