// Package kernel knows the kernel settings that published studies change for a database: what they are here,
// whether they can matter here, and what is advised today. It changes them where it is told to, and sets them
// back.
//
//	table       a row for each setting: the studies' values, david's bounds, the advice, its reason and source
//	conditions  when a setting matters on a machine, and what is advised then
//	machine     this machine's values, read and written below a root folder
//	plan        the table held against the machine
//	apply       the inverse on record, the value written, read back
//	record      what was changed, in david's home
//	rollback    what is on record, set back
//	persist     a file of david's own in /etc/sysctl.d
//
// No path is ever taken from a user or a record: both name a row of the table.
package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Setting is a row of the table: a setting of the kernel, what studies made of it, and what is thought of
// that today.
type Setting struct {
	Name    string // as sysctl(8) has it; where it is no sysctl, david's name for it
	P1, P4  string // the values of the published studies; "" where they give none
	Reason  string // for today's advice
	Risk    string // of setting it
	Source  string
	path    string // below the root folder; has %s in the place of a disk's name
	values  bounds
	matters func(Machine) (Effect, string)
	want    func(m Machine, now string) string // today's value, "" where it is left; nil: always left
	bars    func(m Machine, value string) error
	AtStart bool   // a server takes it when it starts, and keeps what it took
	lasting string // how one that is no sysctl survives a reboot; VALUE and DISK stand for its own
}

// ofDisk tells whether each disk has a value of its own.
func (s Setting) ofDisk() bool { return strings.Contains(s.path, "%s") }

// sysctl tells whether sysctl(8) sets it, so that a file in /etc/sysctl.d makes it last.
func (s Setting) sysctl() bool { return strings.HasPrefix(s.path, "proc/sys/") }

// ErrUnknown says that a setting is not in the table.
var ErrUnknown = errors.New("no kernel setting that david knows; david kernel plan lists them")

// find returns the row of a name.
func find(name string) (Setting, error) {
	all := Table()
	i := slices.IndexFunc(all, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return Setting{}, fmt.Errorf("%.60q: %w", name, ErrUnknown)
	}
	return all[i], nil
}

// AtStart tells whether a server takes a setting when it starts, and keeps what it took. One that is unknown is taken
// so: a server that was started under it has it for sure.
func AtStart(name string) bool {
	s, err := find(name)
	return err != nil || s.AtStart
}

// bounds say which values david sets, and sets back: numbers from least to most, two ports in that range, or
// words.
type bounds struct {
	least, most uint64
	ports       bool
	words       []string
}

// leastPorts is how many ports a range must have: below that a busy client runs out of them.
const leastPorts = 1000

// String puts the bounds into words.
func (b bounds) String() string {
	switch {
	case b.words != nil:
		return strings.Join(b.words, ", ")
	case b.ports:
		return fmt.Sprintf("two ports of %d to %d, %d or more apart", b.least, b.most, leastPorts)
	}
	return fmt.Sprintf("%d to %d", b.least, b.most)
}

// check says why a value, in the form the kernel prints it in, is out of bounds.
func (b bounds) check(value string) error {
	if b.words != nil {
		if !slices.Contains(b.words, value) {
			return b.refuse(value)
		}
		return nil
	}
	var list []uint64
	for _, field := range strings.Split(value, " ") {
		n, err := strconv.ParseUint(field, 10, 64)
		if err != nil || n < b.least || n > b.most || strconv.FormatUint(n, 10) != field {
			return b.refuse(value)
		}
		list = append(list, n)
	}
	if b.ports && (len(list) != 2 || list[1] < list[0]+leastPorts) || !b.ports && len(list) != 1 {
		return b.refuse(value)
	}
	return nil
}

func (b bounds) refuse(value string) error {
	return fmt.Errorf("%.60q is not within david's bounds (%s)", value, b)
}

// canonical is a value as the kernel's files have it, with one space between numbers.
func canonical(value string) string { return strings.Join(strings.Fields(value), " ") }

// typed is a value as users type it: studies write a range of ports with a dash.
func (b bounds) typed(value string) string {
	if b.ports {
		value = strings.Replace(value, "-", " ", 1)
	}
	return canonical(value)
}
