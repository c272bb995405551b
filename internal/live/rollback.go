package live

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"david/internal/mycnf"
	"david/internal/mysqld"
)

// Undone tells what a rollback did.
type Undone struct {
	Restored []Change `json:"restored"` // set back, the last change first
	Already  []Change `json:"already"`  // the change was never made, or a restart undid it
}

// ErrOther says that what is at the address is not the server that was changed.
var ErrOther = errors.New("it is another server than the one that was changed")

// ErrChanged says that variables are neither what david made them nor what they were before; see
// ChangedError.
var ErrChanged = errors.New("variables have changed since david set them")

// ChangedError lists the variables that have neither the value david gave them nor the one before.
type ChangedError struct {
	Changes []Change
	Now     map[string]string
}

// Error names them with their values.
func (e ChangedError) Error() string {
	var list []string
	for _, c := range e.Changes {
		list = append(list, fmt.Sprintf("%s was %s, david set %s, it is %s now", c.Name, c.Before, c.After, e.Now[c.Name]))
	}
	return ErrChanged.Error() + ": " + strings.Join(list, "; ")
}

// Is makes it an ErrChanged.
func (e ChangedError) Is(target error) bool { return target == ErrChanged }

// Rollback sets back all that a record has and that is not set back yet, the last change first. Where the
// server is another one, or a variable has been changed by somebody else, it changes nothing.
func Rollback(ctx context.Context, c *mysqld.Conn, r *Record) (u Undone, err error) {
	release, err := lock(ctx, c)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, release()) }()
	return undo(ctx, c, r, r.Pending(), true)
}

// undo sets changes back, the last one first. With all, one that is somebody else's by now forbids the
// others; else it is left, and told when the others are back.
func undo(ctx context.Context, c *mysqld.Conn, r *Record, pending []Change, all bool) (u Undone, err error) {
	u = Undone{Restored: []Change{}, Already: []Change{}}
	is, err := Identify(ctx, c)
	if err != nil {
		return u, err
	}
	if !r.Server.is(is) {
		return u, fmt.Errorf("%w: %s is %s on %s, the record is of %s on %s", ErrOther, c.Addr(), is.UUID, is.Hostname, r.Server.UUID, r.Server.Hostname)
	}
	foreign, err := compare(ctx, c, pending, is.restarted(r.Server))
	if err != nil {
		return u, err
	}
	if all && len(foreign.Changes) > 0 {
		return u, foreign
	}
	for _, change := range pending {
		if foreign.has(change) {
			continue
		}
		restored, err := back(ctx, c, r, change)
		if err != nil {
			return u, err
		}
		if restored {
			u.Restored = append(u.Restored, change)
		} else {
			u.Already = append(u.Already, change)
		}
	}
	if len(foreign.Changes) > 0 {
		return u, foreign
	}
	return u, nil
}

func (e ChangedError) has(c Change) bool {
	for _, one := range e.Changes {
		if one.N == c.N {
			return true
		}
	}
	return false
}

// compare finds the changes whose variable is somebody else's by now. What was not persisted is undone by a
// restart, whatever value the variable then has.
func compare(ctx context.Context, c *mysqld.Conn, pending []Change, restarted bool) (e ChangedError, err error) {
	e.Now = map[string]string{}
	for _, change := range pending {
		if _, there := e.Now[change.Name]; there { // a later change of the same variable answers for it
			continue
		}
		v, err := variables(ctx, c, change.Name)
		if err != nil {
			return e, err
		}
		e.Now[change.Name] = v[change.Name]
		if !change.ours(v[change.Name]) && v[change.Name] != change.Before && !(restarted && !change.Persist) {
			e.Changes = append(e.Changes, change)
			continue
		}
		foreign, err := change.persistedByOther(ctx, c)
		if err != nil {
			return e, err
		}
		if foreign != "" {
			e.Now[change.Name] = foreign + " (persisted)"
			e.Changes = append(e.Changes, change)
		}
	}
	return e, nil
}

// ours tells whether a value is the one david gave. Where david did not see it, rounding is allowed for.
func (c Change) ours(now string) bool {
	if c.effectiveUnknown {
		return mycnf.MatchValues(c.Name, c.After, now) != mycnf.Different
	}
	return now == c.After
}

// persistedByOther returns the value persisted for a variable that david persisted, where that is neither
// david's nor the one before.
func (c Change) persistedByOther(ctx context.Context, conn *mysqld.Conn) (string, error) {
	if !c.Persist {
		return "", nil
	}
	now, err := persisted(ctx, conn, c.Name)
	if err != nil || now == nil || c.PersistedBefore != nil && *now == *c.PersistedBefore {
		return "", err
	}
	if mycnf.MatchValues(c.Name, c.After, *now) != mycnf.Different {
		return "", nil
	}
	return *now, nil
}

// back sets one change back, and tells whether there was anything to do.
func back(ctx context.Context, c *mysqld.Conn, r *Record, change Change) (restored bool, err error) {
	v, err := variables(ctx, c, change.Name)
	if err != nil {
		return false, err
	}
	restored = change.Persist || change.ours(v[change.Name]) && v[change.Name] != change.Before
	if restored {
		for _, statement := range change.backStatements() {
			if err := c.Exec(ctx, statement); err != nil {
				return false, fmt.Errorf("cannot set %s back to %s: %w", change.Name, change.Before, err)
			}
		}
		if _, err := await(ctx, c, change.Name, func(now string) bool { return now == change.Before }); err != nil {
			return false, err
		}
	}
	return restored, r.note(recordLine{N: change.N, Event: undone})
}

// backStatements returns the SQL that undoes a change. What was persisted is persisted again; SET PERSIST
// sets the global value too, so that comes last.
func (c Change) backStatements() []string {
	global := mycnf.SetStatement("GLOBAL", c.Name, c.Before)
	switch {
	case c.Persist && c.PersistedBefore == nil:
		return []string{"RESET PERSIST IF EXISTS " + c.Name, global}
	case c.Persist:
		return []string{mycnf.SetStatement("PERSIST", c.Name, *c.PersistedBefore), global}
	}
	return []string{global}
}
