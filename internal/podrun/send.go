package podrun

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"david/internal/joblog"
	"david/internal/result"
)

// mostLog bounds how much of a trial's log is sent along, in bytes: a kubelet keeps 10 MiB of a pod's in all.
const mostLog = 256 << 10

// Send writes all that the store is given to a client's log; end writes the last of it.
func Send(log io.Writer, store *result.Store) (end func() error, err error) {
	w := joblog.NewWriter(log)
	store.Watch(func(document any) error { return w.Write(packed(store, document)) })
	e := store.Experiment()
	return func() error { return w.Write(joblog.Document{End: true}) }, w.Write(joblog.Document{Experiment: &e})
}

// packed makes a document of the log out of one of the store.
func packed(store *result.Store, document any) (d joblog.Document) {
	switch v := document.(type) {
	case result.Arm:
		d.Arm = &v
	case result.Finish:
		d.Finish = &v
	case result.Trial:
		d.Trial = &v
		if text, err := os.ReadFile(store.LogPath(v.ID, "sysbench")); err == nil { // a record without it is a record
			d.Log = string(text[:min(len(text), mostLog)])
		}
	}
	return d
}

// SendTune writes a live tune to a client's log: the document it printed and, where it made a record of its
// changes, the files of these names. failed is its error, code what david exits with for it.
func SendTune(log io.Writer, printed []byte, files []string, failed error, code int) error {
	w := joblog.NewWriter(log)
	if err := sendTune(w, printed, files); err != nil {
		return err
	}
	end := joblog.Document{End: true}
	if failed != nil {
		end.Failed, end.Code = failed.Error(), code
	}
	return w.Write(end)
}

// SendNetwork writes what a client measured of a network alone to its log.
func SendNetwork(log io.Writer, measured any) error {
	text, err := json.Marshal(measured)
	if err != nil {
		return err
	}
	w := joblog.NewWriter(log)
	return errors.Join(w.Write(joblog.Document{Network: text}), w.Write(joblog.Document{End: true}))
}

func sendTune(w *joblog.Writer, printed []byte, files []string) error {
	if len(bytes.TrimSpace(printed)) == 0 {
		return nil
	}
	var doc struct {
		Dir string `json:"dir"`
	}
	if err := json.Unmarshal(printed, &doc); err != nil {
		return err
	}
	if doc.Dir == "" {
		return w.Write(joblog.Document{Tune: printed})
	}
	store, err := result.Open(doc.Dir)
	if err != nil {
		return err
	}
	texts, err := readFiles(doc.Dir, files)
	if err != nil {
		return err
	}
	e := store.Experiment()
	return errors.Join(w.Write(joblog.Document{Experiment: &e}), w.Write(joblog.Document{Files: texts}),
		w.Write(joblog.Document{Tune: printed}))
}

// readFiles reads the files that are there, each up to mostLog.
func readFiles(dir string, names []string) (map[string]string, error) {
	texts := map[string]string{}
	for _, name := range names {
		f, err := os.Open(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var text strings.Builder
		_, err = io.Copy(&text, io.LimitReader(f, mostLog))
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, err
		}
		texts[name] = text.String()
	}
	return texts, nil
}
