package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
	"golang.org/x/time/rate"

	"david/internal/host"
	"david/internal/mysqld"
	"david/internal/process"
)

// Plan says what a move would do, and what speaks against it.
type Plan struct {
	Route       Route           `json:"route"`
	Server      Server          `json:"server"`
	Files       int             `json:"files"`
	Bytes       int64           `json:"bytes"`     // of all files
	Allocated   int64           `json:"allocated"` // the room that they take
	From        host.Filesystem `json:"from"`
	To          host.Filesystem `json:"to"`
	Rate        float64         `json:"read_bytes_per_second"` // seen just now, of the data; 0 where there is too little
	Elsewhere   []Elsewhere     `json:"elsewhere"`             // what stays where it is
	Refused     []string        `json:"refused"`               // why it cannot be done
	Needs       []string        `json:"needs"`                 // what lacks for the stop and the switch; the copy can be made
	Notes       []string        `json:"notes"`
	Said        []Said          `json:"said"`    // lines of option files that stay as they are
	GoesOn      bool            `json:"goes_on"` // with a move that was interrupted
	record      *Record
	system      string
	stop, start []string
}

// Server says whose data are moved.
type Server struct {
	PID     int    `json:"pid,omitempty"` // 0 where it is not seen
	Unit    string `json:"unit,omitempty"`
	UUID    string `json:"uuid"`
	Version string `json:"version"`
	Address string `json:"address"`
}

// Look finds out all that a move needs to know. It changes nothing.
func Look(ctx context.Context, q Request) (p Plan, err error) {
	if q.To == "" {
		return p, fmt.Errorf("%w: name the new folder", ErrInput)
	}
	conn, err := mysqld.Open(ctx, q.Addr)
	if err != nil {
		return p, err
	}
	defer conn.Close()
	v, err := variables(ctx, conn)
	if err != nil {
		return p, err
	}
	if err := p.paths(q, v["datadir"]); err != nil {
		return p, err
	}
	p.Server = Server{UUID: v["server_uuid"] + v["server_uid"], Version: v["version"], Address: conn.Addr().String()}
	if err := p.size(ctx); err != nil {
		return p, err
	}
	p.room()
	stays, refused := locate(v, p.Route, p.From.Path)
	p.Elsewhere, p.Refused = append(p.Elsewhere, stays...), append(p.Refused, refused...)
	if len(beside(p.Elsewhere)) > 0 {
		p.Notes = append(p.Notes, "what stays where it is belongs to the data: --back --as-it-was, of a server that does not start on the new place, is refused once it has gone on there")
	}
	if below, err := mounted(p.From.Path); err != nil {
		return p, err
	} else if len(below) > 0 {
		p.Refused = append(p.Refused, fmt.Sprintf("a filesystem of its own is mounted on %s, in the data folder: umount it and have its files in the folder itself, or have the server use it by a path outside", strings.Join(below, ", ")))
	}
	if err := p.occupied(); err != nil {
		return p, err
	}
	p.system = systemFile(v, p.Route.Link)
	if info, err := os.Lstat(filepath.Join(p.From.Path, p.system)); err != nil || !info.Mode().IsRegular() {
		p.system = "" // a link: what it leads to stays where it is
	}
	return p, p.process(q, v)
}

