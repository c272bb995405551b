package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"david/internal/plain"
	"david/internal/result"
)

const (
	// tick is how often who looks on is told of what is new, which comes once a second.
	tick = time.Second
	// keepAlive is how long nothing may be said before a comment finds out whether somebody still listens.
	keepAlive = 15 * time.Second
	// before is how much of what was noted a page begins with, in bytes: about ten minutes.
	before = 128 << 10
)

// place is how far somebody has read: of which experiment, up to where in its live.jsonl. It is the ID of an event, so
// that a browser that comes back tells it.
type place struct {
	run  string
	next int64
}

func (p place) String() string { return fmt.Sprintf("%s:%d", p.run, p.next) }

// placeOf reads the ID of an event; the zero place where it is none of ours.
func placeOf(id string) place {
	run, at, _ := strings.Cut(id, ":")
	next, err := strconv.ParseInt(at, 10, 64)
	if err != nil || next < 0 || !result.ValidName(run) {
		return place{}
	}
	return place{run, next}
}

// state is what a page shows besides the moments.
type state struct {
	Run   string `json:"run"`             // the experiment that is measured; "" where none is
	Ended string `json:"ended,omitempty"` // the one that has just ended
	Tune  tuning `json:"tune"`            // that was started here
}

// stream is one who looks on.
type stream struct {
	site *Site
	w    http.ResponseWriter
	at   place
	told state
	said time.Time
	any  bool // told anything
}

// events tells what is measured, as it is, and goes on where a browser had read up to.
func (s *Site) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	st := &stream{site: s, w: w, at: placeOf(r.Header.Get("Last-Event-ID"))}
	if st.write("retry: 1000\n\n") != nil { // ms until a browser that was cut off comes back
		return
	}
	for {
		if err := st.turn(); err != nil {
			return // nobody listens, or the store cannot be read: the browser comes back
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(tick):
		}
	}
}

// turn tells what is new.
func (st *stream) turn() error {
	running, err := result.Running(st.site.Home)
	if err != nil {
		return err
	}
	now := state{Tune: st.site.tunes.state()}
	if running != "" {
		now.Run = filepath.Base(running)
	}
	if st.at.run == "" && now.Run != "" {
		st.at = place{now.Run, -before}
	}
	if st.at.run != "" {
		ended, err := st.moments()
		if err != nil {
			return err
		}
		if ended {
			now.Ended, st.at = st.at.run, place{}
		}
	}
	return st.tell(now)
}

// moments sends what was noted since, and tells whether that was all there will be.
func (st *stream) moments() (ended bool, err error) {
	dir := filepath.Join(st.site.Home, "experiments", st.at.run)
	for {
		list, next, on, err := result.Moments(dir, st.at.next)
		if err != nil { // the record was removed, or is none that can be followed
			return true, nil
		}
		for _, m := range list {
			st.at.next = m.Next
			m.Text, m.Line, m.Arm = plain.Line(m.Text), plain.Line(m.Line), plain.Line(m.Arm)
			if err := st.send("moment", st.at.String(), m.Moment); err != nil {
				return false, err
			}
		}
		if next == st.at.next || len(list) == 0 {
			st.at.next = next
			return !on, nil
		}
	}
}

// tell sends the state where it is another one, else from time to time a comment.
func (st *stream) tell(now state) error {
	if !st.any || now != st.told {
		st.told, st.any = now, true
		st.told.Ended = ""
		return st.send("state", "", now)
	}
	if time.Since(st.said) < keepAlive {
		return nil
	}
	st.said = time.Now()
	return st.write(": \n\n")
}

func (st *stream) send(event, id string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	return st.write("event: " + event + "\n" + id + "data: " + string(text) + "\n\n")
}

func (st *stream) write(text string) error {
	st.said = time.Now()
	if _, err := st.w.Write([]byte(text)); err != nil {
		return err
	}
	return http.NewResponseController(st.w).Flush()
}
