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

// manifest describes the data: golden.json beside it.
type manifest struct {
	Version  int       `json:"version"`
	Server   string    `json:"server"`
	PageSize int       `json:"page_size"`
	Tables   int       `json:"tables"`
	Rows     int       `json:"rows"`
	Bytes    int64     `json:"bytes"`
	Created  time.Time `json:"created"`
}

// Template returns the data template for a key, and whether it had to be made: initialised, loaded by load on
// a server set up for loading, shut down with everything flushed and purged. One that is cut short is not
// kept.
func (w *Workspace) Template(ctx context.Context, k TemplateKey, load func(context.Context, mysqld.Addr) error) (Template, bool, error) {
	if g, ok := w.kept(k); ok {
		return g, false, os.Chtimes(g.dir, time.Time{}, time.Now()) // for eviction: last used
	}
	if err := w.evict(); err != nil {
		return Template{}, false, err
	}
	if err := w.makeTemplate(ctx, k, load); err != nil {
		return Template{}, false, fmt.Errorf("cannot prepare the data: %w", err)
	}
	g, ok := w.kept(k)
	if !ok {
		return g, false, fmt.Errorf("cannot prepare the data: %s is not complete", g.dir)
	}
	return g, true, nil
}

// kept returns the data template that was made before, and false where there is none.
func (w *Workspace) kept(k TemplateKey) (Template, bool) {
	g := Template{key: k, dir: w.templateDir(k)}
	var m manifest
	b, err := os.ReadFile(filepath.Join(g.dir, "golden.json"))
	if err != nil || json.Unmarshal(b, &m) != nil {
		return g, false
	}
	g.bytes, g.created = m.Bytes, m.Created
	return g, true
}

func (w *Workspace) templateDir(k TemplateKey) string {
	return filepath.Join(w.data, "golden", k.name())
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
	for _, dir := range []string{w.data, w.home} {
		free, err := freeBytes(dir)
		if err != nil {
			return err
		}
		if free < w.need {
			return fullError(dir, w.need, free)
		}
	}
	return nil
}

// byUse lists the data templates, the one used longest ago first.
func (w *Workspace) byUse() ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(w.data, "golden"))
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
		dir := filepath.Join(w.data, "golden", e.Name())
		used[dir], dirs = info.ModTime(), append(dirs, dir)
	}
	sort.Slice(dirs, func(i, j int) bool { return used[dirs[i]].Before(used[dirs[j]]) })
	return dirs, nil
}

// makeTemplate makes the copy under a temporary name and renames it when it is complete and on the disk.
func (w *Workspace) makeTemplate(ctx context.Context, k TemplateKey, load func(context.Context, mysqld.Addr) error) (err error) {
	dir := w.templateDir(k)
	tmp := filepath.Join(filepath.Dir(dir), "."+filepath.Base(dir))
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	data := filepath.Join(tmp, "data")
	for _, path := range []string{tmp, data} {
		if err := errors.Join(mkdirIfMissing(path), w.owner.own(path)); err != nil {
			return err
		}
	}
	if err := w.initialise(ctx, k, data); err != nil {
		return err
	}
	if err := w.fill(ctx, k, data, load); err != nil {
		return err
	}
	if err := w.settle(ctx, k, data); err != nil {
		return err
	}
	if err := clean(data); err != nil {
		return err
	}
	size, err := diskUsage(data)
	if err != nil {
		return err
	}
	return seal(k, tmp, dir, size)
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
	if err := w.owner.own(tmp); err != nil {
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
	out, err := os.Create(logFile)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, bytes.NewReader(stdin), out, out
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + dir, "LC_ALL=C", "DAVID_HOME=" + w.home}
	c, err := w.spawn(cmd, nil)
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
		return errors.Join(startError(binary, logFile, c.err), w.journal.ended(cmd.Process.Pid))
	}
	return w.journal.ended(cmd.Process.Pid)
}

// fill starts a server set up for loading, without durability, creates the schema and lets load fill it.
func (w *Workspace) fill(ctx context.Context, k TemplateKey, data string, load func(context.Context, mysqld.Addr) error) error {
	return w.during(ctx, k, data, loadSettings(k.Binary.Flavour), func(addr mysqld.Addr) error {
		conn, err := mysqld.Open(ctx, addr)
		if err != nil {
			return err
		}
		defer conn.Close()
		if err := conn.Exec(ctx, "CREATE DATABASE "+k.Database); err != nil {
			return err
		}
		if k.Binary.Flavour == mycnf.MariaDB {
			return load(ctx, addr)
		}
		if err := conn.Exec(ctx, "ALTER INSTANCE DISABLE INNODB REDO_LOG"); err != nil {
			return err
		}
		if err := load(ctx, addr); err != nil {
			return err
		}
		return conn.Exec(ctx, "ALTER INSTANCE ENABLE INNODB REDO_LOG")
	})
}

// settle runs the server once with its defaults, so that its redo log has the default size, and shuts it down
// with a full purge, so that no clone starts with debt.
func (w *Workspace) settle(ctx context.Context, k TemplateKey, data string) error {
	return w.during(ctx, k, data, []mycnf.Setting{{Name: "skip_log_bin"}, {Name: "innodb_fast_shutdown", Value: "0"}}, func(mysqld.Addr) error { return nil })
}

func (w *Workspace) during(ctx context.Context, k TemplateKey, data string, settings []mycnf.Setting, do func(mysqld.Addr) error) error {
	s, err := w.launch(ctx, k, data, StartOptions{Settings: settings})
	if err != nil {
		return err
	}
	s.keepData = true
	err = do(s.Addr())
	if dead := s.Alive(); err != nil && dead != nil && ctx.Err() == nil {
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
func clean(data string) error {
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
	err := os.Truncate(filepath.Join(data, "ib_buffer_pool"), 0)
	if os.IsNotExist(err) {
		return nil
	}
	return err
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
func seal(k TemplateKey, tmp, dir string, size int64) error {
	m := manifest{templateVersion, strings.TrimSpace(string(k.Binary.Flavour) + " " + k.Binary.Version), k.PageSize, k.Tables, k.Rows, size, time.Now()}
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(tmp, "golden.json"), b, 0o644); err != nil {
		return err
	}
	if err := syncfs(tmp); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil { // one without a manifest
		return err
	}
	return os.Rename(tmp, dir)
}
