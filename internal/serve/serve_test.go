package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"david/internal/report"
	"david/internal/result"
)

// TestGuard: who has no cookie, comes by a foreign name or from a foreign page gets nothing, and starts nothing.
func TestGuard(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "started")
	s := serveStore(t, t.TempDir(), script(t, "touch "+mark))
	cookies := s.client.Jar.Cookies(mustURL(t, s.URL))
	if len(cookies) != 1 {
		t.Fatalf("%d cookies", len(cookies))
	}
	form := url.Values{"form": {s.formOf}, "choice": {"quick"}}.Encode()
	for name, c := range map[string]struct {
		method, path, host, body, cookie string
		head                             map[string]string
		want                             int
	}{
		"no cookie":          {path: "/", cookie: "-", want: 403},
		"another cookie":     {path: "/", cookie: "guess", want: 403},
		"another token":      {path: "/?token=guess", cookie: "-", want: 403},
		"an empty token":     {path: "/?token=", cookie: "-", want: 403},
		"a style unasked":    {path: "/serve.css", cookie: "-", want: 403},
		"events unasked":     {path: "/events", cookie: "-", want: 403},
		"rebound":            {path: "/", host: "evil.example", want: 421},
		"rebound with token": {path: "/?token=" + s.Token(), host: "evil.example:8080", cookie: "-", want: 421},
		"localhost":          {path: "/serve.css", host: "localhost:8080", cookie: "-", want: 403}, // of another port
		"no form":            {method: "POST", path: "/tune", body: "choice=quick", want: 403},
		"a guessed form":     {method: "POST", path: "/tune", body: "choice=quick&form=guess", want: 403},
		"form in the URL":    {method: "POST", path: "/tune?" + form, want: 403},
		"from another site":  {method: "POST", path: "/tune", body: form, head: map[string]string{"Sec-Fetch-Site": "cross-site"}, want: 403},
		"from another port":  {method: "POST", path: "/tune", body: form, head: map[string]string{"Sec-Fetch-Site": "same-site"}, want: 403},
		"of another origin":  {method: "POST", path: "/tune", body: form, head: map[string]string{"Origin": "http://evil.example"}, want: 403},
		"of a sandbox":       {method: "POST", path: "/tune", body: form, head: map[string]string{"Origin": "null"}, want: 403},
		"an endless form":    {method: "POST", path: "/tune", body: form + "&x=" + strings.Repeat("x", mostForm), want: 403},
		"no tune by GET":     {path: "/tune", want: 405},
		"an argument":        {method: "POST", path: "/tune", body: strings.Replace(form, "quick", "--help", 1), want: 400},
		"out of the store":   {path: "/report/..%2F..%2Fetc", want: 404},
		"no such experiment": {path: "/report/none", want: 404},
		"one of two":         {path: "/pair?run=none", want: 400},
	} {
		r := httptest.NewRequest(orGet(c.method), s.URL+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		if c.host != "" {
			r.Host = c.host
		}
		switch c.cookie {
		case "":
			r.AddCookie(cookies[0])
		case "guess":
			r.AddCookie(&http.Cookie{Name: cookies[0].Name, Value: "guess"})
		}
		for k, v := range c.head {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		s.Site.ServeHTTP(w, r)
		if w.Code != c.want || strings.Contains(w.Body.String(), s.formOf) {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
		if w.Header().Get("Content-Security-Policy") == "" {
			t.Errorf("%s: no policy", name)
		}
	}
	if s.tunes.state() != (tuning{}) {
		t.Errorf("started: %+v", s.tunes.state())
	}
	if _, err := os.Stat(mark); err == nil {
		t.Error("a program was run")
	}
}

func orGet(method string) string {
	if method == "" {
		return http.MethodGet
	}
	return method
}

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// TestCookie: scripts cannot read it, and no other site's page sends it.
func TestCookie(t *testing.T) {
	t.Parallel()
	s := serveStore(t, t.TempDir(), "")
	w := httptest.NewRecorder()
	s.Site.ServeHTTP(w, httptest.NewRequest("GET", s.URL+"/?token="+s.Token(), nil))
	c := w.Result().Cookies()
	if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Value == s.Token() || w.Header().Get("Location") != "/" {
		t.Errorf("%+v, %q", c, w.Header())
	}
}

// listen reads events until enough says so.
func (s *served) listen(t *testing.T, last string, enough func(event, id, data string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", last)
	got, err := s.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	var event, id, data string
	for lines := bufio.NewScanner(got.Body); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ": ")
		switch key {
		case "event":
			event = value
		case "id":
			id = value
		case "data":
			data = value
		case "":
			if event != "" && enough(event, id, data) {
				return
			}
			event, id, data = "", "", ""
		}
	}
	t.Fatal("no more events")
}

// TestEvents: whoever was cut off, at any moment, gets every second once, also those after the end of the run.
func TestEvents(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := serveStore(t, home, "")
	store := put(t, home, "compare-1", 1, 2)
	const seconds = 60
	for n := range seconds {
		if err := store.Note(result.Moment{At: time.Now(), Arm: "control", Point: &result.Point{Second: n, TPS: 100, P95: 20}}); err != nil {
			t.Fatal(err)
		}
	}
	var got []int
	last := ""
	second := func(want int) func(event, id, data string) bool {
		return func(event, id, data string) bool {
			var m result.Moment
			if event != "moment" {
				return false
			}
			if err := json.Unmarshal([]byte(data), &m); err != nil || m.Point == nil {
				t.Errorf("%s: %v", data, err)
				return true
			}
			got, last = append(got, m.Point.Second), id
			return m.Point.Second == want
		}
	}
	s.listen(t, last, second(20))
	s.listen(t, last, second(21))
	if err := store.Finish(result.Finish{}); err != nil {
		t.Fatal(err)
	}
	s.listen(t, last, second(seconds-1))
	if len(got) != seconds {
		t.Errorf("%d of %d seconds: %v", len(got), seconds, got)
	}
	for n, second := range got {
		if n != second {
			t.Fatalf("second %d came as number %d: %v", second, n, got)
		}
	}
	s.listen(t, last, func(event, _, data string) bool {
		var st state
		return event == "state" && json.Unmarshal([]byte(data), &st) == nil && st.Ended == "compare-1" && st.Run == ""
	})
	for _, id := range []string{"../x:1", "none:5", "compare-1:-5", "compare-1:99999999999999999999", "compare-1:9223372036854775807", ":", "compare-1"} {
		s.listen(t, id, func(event, _, _ string) bool { return event == "state" })
	}
}

// TestTune: a tune of fixed choices is started once, stopped as by Ctrl-C, and what it said is kept.
func TestTune(t *testing.T) {
	t.Parallel()
	s := serveStore(t, t.TempDir(), script(t, `trap 'echo stopped in good order; exit 130' INT`, `echo "$@ in $DAVID_HOME"`, `while :; do sleep 0.05; done`))
	if code, text := s.post(t, "/tune", "long"); code != 200 {
		t.Fatalf("%d: %s", code, text)
	}
	if got := s.tunes.state(); !got.On || got.What != "david tune --budget 40m" {
		t.Errorf("%+v", got)
	}
	if code, _ := s.post(t, "/tune", "quick"); code != http.StatusConflict {
		t.Errorf("a second one: %d", code)
	}
	s.stopped(t, func() {
		if code, text := s.post(t, "/stop", ""); code != 200 {
			t.Errorf("%d: %s", code, text)
		}
	}, "tune --budget 40m in "+s.Home, "stopped in good order", "exit status 130")
	if code, _ := s.post(t, "/stop", ""); code != http.StatusConflict {
		t.Errorf("stopped again: %d", code)
	}
	if code, _ := s.post(t, "/tune", "quick"); code != 200 {
		t.Fatalf("after it: %d", code)
	}
	s.stopped(t, s.Site.Close, "tune --quick", "stopped in good order") // as david serve ends
}

// stopped waits for the end of the tune that something stops, and looks at what it said. A shell sets its trap a moment
// after it was started: until it has said something it is waited for.
func (s *served) stopped(t *testing.T, stop func(), want ...string) {
	t.Helper()
	for s.tunes.printed() == "" {
		time.Sleep(10 * time.Millisecond)
	}
	ended := s.tunes.ended
	stop()
	<-ended
	for _, w := range want {
		if got := s.tunes.state(); got.On || !strings.Contains(got.Said, w) {
			t.Errorf("%+v, want %q", got, w)
		}
	}
}

// printed is what the running tune has printed.
func (t *tunes) printed() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.said.String()
}

