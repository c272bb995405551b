package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/home"
	"david/internal/mysqld"
	"david/internal/process"
)

// Server is the one that serves from the volume.
type Server struct {
	Version  string `json:"version,omitempty"`
	UUID     string `json:"uuid,omitempty"`
	ReadOnly string `json:"read_only,omitempty"` // the variable that keeps it from being written to
}

// greeting is how long the old server may take to say something.
const greeting = 5 * time.Second

// old refuses where the old server still answers, or nobody says where it is.
func (p *Plan) old(ctx context.Context) error {
	if p.q.Old == "" {
		if p.q.Force {
			return nil
		}
		return refuse("nobody can say whether the old server still answers: name it with --old, or give --force")
	}
	state, err := answers(ctx, p.q.Old)
	if err != nil {
		return err
	}
	switch {
	case state == "":
		p.Notes = append(p.Notes, "the old server at "+p.q.Old+" does not answer")
	case !p.q.Force:
		return refuse("the old server at %s %s: stop it (nothing is lost then), or give --force to take the volume from it", p.q.Old, state)
	default:
		p.Notes = append(p.Notes, "the old server at "+p.q.Old+" "+state+", and may go on answering reads from its memory: take its address from its clients")
	}
	return nil
}

// answers tells whether a server says anything at an address: any server does that takes clients, be it that
// it refuses them. "" where none does.
func answers(ctx context.Context, address string) (string, error) {
	network := "tcp"
	if filepath.IsAbs(address) {
		network = "unix"
	} else if _, _, err := net.SplitHostPort(address); err != nil {
		return "", refuse("--old %s: give HOST:PORT, or the path of a socket", address)
	}
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, network, address)
	var name *net.DNSError
	if errors.As(err, &name) { // nobody was asked then
		return "", refuse("--old %s: %w; give its IP", address, err)
	}
	if err != nil {
		return "", nil
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(greeting)); err != nil {
		return "", err
	}
	if n, _ := conn.Read(make([]byte, 1)); n == 0 {
		return "", nil // hung, or a proxy without a server
	}
	return "still answers", nil
}

// serve plans the start of the server, unless it runs on the volume already.
func (p *Plan) serve(ctx context.Context, mounted bool) error {
	conn, err := mysqld.Open(ctx, p.q.Addr)
	if err == nil || errors.Is(err, mysqld.ErrAccess) {
		if err == nil {
			err = conn.Close()
		}
		if !mounted {
			return errors.Join(refuse("a server answers at %s already: stop it, or name with --dsn the one that --start starts", p.q.Addr), err)
		}
	} else {
		if _, err := exec.LookPath(p.q.Start[0]); err != nil {
			return refuse("--start: %w", err)
		}
		if err := p.starts(mounted); err != nil {
			return err
		}
	}
	p.step(Recovering, p.recover)
	return nil
}

// starts plans to start a server, unless a david that was killed has done so already. That one may still be
// recovering, or not have begun: a second would run beside it.
func (p *Plan) starts(mounted bool) error {
	if err := p.early(mounted); err != nil {
		return err
	}
	if p.working != "" {
		p.Notes = append(p.Notes, p.working+" already: an answer is waited for, and nothing is started beside it")
		return nil
	}
	p.step(Starting, func(context.Context) error { return p.start() }, p.q.Start...)
	return nil
}

// early sees who works on the volume, or was started to do so.
func (p *Plan) early(mounted bool) error {
	if mounted {
		working, err := workers(p.q.Mount)
		if err != nil {
			return err
		}
		if len(working) > 0 {
			p.working, p.worked = process.Names(working)+" works on the volume", process.Names(working)+" worked on the volume"
			return nil
		}
	}
	begun, err := p.begun()
	if len(begun) > 0 {
		p.working = process.Names(begun) + " was started by an earlier run"
		p.worked = p.working
	}
	return err
}

// beginning is the record of the start command: which process it is.
type beginning struct {
	By   process.ID `json:"by"`
	Boot string     `json:"boot"` // of the machine
}

func (p *Plan) startLog() string { return filepath.Join(p.dir, "start.log") }

func (p *Plan) startRecord() string { return filepath.Join(p.dir, "started.json") }

