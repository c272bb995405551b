package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"david/internal/mysqld"
	"david/internal/process"
	"david/internal/server"
)

// Guest holds a clone with all that a server on it needs, for one that something else than david starts on
// this machine: a container. It has to see its Folders and the processes of this machine, to run as UID and
// GID, and to have Args for its arguments; it is then the server that Start would have started, but for where
// it runs.
type Guest struct {
	Folders  []Folder // runtime, data
	Args     []string // without the binary
	UID, GID int
	Port     string // that it listens on

	server  *Server
	process process.ID // zero until Await has found it
}

// Folder describes one that a guest has to see.
type Folder struct {
	Source string // where it lies, without a mount of david's own in between where that can be: not every container runtime sees those
	Path   string // where the guest has to see it
}

// Invite clones a data template and makes a server's runtime folder, and starts nothing. It returns how long
// cloning took. Of the options, Settings, Host and LogPath count. Release gives everything back.
func (w *Workspace) Invite(g Template, o StartOptions) (*Guest, time.Duration, error) {
	began := time.Now()
	o.TCP, o.DefaultsFile, o.Tmpfs, o.Layout = true, "", 0, ""
	clone, err := w.cloneFolder(o, place{dir: w.data})
	if err != nil {
		return nil, 0, fmt.Errorf("cannot make a folder for the clone: %w", err)
	}
	guest, err := w.invite(g, clone, o)
	if err != nil {
		return nil, 0, errors.Join(err, w.dropClone(clone, false))
	}
	return guest, time.Since(began), nil
}

func (w *Workspace) invite(g Template, clone string, o StartOptions) (*Guest, error) {
	if err := w.clone(g, clone, o, place{dir: w.data}); err != nil {
		return nil, err
	}
	s, err := w.newServer(g.key, filepath.Join(clone, "data"), o)
	if err != nil {
		return nil, err
	}
	guest := &Guest{Folders: []Folder{{s.dir, s.dir}, {w.behind(s.data), s.data}}, UID: w.owner.UID, GID: w.owner.GID, Port: s.port, server: s}
	options, err := w.options(s, o)
	if err == nil {
		guest.Args = append(options, s.isolation()...)
		err = s.ready()
	}
	if err != nil {
		return nil, errors.Join(err, s.release())
	}
	return guest, nil
}

// behind returns a path without the bind mount that the data may lie on.
func (w *Workspace) behind(path string) string {
	if rest, ok := strings.CutPrefix(path, w.data+"/"); ok && w.bound != "" {
		return filepath.Join(w.bound, rest)
	}
	return path
}

// ready writes what the server reads and writes at its start.
func (s *Server) ready() error {
	if err := s.writeInit(s.addr.Password); err != nil {
		return err
	}
	return s.w.give(s.log(), nil)
}

// Await waits until the server answers at an address, at most as long as one of david's own may take, and
// finds its process. ended tells why it has ended, nil while it may still come. The file with the password is
// gone afterwards.
func (g *Guest) Await(ctx context.Context, address string, ended func() error) error {
	defer os.Remove(g.server.init())
	g.server.addr.Address = address
	if err := g.server.await(ctx, startTimeout, ended); err != nil {
		return g.Blame(err)
	}
	pid, err := g.server.readPID(filepath.Join(g.server.dir, "pid"))
	if err != nil {
		return err
	}
	p, err := process.Identify(pid)
	if err == nil { // it is the server that wrote the file, and names whom it likes
		err = servesIn(pid, g.server.dir)
	}
	if err != nil {
		return fmt.Errorf("cannot find the server's process %d on this machine: %w", pid, err)
	}
	g.process = p
	return g.server.w.journal.started(pid)
}

// readPID reads a server's pid file.
func (s *Server) readPID(path string) (int, error) {
	b, err := s.w.readLog(path)
	if err != nil {
		return 0, fmt.Errorf("cannot see which process the server is: %w", err)
	}
	pid, err := strconv.Atoi(string(bytes.TrimSpace(b)))
	if err != nil {
		return 0, fmt.Errorf("cannot see which process the server is: %s holds %q", path, b)
	}
	return pid, nil
}

// Blame returns a *StartError with the server's own words.
func (g *Guest) Blame(cause error) error {
	return g.server.w.startError(g.server.binary.Path, g.server.log(), cause)
}

// Addr returns where the server listens, with the password of this start.
func (g *Guest) Addr() mysqld.Addr { return g.server.addr }

// Data returns the folder its data lies in.
func (g *Guest) Data() string { return g.server.data }

// PID returns the server's process, once Await has found it.
func (g *Guest) PID() int { return g.process.PID }

// Alive is nil while the server runs, else a *StartError that says what the server did and why it ended, as
// why tells.
func (g *Guest) Alive(why func() error) error {
	if g.process.Alive() {
		return nil
	}
	cause := why()
	if cause == nil {
		cause = errors.New("its process is gone")
	}
	return g.Blame(cause)
}

// Kill ends the server, as Stop ends one of david's own whose data is dropped: shutting down would write
// dirty pages for nothing.
func (g *Guest) Kill() error {
	if g.process.PID == 0 {
		return nil
	}
	return g.process.Kill()
}

// Release ends the server's process where it still runs, keeps its log, and drops its folders.
func (g *Guest) Release() error {
	if err := g.Kill(); err != nil {
		return err
	}
	if g.process.PID != 0 {
		if err := g.server.w.journal.ended(g.process.PID); err != nil {
			return err
		}
	}
	return g.server.release()
}

// SameBinary makes sure that a process of this machine runs the very binary.
func SameBinary(pid int, b server.Binary) error {
	sum, err := server.Checksum(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return fmt.Errorf("cannot see which binary process %d runs: %w", pid, err)
	}
	if sum != b.SHA256 {
		return fmt.Errorf("not the same build: process %d runs a binary with the SHA-256 %.12s, %s has %.12s", pid, sum, b.Path, b.SHA256)
	}
	return nil
}

// Account gives the user and the group of this machine that the servers run as.
func (w *Workspace) Account() (uid, gid int) { return w.owner.UID, w.owner.GID }

// Hand makes a folder of the servers' user in the runtime folder.
func (w *Workspace) Hand(name string) (string, error) {
	dir := filepath.Join(w.run, name)
	if err := errors.Join(mkdirIfMissing(dir), w.owner.Own(dir)); err != nil {
		return "", fmt.Errorf("cannot make a runtime folder: %w", err)
	}
	return dir, nil
}
