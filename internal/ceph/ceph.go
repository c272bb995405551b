// Package ceph asks a Ceph cluster by Ceph's own programs. Each of them waits for ever where no monitor
// answers, so each has a deadline here.
//
//	Cluster -> Usage, Pool, Free -> Image: Create, Fill, Remove; Write on several at once
package ceph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"david/internal/home"
)

// Cluster is one as its configuration file tells: where its monitors are, and where the key of client.admin
// lies.
type Cluster struct {
	Conf string `json:"conf"`
}

// Trust says why a configuration is not to be used: somebody else could have written it, who would have a Ceph
// program of david's user load what they like.
func (c Cluster) Trust() error {
	const most = 1 << 20
	if _, err := home.Read(c.Conf, most); err != nil {
		return fmt.Errorf("cannot use the Ceph configuration %s: %w", c.Conf, err)
	}
	info, err := os.Lstat(c.Conf)
	if err == nil && info.Mode().Perm()&0o022 != 0 {
		err = fmt.Errorf("cannot use the Ceph configuration %s: others can write to it (mode %#o); chmod go-w it", c.Conf, info.Mode().Perm())
	}
	return err
}

// HowToGet says where the programs come from.
const HowToGet = "apt-get install ceph-common rbd-fuse fio; for a throwaway cluster on this machine: make ceph"

// ErrMissing says that Ceph's programs are not installed.
var ErrMissing = errors.New("the programs of Ceph are missing")

// errLate says that a program of Ceph's was stopped because it took too long.
var errLate = errors.New("it took too long and was stopped")

// patience bounds what takes the cluster a moment.
const patience = 30 * time.Second

// Find names those of Ceph's programs that are not on PATH.
func Find(programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%w: there is no %s; %s", ErrMissing, p, HowToGet)
		}
	}
	return nil
}

// Usage tells how full a cluster is, in bytes on its disks, all copies counted.
type Usage struct {
	Total int64
	Used  int64 // by data, and by the OSDs' databases
}

// Share of the room that is used, 0 to 1.
func (u Usage) Share() float64 {
	if u.Total == 0 {
		return 0
	}
	return float64(u.Used) / float64(u.Total)
}

// room is what ceph df says.
type room struct {
	Pools []struct {
		Name  string `json:"name"`
		Stats struct {
			Free int64 `json:"max_avail"`
		} `json:"stats"`
	} `json:"pools"`
}

// Usage asks how full the cluster is. What ceph df calls used holds besides what OSDs have not given back yet: of an
// image that is gone it is there until somebody writes again.
func (c Cluster) Usage(ctx context.Context) (Usage, error) {
	var doc struct {
		Summary struct {
			Total int64 `json:"total_kb"`
			Used  int64 `json:"total_kb_used"`
			Data  int64 `json:"total_kb_used_data"`
			Omap  int64 `json:"total_kb_used_omap"`
			Meta  int64 `json:"total_kb_used_meta"`
		} `json:"summary"`
	}
	err := c.ask(ctx, &doc, "osd", "df")
	u := doc.Summary
	used := u.Data + u.Omap + u.Meta
	if used == 0 { // before Ceph 14.2 they are not told apart
		used = u.Used
	}
	return Usage{Total: u.Total << 10, Used: used << 10}, err
}

// ID asks for the cluster's own, by which it is told from others.
func (c Cluster) ID(ctx context.Context) (string, error) {
	var doc struct {
		ID string `json:"fsid"`
	}
	return doc.ID, c.ask(ctx, &doc, "fsid")
}

// Free asks how many bytes more a pool can take, each counted once.
func (c Cluster) Free(ctx context.Context, pool string) (int64, error) {
	var r room
	if err := c.ask(ctx, &r, "df"); err != nil {
		return 0, err
	}
	for _, p := range r.Pools {
		if p.Name == pool {
			return p.Stats.Free, nil
		}
	}
	return 0, fmt.Errorf("the cluster of %s has no pool %s", c.Conf, pool)
}