// paths makes sure of the two folders.
func (p *Plan) paths(q Request, datadir string) error {
	link := filepath.Clean(cmp.Or(q.Datadir, datadir))
	if !filepath.IsAbs(link) || !filepath.IsAbs(q.To) {
		return fmt.Errorf("%w: give both folders as absolute paths", ErrInput)
	}
	real, err := filepath.EvalSymlinks(link)
	if err != nil {
		return fmt.Errorf("%w: %w: name the data folder of a server on this machine", ErrInput, err)
	}
	if served, err := filepath.EvalSymlinks(datadir); err != nil || served != real {
		return fmt.Errorf("%w: the server's data lie in %s, not in %s", ErrInput, filepath.Clean(datadir), link)
	}
	if parent, err := filepath.EvalSymlinks(filepath.Dir(link)); err == nil {
		link = filepath.Join(parent, filepath.Base(link)) // what is above it stays as it is
	}
	if !leadsBy(filepath.Clean(datadir), link) {
		return fmt.Errorf("%w: the server knows its folder as %s and not as %s, which only leads there: name it by the server's path", ErrInput, filepath.Clean(datadir), link)
	}
	to, err := resolved(filepath.Clean(q.To))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	for _, path := range []string{link, real, to} {
		if !utf8.ValidString(path) { // which a record in JSON cannot hold
			return fmt.Errorf("%w: the path %q is no UTF-8: name it otherwise", ErrInput, path)
		}
	}
	if err := outside(q.Home, real, to); err != nil {
		return err
	}
	if p.record, err = find(q.Home, from(link)); err != nil && !errors.Is(err, ErrNoRecord) {
		return err
	}
	if p.record != nil {
		return p.goOn(to)
	}
	if p.Route, err = routeOf(link, to); err != nil {
		return err
	}
	return p.fresh(real, q.Reuse)
}

// outside makes sure that david's own folder, with the record of the move, lies in neither place.
func outside(home, real, to string) error {
	own, err := resolved(home)
	if err != nil {
		return err
	}
	for _, place := range []string{real, to} {
		if within(own, place) {
			return fmt.Errorf("%w: DAVID_HOME (%s) lies in %s: the record of the move would be moved with the data; set it to a folder elsewhere", ErrInput, own, place)
		}
	}
	return nil
}

// goOn takes up a move that is on record.
func (p *Plan) goOn(to string) error {
	r := p.record
	switch {
	case r.Route.New != to:
		return fmt.Errorf("%w: %s was moved to %s, or half of it (%s): end that first, with --back, or with --forget where it has ended", ErrInput, r.Route.Link, r.Route.New, r.Phase)
	case r.Phase == Back && r.Left:
		return fmt.Errorf("%w: what was written between the move and --back --as-it-was is in %s alone, and would be overwritten: name another folder once that is not needed any more and --forget has removed it", ErrInput, to)
	case r.Phase == Moved:
		return fmt.Errorf("%w: %s is moved to %s already; --back goes back, --forget removes the old place", ErrInput, r.Route.Link, to)
	case r.Phase == Returning || r.Phase == Leaving || r.Phase == Retreating:
		return fmt.Errorf("%w: %s is on its way back: --back goes on with that", ErrInput, r.Route.Link)
	}
	p.Route, p.GoesOn = r.Route, true
	_, err := r.Route.at()
	return err
}

// fresh makes sure of a new target.
func (p *Plan) fresh(real string, reuse bool) error {
	to := p.Route.New
	switch {
	case within(to, real) || within(to, p.Route.Link):
		return fmt.Errorf("%w: %s lies in the data folder %s itself", ErrInput, to, real)
	case to == p.Route.Old || to == p.Route.Link+newSuffix:
		return fmt.Errorf("%w: %s is the name that david gives to the old place, or to its link: name another", ErrInput, to)
	case within(real, to):
		return fmt.Errorf("%w: the data folder %s lies in %s: name a folder beside it", ErrInput, real, to)
	}
	if p.Route.Was == "" {
		if _, err := os.Lstat(p.Route.Old); err == nil {
			return fmt.Errorf("%w: %s is there already, where the old data are to stay: see what it is, and remove or rename it", ErrInput, p.Route.Old)
		}
	}
	if info, err := os.Lstat(filepath.Dir(to)); err != nil || !info.IsDir() {
		return fmt.Errorf("%w: %s is no folder in which david could make %s", ErrInput, filepath.Dir(to), filepath.Base(to))
	}
	if info, err := os.Lstat(to); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%w: %s is a link that leads nowhere: name a folder", ErrInput, to)
	}
	entries, err := os.ReadDir(to)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("%w: %w: name a new folder", ErrInput, err)
	case len(entries) > 0 && !reuse:
		return fmt.Errorf("%w: %s is not empty (%s, ...): name a new folder; or give --reuse where another david began to copy these data there", ErrInput, to, entries[0].Name())
	case len(entries) > 0:
		return p.copyOf(real)
	}
	return nil
}

