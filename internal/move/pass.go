package move

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"
)

// chunk is what is read at a time, piece what is compared and written at least: InnoDB's page.
const (
	chunk = 1 << 20
	piece = 16 << 10
)

// settled is how old a file's last change must be for its times to tell that it was not written to since:
// several changes within a tick of the filesystem's clock leave the same time.
const settled = 2 * time.Second

// inFlight is how long a write may be on its way to the disk. The kernel sets a file's times when a write begins, so that one
// that began before a pass read the file may end after it, and the times do not show it. InnoDB has at most 1,024 writes under
// way (256 for each of the 4 innodb_write_io_threads; MySQL manual, "Configuring the Number of Background InnoDB I/O
// Threads"): a volume of 20 operations a second has done these in 51 s.
const inFlight = time.Minute

// copier makes one folder the same as another, in passes. It remembers of each file what it saw, so that a
// pass reads only what may have been written to. It is not safe for concurrent use.
type copier struct {
	from, to *os.Root
	workers  int
	inFlight time.Duration
	limit    *rate.Limiter // of what is read, in bytes
	seen     map[string]sight
	compared struct{ from, to []file } // both trees, when they were
	mu       sync.Mutex                // of seen, while a pass runs
	free     sync.Pool                 // of *room: to clear two chunks for each of a thousand small files takes longer than to read these
}

// room holds a part of a file and of its copy.
type room struct{ a, b [chunk]byte }

func (c *copier) take() *room {
	if r, ok := c.free.Get().(*room); ok {
		return r
	}
	return new(room)
}

// sight is what is known of a file.
type sight struct {
	from, to version
	old      bool // its last change was old enough
	checked  bool // each byte of the copy was compared after it was written last
	fresh    bool // it had just been changed: one more change right after may not show in its times
}

// tick is longer than the clock takes from which filesystems have their times: 10 ms at most (CONFIG_HZ=100).
const tick = 50 * time.Millisecond

// span is a part of a file.
type span struct{ at, long int64 }

// Pass tells what a pass did.
type Pass struct {
	Files   int     `json:"files"` // that were read
	Read    int64   `json:"read"`  // bytes, of the source
	Written int64   `json:"written"`
	Seconds float64 `json:"seconds"`
}

// newCopier opens both folders, which no path can lead out of from then on.
func newCopier(from, to string, workers int) (*copier, error) {
	a, err := openFolder(from)
	if err != nil {
		return nil, err
	}
	b, err := openFolder(to)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return &copier{from: a, to: b, workers: workers, inFlight: inFlight, limit: rate.NewLimiter(rate.Inf, chunk), seen: map[string]sight{}}, nil
}

func (c *copier) close() error { return errors.Join(c.from.Close(), c.to.Close()) }

// seal keeps everybody but david out of the copy, whose data are not whole.
func (c *copier) seal() error {
	top, err := c.to.Open(".")
	if err != nil {
		return err
	}
	defer top.Close()
	return errors.Join(top.Chmod(0o700), top.Chown(os.Geteuid(), os.Getegid()))
}

