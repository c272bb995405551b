package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"david/internal/lab"
)

// exitsWith is "code N david ARGS...": the command must exit with N. Its output is kept in the files out and
// err, and on one line, whatever the width that david writes for, in out.flat and err.flat. "code 0? david ARGS..."
// is for what has to be measured, and may be invalid where the machine is disturbed.
func exitsWith(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARGS...")
	}
	text, invalidToo := strings.CutSuffix(args[0], "?")
	want, err := strconv.Atoi(text)
	ts.Check(err)
	out, errOut, got := runDavid(ts, args[2:])
	for tries := 1; tries < mostTries && want == exitDone && got == exitInvalid && late(out.String()+errOut.String()); tries++ {
		ts.Logf("the machine did not keep up with the load; once more:\n%s", errOut.String())
		out, errOut, got = runDavid(ts, args[2:])
	}
	for name, said := range map[string]*bytes.Buffer{"out": &out, "err": &errOut} {
		ts.Check(os.WriteFile(ts.MkAbs(name), said.Bytes(), 0o644))
		ts.Check(os.WriteFile(ts.MkAbs(name+".flat"), []byte(strings.Join(strings.Fields(said.String()), " ")), 0o644))
	}
	if got != want && !(invalidToo && got == exitInvalid) {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, out.String(), errOut.String())
	}
}

func runDavid(ts *testscript.TestScript, args []string) (out, errOut bytes.Buffer, code int) {
	a := at{home: ts.Getenv("DAVID_HOME"), dir: ts.Getenv("WORK"), env: []string{"HOME=" + ts.Getenv("WORK")}}
	for _, name := range []string{"PATH", "MYSQL_PWD", lab.StealVariable} {
		a.env = append(a.env, name+"="+ts.Getenv(name))
	}
	cmd := a.command(args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		ts.Fatalf("cannot run %v: %v", args, err)
	}
	return out, errOut, cmd.ProcessState.ExitCode()
}

// mostTries has a command whose open loop a busy machine may not keep up with.
const mostTries = 10

// late tells whether david withheld its verdict because of that, which no limit of a gate can allow: what the
// load waited for is its latency.
func late(text string) bool { return strings.Contains(text, "queue: ") }

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
