// Package tidy says what in david's folder can go, and removes it: data that can be prepared again, programs
// of which there is a newer version, and experiments that are old or too many. The caller holds the machine's
// lock, so that nothing of it is in use.
package tidy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"david/internal/home"
	"david/internal/live"
	"david/internal/result"
	"david/internal/sandbox"
	"david/internal/server"
)

// Kind says what an item is.
type Kind string

// The kinds, in the order in which they go: what costs least to get back first.
const (
	Slack      Kind = "unused space"
	Copy       Kind = "prepared data" // a golden copy
	Broken     Kind = "broken volume"
	Image      Kind = "image"
	Server     Kind = "server"
	Experiment Kind = "experiment"
)

// Item is something that can go.
type Item struct {
	Kind  Kind      `json:"kind"`
	Name  string    `json:"name"`
	Bytes int64     `json:"bytes"`         // on the disk
	Used  time.Time `json:"used,omitzero"` // last; of an experiment when it began
	Why   string    `json:"why"`           // it can go, and what getting it back takes

	copy sandbox.Copy
}

// Wish says what may go beside what can be made again.
type Wish struct {
	Now         time.Time
	OlderThan   time.Duration // experiments that began longer ago; 0: none for their age
	Experiments int64         // bytes that experiments may take, the oldest go first; below 0: any
	Free        int64         // bytes to free, no more goes; 0: all that can go
}

// Folder is david's folder, open for tidying up.
type Folder struct {
	home string
	kept *sandbox.Kept
	look bool // from outside: another david works there
}

// Open opens a home, where it is there; Close must be called.
func Open(ctx context.Context, dir string) (*Folder, error) {
	f := &Folder{home: dir}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err := errors.Join(home.Sweep(experiments(dir)), home.Sweep(images(dir))); err != nil {
		return nil, err
	}
	var err error
	f.kept, err = sandbox.OpenKept(ctx, dir)
	return f, err
}

// Look opens a home to plan only, beside another david that works there; Close must be called.
func Look(dir string) *Folder { return &Folder{home: dir, kept: sandbox.LookAtKept(dir), look: true} }

// Close gives back what is held.
func (f *Folder) Close() error {
	if f.kept == nil {
		return nil
	}
	return f.kept.Close()
}

func experiments(dir string) string { return filepath.Join(dir, "experiments") }
func images(dir string) string      { return filepath.Join(dir, "images") }

// Plan lists what goes, in the order in which it goes, and says what stays although it was asked for.
func (f *Folder) Plan(w Wish) (items []Item, notes []string, err error) {
	if f.kept == nil {
		return nil, nil, nil
	}
	for _, list := range []func() ([]Item, error){f.slack, f.copies, f.images, f.servers} {
		found, err := list()
		if err != nil {
			return nil, nil, err
		}
		items = append(items, found...)
	}
	old, notes, err := f.experiments(w)
	if err != nil {
		return nil, nil, err
	}
	return upTo(append(items, old...), w.Free), notes, nil
}

// upTo returns the first items that free so many bytes; all where that is 0.
func upTo(items []Item, free int64) []Item {
	if free <= 0 {
		return items
	}
	for i, item := range items {
		if free -= item.Bytes; free <= 0 {
			return items[:i+1]
		}
	}
	return items
}

// leastSlack is what of the volume is not worth giving back, in bytes: the filesystem's own.
const leastSlack = 64 << 20

// slack is what the volume takes of the disk beyond what it holds; or the whole of one that cannot be used.
func (f *Folder) slack() ([]Item, error) {
	v, ok, err := f.kept.Volume()
	if err != nil || !ok || f.look { // what it holds is not seen from outside
		return nil, err
	}
	if f.kept.Broken != nil {
		return []Item{{Kind: Broken, Name: v.Path, Bytes: v.Bytes, Why: fmt.Sprintf("it cannot be mounted (%v); the next measurement makes a new one", f.kept.Broken)}}, nil
	}
	if v.Bytes-v.Used < leastSlack {
		return nil, nil
	}
	return []Item{{Kind: Slack, Name: v.Path, Bytes: v.Bytes - v.Used, Why: "the volume does not use it any more"}}, nil
}

func (f *Folder) copies() (items []Item, err error) {
	list, err := f.kept.Copies()
	for _, c := range list {
		items = append(items, Item{Kind: Copy, Name: c.Name, Bytes: c.Bytes, Used: c.Used, Why: "the next measurement that needs it loads it again", copy: c})
	}
	return byUse(items), err
}

func (f *Folder) images() (items []Item, err error) {
	entries, err := os.ReadDir(images(f.home))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() {
			continue
		}
		bytes, err := home.Allocated(filepath.Join(images(f.home), e.Name()))
		if err != nil {
			return nil, err
		}
		items = append(items, Item{Kind: Image, Name: e.Name(), Bytes: bytes, Used: info.ModTime(), Why: "david podtax takes it out of its image again"})
	}
	return byUse(items), nil
}