// copyOf makes sure that a target that is not empty holds an earlier copy of the data, and says what of it would go.
func (p *Plan) copyOf(real string) error {
	to := p.Route.New
	if marked, err := halfMade(to, p.Route.Link, real); err != nil || !marked {
		return errors.Join(fmt.Errorf("%w: %s is no copy of these data that david began: in such a one lies %s, as long as no server has used it: name a new folder", ErrInput, to, copyMark), err)
	}
	more, err := surplus(to, real)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInput, err)
	}
	note := to + " is a copy that david began: what differs there is overwritten"
	if len(more) > 0 {
		note += fmt.Sprintf(", and what the data do not have is removed: %s", few(more))
	}
	p.Notes = append(p.Notes, note)
	return nil
}

// surplus lists the files that a copy has and the data do not have.
func surplus(of, data string) (names []string, err error) {
	there := map[string]bool{}
	for i, folder := range []string{data, of} {
		root, err := os.OpenRoot(folder)
		if err != nil {
			return nil, err
		}
		files, err := list(root, true)
		if err = errors.Join(err, root.Close()); err != nil {
			return nil, err
		}
		for _, f := range files {
			if i == 0 {
				there[f.name] = true
			} else if !there[f.name] && !f.mode.IsDir() {
				names = append(names, f.name)
			}
		}
	}
	return names, nil
}

// few names some of many.
func few(names []string) string {
	const most = 3
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// occupied refuses a target that somebody works in, or that holds what stays where it is.
func (p *Plan) occupied() error {
	if in, err := p.Route.at(); p.GoesOn && err == nil && in == newSide { // the server itself, after a switch
		return nil
	}
	list, err := writers(p.Route.New)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if len(list) > 0 {
		p.Refused = append(p.Refused, fmt.Sprintf("%s is in use: %s", p.Route.New, process.Names(list)))
	}
	for _, e := range p.Elsewhere {
		if within(e.Path, p.Route.New) {
			p.Refused = append(p.Refused, fmt.Sprintf("%s holds %s of this server's, which is no copy (%s): name another folder", p.Route.New, e.Path, e.Name))
		}
	}
	return err
}

// mounted lists what is mounted below a folder.
func mounted(folder string) (below []string, err error) {
	all, err := mountinfo.GetMounts(mountinfo.PrefixFilter(folder))
	for _, m := range all {
		if m.Mountpoint != folder {
			below = append(below, m.Mountpoint)
		}
	}
	return below, err
}

// size counts what is to be copied.
func (p *Plan) size(ctx context.Context) error {
	real, err := filepath.EvalSymlinks(p.Route.Link)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(real)
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w: run david as root, or as the server's user", ErrInput, err)
	}
	if err != nil {
		return err
	}
	defer root.Close()
	files, err := list(root, true)
	if errors.Is(err, errSpecial) {
		return fmt.Errorf("%w: %w: see what it is, and remove it", ErrInput, err)
	}
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w: run david as root, or as the server's user", ErrInput, err)
	}
	if err != nil {
		return err
	}
	largest := file{}
	for _, f := range files {
		if !f.mode.IsRegular() {
			continue
		}
		p.Files, p.Bytes, p.Allocated = p.Files+1, p.Bytes+f.stat.Size, p.Allocated+f.allocated()
		if f.stat.Size > largest.stat.Size {
			largest = f
		}
	}
	p.Elsewhere, p.Refused = p.Route.linked(files, real)
	name, err := strange(files)
	if err != nil {
		return err
	}
	if name != "" {
		p.Refused = append(p.Refused, fmt.Sprintf("%s belongs to another user or group, which only root can give a copy: run david as root", filepath.Join(real, name)))
	}
	if err := p.tablespaces(root, files, real); err != nil {
		return err
	}
	p.Rate = speed(ctx, root, largest)
	if p.From, err = host.Under(real); err != nil {
		return err
	}
	p.To, err = host.Under(p.Route.New)
	return err
}

