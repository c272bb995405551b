package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// exitsWith is "code N david ARGS...": the command must exit with N. Its output is kept in the files out and err.
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	out, errOut, got := runDavid(ts, args[2:])
	for tries := 1; tries < mostTries && want == exitDone && got == exitInvalid && disturbance(out.String()+errOut.String()); tries++ {
		awaitCalm()
		ts.Logf("the machine was busy with something else; once more:\n%s", errOut.String())
		if i := slices.Index(args, "--out"); i > 0 && i+1 < len(args) { // what a tune delivers also then, and does not overwrite
			ts.Check(os.RemoveAll(ts.MkAbs(args[i+1])))
		}
		out, errOut, got = runDavid(ts, args[2:])
	}
	ts.Check(os.WriteFile(ts.MkAbs("out"), out.Bytes(), 0o644))
	ts.Check(os.WriteFile(ts.MkAbs("err"), errOut.Bytes(), 0o644))
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, out.String(), errOut.String())
	}
}

func runDavid(ts *testscript.TestScript, args []string) (out, errOut bytes.Buffer, code int) {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), asDavid+"=1", "DAVID_HOME="+ts.Getenv("DAVID_HOME"), "HOME="+ts.Getenv("WORK"), "PATH="+ts.Getenv("PATH"),
		"MYSQL_PWD="+ts.Getenv("MYSQL_PWD"), "DAVID_MAX_STEAL="+ts.Getenv("DAVID_MAX_STEAL"))
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		ts.Fatalf("cannot run %v: %v", args, err)
	}
	return out, errOut, cmd.ProcessState.ExitCode()
}

// A command that others disturb is given again, so often at most, each time once the machine was calm for a second, or patience is over: other
// guests of a host steal CPU for a minute or so.
const (
	mostTries = 10
	patience  = 45 * time.Second
)

// awaitCalm waits for a second in which hardly any CPU time was stolen, and other processes left some of it.
func awaitCalm() {
	for began := time.Now(); time.Since(began) < patience; {
		steal, idle, all := ticks()
		time.Sleep(time.Second)
		if s, i, a := ticks(); s-steal <= 0.02*(a-all) && i-idle >= 0.4*(a-all) {
			return
		}
	}
}

// ticks are the CPU time that other guests had, that nobody had, and all there was, since the machine started
// (proc_stat(5)).
func ticks() (steal, idle, all float64) {
	text, _ := os.ReadFile("/proc/stat")
	line, _, _ := strings.Cut(string(text), "\n")
	for i, field := range strings.Fields(line) {
		n, _ := strconv.ParseFloat(field, 64) // the word "cpu" is none
		switch i {
		case 4, 5: // the disk may be waited for
			idle += n
		case 8:
			steal = n
		}
		if i <= 8 { // what follows is counted in what stands before
			all += n
		}
	}
	return steal, idle, all
}

// disturbance tells whether david withheld its verdict for what others did to the machine, which is david at its best and
// no test's subject.
func disturbance(text string) bool {
	for _, gate := range []string{"other processes: ", "steal: ", "queue: ", "clients: "} {
		if strings.Contains(text, gate) {
			return true
		}
	}
	return false
}

// jsonHas is "jsonhas FILE PATH...": each path ("trials.0.tps") leads to a value that is not null.
func jsonHas(ts *testscript.TestScript, neg bool, args []string) {
	var doc any
	dec := json.NewDecoder(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(dec.Decode(&doc))
	if dec.More() {
		ts.Fatalf("%s holds more than one JSON document", args[0])
	}
	for _, path := range args[1:] {
		if _, err := follow(doc, strings.Split(path, ".")); (err != nil) != neg {
			ts.Fatalf("%s: %v", path, err)
		}
	}
}

func follow(v any, path []string) (any, error) {
	for _, key := range path {
		switch at := v.(type) {
		case map[string]any:
			v = at[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i >= len(at) {
				return nil, fmt.Errorf("no element %s of %d", key, len(at))
			}
			v = at[i]
		default:
			v = nil
		}
		if v == nil {
			return nil, fmt.Errorf("%s is not there", key)
		}
	}
	return v, nil
}

// lines collects what a process prints and lets a test wait for a text.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func newLines() *lines { return &lines{} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// waitFor returns whether the text was seen within the time.
func (l *lines) waitFor(text string, d time.Duration) bool {
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(l.String(), text) {
			return true
		}
	}
	return false
}