// TestTuneFails: what cannot be started is told.
func TestTuneFails(t *testing.T) {
	t.Parallel()
	s := serveStore(t, t.TempDir(), "/nowhere/david")
	if code, text := s.post(t, "/tune", "quick"); code != http.StatusConflict || !strings.Contains(text, "no such file") {
		t.Errorf("%d: %s", code, text)
	}
}

// TestHostileRecord: what others wrote into a record is text on the page, visible as it is, and asks nothing.
func TestHostileRecord(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := serveStore(t, home, "")
	evil := "<img src=x onerror=alert(1)>\u001b[31m\u202e"
	if _, err := result.Create(filepath.Join(home, "experiments", "evil"), result.Experiment{Kind: result.Kind(evil), Server: result.Server{Version: evil}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(home, "experiments", "evil", "live.jsonl"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/report/evil", "/pair?run=evil&run=evil"} {
		if _, text := s.get(t, path); strings.Contains(text, "<img") || strings.ContainsAny(text, "\u001b\u202e") {
			t.Errorf("%s: %.500s", path, text)
		}
	}
	if _, text := s.get(t, "/"); !strings.Contains(text, "&lt;img src=x onerror=alert(1)&gt;\\u001b[31m\\u202e") {
		t.Errorf("the list: %s", text)
	}
	s.listen(t, "evil:0", func(event, _, _ string) bool { return event == "state" })
}

// TestOneRecordAtATime: a record may take all the memory that there is for one, so that no two pages read one each.
func TestOneRecordAtATime(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := serveStore(t, home, "")
	ended(t, home, "compare-1", 1, 2)
	ended(t, home, "compare-2", 2, 2)
	var reading atomic.Int32
	alone := func() func() {
		if reading.Add(1) > 1 {
			t.Error("two records are read at once")
		}
		time.Sleep(20 * time.Millisecond)
		return func() { reading.Add(-1) }
	}
	s.Load = func(dir string) (report.Data, error) { defer alone()(); return load(dir) }
	s.Report = func(io.Writer, string) (bool, error) { defer alone()(); return true, nil }
	s.found.load = s.Load
	var pages sync.WaitGroup
	for range 3 {
		for _, path := range []string{"/report/compare-1", "/found/compare-1", "/found/compare-2", "/pair?run=compare-1&run=compare-2"} {
			pages.Go(func() {
				if code, text := s.get(t, path); code != http.StatusOK {
					t.Errorf("%s: %d %s", path, code, text)
				}
			})
		}
	}
	pages.Wait()
}

// TestFound: what an experiment found is told, but worked out by nobody while something is measured.
func TestFound(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	s := serveStore(t, home, "")
	ended(t, home, "compare-1", 1, 2)
	on := put(t, home, "compare-2", 2, 1)
	if err := on.Note(result.Moment{}); err != nil {
		t.Fatal(err)
	}
	if _, text := s.get(t, "/found/compare-1"); !strings.Contains(text, `"later":true`) {
		t.Errorf("while something is measured: %s", text)
	}
	if err := on.Finish(result.Finish{}); err != nil {
		t.Fatal(err)
	}
	if _, text := s.get(t, "/found/compare-1"); !strings.Contains(text, `"big":"tuned: 2.00x"`) || !strings.Contains(text, `"tone":"gain"`) {
		t.Errorf("afterwards: %s", text)
	}
}
