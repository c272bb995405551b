package sandbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/home"
	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/server"
)

// TemplateKey tells one data template from another.
type TemplateKey struct {
	Binary   server.Binary
	PageSize int // bytes
	Tables   int
	Rows     int    // per table
	Fill     string // how load fills the rows, where it can in several ways
	Database string // created empty, for load to fill
}

// Where data templates are, and what describes one. Other versions of david know them by these names.
const (
	templatesDir = "golden"
	templateFile = "golden.json"
)

// templateVersion changes with what a data template holds besides its key.
const templateVersion = 1

// name returns a folder's name a reader can tell apart, with a hash that cannot collide.
func (k TemplateKey) name() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d|%s|%s|%d|%d|%d|%s|%s", templateVersion, k.Binary.Version, k.Binary.SHA256, k.PageSize, k.Tables, k.Rows, k.Fill, k.Database))
	return fmt.Sprintf("%s-%dk-%dx%d-%s", k.Binary.Flavour, k.PageSize>>10, k.Tables, k.Rows, hex.EncodeToString(sum[:6]))
}

// Template holds initialised and loaded data of a server that was shut down cleanly.
type Template struct {
	key     TemplateKey
	dir     string
	bytes   int64
	created time.Time
}

// ID names the copy and when it was made: another load of the same tables is another copy.
func (g Template) ID() string {
	return g.key.name() + " of " + g.created.UTC().Format(time.RFC3339)
}

// Bytes returns what it takes on the disk.
func (g Template) Bytes() int64 { return g.bytes }

// manifest describes the data, in templateFile beside it.
type manifest struct {
	Version  int       `json:"version"`
	Server   string    `json:"server"`
	PageSize int       `json:"page_size"`
	Tables   int       `json:"tables"`
	Rows     int       `json:"rows"`
	Bytes    int64     `json:"bytes"`
	Created  time.Time `json:"created"`
}

// Template returns the data template of a key that was made before; found is false where NewTemplate has to
// make it.
func (w *Workspace) Template(k TemplateKey) (g Template, found bool, err error) {
	if g, found = w.kept(k); found {
		err = os.Chtimes(g.dir, time.Time{}, time.Now()) // for eviction: last used
	}
	return g, found, err
}

// Filling is a data template in the making: its server is up, set up for loading.
type Filling struct {
	w      *Workspace
	key    TemplateKey
	tmp    string // becomes the template when it is complete
	server *Server
}

// NewTemplate begins a data template: makes room, initialises, and starts a server without durability that
// has the empty schema. Whoever has filled it calls Done, or where that failed as well.
func (w *Workspace) NewTemplate(ctx context.Context, k TemplateKey) (*Filling, error) {
	if err := w.evict(); err != nil {
		return nil, err
	}
	dir := w.templateDir(k)
	f := &Filling{w: w, key: k, tmp: filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir))}
	err := f.initialise(ctx)
	if err == nil {
		f.server, err = w.launch(ctx, k, f.data(), StartOptions{Settings: loadSettings(k.Binary.Flavour)})
	}
	if err != nil {
		return nil, f.drop(err)
	}
	f.server.keepData = true
	if err := f.open(ctx); err != nil {
		return nil, f.drop(f.server.end(ctx, err))
	}
	return f, nil
}

// Addr of the server that fills it.
func (f *Filling) Addr() mysqld.Addr { return f.server.Addr() }

// Done shuts the server down with everything flushed and purged, and keeps what was filled without an error.
// What is cut short is not kept.
func (f *Filling) Done(ctx context.Context, err error) (Template, error) {
	if err == nil && f.key.Binary.Flavour != mycnf.MariaDB {
		err = f.exec(ctx, "ALTER INSTANCE ENABLE INNODB REDO_LOG")
	}
	err = f.server.end(ctx, err)
	if err == nil {
		err = f.w.settle(ctx, f.key, f.data())
	}
	if err == nil {
		err = f.seal()
	}
	if err != nil {
		return Template{}, f.drop(err)
	}
	g, ok := f.w.kept(f.key)
	if !ok {
		return g, fmt.Errorf("cannot prepare the data: %s is not complete", g.dir)
	}
	return g, nil
}

// drop removes what there is of it.
func (f *Filling) drop(err error) error {
	return fmt.Errorf("cannot prepare the data: %w", errors.Join(err, os.RemoveAll(f.tmp)))
}

