package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

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
	u = Undone{Restored: []Change{}, Already: []Change{}}
	s, err := takeSession(ctx, c)
	if err != nil {
		return u, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	if err := r.again(); err != nil { // a watchdog may have gone on with it
		return u, err
	}
	for end := time.Now().Add(settleBack); ; {
		err := u.undo(ctx, s, r, r.Pending(), true)
		if !settling(err) || time.Now().After(end) || pause(ctx, time.Second) != nil {
			return u, err
		}
	}
}

// settleBack says how long a server may take to be ready for a value it had before.
const settleBack = 30 * time.Second

// settling tells of an error that ends by itself: the server is still busy with a value it was given, as
// while it resizes its buffer pool.
func settling(err error) bool {
	return errors.Is(err, errSettling) || mysqld.Number(err) == wrongValue
}

// undo sets changes back, the last one first. With all, one that is somebody else's by now forbids the
// others; else it is left, and told when the others are back.
func (u *Undone) undo(ctx context.Context, s *session, r *Record, pending []Change, all bool) error {
	is, err := Identify(ctx, s.pool)
	if err != nil {
		return err
	}
	if !r.Server.is(is) {
		return fmt.Errorf("%w: %s is %s on %s, the record is of %s on %s", ErrOther, s.pool.Addr(), is.UUID, is.Hostname, r.Server.UUID, r.Server.Hostname)
	}
	foreign, err := compare(ctx, s, pending, is.restarted(r.Server))
	if err != nil {
		return err
	}
	if all && len(foreign.Changes) > 0 {
		return foreign
	}
	var untold error
	for _, change := range pending {
		if foreign.has(change) {
			continue
		}
		restored, err := back(ctx, s, change)
		if err != nil {
			return errors.Join(err, untold)
		}
		untold = errors.Join(untold, r.undone(change))
		u.add(change, restored)
	}
	if len(foreign.Changes) > 0 {
		return errors.Join(foreign, untold)
	}
	return untold
}

func (u *Undone) add(c Change, restored bool) {
	if restored {
		u.Restored = append(u.Restored, c)
	} else {
		u.Already = append(u.Already, c)
	}
}

// undone puts on record that a change is set back. A record that cannot be written keeps no other change from
// being set back.
func (r *Record) undone(c Change) error {
	l := recordLine{N: c.N, Event: undone}
	if err := r.note(l); err != nil {
		return errors.Join(fmt.Errorf("%s is set back, but not on record: %w", c.Name, err), r.take(l))
	}
	return nil
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
func compare(ctx context.Context, c asker, pending []Change, restarted bool) (e ChangedError, err error) {
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
func (c Change) persistedByOther(ctx context.Context, conn asker) (string, error) {
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

// back sets one change back, and tells whether there was anything to do. Where david did not see the new
// value the server may be about to take it, as a buffer pool grows in the background: it is given the old one
// also where it reports that.
func back(ctx context.Context, s *session, change Change) (restored bool, err error) {
	v, err := variables(ctx, s, change.Name)
	if err != nil {
		return false, err
	}
	now := v[change.Name]
	restored = change.Persist || change.ours(now) && now != change.Before
	if !restored && !(change.effectiveUnknown && now == change.Before) {
		return false, nil
	}
	for _, statement := range change.backStatements() {
		if err := s.Exec(ctx, statement); err != nil {
			return false, fmt.Errorf("cannot set %s back to %s: %w", change.Name, change.Before, err)
		}
	}
	_, err = await(ctx, s, change.Name, func(now string) bool { return now == change.Before })
	return restored, err
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
