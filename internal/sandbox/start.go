package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/account"
	"david/internal/cgroup"
	"david/internal/home"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
	"david/internal/server"
)

// How long a server may take to answer, and to shut down, before it is given up. Crash recovery and the
// flushing of a large pool take long; a throwaway server on a clean copy does neither.
const (
	startTimeout = 2 * time.Minute
	stopTimeout  = 2 * time.Minute
	// A server listens a moment before it has made the user.
	refusalTimeout = 5 * time.Second
)

// StartOptions say how a server is started.
type StartOptions struct {
	Settings     []mycnf.Setting
	DefaultsFile string // an option file the server reads instead of Settings
	TCP          bool   // also listen on 127.0.0.1, on a free port; Addr is then that one
	Host         string // where not "": with TCP, listen there instead, for clients from anywhere: an address of this machine, or * for all
	// Inside, where not nil, starts the server in a network namespace, by calling start there: it listens on
	// all of its addresses, at InsidePort, and Addr stays its socket, which can be reached from everywhere.
	Inside  func(start func() error) error
	LogPath string      // where the server's error log is copied when it stops
	Caps    result.Caps // put on the server; those on I/O wait for Throttle
	Tmpfs   int64       // the clone lies on a tmpfs of so many bytes; 0: where the data template does
	kept    bool        // the data are somebody else's to drop
	Layout  string      // the clone lies on this one, which was built; "": where the data template does
	// patience is how long the server may take to answer; 0: startTimeout.
	patience time.Duration
}

// Timing holds what a start took.
type Timing struct {
	Clone, Start time.Duration
}

// Server handles a running throwaway server.
type Server struct {
	w        *Workspace
	child    *child
	binary   server.Binary
	pageSize int
	addr     mysqld.Addr
	host     string // StartOptions.Host
	port     string // that it listens on; "" for its socket alone
	inside   func(start func() error) error
	argv     []string
	dir      string // runtime: socket, pid file, log, temporary files
	data     string
	keepData bool
	tmpfs    bool // data lies on one of its own
	at       place
	logPath  string
	group    *cgroup.Group // nil without caps
	stopped  sync.Once
	stopErr  error
	took     time.Duration
}

// Start clones a data template and starts a server on the clone. It returns once the server answers.
func (w *Workspace) Start(ctx context.Context, g Template, o StartOptions) (*Server, Timing, error) {
	var t Timing
	began := time.Now()
	at, err := w.place(o.Layout)
	if err != nil {
		return nil, t, err
	}
	data, err := w.cloneFolder(o, at)
	if err != nil {
		return nil, t, fmt.Errorf("cannot make a folder for the clone: %w", err)
	}
	if err := w.clone(g, data, o, at); err != nil {
		return nil, t, errors.Join(err, w.dropClone(data, o.Tmpfs > 0))
	}
	t.Clone = time.Since(began)
	began = time.Now()
	s, err := w.launch(ctx, g.key, filepath.Join(data, "data"), o)
	if err != nil {
		return nil, t, errors.Join(err, w.dropClone(data, o.Tmpfs > 0))
	}
	t.Start = time.Since(began)
	return s, t, nil
}

func (w *Workspace) clone(g Template, to string, o StartOptions, at place) error {
	room := w.room
	switch {
	case o.Tmpfs > 0:
		room = func(g Template) error { return roomInMemory(g, o.Tmpfs) }
	case o.Layout != "":
		room = func(g Template) error { return roomIn(g.bytes+w.need/2, at.dir) }
	}
	if err := room(g); err != nil {
		return err
	}
	if err := w.cloneTree(filepath.Join(g.dir, "data"), filepath.Join(to, "data")); err != nil {
		return err
	}
	return syncfs(at.dir) // what dropping the last clone and making this one left to write must not fall into the trial
}

// room makes sure that a clone, and as much again for what the workload writes, fits.
func (w *Workspace) room(g Template) error {
	need := g.bytes + w.need/2
	if w.reflink {
		need = w.need / 2
	}
	return w.roomFor(need)
}

// roomFor makes sure that so many bytes fit where the data lies, and on the filesystem under it.
func (w *Workspace) roomFor(need int64) error {
	free, err := freeBytes(w.data)
	if err != nil {
		return err
	}
	if free < need {
		return fullError(w.Place(), need, free)
	}
	return roomIn(need, w.home)
}

// roomIn makes sure that so many bytes fit on the filesystems of some folders.
func roomIn(need int64, dirs ...string) error {
	for _, dir := range dirs {
		free, err := freeBytes(dir)
		if err != nil {
			return err
		}
		if free < need {
			return fullError(dir, need, free)
		}
	}
	return nil
}

