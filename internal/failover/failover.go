// Package failover has this machine take over a volume with a server's data, whose own machine failed: nobody
// else writes to the volume any more, then it is mounted here, and a server recovers on it.
//
//	Look (who has the volume, what speaks against it) -> Plan -> Apply: fence -> attach -> mount -> start -> recover
//
// On Ceph the cluster is told to refuse the old side, whatever that still believes. Of another volume only
// what this machine can prove is taken: that nobody here has it.
package failover

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"

	"david/internal/ceph"
	"david/internal/home"
	"david/internal/loopdev"
	"david/internal/mysqld"
)

// Folder holds, in david's folder, one folder for each volume that was taken over here.
const Folder = "failovers"

// ErrInput marks what the user has to mend; nothing was changed then.
var ErrInput = errors.New("cannot be done so")

// ErrServer says that the volume is here and its server does not serve.
var ErrServer = errors.New("the server does not serve")

// refuse is an error of the user's, in its own words.
func refuse(format string, args ...any) error { return refusal{fmt.Errorf(format, args...)} }

type refusal struct{ error }

func (r refusal) Unwrap() []error { return []error{ErrInput, r.error} }

// Request says which volume is taken over, and what is to run on it.
type Request struct {
	Home     string
	Image    *ceph.Image   // of a Ceph pool; nil where Device is given
	Fence    []string      // clients and machines that had the image, besides those that are seen to have it
	Device   string        // a block device, or a file
	Detached bool          // the user says that no other machine has the device
	Old      string        // HOST:PORT or the socket of the server that failed; "" where nobody says
	Force    bool          // also where that answers, or is not named
	Mount    string        // where the volume is mounted: an empty folder
	Options  []string      // of the mount
	Start    []string      // the command that starts the server
	Addr     mysqld.Addr   // of the server once it was started
	Recovery time.Duration // that it may take until it answers
	Say      func(line string)
}

// The steps, by name.
const (
	Detaching  = "detach"
	Fencing    = "fence"
	Attaching  = "attach"
	Mounting   = "mount"
	Starting   = "start"
	Recovering = "recover"
)

// Step is one, with its command where it has one.
type Step struct {
	Name    string   `json:"name"`
	Command []string `json:"command,omitempty"`
	Seconds float64  `json:"seconds"` // that it took; 0 before it is done
	do      func(context.Context) error
}

// Plan says what would be done. It holds the volume against other davids until it is closed.
type Plan struct {
	Volume string   `json:"volume"`
	Fenced []string `json:"fenced,omitempty"` // clients and machines that are shut out
	Steps  []Step   `json:"steps"`
	Notes  []string `json:"notes,omitempty"`
	Undo   []string `json:"undo"` // the commands that give the volume back, once the server is stopped

	Server  Server  `json:"server"`
	Seconds float64 `json:"seconds"` // from the beginning of the first step until the server answered

	q       Request
	dir     string // david's, of this volume
	lock    *os.File
	started <-chan error // how the start command ended
	working string       // which processes work on the volume, or are about to, so that nothing is started
	worked  string       // the same of the past
}

// Look finds out who has the volume and what would be done, and refuses what must not be.
func Look(ctx context.Context, q Request) (p *Plan, err error) {
	p = &Plan{q: q}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
			p = nil
		}
	}()
	if os.Geteuid() != 0 {
		return p, refuse("a volume is mounted here, which needs root")
	}
	if err := p.old(ctx); err != nil {
		return p, err
	}
	if err := p.named(); err != nil {
		return p, err
	}
	mounted, err := p.place()
	switch {
	case err != nil:
		return p, err
	case mounted && q.Image != nil:
		p.Notes = append(p.Notes, "it is fenced, attached and mounted by an earlier run: what is left is done")
	case mounted:
		p.Notes = append(p.Notes, "it is mounted there already; that no other machine has it is your word")
	case q.Image != nil:
		err = p.lookAtImage(ctx)
	default:
		err = p.lookAtDevice()
	}
	if err != nil {
		return p, err
	}
	return p, p.serve(ctx, mounted)
}

// named checks how the volume and its mount point are named, and claims the volume. Each has one name from then
// on: what somebody else has of it is found by that.
func (p *Plan) named() (err error) {
	if p.q.Mount, err = filepath.EvalSymlinks(p.q.Mount); err != nil {
		return refuse("--mount: make an empty folder there first (%w)", err)
	}
	if i := p.q.Image; i != nil {
		if err := i.Check(); err != nil {
			return refusal{err}
		}
		p.Volume = "image " + i.Spec()
		return p.claim("rbd-" + i.Pool + "+" + i.Name) // no name has a +
	}
	if !p.q.Detached {
		return refuse("david cannot see whether another machine has %s: detach it there first, by force where that does not answer (a cloud's console, or as in aws ec2 detach-volume --force), attach it here alone, and say --detached", p.q.Device)
	}
	if p.q.Device, err = filepath.EvalSymlinks(p.q.Device); err != nil {
		return refuse("--device: %w", err)
	}
	p.Volume = p.q.Device
	return p.claim("device-" + strings.ReplaceAll(strings.Trim(p.q.Device, "/"), "/", "."))
}

