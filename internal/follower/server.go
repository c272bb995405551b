package follower

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/procfs"

	"david/internal/account"
	"david/internal/ceph"
	"david/internal/home"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/process"
)

// markFile lies in a follower's folder and says whose it is, so that nothing else is removed in its place.
const markFile = "david.json"

// startPatience is how long a server may take to recover and answer.
const startPatience = 30 * time.Minute

// folder makes the follower's folder: its user may write into data and run, what is above them stays david's.
func (r *Record) folder() error {
	err := os.Mkdir(r.Dir, 0o711)
	if err == nil {
		err = os.WriteFile(filepath.Join(r.Dir, markFile), r.mark(), 0o600)
	}
	if err == nil && r.Volume != nil {
		err = errors.Join(os.Mkdir(r.point(), 0o700), os.Mkdir(r.shown(), 0o700))
	}
	if err == nil && r.ZFS != nil {
		err = os.Mkdir(r.point(), 0o700)
	}
	dirs := []string{r.run(), filepath.Join(r.run(), "tmp"), filepath.Join(r.run(), "files")}
	for _, dir := range dirs {
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	for _, dir := range slices.Backward(dirs) { // once run is the user's, anything may lie in it
		if err == nil && os.Geteuid() == 0 {
			err = os.Lchown(dir, r.UID, r.GID)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot make the follower's folder: %w", err)
	}
	return nil
}

func (r *Record) mark() []byte {
	return fmt.Appendf(nil, "{\"follower\": %q, \"made\": %d}\n", r.Name, r.Made.UnixNano())
}

// marked tells whether the folder is this follower's; false too where there is none.
func (r *Record) marked() (bool, error) {
	b, err := os.ReadFile(filepath.Join(r.Dir, markFile))
	if errors.Is(err, os.ErrNotExist) {
		if _, gone := os.Lstat(r.Dir); errors.Is(gone, os.ErrNotExist) {
			return false, nil
		}
	}
	if err == nil && !bytes.Equal(b, r.mark()) {
		err = errors.New("it is another's")
	}
	if err != nil {
		return false, fmt.Errorf("cannot take %s for the folder of the follower %s: %w", r.Dir, r.Name, err)
	}
	return true, nil
}

// give gives an open file to the server's user.
func (r *Record) give(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	return f.Chown(r.UID, r.GID)
}

// configure writes the follower's my.cnf.
func (r *Record) configure(p Plan) error {
	var text bytes.Buffer
	head := []string{"The follower " + r.Name + " of " + r.Leader + ", made by david. It starts its server by itself; by hand: " + strings.Join(r.command(), " ")}
	if err := mycnf.Render(&text, head, r.settings(p)); err != nil {
		return err
	}
	return home.Write(r.cnf(), text.Bytes(), 0o644)
}

func (r *Record) command() []string {
	return append(append([]string{}, r.Launch...), "--defaults-file="+r.cnf())
}

// start starts the follower's server, with options besides its my.cnf, and waits until it has recovered and answers.
func (r *Record) start(ctx context.Context, leader mysqld.Addr, options ...string) (*mysqld.Conn, error) {
	err := r.guarded(ctx, ceph.Wedged, func() error {
		_, err := os.Stat(r.data())
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("its data are gone: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot start the follower %s: %w", r.Name, err)
	}
	argv := append(r.command(), options...)
	out, err := home.Create(r.log(), 0o600)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	if err := r.give(out); err != nil {
		return nil, err
	}
	cmd := r.as(exec.Command(argv[0], argv[1:]...))
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.run(), out, out
	cmd.Env = append(cmd.Env, "HOME="+r.run())
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start the follower's server: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // it outlives david; should it end before, that is said
	conn, err := r.await(ctx, r.addr(leader), ended)
	if err != nil {
		return nil, fmt.Errorf("cannot start the follower's server: %w%s", err, r.said())
	}
	return conn, nil
}

// comesUp waits until a server that was started already, by a david that was interrupted or by hand, answers.
func (r *Record) comesUp(ctx context.Context, leader mysqld.Addr) (*mysqld.Conn, error) {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		for running := []process.ID{{}}; len(running) > 0; {
			select {
			case <-watching.Done():
				return
			case <-time.After(200 * time.Millisecond):
			}
			var err error
			if running, err = r.processes(); err != nil {
				ended <- err
				return
			}
		}
		ended <- nil
	}()
	conn, err := r.await(ctx, r.addr(leader), ended)
	if err != nil {
		return nil, fmt.Errorf("the follower's server runs and does not come up: %w%s", err, r.said())
	}
	return conn, nil
}

// as has a command run as the follower's user, in a session of its own.
func (r *Record) as(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(r.UID), Gid: uint32(r.GID)}
	}
	return cmd
}