// strange names the first file whose owner david cannot give to a copy; "" for none, as for root.
func strange(files []file) (string, error) {
	if os.Geteuid() == 0 {
		return "", nil
	}
	groups, err := os.Getgroups()
	if err != nil {
		return "", fmt.Errorf("cannot tell which groups' files david may make: %w", err)
	}
	groups = append(groups, os.Getegid())
	i := slices.IndexFunc(files, func(f file) bool {
		return int(f.stat.Uid) != os.Geteuid() || !slices.Contains(groups, int(f.stat.Gid))
	})
	if i < 0 {
		return "", nil
	}
	return files[i].name, nil
}

// What speed reads at most, and for how long.
const (
	speedBytes = 256 << 20
	speedTime  = time.Second
)

// speed reads a part of a file, in bytes per second; 0 where that tells nothing.
func speed(ctx context.Context, root *os.Root, f file) float64 {
	if f.stat.Size < 16*chunk {
		return 0
	}
	in, err := open(root, f.name, os.O_RDONLY)
	if err != nil {
		return 0
	}
	defer in.Close()
	ctx, cancel := context.WithTimeout(ctx, speedTime)
	defer cancel()
	began := time.Now()
	n, err := io.Copy(io.Discard, io.LimitReader(readerOf{ctx, in, rate.NewLimiter(rate.Inf, chunk)}, speedBytes))
	if err != nil && n < 4*chunk {
		return 0
	}
	return float64(n) / time.Since(began).Seconds()
}

// growth is the room beyond the data's own that a target must have: they grow while they are copied, and after.
const growth = 0.1

// room holds the target's filesystem against what is to come.
func (p *Plan) room() {
	need := int64(float64(p.Allocated) * (1 + growth))
	if used, err := usedBy(p.Route.New); err == nil { // a part of it is there
		need -= used
	}
	if p.To.Free < need {
		also := ""
		if p.To.Mount == p.From.Mount {
			also = ", where both copies lie until --forget"
		}
		p.Refused = append(p.Refused, fmt.Sprintf("%s has %s free%s, and the data take %s and a tenth to grow: free some, or name another place", p.To.Mount, host.Size(p.To.Free), also, host.Size(p.Allocated)))
	}
	var s unix.Statfs_t
	if err := unix.Statfs(p.To.Path, &s); err == nil && s.Files > 0 && int64(s.Ffree) < int64(p.Files) {
		p.Refused = append(p.Refused, fmt.Sprintf("%s has %d free inodes, and there are %d files", p.To.Mount, s.Ffree, p.Files))
	}
	if slices.Contains([]string{"tmpfs", "ramfs", "devtmpfs"}, p.To.Type) {
		p.Refused = append(p.Refused, fmt.Sprintf("%s is a %s: what lies there is gone with the machine's power", p.To.Mount, p.To.Type))
	}
	if slices.Contains(p.To.Options, "ro") {
		p.Refused = append(p.Refused, p.To.Mount+" is mounted read-only")
	}
	if p.Route.New == p.To.Mount {
		p.Refused = append(p.Refused, fmt.Sprintf("%s is a whole filesystem: name a folder in it, as %s, so that a server that starts without the mount finds no empty folder", p.Route.New, filepath.Join(p.Route.New, "mysql")))
	}
	if p.Route.Was == "" && p.From.Mount == p.Route.Link {
		p.Refused = append(p.Refused, fmt.Sprintf("%s is a whole filesystem, which cannot be renamed while it is mounted: mount it elsewhere, with a symbolic link in its place, or mount the new volume there after a copy", p.Route.Link))
	}
}

// usedBy is the room that a folder takes, in bytes.
func usedBy(folder string) (n int64, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	files, err := list(root, true)
	for _, f := range files {
		n += f.allocated()
	}
	return n, err
}

