package kernel

import (
	"errors"
	"fmt"
	"strings"
)

// Undone tells what a rollback did.
type Undone struct {
	Restored []Change `json:"restored"`          // set back, the last change first
	Already  []Change `json:"already"`           // never made, or undone by a reboot
	Removed  string   `json:"removed,omitempty"` // the file in /etc/sysctl.d
}

// ErrChanged says that a setting, or david's file in /etc/sysctl.d, is neither what david made it nor what it
// was before.
var ErrChanged = errors.New("somebody else changed it since")

// ErrLater says that a later david kernel apply changed a setting once more.
var ErrLater = errors.New("david changed it once more since")

// Rollback sets back all that a record has and that is not set back yet, the last change first. Where
// somebody else changed one of them it changes nothing.
func (m Machine) Rollback(r *Record) (Undone, error) {
	u := Undone{Restored: []Change{}, Already: []Change{}}
	if err := m.unchanged(r); err != nil {
		return u, err
	}
	for i := len(r.Changes) - 1; i >= 0; i-- {
		if err := m.undo(r, &r.Changes[i], &u); err != nil {
			return u, err
		}
	}
	var err error
	u.Removed, err = m.forget(r)
	return u, err
}

// undo sets one change back, and puts that on record.
func (m Machine) undo(r *Record, c *Change, u *Undone) error {
	if c.Undone {
		return nil
	}
	restored := false
	if !m.lost(r, *c) {
		var err error
		if restored, err = m.Restore(*c); err != nil {
			return err
		}
	}
	if c.Undone = true; restored {
		u.Restored = append(u.Restored, *c)
	} else {
		u.Already = append(u.Already, *c)
	}
	return r.save()
}

// lost tells whether a reboot undid a change: whatever the setting is now is not david's. A disk may even
// have another's name by then.
func (m Machine) lost(r *Record, c Change) bool {
	return m.Boot() != r.Boot && !(r.Persist && c.sysctl())
}

// Restore sets a change back where its setting has the value that david gave it, and tells whether it did.
// What has another value, or is not there any more, is left.
func (m Machine) Restore(c Change) (bool, error) {
	s, err := c.setting()
	if err != nil {
		return false, err
	}
	now, err := m.read(s, c.Disk)
	if errors.Is(err, ErrAbsent) {
		return false, nil
	}
	if err != nil || now != c.After || now == c.Before {
		return false, err
	}
	return true, m.set(s, c.Disk, c.Before)
}

// Now is the value that a change's setting has.
func (m Machine) Now(c Change) (string, error) {
	s, err := c.setting()
	if err != nil {
		return "", err
	}
	return m.read(s, c.Disk)
}

// unchanged makes sure that all that is to be set back is david's. What a reboot undid is whatever it is.
func (m Machine) unchanged(r *Record) error {
	var list []string
	for _, c := range r.Pending() {
		s, err := c.setting()
		if err != nil {
			return err
		}
		now, err := m.read(s, c.Disk)
		if errors.Is(err, ErrAbsent) || m.lost(r, c) {
			continue
		}
		if err != nil {
			return err
		}
		if now == c.After || now == c.Before {
			continue
		}
		later, err := m.davids(r, c, now)
		if err != nil {
			return err
		}
		if later != nil {
			return fmt.Errorf("nothing was set back: %s: %w, from %s to %s: first david kernel rollback %d", c.Title(), ErrLater, c.After, now, later.N)
		}
		list = append(list, fmt.Sprintf("%s was %s, david set %s, it is %s now", c.Title(), c.Before, c.After, now))
	}
	if len(list) > 0 {
		return fmt.Errorf("nothing was set back: %w: %s", ErrChanged, strings.Join(list, "; "))
	}
	if _, _, err := m.persisted(r); err != nil {
		return fmt.Errorf("nothing was set back: %w", err)
	}
	return nil
}