// start begins to start the server; how that goes recover sees.
func (p *Plan) start() error {
	f, err := home.Create(p.startLog(), 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	var now beginning
	if now.By, p.started, err = process.Detached(p.q.Start, f); err != nil {
		return err
	}
	if now.Boot, err = boot(); err != nil {
		return err
	}
	text, err := json.Marshal(now)
	if err == nil {
		err = home.Replace(p.startRecord(), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("%s was started, and cannot be put on record: %w", strings.Join(p.q.Start, " "), err)
	}
	return nil
}

// begun lists the processes that an earlier david's start command has left: they may become a server, though
// they have no file of the volume open yet. They are known by the record of it, and, where that david was
// killed before it wrote one, by the log that they print to.
func (p *Plan) begun() (list []process.Holder, err error) {
	if log, err := os.Lstat(p.startLog()); err == nil {
		printing, err := process.Openers(log)
		if err != nil {
			return nil, err
		}
		for _, o := range printing {
			if o.Writes && !o.Own {
				list = append(list, o.Holder)
			}
		}
	}
	text, err := home.ReadOwn(p.startRecord(), 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return list, nil
	}
	var was beginning
	if err == nil {
		err = json.Unmarshal(text, &was)
	}
	if err != nil {
		return list, fmt.Errorf("cannot read %s, the record of an earlier run's start command: %w; "+
			"remove that file once no server of that run is left", p.startRecord(), err)
	}
	if now, err := boot(); err != nil || now != was.Boot {
		return list, err
	}
	session, err := process.Session(was.By)
	for _, h := range session {
		if !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list, err
}

// boot names the time since the machine was booted.
func boot() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}

// recover waits until the server answers, and makes sure that it serves from the volume.
func (p *Plan) recover(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.q.Recovery, fmt.Errorf("no answer within %s (--recovery)", p.q.Recovery))
	defer cancel()
	seen := time.Now() // that somebody worked on the volume, or was about to
	for {
		conn, last := mysqld.Open(ctx, p.q.Addr)
		if last == nil {
			return errors.Join(p.see(ctx, conn), conn.Close())
		}
		if errors.Is(last, mysqld.ErrAccess) {
			return fmt.Errorf("%w as far as david can tell: it answers, and does not let david in: %w", ErrServer, last)
		}
		select {
		case err := <-p.started:
			if err != nil {
				return fmt.Errorf("%w: %w", ErrServer, err)
			}
			p.started, seen = nil, time.Now() // it was started in the background
		case <-ctx.Done():
			return fmt.Errorf("%w: %w%s: %w", ErrServer, context.Cause(ctx), p.inTheWay(), last)
		case <-time.After(50 * time.Millisecond):
		}
		if p.started != nil || worksOn(p.q.Mount) {
			seen = time.Now()
		}
		if p.worked != "" && time.Since(seen) > deserted { // who was started to work on it may take its time
			if begun, err := p.begun(); err == nil && len(begun) > 0 {
				seen = time.Now()
			}
		}
		if time.Since(seen) > deserted {
			return fmt.Errorf("%w: it has ended, its error log says why; nobody has worked on the volume for %s%s", ErrServer, deserted, p.inTheWay())
		}
	}
}

// deserted is how long nobody may work on the volume while its server is waited for: a service manager starts
// it again within seconds, where it does.
const deserted = 20 * time.Second

// inTheWay says who kept --start from being run.
func (p *Plan) inTheWay() string {
	if p.worked == "" {
		return ""
	}
	return "; " + p.worked + ", so that --start was not run: end it where it is no server"
}

// workers lists the processes that write on a mount, and the servers that are about to: those have their working directory there
// first, as may also be had by a shell in which nothing is done.
func workers(mount string) ([]process.Holder, error) {
	var at unix.Stat_t
	if err := unix.Stat(mount, &at); err != nil {
		return nil, err
	}
	list, err := process.WritersOn(at.Dev)
	if err != nil {
		return nil, err
	}
	within, err := process.Within(at.Dev)
	for _, h := range within {
		if process.Serves(h.PID) && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list, err
}

// worksOn tells whether a process has its working directory on a mount, as servers have in their data, be it
// in a container.
func worksOn(mount string) bool {
	var want, got unix.Stat_t
	if err := unix.Stat(mount, &want); err != nil {
		return false
	}
	all, _ := filepath.Glob("/proc/[0-9]*/cwd")
	return slices.ContainsFunc(all, func(cwd string) bool { return unix.Stat(cwd, &got) == nil && got.Dev == want.Dev })
}

// see looks at who answers.
func (p *Plan) see(ctx context.Context, conn *mysqld.Conn) error {
	vars, err := conn.Variables(ctx)
	if err != nil {
		return err
	}
	data, err := filepath.EvalSymlinks(vars["datadir"])
	if err != nil {
		return fmt.Errorf("%w from the volume: its data are in %s: %w", ErrServer, vars["datadir"], err)
	}
	mount, err := filepath.EvalSymlinks(p.q.Mount)
	if err != nil {
		return err
	}
	if data != mount && !strings.HasPrefix(data, mount+string(os.PathSeparator)) {
		return fmt.Errorf("%w from the volume: the data of the one that answers at %s are in %s, not below %s", ErrServer, p.q.Addr, data, mount)
	}
	p.Server.Version = vars["version"]
	if p.Server.ReadOnly, err = conn.ReadOnly(ctx); err != nil {
		return err
	}
	who, err := conn.Identity(ctx)
	p.Server.UUID = who.UUID
	return err
}
