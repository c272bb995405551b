package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"david/internal/ceph"
	"david/test/daemon"
)

// options of starting.
type options struct {
	dir   string
	osds  int
	bytes int64
	owned bool // its daemons end with this process
}

// check says whether a cluster can run here.
func check() error {
	if err := ceph.Find("ceph-mon", "ceph-mgr", "ceph-osd", "ceph", "rbd", "monmaptool", "ceph-authtool"); err != nil {
		return err
	}
	if _, err := user.Lookup("ceph"); err != nil && os.Geteuid() == 0 {
		return fmt.Errorf("there is no user ceph to run the daemons as: %w", err)
	}
	return nil
}

// up starts a cluster, or takes down what it had started.
func up(ctx context.Context, o options, say func(string, ...any)) (s *state, err error) {
	if err := check(); err != nil {
		return nil, err
	}
	began := time.Now()
	release, err := lock(o.dir)
	if err != nil {
		return nil, err
	}
	defer release()
	s = &state{Dir: o.dir, OSDs: o.osds, Bytes: o.bytes}
	if o.owned {
		if s.Owner, err = daemon.Find(os.Getpid()); err != nil {
			return nil, err
		}
	}
	if err := s.claim(say); err != nil {
		return nil, err
	}
	if err := s.bringUp(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot bring up a Ceph: %w%s", err, s.lastWords()), takeDown(s.Dir))
	}
	say("up in %s: a monitor, a manager, %d OSDs of %.1f GiB; its configuration is %s", time.Since(began).Round(100*time.Millisecond), s.OSDs, float64(s.Bytes)/(1<<30), s.conf())
	return s, nil
}

func (s *state) bringUp(ctx context.Context) error {
	for _, step := range []func(context.Context) error{s.files, s.startMon, s.startMgr, s.startOSDs, s.wait, s.makePools} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.Ready = true
	return s.save()
}

// configuration is for daemons and clients alike. Of memory and disk the cluster takes little: no cache that
// grows, and copies on OSDs of one host. Clients cache nothing, as the kernel's own driver does not.
const configuration = `[global]
fsid = %[1]s
mon host = [v2:127.0.0.1:%[2]d/0]
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind port min = %[3]d
ms bind port max = %[4]d
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
auth allow insecure global id reclaim = false
run dir = %[5]s/run
admin socket = %[5]s/run/$name.$pid.asok
pid file =
log file =
log to stderr = true
err to stderr = true
crash dir = %[5]s/crash
osd crush chooseleaf type = 0
osd pool default size = 2
osd pool default min size = 0
osd pool default pg autoscale mode = off
mon allow pool delete = true
mon allow pool size one = true
mon max pg per osd = 1000
mon warn on pool no redundancy = false
mon warn on pool no app = false
mon data avail warn = 1
mon data avail crit = 1
mon cpu threads = 1
mon osd full ratio = 0.97
mon osd backfillfull ratio = 0.96
mon osd nearfull ratio = 0.95
mgr initial modules =
rbd cache = false

[mon]
mon data = %[5]s/mon
mon memory target = 268435456
mon memory autotune = false

[mgr]
mgr data = %[5]s/mgr

[osd]
osd data = %[5]s/osd.$id
osd objectstore = bluestore
osd class update on start = false
osd mclock skip benchmark = true
bluestore block create = true
bluestore block size = %[6]d
bluestore block db size = 0
bluestore block wal size = 0
bluestore cache autotune = false
bluestore cache size = 134217728
bluestore rocksdb options = %[7]s
osd op num shards = 2
osd op num threads per shard = 2

[client.admin]
keyring = %[5]s/admin.keyring
`

// databases are Ceph 16.2's own settings of an OSD's database, but for the size of a write buffer, 16 MiB instead of
// 256, and no logs kept to be used again: its logs are several times that, which is nothing on a disk, and a fifth of
// an OSD of 4 GiB.
const databases = "compression=kNoCompression,max_write_buffer_number=4,min_write_buffer_number_to_merge=1,recycle_log_file_num=0,write_buffer_size=16777216,writable_file_max_buffer_size=0,compaction_readahead_size=2097152,max_background_compactions=2,max_total_wal_size=67108864"

// files writes the configuration and the keys, and makes the daemons' folders.
func (s *state) files(ctx context.Context) error {
	first := 20000 + s.Port%20000 // where the system gives out no ports by itself, on most
	text := fmt.Sprintf(configuration, s.FSID, s.Port, first, first+400, s.Dir, s.Bytes, databases)
	if err := os.WriteFile(s.conf(), []byte(text), 0o644); err != nil {
		return err
	}
	folders := []string{"run", "crash", "mon", "mgr"}
	for i := range s.OSDs {
		folders = append(folders, fmt.Sprintf("osd.%d", i))
	}
	if err := os.Mkdir(s.path("log"), 0o700); err != nil { // root opens what the daemons write to
		return fmt.Errorf("cannot make a folder of the cluster's: %w", err)
	}
	for _, name := range folders {
		if err := os.Mkdir(s.path(name), 0o700); err != nil {
			return fmt.Errorf("cannot make a folder of the cluster's: %w", err)
		}
	}
	if err := s.keys(ctx); err != nil {
		return err
	}
	for _, name := range folders { // only now: root must write nowhere that the cluster's user could have put a link
		if err := own(s.path(name)); err != nil {
			return fmt.Errorf("cannot give a folder to the cluster's user: %w", err)
		}
	}
	return nil
}