// process looks at the server as a process: how it is stopped, and whether it can use the new place.
func (p *Plan) process(q Request, v map[string]string) error {
	p.stop, p.start = q.Stop, q.Start
	parent := filepath.Dir(p.Route.Link)
	if unix.Access(parent, unix.W_OK) != nil {
		p.Needs = append(p.Needs, fmt.Sprintf("to put a link in the place of %s david has to write to %s: run it as root", p.Route.Link, parent))
	}
	if unix.Access(p.To.Path, unix.W_OK) != nil {
		p.Refused = append(p.Refused, fmt.Sprintf("david may not write to %s: run it as root", p.To.Path))
	}
	server, ok, err := serverOf(p.From.Path)
	if err != nil {
		return err
	}
	if !ok {
		how := "run it as root, or as the server's user"
		if os.Geteuid() == 0 {
			how = "one that is just being started is seen in a moment: run the same command again"
		}
		p.Needs = append(p.Needs, fmt.Sprintf("david does not see which process serves %s: %s", p.From.Path, how))
		return nil
	}
	p.Server.PID, p.Server.Unit = server.PID, unit(server.PID)
	if err := p.others(); err != nil {
		return err
	}
	if len(q.Stop) == 0 && p.Server.Unit != "" {
		p.stop, p.start = []string{"systemctl", "stop", p.Server.Unit}, []string{"systemctl", "start", p.Server.Unit}
	}
	said, refused, notes := options(server.PID, v, p.Route, p.From.Path)
	p.Said, p.Refused, p.Notes = said, append(p.Refused, refused...), append(p.Notes, notes...)
	if len(p.stop) == 0 {
		p.Refused = append(p.Refused, "the server runs in no systemd unit: say how it is stopped and started, with --stop and --start")
	}
	return p.reach(server.PID)
}

// others names who else writes to the folder, and would go on after the server has stopped.
func (p *Plan) others() error {
	list, err := writers(p.From.Path)
	if err != nil {
		return err
	}
	for _, w := range list {
		if !w.inner {
			p.Refused = append(p.Refused, fmt.Sprintf("%s writes to %s, too: end it first", w, p.From.Path))
		}
	}
	return nil
}

// reach tells whether the server can use the new place.
func (p *Plan) reach(pid int) error {
	uid, groups, err := who(pid)
	if err != nil {
		return err
	}
	if uid != uint32(os.Geteuid()) && os.Geteuid() != 0 {
		p.Refused = append(p.Refused, "david runs neither as root nor as the server's user, and cannot give the copy its owner")
	}
	if dir := barred(filepath.Dir(p.Route.New), uid, groups); dir != "" {
		p.Refused = append(p.Refused, fmt.Sprintf("the server's user (%d) may not enter %s, on the way to the new place: chmod o+x, or name another", uid, dir))
	}
	if why := unseen(pid, p.To.Path); why != "" {
		p.Refused = append(p.Refused, why)
	}
	if profile := confined(pid); profile != "" {
		p.confinement(profile, "/etc/apparmor.d")
	}
	if text, err := os.ReadFile("/sys/fs/selinux/enforce"); err == nil && strings.TrimSpace(string(text)) == "1" {
		p.Notes = append(p.Notes, fmt.Sprintf("SELinux: the copy has the labels of the data; so that a relabel keeps them: semanage fcontext -a -e %s %s", p.Route.Link, p.Route.New))
	}
	if p.Server.Unit != "" && p.To.Mount != "/" {
		p.Notes = append(p.Notes, fmt.Sprintf("the server must not start without the mount: systemctl edit %s, [Unit] RequiresMountsFor=%s", p.Server.Unit, p.Route.New))
	}
	return nil
}

// confinement refuses a new place that the files of AppArmor do not name: the server could not open it.
func (p *Plan) confinement(profile, folder string) {
	named := false
	filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			named = named || err == nil && strings.Contains(string(text), p.Route.New)
		}
		return nil
	})
	if !named {
		p.Refused = append(p.Refused, fmt.Sprintf("AppArmor's profile %s binds the server, and no file in %s names the new place: add \"%s/ r,\" and \"%s/** rwk,\" to %s/local/%s, then systemctl reload apparmor",
			profile, folder, p.Route.New, p.Route.New, folder, strings.ReplaceAll(strings.Trim(profile, "/"), "/", ".")))
	}
}