// pass copies what differs. While the server runs the copy may be of no moment at all; once it has stopped it
// is the same as the source, and on disk.
func (c *copier) pass(ctx context.Context, serving bool) (p Pass, err error) {
	began := time.Now()
	defer func() { p.Seconds = time.Since(began).Seconds() }()
	files, err := list(c.from, serving)
	if err != nil {
		return p, err
	}
	if err := c.clear(files); err != nil {
		return p, err
	}
	if err := c.frame(files); err != nil {
		return p, err
	}
	plain := slices.DeleteFunc(slices.Clone(files), func(f file) bool { return !f.mode.IsRegular() })
	slices.SortFunc(plain, func(a, b file) int { return int(min(max(b.stat.Size-a.stat.Size, -1), 1)) }) // the longest first, for the workers' sake
	err = c.each(ctx, plain, func(ctx context.Context, f file) error {
		one, err := c.copy(ctx, f.name, serving)
		if serving && errors.Is(err, errVanished) {
			return nil
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		p.Files, p.Read, p.Written = p.Files+one.Files, p.Read+one.Read, p.Written+one.Written
		return err
	})
	if err != nil {
		return p, err
	}
	return p, c.folders(files, serving)
}

// each works on files, several at a time, until one fails.
func (c *copier) each(ctx context.Context, files []file, work func(context.Context, file) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan file)
	var group sync.WaitGroup
	for range c.workers {
		group.Go(func() {
			for f := range next {
				if err := work(ctx, f); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, f := range files {
		select {
		case next <- f:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	group.Wait()
	return context.Cause(ctx)
}

// clear removes from the copy what the source does not have, or has as something else, and files that have
// another name, too (a snapshot's, as of rsync --link-dest): to write to them would change that as well.
func (c *copier) clear(files []file) error {
	wanted := byName(files)
	there, err := list(c.to, false)
	if err != nil {
		return err
	}
	for _, f := range slices.Backward(there) {
		w, ok := wanted[f.name]
		if ok && w.mode.Type() == f.mode.Type() && w.link == f.link && (!f.mode.IsRegular() || f.stat.Nlink == 1) {
			continue
		}
		delete(c.seen, f.name)
		if err := c.to.RemoveAll(f.name); err != nil {
			return fmt.Errorf("cannot remove what is left over of an earlier pass: %w", err)
		}
	}
	return nil
}

// frame makes folders and links. A folder has its owner and its mode at the end of a pass.
func (c *copier) frame(files []file) error {
	for _, f := range files {
		var err error
		switch {
		case f.name == ".":
		case f.mode.IsDir():
			err = c.to.Mkdir(f.name, 0o700)
		case f.mode&fs.ModeSymlink != 0:
			if err = c.to.Symlink(f.link, f.name); err == nil {
				err = c.to.Lchown(f.name, int(f.stat.Uid), int(f.stat.Gid))
			}
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("cannot copy %s: %w", f.name, err)
		}
	}
	return nil
}

// folders gives folders what they have besides files, and syncs them; the top is given its owner last of all,
// by finish.
func (c *copier) folders(files []file, serving bool) error {
	for _, f := range slices.Backward(files) {
		if !f.mode.IsDir() || f.name == "." {
			continue
		}
		err := c.folder(f)
		if serving && errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot copy the folder %s: %w", f.name, err)
		}
	}
	return nil
}

// finish gives the copy's top what the source's has: from then on the server may use it.
func (c *copier) finish() error {
	f, err := look(c.from, ".")
	if err != nil {
		return err
	}
	return errors.Join(c.folder(f), syncFolder(filepath.Dir(c.to.Name())))
}

// folder dresses one folder of the copy, and syncs it.
func (c *copier) folder(f file) error {
	from, err := c.from.OpenFile(f.name, unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := c.to.OpenFile(f.name, unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(dress(from, to, f), to.Sync(), to.Close())
}

// dress gives an open file or folder of the copy the owner, the mode and the attributes of the source's.
func dress(from, to *os.File, f file) error {
	var now unix.Stat_t
	if err := unix.Fstat(int(to.Fd()), &now); err != nil {
		return err
	}
	if now.Uid != f.stat.Uid || now.Gid != f.stat.Gid {
		if err := to.Chown(int(f.stat.Uid), int(f.stat.Gid)); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(int(to.Fd()), f.stat.Mode&0o7777); err != nil {
		return err
	}
	return copyAttributes(from, to)
}

// errVanished marks a file that is gone, or something else by now.
var errVanished = errors.New("it is gone")

// copy makes one file the same, unless it is known not to have been written to. Where the server does not run,
// what was written is read again and compared.
func (c *copier) copy(ctx context.Context, name string, serving bool) (p Pass, err error) {
	from, err := open(c.from, name, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return p, fmt.Errorf("%s: %w", name, errVanished)
	}
	if err != nil {
		return p, err
	}
	defer from.Close()
	f, err := now(from, name)
	if err != nil {
		return p, err
	}
	age := time.Since(f.changed())
	s := sight{from: f.version(), old: age > c.alone(serving), checked: !serving, fresh: age < tick}
	to, err := openAlone(c.to, name)
	if err != nil {
		return p, fmt.Errorf("cannot write the copy: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if c.unwritten(name, s.from, to) {
		return p, nil
	}
	written, err := c.same(ctx, from, to, f, &p)
	if err == nil {
		err = errors.Join(dress(from, to, f), to.Sync())
	}
	if err != nil {
		return p, fmt.Errorf("cannot copy %s: %w", name, err)
	}
	if !serving {
		if err := c.equal(ctx, from, to, written); err != nil {
			return p, err
		}
	}
	return p, c.remember(name, s, to)
}

// alone is how long nobody may have written to a file for its times to tell that nothing was written to it since.
func (c *copier) alone(serving bool) time.Duration {
	if serving {
		return c.inFlight
	}
	return settled
}

// unripe tells of files that were left alone since they were read, but not for long enough for their times to tell so: how
// many bytes they have, and until when it is best to wait for them.
func (c *copier) unripe() (size int64, until time.Time) {
	for name, s := range c.seen {
		if s.old || c.changed(name) {
			continue
		}
		size += s.from.size
		if ripe := time.Unix(s.from.ctime.Unix()).Add(c.inFlight + time.Millisecond); ripe.After(until) {
			until = ripe
		}
	}
	return size, until
}

// now describes an open file, once what was written to it in memory shows in its times.
func now(f *os.File, name string) (file, error) {
	if err := f.Sync(); err != nil && !errors.Is(err, unix.EROFS) {
		return file{}, fmt.Errorf("cannot sync %s: %w", f.Name(), err)
	}
	info, err := f.Stat()
	if err != nil {
		return file{}, err
	}
	return file{name: name, mode: info.Mode(), stat: *info.Sys().(*syscall.Stat_t)}, nil
}

// unwritten tells whether neither a file nor its copy was written to since they were last the same.
func (c *copier) unwritten(name string, from version, to *os.File) bool {
	s, ok := c.known(name)
	v, err := versionOf(to)
	return ok && s.old && s.from == from && err == nil && s.to == v
}

// remember keeps what is known of a file whose copy was just written.
func (c *copier) remember(name string, s sight, to *os.File) error {
	var err error
	if s.to, err = versionOf(to); err != nil {
		return err
	}
	c.keep(name, s)
	return nil
}

func (c *copier) known(name string) (s sight, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, ok = c.seen[name]
	return s, ok
}

func (c *copier) keep(name string, s sight) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[name] = s
}

func versionOf(f *os.File) (version, error) {
	info, err := f.Stat()
	if err != nil {
		return version{}, err
	}
	return file{stat: *info.Sys().(*syscall.Stat_t)}.version(), nil
}

// open opens a plain file of a tree, without waiting for what is none.
func open(root *os.Root, name string, flag int) (*os.File, error) {
	f, err := root.OpenFile(name, flag|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file any more: %w", name, errVanished)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openAlone opens a file of a tree for writing, and makes it where there is none. Who could write to the tree may
// have given another's file a name in it: what has two names is refused.
func openAlone(root *os.Root, name string) (*os.File, error) {
	f, err := open(root, name, os.O_RDWR|os.O_CREATE)
	if errors.Is(err, fs.ErrPermission) && root.Chmod(name, 0o600) == nil { // one that its own user may only read, as key files are
		f, err = open(root, name, os.O_RDWR)
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Sys().(*syscall.Stat_t).Nlink > 1 {
		err = fmt.Errorf("%s has another name, too: something else writes there", f.Name())
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// same makes one file the same as another, writing only what differs, and returns what it wrote. Where the source
// is sparse (page compression), so is the copy.
func (c *copier) same(ctx context.Context, from, to *os.File, f file, p *Pass) (written []span, err error) {
	room := c.take()
	defer c.free.Put(room)
	a, b := room.a[:], room.b[:]
	p.Files = 1
	for n := chunk; n == chunk; p.Read += int64(n) {
		if n, err = from.ReadAt(a, p.Read); err != nil && err != io.EOF {
			return written, err
		}
		if err := c.limit.WaitN(ctx, n); err != nil {
			return written, errors.Join(err, context.Cause(ctx))
		}
		m, err := to.ReadAt(b[:n], p.Read)
		if err != nil && err != io.EOF {
			return written, err
		}
		for _, d := range differing(a[:n], b[:m]) {
			if _, err := to.WriteAt(a[d.at:d.at+d.long], p.Read+d.at); err != nil {
				return written, err
			}
			written, p.Written = append(written, span{p.Read + d.at, d.long}), p.Written+d.long
			if f.allocated() < f.stat.Size {
				if err := punch(to, a[d.at:d.at+d.long], p.Read+d.at); err != nil {
					return written, err
				}
			}
		}
	}
	return written, to.Truncate(p.Read)
}

// differing returns the pieces of a that b does not have, neighbours as one.
func differing(a, b []byte) (list []span) {
	for i := 0; i < len(a); i += piece {
		end := min(i+piece, len(a))
		if end <= len(b) && bytes.Equal(a[i:end], b[i:end]) {
			continue
		}
		if n := len(list); n > 0 && list[n-1].at+list[n-1].long == int64(i) {
			list[n-1].long += int64(end - i)
			continue
		}
		list = append(list, span{int64(i), int64(end - i)})
	}
	return list
}

// hole is the smallest that is made: a filesystem's block.
const hole = 4 << 10

// punch frees the room of what is zero. A filesystem that cannot keeps the zeros.
func punch(to *os.File, a []byte, at int64) error {
	zero := make([]byte, hole)
	for i := 0; i+hole <= len(a); i += hole {
		begin := i
		for i+hole <= len(a) && bytes.Equal(a[i:i+hole], zero) {
			i += hole
		}
		if i == begin {
			continue
		}
		err := unix.Fallocate(int(to.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, at+int64(begin), int64(i-begin))
		if errors.Is(err, unix.EOPNOTSUPP) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check makes sure that both trees hold the same, once no server runs: names, kinds, sizes, modes, owners, and
// each byte, as far as it was not compared since it was written last.
func (c *copier) check(ctx context.Context) (plain []file, bytes int64, err error) {
	from, err := list(c.from, false)
	if err != nil {
		return nil, 0, err
	}
	to, err := list(c.to, false)
	if err != nil {
		return nil, 0, err
	}
	if err := alike(from, to); err != nil {
		return nil, 0, err
	}
	c.compared.from, c.compared.to = from, to
	plain = slices.DeleteFunc(slices.Clone(from), func(f file) bool { return !f.mode.IsRegular() })
	for _, f := range plain {
		bytes += f.stat.Size
	}
	return plain, bytes, c.each(ctx, plain, func(ctx context.Context, f file) error { return c.again(ctx, f.name) })
}

// alike makes sure that two trees have the same names, each with the same kind, size, mode, owner and link.
// The top of the copy gets its owner later.
func alike(from, to []file) error {
	if len(from) != len(to) {
		return fmt.Errorf("%w: %d files and folders, %d in the copy", ErrMismatch, len(from), len(to))
	}
	there := byName(to)
	for _, f := range from {
		t, ok := there[f.name]
		same := ok && t.mode.Type() == f.mode.Type() && t.link == f.link && (f.mode.IsDir() || t.stat.Size == f.stat.Size)
		if f.name != "." && f.mode.Type() != fs.ModeSymlink {
			same = same && t.mode == f.mode && t.stat.Uid == f.stat.Uid && t.stat.Gid == f.stat.Gid
		}
		if !same {
			return fmt.Errorf("%w: %s has another size, kind, mode or owner", ErrMismatch, f.name)
		}
	}
	return nil
}

// again compares a file with its copy, unless neither was written to since that was done.
func (c *copier) again(ctx context.Context, name string) error {
	s, _ := c.known(name)
	to, err := open(c.to, name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer to.Close()
	from, err := open(c.from, name, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer from.Close()
	v, err := versionOf(to)
	if err != nil {
		return err
	}
	f, err := from.Stat()
	if err != nil {
		return err
	}
	source := file{stat: *f.Sys().(*syscall.Stat_t)}
	if s.checked && !s.fresh && s.to == v && s.from == source.version() {
		return nil
	}
	age := time.Since(source.changed())
	if err := c.equal(ctx, from, to, []span{{0, max(v.size, source.stat.Size)}}); err != nil {
		return err
	}
	if s.from != source.version() { // what is known of its age is of an earlier one
		s.old = false
	}
	s.checked, s.fresh, s.from, s.to = true, age < tick, source.version(), v
	c.keep(name, s)
	return nil
}

// equal compares parts of a file with those of its copy.
func (c *copier) equal(ctx context.Context, from, to *os.File, parts []span) error {
	room := c.take()
	defer c.free.Put(room)
	a, b := room.a[:], room.b[:]
	for _, p := range parts {
		for at := p.at; at < p.at+p.long; at += chunk {
			long := min(chunk, p.at+p.long-at)
			if err := c.limit.WaitN(ctx, int(long)); err != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			n, err := from.ReadAt(a[:long], at)
			if err != nil && err != io.EOF {
				return err
			}
			m, err := to.ReadAt(b[:long], at)
			if err != nil && err != io.EOF {
				return err
			}
			if !bytes.Equal(a[:n], b[:m]) {
				return fmt.Errorf("%w: %s is not what was written there: something else writes there, or the disk does not keep what is written", ErrMismatch, to.Name())
			}
		}
	}
	return nil
}

// checkSettled compares, while the server still runs, the copies of files that nobody writes to any more: as they
// are on the disk where that is possible, and once, so that it need not be done while the server is away.
func (c *copier) checkSettled(ctx context.Context) error {
	var files []file
	for name, s := range c.seen {
		if s.old && !s.checked {
			files = append(files, file{name: name})
		}
	}
	return c.each(ctx, files, func(ctx context.Context, f file) error {
		if to, err := open(c.to, f.name, os.O_RDONLY); err == nil {
			unix.Fadvise(int(to.Fd()), 0, 0, unix.FADV_DONTNEED) // advice: whether it is taken changes nothing else
			to.Close()
		}
		err := c.again(ctx, f.name)
		if err != nil && c.changed(f.name) { // after all: the next pass sees to it
			return nil
		}
		return err
	})
}

// changed tells whether a file was written to since it was copied, or is gone.
func (c *copier) changed(name string) bool {
	from, err := open(c.from, name, os.O_RDONLY)
	if err != nil {
		return true
	}
	defer from.Close()
	f, err := now(from, name)
	s, _ := c.known(name)
	return err == nil && f.version() != s.from
}

// unlike is an error where anybody wrote to the source since it was compared, by its names, sizes and times.
func (c *copier) unlike() error {
	name, err := altered(c.from, c.compared.from)
	if err == nil && name != "" {
		err = fmt.Errorf("%w: %s was written to, made or removed", ErrMismatch, filepath.Join(c.from.Name(), name))
	}
	return err
}

// touched is an error where anybody wrote to the copy since it was compared.
func (c *copier) touched() error {
	name, err := altered(c.to, c.compared.to)
	if err == nil && name != "" {
		err = fmt.Errorf("%s was written to, made or removed", filepath.Join(c.to.Name(), name))
	}
	return err
}

// altered names the first file, folder or link of a tree that was made, removed or written to since; "" where there is none. The
// tree's top is left out: david dresses it last.
func altered(root *os.Root, before []file) (name string, err error) {
	now, err := list(root, false)
	if err != nil {
		return "", err
	}
	there := byName(before)
	for _, f := range now {
		b, ok := there[f.name]
		delete(there, f.name)
		if f.name != "." && (!ok || b.mode != f.mode || b.link != f.link || b.stat.Uid != f.stat.Uid || b.stat.Gid != f.stat.Gid || f.mode.IsRegular() && b.version() != f.version()) {
			return f.name, nil
		}
	}
	for _, f := range before {
		if _, removed := there[f.name]; removed {
			return f.name, nil
		}
	}
	return "", nil
}