// keys makes them, each for its owner's eyes alone, and tells the monitor of all.
func (s *state) keys(ctx context.Context) error {
	all := s.path("keys")
	type key struct {
		name, file string
		caps       []string
	}
	list := []key{
		{"mon.", "", []string{"mon", "allow *"}},
		{"client.admin", s.path("admin.keyring"), []string{"mon", "allow *", "osd", "allow *", "mgr", "allow *", "mds", "allow *"}},
		{"mgr.a", s.path("mgr", "keyring"), []string{"mon", "allow profile mgr", "osd", "allow *", "mds", "allow *"}},
	}
	for i := range s.OSDs {
		name := fmt.Sprintf("osd.%d", i)
		list = append(list, key{name, s.path(name, "keyring"), []string{"mon", "allow profile osd", "mgr", "allow profile osd", "osd", "allow *"}})
	}
	if err := os.WriteFile(all, nil, 0o600); err != nil {
		return err
	}
	for _, k := range list {
		args := []string{"ceph-authtool", all, "--gen-key", "--name", k.name}
		for i := 0; i < len(k.caps); i += 2 {
			args = append(args, "--cap", k.caps[i], k.caps[i+1])
		}
		if err := s.once(ctx, nil, args...); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(all)
	if err != nil {
		return err
	}
	for _, k := range list {
		if k.file == "" {
			continue
		}
		if err := os.WriteFile(k.file, section(string(text), k.name), 0o600); err != nil {
			return err
		}
		if k.name != "client.admin" {
			err = errors.Join(err, own(k.file))
		}
	}
	return errors.Join(err, own(all))
}

// section is the part of a keyring that belongs to a name.
func section(keyring, name string) []byte {
	_, rest, _ := strings.Cut(keyring, "["+name+"]\n")
	body, _, _ := strings.Cut(rest, "\n[")
	return []byte("[" + name + "]\n" + strings.TrimRight(body, "\n") + "\n")
}

func (s *state) startMon(ctx context.Context) error {
	monmap := s.path("monmap")
	address := fmt.Sprintf("[v2:127.0.0.1:%d]", s.Port)
	if err := s.once(ctx, nil, "monmaptool", "--create", "--clobber", "--fsid", s.FSID, "--addv", "a", address, monmap); err != nil {
		return err
	}
	if err := own(monmap); err != nil {
		return err
	}
	if err := s.once(ctx, credential(), "ceph-mon", "--conf", s.conf(), "--mkfs", "--id", "a", "--monmap", monmap, "--keyring", s.path("keys")); err != nil {
		return err
	}
	if err := errors.Join(os.Remove(monmap), os.Remove(s.path("keys"))); err != nil {
		return err
	}
	return s.start("mon", "ceph-mon", "--conf", s.conf(), "--id", "a", "--foreground")
}

// startOSDs announces each to the monitor, makes its file and starts it, all at the same time.
func (s *state) startOSDs(ctx context.Context) error {
	ended := make(chan error)
	for i := range s.OSDs {
		go func() { ended <- s.startOSD(ctx, strconv.Itoa(i)) }()
	}
	var errs error
	for range s.OSDs {
		errs = errors.Join(errs, <-ended)
	}
	return errs
}

func (s *state) startOSD(ctx context.Context, name string) error {
	id := uuid()
	if err := s.cluster().Ask(ctx, "osd", "new", id, name); err != nil {
		return err
	}
	if err := s.once(ctx, credential(), "ceph-osd", "--conf", s.conf(), "--id", name, "--mkfs", "--osd-uuid", id); err != nil {
		return err
	}
	return s.start("osd."+name, "ceph-osd", "--conf", s.conf(), "--id", name, "--foreground")
}

func (s *state) startMgr(context.Context) error {
	return s.start("mgr", "ceph-mgr", "--conf", s.conf(), "--id", "a", "--foreground")
}

// wait returns once every OSD serves and the cluster tells how full it is, which its manager finds out.
func (s *state) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute, errors.New("its OSDs did not come up within three minutes"))
	defer cancel()
	for {
		osds, err := s.cluster().OSDs(ctx)
		if err == nil && osds.Up == s.OSDs {
			if u, err := s.cluster().Usage(ctx); err == nil && u.Total >= int64(s.OSDs)*s.Bytes/2 {
				return nil
			}
		}
		if ctx.Err() != nil {
			return errors.Join(context.Cause(ctx), err)
		}
		time.Sleep(300 * time.Millisecond)
	}
}

// lastWords are those of the daemons' logs.
func (s *state) lastWords() string {
	var words string
	for _, name := range []string{"mon", "mgr", "osd.0"} {
		text, _ := os.ReadFile(s.path("log", name+".log"))
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if last := lines[len(lines)-1]; last != "" {
			words += fmt.Sprintf("\n%s: %s", name, last)
		}
	}
	return words
}
