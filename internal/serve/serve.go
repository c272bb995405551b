// Package serve shows david's store as pages of this machine's own browser: the experiments, each one's report, two of
// them side by side, and what is being measured while it is. It reads the store that everything else writes; what is
// being measured it reads from the record's live.jsonl, whoever began it. The only thing it starts is a tune.
//
//	guard (host, token, cookie, form) -> list | report | pair | events | tune
package serve

import (
	_ "embed" // for the assets
	"html/template"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"david/internal/plain"
	"david/internal/report"
	"david/internal/result"
)

// Options say what is shown, and how its parts are made.
type Options struct {
	Home    string                                                 // david's folder
	Host    string                                                 // that --listen names, besides loopback and plain addresses
	Load    func(dir string) (report.Data, error)                  // what a record says
	Report  func(w io.Writer, dir string) (isHTML bool, err error) // a record's report
	Program string                                                 // david itself, which tunes
}

// Site is the pages.
type Site struct {
	Options
	guard
	found   *found
	tunes   *tunes
	pages   *template.Template
	handler http.Handler
}

// New makes the pages of a store. Close ends what they have started.
func New(o Options) (*Site, error) {
	pages, err := template.New("").Parse(pagesTemplate)
	if err != nil {
		return nil, err
	}
	s := &Site{Options: o, guard: newGuard(o.Host), found: newFound(o.Load), tunes: &tunes{program: o.Program, home: o.Home}, pages: pages}
	s.handler = s.routes()
	return s, nil
}

// ServeHTTP answers who may ask.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close stops a tune that was started here, as Ctrl-C would, and waits for its end.
func (s *Site) Close() { s.tunes.close() }

// The assets.
var (
	//go:embed assets/pages.html
	pagesTemplate string
	//go:embed assets/serve.css
	ownStyle string
	//go:embed assets/serve.js
	ownScript string
	//go:embed assets/grafana.json
	grafana string
)

// Dashboard returns a dashboard of Grafana for what Metrics serves, as JSON.
func Dashboard() string { return grafana }

func (s *Site) routes() http.Handler {
	m := http.NewServeMux()
	m.HandleFunc("GET /{$}", s.list)
	m.HandleFunc("GET /found/{id}", s.foundOne)
	m.HandleFunc("GET /report/{id}", s.report)
	m.HandleFunc("GET /pair", s.pair)
	m.HandleFunc("GET /events", s.events)
	m.HandleFunc("POST /tune", s.tune)
	m.HandleFunc("POST /stop", s.stop)
	m.HandleFunc("GET /serve.css", asset("text/css; charset=utf-8", report.Style()+ownStyle))
	m.HandleFunc("GET /serve.js", asset("text/javascript; charset=utf-8", ownScript))
	m.HandleFunc("GET /chart.js", asset("text/javascript; charset=utf-8", report.ChartScript()))
	return s.guarded(m)
}

func asset(kind, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = io.WriteString(w, text) // who does not wait for it does not want it
	}
}

// folder returns that of the experiment which a request names; "" where there is none.
func (s *Site) folder(id string) string {
	if !result.ValidName(id) {
		return ""
	}
	dir := filepath.Join(s.Home, "experiments", id)
	if _, err := result.Open(dir); err != nil {
		return ""
	}
	return dir
}

// show writes a page.
func (s *Site) show(w http.ResponseWriter, code int, page string, data any) {
	var text strings.Builder
	if err := s.pages.ExecuteTemplate(&text, page, data); err != nil {
		http.Error(w, "cannot make this page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = io.WriteString(w, plain.Text(text.String())) // as of asset; records may hold what others wrote
}

// message is a page of a few words.
type message struct{ Title, Text string }

func (s *Site) refuse(w http.ResponseWriter, code int, title, text string) {
	s.show(w, code, "message", message{title, text})
}
