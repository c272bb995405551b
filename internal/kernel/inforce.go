package kernel

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// InForce lists the records in david's home whose changes, or some of them, neither a rollback nor a reboot undid, the
// latest first. What cannot be read is left out, and is the error.
func (m Machine) InForce(home string) (list []*Record, err error) {
	return m.inForce(filepath.Join(home, Folder), 0)
}

// Newest opens the record in david's home that a rollback is to undo next: the newest that is in force, and where none is
// the latest.
func (m Machine) Newest(home string) (*Record, error) {
	list, err := m.InForce(home)
	switch {
	case err != nil:
		return nil, err
	case len(list) > 0:
		return list[0], nil
	}
	return Open(home, "latest")
}

// inForce are those of a folder of records that have a higher number than after.
func (m Machine) inForce(records string, after int) (list []*Record, err error) {
	all, err := numbers(records)
	for _, n := range all {
		if n <= after {
			continue
		}
		r := &Record{dir: filepath.Join(records, strconv.Itoa(n))}
		switch loadErr := r.load(); {
		case errors.Is(loadErr, ErrNoRecord): // a david that ended before its first change
		case loadErr != nil:
			err = errors.Join(err, fmt.Errorf("cannot use the record of changes in %s: %w", r.dir, loadErr))
		case len(m.holding(r)) > 0:
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *Record) int { return b.N - a.N })
	return list, err
}

// holding are a record's changes that neither a rollback nor a reboot undid.
func (m Machine) holding(r *Record) []Change {
	return slices.DeleteFunc(r.Pending(), func(c Change) bool { return m.lost(r, c) })
}

// Holds says what of a record is in force: "vm.swappiness: 60 -> 10".
func (m Machine) Holds(r *Record) string {
	var list []string
	for _, c := range m.holding(r) {
		list = append(list, fmt.Sprintf("%s: %s -> %s", c.Title(), c.Before, c.After))
	}
	return strings.Join(list, ", ")
}

// davids finds the later record by which david itself changed what an older one did; nil where none has the value that
// is there now.
func (m Machine) davids(r *Record, c Change, now string) (*Record, error) {
	later, err := m.inForce(filepath.Dir(r.dir), r.N)
	for _, l := range later {
		if slices.ContainsFunc(m.holding(l), func(o Change) bool { return o.Name == c.Name && o.Disk == c.Disk && o.After == now }) {
			return l, nil
		}
	}
	return nil, err
}

// Together says what the kernel makes of settings that are changed where it does not take them as they stand.
func (m Machine) Together(steps []Change) (notes []string) {
	const most, background = "vm.dirty_ratio", "vm.dirty_background_ratio"
	value := map[string]uint64{most: m.number("proc/sys/vm/dirty_ratio"), background: m.number("proc/sys/vm/dirty_background_ratio")}
	changed := false
	for _, c := range steps {
		if _, ok := value[c.Name]; ok {
			n, _ := strconv.ParseUint(c.After, 10, 64) // sound has read it
			value[c.Name], changed = n, true
		}
	}
	if changed && value[background] >= value[most] {
		notes = append(notes, fmt.Sprintf("%s would be %d, and %s %d: where the former is not the lower one the kernel takes half of the latter for it (mm/page-writeback.c, domain_dirty_limits)",
			background, value[background], most, value[most]))
	}
	return notes
}
