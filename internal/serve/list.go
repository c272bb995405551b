package serve

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"david/internal/plain"
	"david/internal/report"
	"david/internal/result"
)

// verdict is what was found by an experiment.
type verdict struct {
	Big   string `json:"big"` // a few words
	Rest  string `json:"rest"`
	Sure  string `json:"sure"`
	Tone  string `json:"tone"`            // gain, none or invalid
	Later bool   `json:"later,omitempty"` // something is measured meanwhile
}

// found works out what experiments have found, one after the other, as that takes up to a second of a CPU for each, and
// remembers it.
type found struct {
	load  func(dir string) (report.Data, error)
	work  sync.Mutex // held by who reads a record: one may take all the memory there is for it
	mu    sync.Mutex // guards known
	known map[string]remembered
}

// remembered is a verdict, and what the record looked like that it is of.
type remembered struct {
	of [4]int64
	verdict
}

func newFound(load func(dir string) (report.Data, error)) *found {
	return &found{load: load, known: map[string]remembered{}}
}

// look tells one state of a record from another: by when and how trials, changes and its end were written.
func look(dir string) (of [4]int64) {
	for i, name := range []string{"trials.jsonl", "finish.json", "changes.jsonl", result.LiveTuneFile} {
		if info, err := os.Stat(filepath.Join(dir, name)); err == nil {
			of[i] = info.ModTime().UnixNano() + info.Size()
		}
	}
	return of
}

// now returns a verdict that is remembered.
func (f *found) now(dir string) (verdict, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, ok := f.known[dir]
	return known.verdict, ok && known.of == look(dir)
}

// of returns what an experiment has found.
func (f *found) of(dir string) (verdict, error) {
	f.work.Lock()
	defer f.work.Unlock()
	if v, ok := f.now(dir); ok {
		return v, nil
	}
	state := look(dir)
	d, err := f.load(dir)
	if err != nil {
		return verdict{}, err
	}
	h := report.Build(d).Headline
	v := verdict{Big: plain.Line(h.Big), Rest: plain.Line(h.Rest), Sure: plain.Line(h.Sure), Tone: h.Tone}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.known[dir] = remembered{state, v}
	return v, nil
}

// listed is an experiment of the list.
type listed struct {
	result.Summary
	Verdict *verdict // nil where it is not known yet
	Running bool
}

// listPage fills the list.
type listPage struct {
	Home    string
	Form    string // what forms of these pages carry
	Choices []choice
	Runs    []listed
	Error   string
}

// list is the first page.
func (s *Site) list(w http.ResponseWriter, r *http.Request) {
	p := listPage{Home: s.Home, Form: s.formOf, Choices: choices()}
	all, err := result.List(s.Home)
	running, second := result.Running(s.Home)
	for _, e := range []error{err, second} {
		if e != nil {
			p.Error = e.Error()
		}
	}
	for _, sum := range all {
		one := listed{Summary: sum, Running: sum.Dir == running}
		if v, ok := s.found.now(sum.Dir); ok {
			one.Verdict = &v
		}
		p.Runs = append(p.Runs, one)
	}
	s.show(w, http.StatusOK, "list", p)
}

// Server names the server of an experiment.
func (l listed) ServerName() string { return string(l.Server.Flavour) + " " + l.Server.Version }

// When is the date of an experiment, for people and for programs.
func (l listed) When() string     { return l.Created.Format("2 Jan 2006, 15:04") }
func (l listed) DateTime() string { return l.Created.Format(time.RFC3339) }

// State says how far an experiment got; "" where it has ended as it should.
func (l listed) State() string {
	switch {
	case l.Err != "":
		return "unreadable: " + l.Err
	case l.Running:
		return "running"
	case !l.Finished:
		return "interrupted"
	case l.Failed:
		return "failed before its first trial"
	}
	return ""
}

// Ask tells whether the page is to ask for the verdict.
func (l listed) Ask() bool { return l.Verdict == nil && l.Err == "" && l.Trials > 0 && !l.Running }

// foundOne gives a verdict as JSON. While something is measured nothing is worked out: it would be part of what is
// measured.
func (s *Site) foundOne(w http.ResponseWriter, r *http.Request) {
	dir := s.folder(r.PathValue("id"))
	if dir == "" {
		http.NotFound(w, r)
		return
	}
	v, known := s.found.now(dir)
	if !known {
		running, err := result.Running(s.Home)
		if err == nil && running != "" {
			v, known = verdict{Later: true}, true
		}
	}
	if !known {
		var err error
		if v, err = s.found.of(dir); err != nil {
			v = verdict{Rest: plain.Line(err.Error()), Tone: "invalid"}
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // as of asset
}

// reportPolicy shuts a report off: it was made from what others may have written. What it may do is in itself.
const reportPolicy = "sandbox allow-scripts; frame-ancestors 'none'"

// report is what `david report` writes.
func (s *Site) report(w http.ResponseWriter, r *http.Request) {
	dir := s.folder(r.PathValue("id"))
	if dir == "" {
		s.refuse(w, http.StatusNotFound, "No such experiment", "david's folder holds none of that name.")
		return
	}
	text, isHTML, err := s.reportOf(dir)
	if err != nil {
		s.refuse(w, http.StatusInternalServerError, "This record cannot be shown", err.Error())
		return
	}
	w.Header().Set("Content-Security-Policy", reportPolicy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if !isHTML {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	}
	_, _ = io.WriteString(w, text) // as of asset
}

// reportOf has the report of an experiment ready, while no other record is read.
func (s *Site) reportOf(dir string) (text string, isHTML bool, err error) {
	s.found.work.Lock()
	defer s.found.work.Unlock()
	var b strings.Builder
	isHTML, err = s.Report(&b, dir)
	return plain.Text(b.String()), isHTML, err
}

// pairPage fills the page of two experiments.
type pairPage struct {
	A, B string
	Rows []report.TwoValues
}

// pair puts two experiments side by side.
func (s *Site) pair(w http.ResponseWriter, r *http.Request) {
	ids := r.URL.Query()["run"]
	if len(ids) != 2 {
		s.refuse(w, http.StatusBadRequest, "Two experiments", "Pick two of the list.")
		return
	}
	var dirs [2]string
	for i, id := range ids {
		if dirs[i] = s.folder(id); dirs[i] == "" {
			s.refuse(w, http.StatusNotFound, "No such experiment", "david's folder holds none of that name.")
			return
		}
	}
	rows, err := s.beside(dirs)
	if err != nil {
		s.refuse(w, http.StatusInternalServerError, "This record cannot be shown", err.Error())
		return
	}
	s.show(w, http.StatusOK, "pair", pairPage{A: ids[0], B: ids[1], Rows: rows})
}

// beside reads two experiments, while no other record is read.
func (s *Site) beside(dirs [2]string) ([]report.TwoValues, error) {
	s.found.work.Lock()
	defer s.found.work.Unlock()
	var data [2]report.Data
	for i, dir := range dirs {
		var err error
		if data[i], err = s.Load(dir); err != nil {
			return nil, err
		}
	}
	return report.Beside(data[0], data[1]), nil
}
