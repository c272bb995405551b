package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"david/internal/ceph"
	"david/internal/process"
	"david/test/daemon"
)

// state describes a cluster, and what it takes to end it. It is written before anything is made, as state.json
// in the cluster's folder.
type state struct {
	Dir   string     `json:"dir"`
	FSID  string     `json:"fsid"`
	Port  int        `json:"port"`           // the monitor's; the others' are Ceph's choice of the ports above it
	Owner process.ID `json:"owner,omitzero"` // its daemons end with it
	OSDs  int        `json:"osds"`
	Bytes int64      `json:"bytes"` // of each OSD's file
	Ready bool       `json:"ready"`
}

func (s *state) path(parts ...string) string {
	return filepath.Join(append([]string{s.Dir}, parts...)...)
}

func (s *state) conf() string { return s.path(ceph.LocalConf) }

func (s *state) cluster() ceph.Cluster { return ceph.Cluster{Conf: s.conf()} }

func (s *state) save() error { return daemon.Save(s.Dir, s) }

// loadState returns fs.ErrNotExist where there is no cluster in a folder.
func loadState(dir string) (*state, error) {
	s := &state{}
	if err := daemon.Load(dir, s); err != nil {
		return nil, err
	}
	s.Dir = dir
	return s, nil
}

// lock keeps other `up`s and `down`s of the same folder away until it is released, at the latest by this
// process' end. It is on the folder above, so that it leaves no file.
func lock(dir string) (release func(), err error) {
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// claim makes the folder this cluster's. One that was left there by somebody who has ended is taken down.
func (s *state) claim(say func(string, ...any)) error {
	if !filepath.IsAbs(s.Dir) || filepath.Clean(s.Dir) != s.Dir || len(s.Dir) > 60 {
		return fmt.Errorf("the cluster's folder has to be an absolute, plain path of at most 60 bytes, as sockets lie in it: not %q", s.Dir)
	}
	old, err := loadState(s.Dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if entries, _ := os.ReadDir(s.Dir); len(entries) > 0 {
			return fmt.Errorf("%s is not empty and holds no cluster; choose another folder", s.Dir)
		}
	case err != nil:
		return err
	case old.Ready && old.Owner.PID == 0 && len(ours(s.Dir)) > 0:
		return fmt.Errorf("a cluster is up in %s already; end it with: go run ./test/ceph down --dir %s", s.Dir, s.Dir)
	case old.Owner.PID != 0 && old.Owner.Alive():
		return fmt.Errorf("process %d has a cluster in %s", old.Owner.PID, s.Dir)
	default:
		say("taking down what is left of an earlier cluster in %s", s.Dir)
		if err := takeDown(s.Dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(s.Dir, 0o711); err != nil {
		return fmt.Errorf("cannot make the cluster's folder: %w", err)
	}
	if err := errors.Join(os.Chmod(s.Dir, 0o711), s.choose()); err != nil { // its daemons' user passes through
		return err
	}
	return s.save()
}

// choose gives the cluster its name and its monitor's port.
func (s *state) choose() error {
	s.FSID = uuid()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot find a free port: %w", err)
	}
	s.Port = l.Addr().(*net.TCPAddr).Port
	return l.Close()
}

// uuid is a random one (RFC 9562, version 4).
func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
