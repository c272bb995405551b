package lab

import (
	"context"
	"errors"
	"fmt"
	"time"

	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/workload"
)

// Schema prepares and removes that of a workload on a server that is not david's.
type Schema struct {
	Target workload.Target
	Load   result.Workload
	Force  bool // replace one that david did not make
	Keep   bool // leave it for the next run
}

// Writable makes sure that the server lets this user make and load a schema, before anything is tried.
func Writable(ctx context.Context, conn *mysqld.Conn, schema string) error {
	why, err := conn.ReadOnly(ctx)
	if err != nil {
		return err
	}
	if why != "" {
		return fmt.Errorf("%w: %s has %s; measure the primary, or a server that may be written to", mysqld.ErrReadOnly, conn.Addr(), why)
	}
	return conn.CheckPrivileges(ctx, schema)
}

// Prepare makes the schema where there is none. It never touches one that david did not make, unless
// forced. drop tells whether it is to be removed at the end: one that this run made, or that an earlier
// run left because it was cut short, and not one that was to be kept.
func (s Schema) Prepare(ctx context.Context, conn *mysqld.Conn, say func(string)) (drop bool, err error) {
	state, err := workload.Inspect(ctx, conn, s.Load)
	if err != nil {
		return false, err
	}
	switch {
	case state == workload.OursMatching:
		return s.use(ctx, conn)
	case state == workload.Foreign && !s.Force:
		return false, s.foreign()
	case state != workload.Absent:
		if err := workload.DropSchema(ctx, conn, s.Load.Database, s.Force); err != nil {
			return false, err
		}
	}
	if err := workload.CreateSchema(ctx, conn, s.Load); err != nil {
		return false, err
	}
	err = workload.Prepare(ctx, s.Target, s.Load, min(4, s.Load.Tables), func(done, total int) {
		say(fmt.Sprintf("preparing the data on %s: %d of %d tables", s.Target.Addr, done, total))
	})
	if err != nil {
		return !s.Keep, fmt.Errorf("cannot prepare the data: %w", err)
	}
	if s.Keep {
		err = workload.Keep(ctx, conn, s.Load.Database)
	}
	return !s.Keep, errors.Join(err, workload.VerifyRows(ctx, conn, s.Load))
}

// use takes a schema that is there as it is wanted.
func (s Schema) use(ctx context.Context, conn *mysqld.Conn) (drop bool, err error) {
	if s.Keep {
		return false, workload.Keep(ctx, conn, s.Load.Database)
	}
	kept, err := workload.Kept(ctx, conn, s.Load.Database)
	return !kept && err == nil, err
}

// Free refuses a schema of somebody else.
func (s Schema) Free(ctx context.Context, conn *mysqld.Conn) error {
	state, err := workload.Inspect(ctx, conn, s.Load)
	if err == nil && state == workload.Foreign {
		err = s.foreign()
	}
	return err
}

func (s Schema) foreign() error {
	return refuse("the schema %s on %s was not made by david and is left alone; david bench --force replaces it", s.Load.Database, s.Target.Addr)
}

// Drop removes the schema, over a connection of its own: the first may have ended with the server, and
// an interruption must not leave it.
func (s Schema) Drop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	conn, err := mysqld.Open(ctx, s.Target.Addr)
	if err == nil {
		defer conn.Close()
		err = workload.DropSchema(ctx, conn, s.Load.Database, false)
	}
	if err != nil {
		return fmt.Errorf("the schema %s that david made is still on %s: %w", s.Load.Database, s.Target.Addr, err)
	}
	return nil
}
