package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"david/internal/advice"
	"david/internal/host"
	"david/internal/mycnf"
	"david/internal/mysqld"
)

// SeeServer sees a running server as an audit wants it, as far as its user may, and its machine where that is
// this one. It only reads. told says that somebody told what the hardware is.
func (l Lab) SeeServer(ctx context.Context, addr mysqld.Addr, told bool) (in advice.Facts, err error) {
	conn, err := mysqld.Open(ctx, addr)
	if err != nil {
		return in, err
	}
	defer conn.Close()
	if err := identify(ctx, conn, &in); err != nil {
		return in, err
	}
	if in.Variables, err = conn.Variables(ctx); err != nil {
		return in, err
	}
	in.Live = true
	see := &serverLook{ctx: ctx, conn: conn, in: &in}
	see.grants()
	see.status()
	see.origins()
	see.data()
	if see.err == nil {
		see.err = l.seeMachine(ctx, conn, told, &in)
	}
	return in, see.err
}

func identify(ctx context.Context, conn *mysqld.Conn, in *advice.Facts) error {
	version, comment, err := conn.Version(ctx)
	if err != nil {
		return err
	}
	in.Flavour = mycnf.FlavourOf(version, comment)
	in.Version, err = mycnf.ParseVersion(version)
	return err
}

// serverLook asks a server what its user may see. What the user may not see is noted; any other failure is
// kept in err, and ends it.
type serverLook struct {
	ctx  context.Context
	conn *mysqld.Conn
	in   *advice.Facts
	err  error
}

// pairs is the answer to a query of two columns; ok is false where there is none.
func (l *serverLook) pairs(what, query string) (values map[string]string, ok bool) {
	if l.err != nil {
		return nil, false
	}
	values, err := l.conn.Pairs(l.ctx, query)
	return values, l.allowed(what, err)
}

// allowed tells whether a query was answered.
func (l *serverLook) allowed(what string, err error) bool {
	switch {
	case err == nil:
		return true
	case errors.Is(err, mysqld.ErrPrivilege):
		l.in.Unseen = append(l.in.Unseen, fmt.Sprintf("%s: %s", what, err))
	default:
		l.err = err
	}
	return false
}

func (l *serverLook) status() {
	if values, ok := l.pairs("status counters", "SHOW GLOBAL STATUS"); ok {
		l.in.Status = values
	}
}

// grants sees a server that asks nobody who he is. MariaDB reports the variable from 10.10 on; who logs into others is
// this user, whatever name was given.
func (l *serverLook) grants() {
	if _, reported := l.in.Variables["skip_grant_tables"]; reported || l.err != nil {
		return
	}
	var who string
	if err := l.conn.Row(l.ctx, "SELECT CURRENT_USER()", nil, &who); err != nil {
		l.err = err
		return
	}
	if who == "skip-grants user@skip-grants host" || who == "@" {
		l.in.Variables["skip_grant_tables"] = "ON"
	}
}

// origins asks where values come from: MySQL tells in performance_schema, MariaDB in information_schema.
// Values that the server was told while it ran are lost at its next start.
func (l *serverLook) origins() {
	// what SET PERSIST set is DYNAMIC too, until the next start
	query, lost := `SELECT i.variable_name, IF(p.variable_name IS NULL, i.variable_source, 'PERSISTED')
		FROM performance_schema.variables_info i LEFT JOIN performance_schema.persisted_variables p ON p.variable_name = i.variable_name`, "DYNAMIC"
	if l.in.Flavour == mycnf.MariaDB {
		query, lost = "SELECT variable_name, global_value_origin FROM information_schema.SYSTEM_VARIABLES", "SQL"
	} else if !l.in.Version.AtLeast(8, 0, 0) {
		return
	}
	origins, ok := l.pairs("which values were set, and where", query)
	if !ok {
		return
	}
	l.in.Set = map[string]string{}
	for name, origin := range origins {
		if origin == lost {
			l.in.Lost = append(l.in.Lost, name)
		}
		if !slices.Contains([]string{"COMPILED", "COMPILE-TIME", "AUTO"}, origin) {
			l.in.Set[name] = l.in.Variables[name]
		}
	}
}

// data asks for the size of tables and indexes. It asks for the files: asking information_schema.TABLES makes
// MySQL 8 store statistics, which is a write.
func (l *serverLook) data() {
	table := "information_schema.INNODB_TABLESPACES"
	if l.in.Flavour == mycnf.MariaDB || !l.in.Version.AtLeast(8, 0, 0) {
		table = "information_schema.INNODB_SYS_TABLESPACES"
	}
	if l.err != nil {
		return
	}
	err := l.conn.Row(l.ctx, "SELECT CAST(COALESCE(SUM(file_size), 0) AS SIGNED) FROM "+table, nil, &l.in.Machine.Data)
	l.in.Machine.DataSeen = l.allowed("size of the data", err)
}

// seeMachine sees the hardware where the server is on this machine: it is reached by a socket or a loopback
// address, and gives this machine's name. A tunnel's end or a container's port looks local too, but gives
// another name.
func (l Lab) seeMachine(ctx context.Context, conn *mysqld.Conn, told bool, in *advice.Facts) error {
	name, err := os.Hostname()
	if err != nil || !conn.Addr().Local() || !strings.EqualFold(name, in.Variables["hostname"]) {
		if !told {
			in.Unseen = append(in.Unseen, "the server's hardware: it is another machine or a container; --memory and --cpus say what it is")
		}
		return nil
	}
	facts, err := host.Read(ctx, l.Home)
	if err != nil {
		return err
	}
	in.Machine.RAM, in.Machine.Memory, in.Machine.CPUs = facts.Memory.Total, facts.Memory.Total, float64(facts.CPU.Online)
	in.Machine.Available = facts.Memory.Available
	pid, err := LocalProcess(ctx, conn)
	if err != nil {
		return err
	}
	limit, err := host.MemoryLimit(pid)
	switch {
	case pid == 0 || err != nil:
		in.Machine.RAM = 0
		in.Unseen = append(in.Unseen, "the cgroup of the server's process: its pid file is not readable; the machine's memory is taken for the server's")
	case limit > 0:
		in.Machine.Memory = min(limit, facts.Memory.Total)
	}
	seeProcess(pid, in)
	seeStorage(ctx, in)
	if facts.Data, err = host.Under(in.Variables["datadir"]); err != nil {
		in.Unseen = append(in.Unseen, fmt.Sprintf("the disk under the data: %v", err))
		return nil
	}
	in.Machine.FreeDisk, in.Machine.Spinning = facts.Data.Free, spinning(facts)
	return nil
}

// spinning tells whether the disk under the data surely rotates: of virtual disks the kernel says so without
// knowing.
func spinning(f host.Facts) bool { return f.Virt == "" && Rotational(f, 0) }