func (f *Filling) data() string { return filepath.Join(f.tmp, "data") }

// open makes the schema, and does without a redo log for the time being.
func (f *Filling) open(ctx context.Context) error {
	err := f.exec(ctx, "CREATE DATABASE "+f.key.Database)
	if err == nil && f.key.Binary.Flavour != mycnf.MariaDB {
		err = f.exec(ctx, "ALTER INSTANCE DISABLE INNODB REDO_LOG")
	}
	return err
}

func (f *Filling) exec(ctx context.Context, statement string) error {
	conn, err := mysqld.Open(ctx, f.Addr())
	if err != nil {
		return err
	}
	return errors.Join(conn.Exec(ctx, statement), conn.Close())
}

// kept returns the data template that was made before, and false where there is none.
func (w *Workspace) kept(k TemplateKey) (Template, bool) {
	g := Template{key: k, dir: w.templateDir(k)}
	var m manifest
	b, err := home.Read(filepath.Join(g.dir, templateFile), mostJournal)
	if err != nil || takeBack(g.dir) != nil || json.Unmarshal(b, &m) != nil {
		return g, false
	}
	g.bytes, g.created = m.Bytes, m.Created
	return g, true
}

func (w *Workspace) templateDir(k TemplateKey) string {
	return filepath.Join(w.data, templatesDir, k.name())
}

// evict removes the data templates used longest ago until a new one fits.
func (w *Workspace) evict() error {
	old, err := w.byUse()
	if err != nil {
		return err
	}
	for {
		full := w.hasRoom()
		if !errors.Is(full, ErrDiskFull) || len(old) == 0 {
			return full
		}
		fmt.Fprintf(w.log, "david: removing the prepared data %s to make room\n", filepath.Base(old[0]))
		if err := errors.Join(os.RemoveAll(old[0]), syncfs(w.data)); err != nil { // synced, the space comes back now
			return err
		}
		old = old[1:]
	}
}

func (w *Workspace) hasRoom() error {
	return w.roomFor(w.need)
}

// byUse lists the data templates, the one used longest ago first.
func (w *Workspace) byUse() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(w.data, templatesDir))
	if err != nil {
		return nil, err
	}
	used := map[string]time.Time{}
	var dirs []string
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		dir := filepath.Join(w.data, templatesDir, e.Name())
		used[dir], dirs = info.ModTime(), append(dirs, dir)
	}
	sort.Slice(dirs, func(i, j int) bool { return used[dirs[i]].Before(used[dirs[j]]) })
	return dirs, nil
}

// initialise makes the folders, and an empty data folder among them.
func (f *Filling) initialise(ctx context.Context) error {
	if err := errors.Join(keep(f.tmp), mkdirIfMissing(f.data()), f.w.owner.Own(f.data())); err != nil {
		return err
	}
	return f.w.initialise(ctx, f.key, f.data())
}