// source is what mount(8) is given.
func (p *Plan) source() string {
	if p.q.Image != nil {
		return filepath.Join(p.point(), p.q.Image.Name)
	}
	return p.q.Device
}

// claim takes the volume's folder, which another david may not have at the same time.
func (p *Plan) claim(name string) (err error) {
	p.dir = filepath.Join(p.q.Home, Folder, name)
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return fmt.Errorf("cannot make a folder for the volume: %w", err)
	}
	if p.lock, err = home.Open(filepath.Join(p.dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	return lockFile(p.lock, "another david takes this volume over: wait for it to end")
}

// Close lets go of what is held for the plan; what was done stays.
func (p *Plan) Close() error {
	if p.lock == nil {
		return nil
	}
	return p.lock.Close()
}

// place refuses a mount point that cannot be used. mounted: the volume is there already.
func (p *Plan) place() (mounted bool, err error) {
	p.Undo = []string{"umount " + p.q.Mount}
	if p.q.Image != nil {
		p.Undo = append(p.Undo, "umount "+p.point())
	}
	if info, err := os.Stat(p.q.Mount); err != nil || !info.IsDir() {
		return false, refuse("--mount %s: it is no folder", p.q.Mount)
	}
	there, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(p.q.Mount))
	if err != nil {
		return false, err
	}
	if len(there) > 0 {
		top := there[len(there)-1].Source
		if same, err := sameVolume(top, p.source()); err != nil || same {
			return same, err
		}
		return false, refuse("--mount %s: %s is mounted there", p.q.Mount, top)
	}
	entries, err := os.ReadDir(p.q.Mount)
	if err == nil && len(entries) > 0 {
		err = refuse("--mount %s: it is not empty, and what lies in it would be hidden", p.q.Mount)
	}
	return false, err
}

// step adds one.
func (p *Plan) step(name string, do func(context.Context) error, command ...string) {
	p.Steps = append(p.Steps, Step{Name: name, Command: command, do: do})
}

// mount adds the step that mounts the volume, by a loop device where it is a file. The filesystem's own
// recovery is a part of it.
func (p *Plan) mount(file bool) {
	source := p.source()
	if file { // not mount's option loop: see loopdev.Attach
		source = "$(losetup --find --show --direct-io=on " + source + ")"
	}
	p.step(Mounting, func(ctx context.Context) error {
		return p.guarded(ctx, max(ceph.Wedged, p.q.Recovery), func() error { return p.mountNow(file) }) // a journal's replay would begin anew each time
	}, mounting(p.q.Options, source, p.q.Mount)...)
}

func mounting(options []string, source, point string) []string {
	if len(options) == 0 {
		return []string{"mount", source, point}
	}
	return []string{"mount", "-o", strings.Join(options, ","), source, point}
}

// mountNow attaches the loop device itself, as mount's option loop asks every other one whether it has the
// file already, and one of those may be wedged.
func (p *Plan) mountNow(file bool) error {
	source := p.source()
	if file {
		backing, err := os.OpenFile(source, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer backing.Close()
		device, err := loopdev.Attach(backing, 0)
		if err != nil {
			return fmt.Errorf("cannot attach a loop device to %s: %w", source, err)
		}
		defer device.Close() // it stays for as long as it is mounted
		source = device.Name()
	}
	return run(mounting(p.q.Options, source, p.q.Mount))
}

// Apply does what is planned. Where it fails, the error says how far it came, and what is left as it is.
func (p *Plan) Apply(ctx context.Context) error {
	began := time.Now()
	for i := range p.Steps {
		s := &p.Steps[i]
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("stopped before the step %s: %w%s", s.Name, err, p.left(i))
		}
		at := time.Now()
		err := s.do(ctx)
		s.Seconds = time.Since(at).Seconds()
		if err != nil {
			return fmt.Errorf("%s: %w%s", s.Name, err, p.left(i))
		}
		p.q.Say(fmt.Sprintf("%-8s %6.1f s  %s", s.Name, s.Seconds, strings.Join(s.Command, " ")))
	}
	p.Seconds = time.Since(began).Seconds()
	return nil
}

// left says what stays after the step i failed.
func (p *Plan) left(i int) string {
	done := func(name string) bool {
		return !slices.ContainsFunc(p.Steps[i:], func(s Step) bool { return s.Name == name })
	}
	switch {
	case done(Mounting):
		return fmt.Sprintf("\nthe volume stays fenced, attached and mounted on %s; the same command goes on from there; %s gives it back", p.q.Mount, strings.Join(p.Undo, "; "))
	case done(Fencing) && len(p.Fenced) > 0:
		return "\nthe old side stays fenced, and nothing is mounted. The same command begins anew, and gives back first what is " +
			"attached here; where nobody is seen to have the image any more, name who had it: --fence " + strings.Join(p.Fenced, " --fence ")
	}
	return "\nnothing is attached or mounted"
}
