package rules

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"david/internal/mycnf"
)

// liveRange bounds the values that david gives a running server's variable, or gives back to it: those that
// servers take, less what would take a machine down. Switches are 0 and 1, sizes in bytes.
type liveRange struct {
	least, most uint64
	grows       bool // never made smaller while the server runs: pages would have to be given up or written first
}

// liveRanges lists the variables that a live plan may change; there are no others.
func liveRanges() map[string]liveRange {
	const kib, tib = 1 << 10, 1 << 40
	return map[string]liveRange{
		"general_log":              {0, 1, false},
		"innodb_use_fdatasync":     {0, 1, false},
		"innodb_flush_neighbors":   {0, 2, false},
		"innodb_sync_spin_loops":   {0, 10000, false},
		"innodb_spin_wait_delay":   {0, 1000, false},
		"innodb_purge_threads":     {1, 32, false},
		"innodb_io_capacity":       {100, math.MaxUint64, false},
		"innodb_io_capacity_max":   {100, math.MaxUint64, false},
		"table_open_cache":         {1, 1 << 20, true},
		"innodb_redo_log_capacity": {uint64(8 * mib), tib / 2, true},
		"innodb_log_file_size":     {uint64(mib), tib / 2, true},
		"innodb_log_buffer_size":   {256 * kib, uint64(4 * gib), true},
		"innodb_buffer_pool_size":  {uint64(2 * mib), 64 * tib, true},
	}
}

// GrowsOnly tells of a variable that is never made smaller while the server runs.
func GrowsOnly(name string) bool { return liveRanges()[name].grows }

// Changes tells whether david changes a variable of a running server at all.
func Changes(name string) bool {
	_, ours := liveRanges()[name]
	return ours
}

// Reversible says why david does not change a running server's variable from one value to another; nil where
// it does. What david did not change it does not set back either, whoever's record says so: it names a
// variable of its own rules, with both values in their range, and never makes smaller, or a rollback larger,
// what holds memory or redo.
func Reversible(name, before, after string) error {
	old, errOld := liveNumber(name, before)
	now, errNow := liveNumber(name, after)
	if err := cmp.Or(errOld, errNow); err != nil {
		return err
	}
	if GrowsOnly(name) && old > now {
		return fmt.Errorf("%s is never made smaller: %.40q was more than %.40q", name, before, after)
	}
	return nil
}

// liveNumber reads a value of one of david's variables as SET GLOBAL takes it.
func liveNumber(name, value string) (uint64, error) {
	r, ours := liveRanges()[name]
	if !ours || slices.ContainsFunc(lockMembers(), func(l mycnf.LockVariable) bool { return l.Name == name }) {
		return 0, fmt.Errorf("david changes no %.60q on a running server", name)
	}
	n, err := strconv.ParseUint(mycnf.Plain(name, value), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange) || err == nil && (n < r.least || n > r.most):
		return 0, fmt.Errorf("david gives %s values from %d to %d, and not %.40q", name, r.least, r.most, value)
	case err != nil:
		return 0, fmt.Errorf("%.40q is no value of %s", value, name)
	}
	return n, nil
}

// lockMembers lists the durability lock of all flavours.
func lockMembers() []mycnf.LockVariable {
	return slices.Concat(mycnf.Lock(mycnf.MySQL), mycnf.Lock(mycnf.MariaDB))
}
