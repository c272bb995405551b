package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Change is one setting that david gave another value, or is about to.
type Change struct {
	Name   string `json:"name"`
	Disk   string `json:"disk,omitempty"`
	Before string `json:"before"`
	After  string `json:"after"`
	Undone bool   `json:"undone,omitempty"`
}

// Title names the setting, and the disk whose it is.
func (c Change) Title() string { return title(c.Name, c.Disk) }

// setting returns a change's row of the table, where all of it is what david does: a change may come from
// anybody.
func (c Change) setting() (Setting, error) {
	s, err := find(c.Name)
	if err != nil {
		return s, err
	}
	for _, value := range []string{c.Before, c.After} {
		if err := s.values.check(value); err != nil {
			return s, fmt.Errorf("%s: %w", c.Name, err)
		}
	}
	if s.ofDisk() != (c.Disk != "") || s.ofDisk() && !diskName.MatchString(c.Disk) {
		return s, fmt.Errorf("%s: %.60q is no disk of it", c.Name, c.Disk)
	}
	return s, nil
}

// ErrInput marks what was asked for as what cannot be done.
var ErrInput = errors.New("nothing was changed")

// Advised lists all that is advised, and says of what it leaves out why: what could not be done, and without
// disks what is advised of the disk, as the machine's may be another than the database's.
func (m Machine) Advised(disks bool) (steps []Change, left []string, err error) {
	rows, err := m.Plan()
	if err != nil {
		return nil, nil, err
	}
	for _, r := range rows {
		if r.Advice != Set {
			continue
		}
		c := Change{Name: r.Name, Disk: r.Disk, Before: r.Now, After: r.Value}
		switch err := m.sound(c); {
		case r.Disk != "" && !disks:
			left = append(left, fmt.Sprintf("%s is left out: the database's data may lie on another disk; --dir DATA names theirs", c.Title()))
		case err != nil:
			left = append(left, fmt.Sprintf("%s is left out: %v", c.Title(), err))
		default:
			steps = append(steps, c)
		}
	}
	return steps, left, nil
}

// Steps reads what is asked for, each as NAME=VALUE, or as NAME for today's advice. What has its value
// already is left out, unless same asks for it, as that may still have to last.
func (m Machine) Steps(asked []string, same bool) ([]Change, error) {
	var steps []Change
	seen := map[string]bool{}
	for _, text := range asked {
		c, err := m.step(text)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInput, err)
		}
		if seen[c.Name] {
			return nil, fmt.Errorf("%w: %s is given twice", ErrInput, c.Name)
		}
		if seen[c.Name] = true; same || c.Before != c.After {
			steps = append(steps, c)
		}
	}
	return steps, nil
}

// step is the change that a word asks for.
func (m Machine) step(text string) (Change, error) {
	name, value, given := strings.Cut(text, "=")
	s, err := find(name)
	if err != nil {
		return Change{}, err
	}
	if !given {
		row, err := m.row(s)
		if err != nil {
			return Change{}, err
		}
		if row.Advice != Set {
			return Change{}, fmt.Errorf("david's advice is to leave %s as it is (%s): give %s=VALUE to set it all the same", name, row.Because, name)
		}
		value = row.Value
	}
	c := Change{Name: name, After: s.values.typed(value)}
	if s.ofDisk() {
		c.Disk = m.Disk
	}
	if c.Before, err = m.read(s, m.Disk); err != nil {
		return c, err
	}
	return c, m.sound(c)
}

// sound says why a change is not made: values out of bounds, one that could not be set back, and what the
// machine forbids.
func (m Machine) sound(c Change) error {
	s, err := find(c.Name)
	if err != nil {
		return err
	}
	if err := s.values.check(c.After); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	if err := s.values.check(c.Before); err != nil {
		return fmt.Errorf("%s could not be set back: its value %w", c.Name, err)
	}
	if s.bars == nil {
		return nil
	}
	if err := s.bars(m, c.After); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// Hindered says what keeps this process from changing these settings; nil where nothing does.
func (m Machine) Hindered(steps []Change) error {
	for _, c := range steps {
		s, err := c.setting()
		if err != nil {
			return err
		}
		if why := m.hindrance(s); why != "" {
			return fmt.Errorf("%w: %s: %s", ErrInput, c.Name, why)
		}
	}
	return nil
}

// Apply makes changes, in their order. Each is on record before it is made, and read back after it; one that
// did not take is undone, and ends it: those before it stay, on record. With persist those that are sysctls
// survive a reboot.
func (m Machine) Apply(ctx context.Context, home string, steps []Change, persist bool) (*Record, error) {
	if err := m.Hindered(steps); err != nil {
		return nil, err
	}
	r, err := create(home, m.Boot())
	if err == nil && persist {
		err = m.canPersist(r)
	}
	if err != nil {
		return nil, err
	}
	for _, c := range steps {
		if err := ctx.Err(); err != nil {
			return r, err
		}
		if err := m.change(r, c); err != nil {
			return r, err
		}
	}
	if persist {
		return r, m.persist(r)
	}
	return r, nil
}

// change makes one change.
func (m Machine) change(r *Record, c Change) error {
	s, err := c.setting()
	if err != nil {
		return err
	}
	if now, err := m.read(s, c.Disk); err != nil || now != c.Before {
		return errors.Join(fmt.Errorf("%s was %s a moment ago and is %q now: somebody else changes it", c.Title(), c.Before, now), err)
	}
	r.Changes = append(r.Changes, c)
	if err := r.save(); err != nil {
		return err
	}
	undone, err := m.Make(c)
	r.Changes[len(r.Changes)-1].Undone = undone
	if undone {
		return errors.Join(err, r.save())
	}
	return err
}

// Make makes a change that the caller has on record. One that did not take is undone, if that can be done.
func (m Machine) Make(c Change) (undone bool, err error) {
	s, err := c.setting()
	if err != nil {
		return false, err
	}
	if err = m.set(s, c.Disk, c.After); err == nil {
		return false, nil
	}
	if back := m.set(s, c.Disk, c.Before); back != nil {
		return false, errors.Join(err, fmt.Errorf("cannot undo it: %w", back))
	}
	return true, fmt.Errorf("%s is %s as before: %w", c.Title(), c.Before, err)
}

// Check says why a change is none that david makes: a record may come from anybody.
func (c Change) Check() error {
	_, err := c.setting()
	return err
}

// Lasting says how what david changed, and sysctl.d cannot keep, survives a reboot: a sentence for each.
func (r *Record) Lasting() []string {
	var list []string
	for _, c := range r.Changes {
		if s, err := c.setting(); err == nil && s.lasting != "" && !c.Undone {
			how := strings.NewReplacer("VALUE", c.After, "DISK", c.Disk).Replace(s.lasting)
			list = append(list, fmt.Sprintf("%s does not survive a reboot by itself; what keeps it: %s", c.Title(), how))
		}
	}
	return list
}

// Pending lists the changes that are not set back, the last one first.
func (r *Record) Pending() (list []Change) {
	for _, c := range slices.Backward(r.Changes) {
		if !c.Undone {
			list = append(list, c)
		}
	}
	return list
}