// launch starts a server on a data folder and waits until it answers.
func (w *Workspace) launch(ctx context.Context, k TemplateKey, data string, o StartOptions) (*Server, error) {
	s, err := w.newServer(k, data, o)
	if err != nil {
		return nil, err
	}
	if s.argv, err = w.command(s, o); err != nil {
		return nil, err
	}
	if s.group, err = w.group(o.Caps, s.at); err != nil {
		return nil, errors.Join(err, s.release())
	}
	if err := s.run(ctx, cmp.Or(o.patience, startTimeout)); err != nil {
		err = w.startError(k.Binary.Path, s.log(), s.killed(err))
		return nil, errors.Join(err, s.release())
	}
	return s, nil
}

func (w *Workspace) newServer(k TemplateKey, data string, o StartOptions) (*Server, error) {
	dir, err := os.MkdirTemp(w.run, "")
	if err != nil {
		return nil, fmt.Errorf("cannot make a runtime folder: %w", err)
	}
	at, err := w.place(o.Layout)
	if err != nil {
		return nil, err
	}
	s := &Server{w: w, at: at, binary: k.Binary, pageSize: k.PageSize, dir: dir, data: data, logPath: o.LogPath, tmpfs: o.Tmpfs > 0, host: o.Host, inside: o.Inside, keepData: o.kept}
	for _, path := range []string{dir, filepath.Join(dir, "tmp"), filepath.Join(dir, "files")} {
		if err := errors.Join(mkdirIfMissing(path), w.owner.Own(path)); err != nil {
			return nil, err
		}
	}
	s.addr = mysqld.Addr{Network: "unix", Address: filepath.Join(dir, "sock"), User: "david", Password: mysqld.Secret(rand.Text())}
	if o.Inside != nil {
		s.host, s.port = everywhere, InsidePort
	} else if o.TCP {
		if s.addr.Network, s.addr.Address, err = freePort(o.Host); err != nil {
			return nil, err
		}
		s.port = s.addr.Address[strings.LastIndexByte(s.addr.Address, ':')+1:]
	}
	return s, nil
}

func mkdirIfMissing(path string) error {
	err := os.Mkdir(path, 0o700)
	if os.IsExist(err) {
		return nil
	}
	return err
}

// freePort asks the kernel for one, of that address or else of 127.0.0.1. Another program can take it before
// the server does; the server then does not start.
func freePort(host string) (network, address string, err error) {
	switch host {
	case "":
		host = "127.0.0.1"
	case everywhere:
		host = ""
	}
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", "", fmt.Errorf("cannot find a free port: %w", err)
	}
	defer l.Close()
	return "tcp", l.Addr().String(), nil
}

// command returns the server's argv. What isolates it comes last, so that no setting can undo it; no secret
// is in it.
func (w *Workspace) command(s *Server, o StartOptions) ([]string, error) {
	b, err := w.reach(s.binary)
	if err != nil {
		return nil, err
	}
	argv := append([]string{}, b.Launch...)
	options, err := w.options(s, o)
	if err != nil {
		return nil, err
	}
	argv = append(argv, options...)
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	return append(argv, s.isolation()...), nil
}

// options returns the server's own, as they were asked for.
func (w *Workspace) options(s *Server, o StartOptions) (argv []string, err error) {
	if o.DefaultsFile != "" {
		file, err := w.readable(s, o.DefaultsFile)
		if err != nil {
			return nil, err
		}
		argv = append(argv, "--defaults-file="+file)
	} else {
		argv = append(argv, "--no-defaults")
	}
	for _, set := range o.Settings {
		argv = append(argv, option(set))
	}
	return argv, nil
}

// mostOptions bounds an option file, in bytes.
const mostOptions = 1 << 20

// readable copies an option file to where the server's user can read it.
func (w *Workspace) readable(s *Server, file string) (string, error) {
	content, err := home.Read(file, mostOptions)
	if err != nil {
		return "", fmt.Errorf("cannot read the option file: %w", err)
	}
	copied := filepath.Join(s.dir, "my.cnf")
	return copied, w.give(copied, content)
}

// give writes a file anew that is the servers' user's.
func (w *Workspace) give(path string, content []byte) (err error) {
	f, err := w.create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(content)
	return err
}

// create makes a file anew that is the servers' user's, in a folder that is, too: a link that lies there is
// not followed.
func (w *Workspace) create(path string) (*os.File, error) {
	f, err := home.Create(path, 0o600)
	if err == nil && w.owner.Switched {
		err = f.Chown(w.owner.UID, w.owner.GID)
	}
	return f, err
}

func option(s mycnf.Setting) string {
	if s.Value == "" && mycnf.Bare(s.Name) { // --sql_mode alone would take the next argument for its value
		return "--" + s.Name
	}
	return "--" + s.Name + "=" + s.Value
}