// Fullest asks how full the fullest OSD is, 0 to 1: a cluster lets writes wait once one of them is full.
func (c Cluster) Fullest(ctx context.Context) (float64, error) {
	var doc struct {
		Nodes []struct {
			Utilization float64 `json:"utilization"` // %
		} `json:"nodes"`
	}
	err := c.ask(ctx, &doc, "osd", "df")
	most := 0.0
	for _, n := range doc.Nodes {
		most = max(most, n.Utilization/100)
	}
	return most, err
}

// OSDs tells how many there are, and how many serve.
type OSDs struct {
	All int `json:"num_osds"`
	Up  int `json:"num_up_osds"`
}

// OSDs asks for the disks' daemons.
func (c Cluster) OSDs(ctx context.Context) (o OSDs, err error) {
	return o, c.ask(ctx, &o, "osd", "stat")
}

// Pool is one of the cluster.
type Pool struct {
	Name     string `json:"pool"`
	Replicas int    `json:"size"`
	PGs      int    `json:"pg_num"`
}

// Pool asks for a pool.
func (c Cluster) Pool(ctx context.Context, name string) (p Pool, err error) {
	if err := plain(name); err != nil {
		return p, err
	}
	return p, c.ask(ctx, &p, "osd", "pool", "get", name, "all")
}

// plain refuses what a program would take for an option, or for more than a name.
func plain(name string) error {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" || name[0] == '-' {
		return fmt.Errorf("%q is no name of a pool or an image here: letters, digits, . _ -", name)
	}
	return nil
}

// ask runs ceph for a JSON document.
func (c Cluster) ask(ctx context.Context, into any, args ...string) error {
	out, err := c.ceph(ctx, append(args, "--format", "json")...)
	if err != nil {
		return err
	}
	// Ceph 16 has an empty list follow upon that of the blocklist.
	if err := json.NewDecoder(bytes.NewReader(out)).Decode(into); err != nil {
		return fmt.Errorf("cannot understand what ceph %s says: %w", strings.Join(args, " "), err)
	}
	return nil
}

func (c Cluster) ceph(ctx context.Context, args ...string) ([]byte, error) {
	return c.run(ctx, patience, "ceph", append([]string{"--conf", c.Conf, "--connect-timeout", "10"}, args...)...)
}

// rbd runs rbd, which waits for its disks without an end, so that the deadline ends it.
func (c Cluster) rbd(ctx context.Context, args ...string) ([]byte, error) {
	return c.run(ctx, patience, "rbd", append([]string{"--conf", c.Conf}, args...)...)
}

// run runs a program until it ends or its time is over, and returns what it printed.
func (c Cluster) run(ctx context.Context, limit time.Duration, name string, args ...string) ([]byte, error) {
	if err := Find(name); err != nil {
		return nil, err
	}
	late := fmt.Errorf("%w after %s: does the cluster of %s run, with enough disks?", errLate, limit, c.Conf)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, late)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &out, &said, "/"
	cmd.Env = c.Environ()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w%s", strings.Join(append([]string{name}, words(args)...), " "), err, complaint(said.String()))
	}
	return out.Bytes(), nil
}

// words are a program's arguments without options and their values.
func words(args []string) (list []string) {
	skip := false
	for _, a := range args {
		switch {
		case skip:
			skip = false
		case strings.HasPrefix(a, "--"):
			skip = !strings.Contains(a, "=") && a != "--no-progress" // the one without a value
		default:
			list = append(list, a)
		}
	}
	return list
}

// complaint is the last line that a program complained with.
func complaint(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if last := lines[len(lines)-1]; last != "" {
		return ": " + last
	}
	return ""
}

// Environ is the environment of Ceph's programs: what CEPH_ARGS says must not lead them to another cluster.
func (c Cluster) Environ() []string {
	var list []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "CEPH_") {
			list = append(list, v)
		}
	}
	return append(list, "CEPH_CONF="+c.Conf)
}

// Ask runs ceph with some arguments, and wants no answer.
func (c Cluster) Ask(ctx context.Context, args ...string) error {
	_, err := c.ceph(ctx, args...)
	return err
}

// LocalConf is the name of the configuration in the folder of a cluster that `make ceph` brings up.
const LocalConf = "ceph.conf"
