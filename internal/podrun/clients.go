package podrun

import (
	"context"
	"errors"
	"os"
	"time"

	"david/internal/mysqld"
	"david/internal/sandbox"
	"david/internal/workload"
)

// Join waits on the server for the other clients of a load that is spread over count of them. id tells them
// from others. release, which is never nil, sends them away. A load of one client has none to wait for:
// clients is nil.
func Join(ctx context.Context, addr mysqld.Addr, database, id string, count int, say func(string)) (clients *workload.Clients, release func(context.Context) error, err error) {
	release = func(context.Context) error { return nil }
	if count < 2 {
		return nil, release, nil
	}
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return nil, release, err
	}
	clients, err = workload.Join(ctx, conn, database, id, count, say)
	if err != nil {
		return nil, release, errors.Join(err, conn.Close())
	}
	return clients, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(clients.Release(ctx), conn.Close())
	}, nil
}

// Work has a client drive its share of the load until the first one releases it. The worker says which share;
// home is david's.
func Work(ctx context.Context, addr mysqld.Addr, home string, w workload.Worker) (err error) {
	if w.Target.Sysbench, err = workload.Find(ctx); err != nil {
		return err
	}
	if w.Name, err = os.Hostname(); err != nil {
		return err
	}
	if w.Conn, err = mysqld.Open(ctx, addr); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Conn.Close()) }()
	private, remove, err := sandbox.PrivateFolder(home)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, remove()) }()
	w.Target.Addr, w.Target.Dir = w.Conn.Addr(), private
	return w.Work(ctx)
}