func (s *Server) log() string  { return filepath.Join(s.dir, "error.log") }
func (s *Server) init() string { return filepath.Join(s.dir, "init.sql") }

func (s *Server) isolation() []string {
	args := []string{
		"--datadir=" + s.data, "--socket=" + filepath.Join(s.dir, "sock"), "--pid-file=" + filepath.Join(s.dir, "pid"),
		"--log-error=" + s.log(), "--tmpdir=" + filepath.Join(s.dir, "tmp"), "--init-file=" + s.init(), "--server-id=1",
		fmt.Sprintf("--innodb-page-size=%d", s.pageSize),
	}
	if s.binary.Flavour == mycnf.MariaDB { // knows no NULL; an empty private folder serves as well
		args = append(args, "--secure-file-priv="+filepath.Join(s.dir, "files"))
	} else {
		args = append(args, "--secure-file-priv=NULL", "--mysqlx=OFF")
	}
	if s.port == "" {
		return append(args, "--skip-networking")
	}
	args = append(args, "--skip-networking=0", "--port="+s.port)
	if s.host == "" {
		return append(args, "--bind-address=127.0.0.1")
	}
	return append(args, "--bind-address="+s.host, "--skip-name-resolve") // looking a client up takes as long as the resolver likes
}

// everywhere names the host of a server that listens on all addresses.
const everywhere = "*"

// InsidePort is the TCP port of a server that is started Inside: free, where the server is alone.
const InsidePort = "3306"

// run starts the process and waits until it answers, at most so long. The file that holds the password is
// gone when it does.
func (s *Server) run(ctx context.Context, patience time.Duration) error {
	if err := s.writeInit(s.addr.Password); err != nil {
		return err
	}
	defer os.Remove(s.init())
	out, err := s.w.create(s.log()) // also what it prints before it opens its log
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, out, out
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + s.dir, "LC_ALL=C", "DAVID_HOME=" + s.w.home}
	if s.child, err = s.w.spawn(cmd, s.group, s.inside); err != nil {
		return err
	}
	return s.await(ctx, patience, s.ended)
}

// ended returns how the server's process ended; nil while it runs.
func (s *Server) ended() error {
	cause, _ := s.child.exited()
	return cause
}

// writeInit writes the statements that set the password; they are not logged, being run by the server itself.
func (s *Server) writeInit(password mysqld.Secret) error {
	var sql strings.Builder
	sql.WriteString("SET SESSION sql_log_bin=0;\n")
	hosts := []string{"localhost", "127.0.0.1"}
	if s.host != "" {
		hosts = append(hosts, "%")
	}
	for _, host := range hosts {
		user := "'david'@'" + host + "'"
		fmt.Fprintf(&sql, "CREATE USER IF NOT EXISTS %s IDENTIFIED BY '%s';\n", user, string(password))
		fmt.Fprintf(&sql, "ALTER USER %s IDENTIFIED BY '%s';\n", user, string(password))
		fmt.Fprintf(&sql, "GRANT ALL PRIVILEGES ON *.* TO %s WITH GRANT OPTION;\n", user)
	}
	// Others could come in as these over TCP: they have no password.
	sql.WriteString("DROP USER IF EXISTS 'root'@'localhost', 'root'@'127.0.0.1', 'root'@'::1', ''@'localhost';\n")
	return s.w.give(s.init(), []byte(sql.String()))
}

