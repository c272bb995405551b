package experiment

import (
	"context"
	"fmt"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/sandbox"
)

// Prove starts a server with the option file itself, on a clone of g, and makes sure that its variables are
// those of the arm that was measured.
func Prove(ctx context.Context, w *sandbox.Workspace, g sandbox.Template, flavour mycnf.Flavour, file string, measured result.Arm, o sandbox.StartOptions) (err error) {
	o.DefaultsFile = file
	s, _, err := w.Start(ctx, g, o)
	if err != nil {
		return fmt.Errorf("the server does not start with %s: %w", file, err)
	}
	defer func() {
		if _, stopErr := s.Stop(context.WithoutCancel(ctx)); err == nil {
			err = stopErr
		}
	}()
	conn, err := mysqld.Open(ctx, s.Addr())
	if err != nil {
		return err
	}
	defer conn.Close()
	vars, err := effective(ctx, conn, flavour)
	if err != nil {
		return err
	}
	if d := mycnf.Diff(measured.Effective, vars); len(d) > 0 {
		return fmt.Errorf("a server started with %s has %s = %s, the one measured had %s", file, d[0].Name, d[0].After, d[0].Before)
	}
	return nil
}