// runs makes sure that the follower's user can run the leader's program at all, before the leader stands still for it.
func (r *Record) runs(ctx context.Context) error {
	argv := append(append([]string{}, r.Launch...), "--no-defaults", "--version")
	cmd := r.as(exec.CommandContext(ctx, argv[0], argv[1:]...))
	cmd.Dir = "/"
	if out, err := cmd.CombinedOutput(); err != nil {
		return refuse("%s cannot run the leader's program (%s): %w %.200s; a follower's server runs as that user: let it get through all folders on the way there", account.Name(r.UID), strings.Join(r.Launch, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// addr is how the follower is reached: by the kind of way, and with the account, by which the leader is.
func (r *Record) addr(leader mysqld.Addr) mysqld.Addr {
	a := leader
	a.Network, a.Address = "unix", r.Socket()
	if leader.Network == "tcp" {
		a.Network, a.Address = "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(r.Port))
		if a.TLS.Mode == "VERIFY_IDENTITY" { // the certificate is the leader's, and its name need not be 127.0.0.1
			a.TLS.Mode = "VERIFY_CA"
		}
	}
	return a
}

func (r *Record) await(ctx context.Context, a mysqld.Addr, ended <-chan error) (*mysqld.Conn, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startPatience, fmt.Errorf("it did not answer within %s", startPatience))
	defer cancel()
	for {
		conn, err := mysqld.Open(ctx, a)
		if err == nil || errors.Is(err, mysqld.ErrAccess) {
			return conn, err
		}
		select {
		case err := <-ended:
			return nil, errors.Join(errors.New("it ended"), err)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// said quotes the first error of the server's log.
func (r *Record) said() string {
	f, err := home.Open(r.log(), os.O_RDONLY, 0, r.UID)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if _, said, found := strings.Cut(line, "[ERROR]"); found {
			return "; it says: " + strings.TrimSpace(said)
		}
	}
	return ""
}

// processes are the servers that run with the follower's my.cnf, whoever started them.
func (r *Record) processes() (found []process.ID, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	option := []byte("--defaults-file=" + r.cnf())
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		args, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue // it has ended
		}
		if !slices.ContainsFunc(bytes.Split(args, []byte{0}), func(arg []byte) bool { return bytes.Equal(arg, option) }) {
			continue
		}
		if uid, err := process.UserOf(pid); err != nil || uid != r.UID {
			continue
		}
		if id, err := process.Identify(pid); err == nil {
			found = append(found, id)
		}
	}
	return found, nil
}

// kill ends the follower's servers at once: their data are dropped.
func (r *Record) kill() error {
	all, err := r.processes()
	for _, p := range all {
		err = errors.Join(err, p.Kill())
	}
	return err
}

// port returns the one that was asked for, or a free one.
func port(asked int) (int, error) {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(asked)))
	if err != nil {
		return 0, refuse("cannot use port %d for the follower: %w", asked, err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// pool returns the size of the buffer pool, in bytes.
func pool(asked int64, leader string) (int64, error) {
	const least = 32 << 20
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	info, err := proc.Meminfo()
	if err != nil {
		return 0, err
	}
	if free := info.MemAvailableBytes; asked != 0 && free != nil && uint64(asked) > *free {
		return 0, refuse("a buffer pool of %d MiB does not fit: %d MiB of memory are free here, and the leader needs its own", asked>>20, *free>>20)
	}
	if asked != 0 {
		return asked, nil
	}
	size, err := strconv.ParseInt(leader, 10, 64)
	if err != nil || info.MemAvailableBytes == nil {
		return least, nil
	}
	return max(least, min(size, int64(*info.MemAvailableBytes)/4>>20<<20)), nil
}