// initialise makes an empty data folder.
func (w *Workspace) initialise(ctx context.Context, k TemplateKey, data string) error {
	b, err := w.reach(k.Binary)
	if err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(w.run, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := w.owner.Own(tmp); err != nil {
		return err
	}
	argv := append(append([]string{}, b.Launch...), "--no-defaults")
	var sql []byte
	if b.Flavour == mycnf.MariaDB {
		argv = append(argv, "--bootstrap")
		if sql, err = mariadbSystem(k.Binary); err != nil {
			return err
		}
	} else {
		argv = append(argv, "--initialize-insecure", "--secure-file-priv=NULL")
	}
	if b.Basedir != "" {
		argv = append(argv, "--basedir="+b.Basedir)
	}
	argv = append(argv, "--datadir="+data, "--tmpdir="+tmp, fmt.Sprintf("--innodb-page-size=%d", k.PageSize))
	return w.runToEnd(ctx, k.Binary.Path, argv, sql, tmp)
}

// runToEnd runs a command as the servers' user, with stdin to read.
func (w *Workspace) runToEnd(ctx context.Context, binary string, argv []string, stdin []byte, dir string) error {
	logFile := filepath.Join(dir, "out")
	out, err := w.create(logFile)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, bytes.NewReader(stdin), out, out
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LC_ALL=C", "DAVID_HOME=" + w.home}
	c, err := w.spawn(cmd, nil, nil)
	if err != nil {
		return err
	}
	select {
	case <-c.done:
	case <-ctx.Done():
		cmd.Process.Kill()
		<-c.done
		return errors.Join(ctx.Err(), w.journal.ended(cmd.Process.Pid))
	}
	if c.err != nil {
		return errors.Join(w.startError(binary, logFile, c.err), w.journal.ended(cmd.Process.Pid))
	}
	return w.journal.ended(cmd.Process.Pid)
}

// settle runs the server once with its defaults, so that its redo log has the default size, and shuts it down
// with a full purge, so that no clone starts with debt.
func (w *Workspace) settle(ctx context.Context, k TemplateKey, data string) error {
	s, err := w.launch(ctx, k, data, StartOptions{Settings: []mycnf.Setting{{Name: "skip_log_bin"}, {Name: "innodb_fast_shutdown", Value: "0"}}})
	if err != nil {
		return err
	}
	s.keepData = true
	return s.end(ctx, nil)
}

// end stops a server that makes a template, and adds why it died to the error so far.
func (s *Server) end(ctx context.Context, err error) error {
	dead := s.Alive()
	// The kernel closes the sockets of a process that it kills before that is gone.
	for began := time.Now(); dead == nil && errors.Is(err, mysqld.ErrUnreachable) && ctx.Err() == nil && time.Since(began) < 10*time.Second; dead = s.Alive() {
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil && dead != nil && ctx.Err() == nil {
		err = errors.Join(err, dead)
	}
	_, stopErr := s.Stop(ctx)
	return errors.Join(err, stopErr)
}

// loadSettings make loading quick: nothing need survive a crash, as a copy that was not finished is thrown
// away.
func loadSettings(f mycnf.Flavour) []mycnf.Setting {
	settings := []mycnf.Setting{
		{Name: "innodb_flush_log_at_trx_commit", Value: "0"}, {Name: "innodb_doublewrite", Value: "0"}, {Name: "skip_log_bin"},
		{Name: "innodb_buffer_pool_size", Value: fmt.Sprint(loadPool())}, {Name: "innodb_flush_method", Value: "O_DIRECT"},
		{Name: "innodb_fast_shutdown", Value: "0"},
	}
	if f == mycnf.MariaDB {
		settings = append(settings, mycnf.Setting{Name: "innodb_log_file_size", Value: "1G"})
	}
	return settings
}

// loadPool returns the buffer pool for loading: a quarter of the memory that is free, 4 GiB at most.
func loadPool() int64 {
	const chunk = 128 << 20
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return chunk
	}
	free := int64(info.Freeram) * int64(info.Unit)
	return max(chunk, min(4<<30, free/4)/chunk*chunk)
}

// clean removes what would make clones differ or start warm: the server's own identity, the saved list of
// pages of its buffer pool, and binary logs.
func (w *Workspace) clean(data string) error {
	for _, pattern := range []string{"auto.cnf", "binlog.*", "*-bin.*", "*.pid", "undo_*_trunc.log"} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(data), pattern))
		if err != nil {
			return err
		}
		for _, path := range found {
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	// Emptied, not removed: MySQL reports an error where it is missing.
	f, err := home.Open(filepath.Join(data, "ib_buffer_pool"), os.O_WRONLY, 0, w.owner.UID)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(0), f.Close())
}

// syncfs brings what was written on the filesystem of dir to the disk.
func syncfs(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.Syncfs(int(f.Fd())); err != nil {
		return fmt.Errorf("cannot write the data to the disk: %w", err)
	}
	return nil
}

// seal writes the manifest, brings everything to the disk, and gives the copy its name.
func (f *Filling) seal() error {
	if err := f.w.clean(f.data()); err != nil {
		return err
	}
	size, err := diskUsage(f.data())
	if err != nil {
		return err
	}
	k, dir := f.key, f.w.templateDir(f.key)
	m := manifest{templateVersion, strings.TrimSpace(string(k.Binary.Flavour) + " " + k.Binary.Version), k.PageSize, k.Tables, k.Rows, size, time.Now()}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := home.Write(filepath.Join(f.tmp, templateFile), b, 0o644); err != nil {
		return err
	}
	if err := syncfs(f.tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // one without a manifest
		return err
	}
	return os.Rename(f.tmp, dir)
}