func (f *Folder) servers() (items []Item, err error) {
	for _, s := range server.Outdated(f.home) {
		bytes, err := home.Allocated(s.Dir)
		if err != nil {
			return nil, err
		}
		items = append(items, Item{Kind: Server, Name: s.Name, Bytes: bytes, Used: s.Installed, Why: s.Newer + " is newer; an experiment with the old one cannot be gone on with"})
	}
	return items, nil
}

// experiments lists those that are too old, and the oldest of those that are too many.
func (f *Folder) experiments(w Wish) (items []Item, notes []string, err error) {
	if w.OlderThan <= 0 && w.Experiments < 0 {
		return nil, nil, nil
	}
	list, err := result.List(f.home)
	if err != nil {
		return nil, nil, err
	}
	var all []Item
	total := int64(0)
	for _, s := range list {
		item, err := f.Experiment(s)
		if err != nil {
			return nil, nil, err
		}
		total += item.Bytes
		all = append(all, item)
	}
	for i, s := range slices.Backward(list) { // the newest are first
		item := all[i]
		old := w.OlderThan > 0 && w.Now.Sub(item.Used) > w.OlderThan
		if !old && (w.Experiments < 0 || total <= w.Experiments) {
			continue
		}
		why := s.Err // of a newer david, perhaps
		if why == "" {
			why = f.Held(s)
		}
		if why != "" {
			notes = append(notes, item.Name+" stays: "+why)
			continue
		}
		item.Why = "more than experiments may take"
		if old {
			item.Why = "it began " + ago(w.Now.Sub(item.Used))
		}
		total -= item.Bytes
		items = append(items, item)
	}
	return items, notes, nil
}

func ago(d time.Duration) string {
	if hours := int(d.Hours()); hours < 48 {
		return fmt.Sprintf("%d h ago", hours)
	}
	return fmt.Sprintf("%d days ago", int(d.Hours()/24))
}

// Experiment is an experiment as something that can go.
func (f *Folder) Experiment(s result.Summary) (Item, error) {
	bytes, err := home.Allocated(s.Dir)
	return Item{Kind: Experiment, Name: s.ID, Bytes: bytes, Used: s.Created, Why: "it is asked for"}, err
}

// Held says why an experiment cannot go; "" where it can: a server that was changed is set back by its record, and
// a david may be at work on it.
func (f *Folder) Held(s result.Summary) string {
	release, err := result.Claim(s.Dir)
	if err == nil {
		err = release()
	}
	if err != nil {
		return err.Error()
	}
	record, err := live.Open(s.Dir)
	switch {
	case errors.Is(err, live.ErrNoRecord):
		return ""
	case err != nil:
		return err.Error()
	}
	if n := len(record.Pending()); n > 0 {
		return fmt.Sprintf("%d changes of a running server are on record there: `david rollback %s` first", n, s.ID)
	}
	return ""
}

// byUse sorts by when they were last used, the longest ago first.
func byUse(items []Item) []Item {
	slices.SortStableFunc(items, func(a, b Item) int { return a.Used.Compare(b.Used) })
	return items
}

// Remove removes items. What it cannot remove it names in its error, and goes on with the rest.
func (f *Folder) Remove(ctx context.Context, items []Item) (gone []Item, err error) {
	trim := false
	for _, item := range items {
		if ctx.Err() != nil {
			return gone, errors.Join(err, ctx.Err())
		}
		failed := f.remove(ctx, item)
		if err = errors.Join(err, failed); failed == nil {
			gone = append(gone, item)
		}
		trim = trim || item.Kind == Slack || item.Kind == Copy
	}
	if trim {
		err = errors.Join(err, f.kept.Trim())
	}
	return gone, err
}

func (f *Folder) remove(ctx context.Context, item Item) error {
	switch item.Kind {
	case Slack:
		return nil // given back at the end
	case Copy:
		return f.kept.Drop(item.copy)
	case Broken:
		return f.kept.DropVolume()
	case Image:
		return home.Remove(images(f.home), item.Name)
	case Server:
		return server.Remove(ctx, f.home, item.Name)
	case Experiment:
		return f.removeExperiment(item.Name)
	}
	return fmt.Errorf("cannot remove %s: it is of no kind that david knows", item.Name)
}

func (f *Folder) removeExperiment(id string) (err error) {
	release, err := result.Claim(filepath.Join(experiments(f.home), id))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	return home.Remove(experiments(f.home), id)
}

// OfExperiments is the folder where only experiments are to go: nothing else is looked at or held.
func OfExperiments(dir string) *Folder { return &Folder{home: dir} }