// await returns when the server answers, has ended, which ended tells with its cause, or takes too long.
func (s *Server) await(ctx context.Context, patience time.Duration, ended func() error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("it did not answer within %s", patience))
	defer cancel()
	var last error
	var refusedSince time.Time
	for {
		conn, err := mysqld.Open(ctx, s.addr)
		if err == nil {
			return conn.Close()
		}
		last = err
		if !errors.Is(err, mysqld.ErrAccess) {
			refusedSince = time.Time{}
		} else if refusedSince.IsZero() {
			refusedSince = time.Now()
		} else if time.Since(refusedSince) > refusalTimeout {
			return errors.New("it answers, but without the user david has it make at its start: a setting that makes it read-only does that")
		}
		if cause := ended(); cause != nil {
			return cause
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

// Addr returns where the server listens, with the password of this start.
func (s *Server) Addr() mysqld.Addr { return s.addr }

// Data returns the folder its data lies in.
func (s *Server) Data() string { return s.data }

// ReadData reads a plain file of the server's that lies in its data folder itself, of at most so many bytes: the name may be a
// server's word, and so may what lies there.
func (s *Server) ReadData(name string, most int64) ([]byte, error) {
	if !filepath.IsLocal(name) || filepath.Base(name) != name || name == "." {
		return nil, fmt.Errorf("%q is no name of a file in the server's data folder", name)
	}
	return home.Read(filepath.Join(s.data, name), most, s.w.owner.UID)
}

// PID returns the server's process.
func (s *Server) PID() int { return s.child.cmd.Process.Pid }

// Alive is nil while the server runs, else a *StartError that says how it ended.
func (s *Server) Alive() error {
	if cause, ended := s.child.exited(); ended {
		return s.w.startError(s.binary.Path, s.log(), s.killed(cause))
	}
	return nil
}

// Kill ends the server at once, as a crash would; its data stay until Stop.
func (s *Server) Kill() error {
	if err := unix.Kill(s.PID(), unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot kill the server: %w", err)
	}
	<-s.child.done
	return nil
}

// Stop ends the server, keeps its log, and drops its data. One whose data stay is shut down cleanly, and
// killed where that takes too long or ctx ends. It returns how long that took, and may be called more than
// once.
func (s *Server) Stop(ctx context.Context) (time.Duration, error) {
	s.stopped.Do(func() {
		began := time.Now()
		s.stopErr = errors.Join(s.shutdown(ctx), s.release())
		s.took = time.Since(began)
	})
	return s.took, s.stopErr
}

func (s *Server) shutdown(ctx context.Context) error {
	if _, ended := s.child.exited(); ended {
		return nil
	}
	if err := s.Throttle(false); err != nil { // nothing is measured any more
		return errors.Join(err, s.Kill())
	}
	if !s.keepData { // dropped anyway: shutting down cleanly would write some gigabytes of dirty pages for nothing
		return s.Kill()
	}
	if err := unix.Kill(s.PID(), unix.SIGTERM); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("cannot stop the server: %w", err)
	}
	select {
	case <-s.child.done:
		return nil
	case <-ctx.Done():
		return s.Kill()
	case <-time.After(stopTimeout):
		return errors.Join(fmt.Errorf("the server did not shut down within %s and was killed", stopTimeout), s.Kill())
	}
}

// release keeps the log and removes the folders.
func (s *Server) release() error {
	var err error
	if s.child != nil {
		if _, ended := s.child.exited(); !ended {
			err = s.Kill()
		}
		err = errors.Join(err, s.w.journal.ended(s.PID()))
	}
	err = errors.Join(err, s.w.ungroup(s.group)) // which lifts its caps on I/O
	if s.w.throttled == s {
		s.w.throttled = nil
	}
	if s.logPath != "" {
		err = errors.Join(err, s.w.keepLog(s.log(), s.logPath))
	}
	err = errors.Join(err, os.RemoveAll(s.dir))
	if !s.keepData {
		err = errors.Join(err, s.w.dropClone(filepath.Dir(s.data), s.tmpfs))
	}
	return errors.Join(err, s.Calm())
}

func (w *Workspace) keepLog(from, to string) error {
	b, err := w.readLog(from)
	if os.IsNotExist(err) {
		return nil
	}
	if err == nil {
		err = home.Write(to, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the server's log: %w", err)
	}
	return nil
}

// mostLog bounds what is read of a server's log, in bytes: its end.
const mostLog = 8 << 20

// readLog reads what a server wrote, which lies in a folder of its own.
func (w *Workspace) readLog(path string) ([]byte, error) {
	f, err := home.Open(path, os.O_RDONLY, 0, w.owner.UID)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	} else if _, err := f.Seek(max(0, size-mostLog), io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, mostLog))
}

// reach makes a server's tree reachable for the user it runs as: where it is not, the tree is bound,
// read-only, into the runtime folder.
func (w *Workspace) reach(b server.Binary) (server.Binary, error) {
	root := b.Root
	if root == "" {
		root = filepath.Dir(filepath.Dir(b.Path))
	}
	if !w.owner.Switched || account.Traversable(root) {
		return b, nil
	}
	point, ok := w.reached[root]
	if !ok {
		point = filepath.Join(w.run, fmt.Sprintf("server-%d", len(w.reached)))
		if err := w.bind(root, point, unix.MS_RDONLY|unix.MS_NODEV|unix.MS_NOSUID); err != nil {
			return b, err
		}
		if w.reached == nil {
			w.reached = map[string]string{}
		}
		w.reached[root] = point
	}
	move := func(path string) string { return strings.ReplaceAll(path, root+"/", point+"/") }
	moved := b
	moved.Path, moved.Basedir = move(b.Path), move(b.Basedir)
	moved.Launch = make([]string, len(b.Launch))
	for i, arg := range b.Launch {
		moved.Launch[i] = move(arg)
	}
	return moved, nil
}
