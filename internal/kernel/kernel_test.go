package kernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"david/internal/host"
)

// defaults are a recent kernel's, as its files have them.
func defaults() map[string]string {
	return map[string]string{
		"vm.swappiness": "60", "vm.vfs_cache_pressure": "100", "vm.dirty_ratio": "20", "vm.dirty_background_ratio": "10", "vm.dirty_expire_centisecs": "3000",
		"transparent_hugepage": "always [madvise] never", "kernel.numa_balancing": "1", "fs.file-max": "9223372036854775807", "fs.aio-max-nr": "65536",
		"net.core.somaxconn": "4096", "net.core.netdev_max_backlog": "1000", "net.core.rmem_max": "212992", "net.core.wmem_max": "212992",
		"net.ipv4.tcp_fin_timeout": "60", "net.ipv4.tcp_keepalive_time": "7200", "net.ipv4.tcp_keepalive_probes": "9", "net.ipv4.tcp_keepalive_intvl": "75",
		"net.ipv4.tcp_max_syn_backlog": "1024", "net.ipv4.tcp_tw_reuse": "2", "net.ipv4.ip_local_port_range": "32768\t60999", "net.ipv4.tcp_slow_start_after_idle": "1",
		"disk.scheduler": "[none] mq-deadline bfq", "disk.read_ahead_kb": "128",
	}
}

// fake is a machine in a folder of its own, with swap and the disk sda.
func fake(t *testing.T) Machine {
	t.Helper()
	m := Machine{Root: t.TempDir(), Swap: 1 << 30, Disk: "sda"}
	for name, value := range defaults() {
		s, err := find(name)
		if err != nil {
			t.Fatal(err)
		}
		path, err := m.file(s, m.Disk)
		if err != nil {
			t.Fatal(err)
		}
		put(t, path, value+"\n")
	}
	put(t, filepath.Join(m.Root, "proc/sys/kernel/random/boot_id"), "one\n")
	put(t, filepath.Join(m.Root, sysctlDir, "README"), "")
	return m
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

// values are all there are.
func values(t *testing.T, m Machine) map[string]string {
	t.Helper()
	rows, err := m.Plan()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range rows {
		all[r.Name] = r.Now
	}
	return all
}

func apply(t *testing.T, m Machine, home string, persist bool, asked ...string) *Record {
	t.Helper()
	steps, err := m.Steps(asked, persist)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Apply(context.Background(), home, steps, persist)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestTable: every row has what a reader needs, and the studies' values and the kernel's own are ones that
// david could set back.
func TestTable(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, s := range Table() {
		if names[s.Name] || s.Name == "" || s.Reason == "" || s.Risk == "" || s.Source == "" || s.matters == nil {
			t.Errorf("%q is given twice, or lacks something", s.Name)
		}
		names[s.Name] = true
		if s.sysctl() != (s.lasting == "") || s.sysctl() && s.path != "proc/sys/"+strings.ReplaceAll(s.Name, ".", "/") {
			t.Errorf("%s: its path is %s, and it lasts by %q", s.Name, s.path, s.lasting)
		}
		for _, value := range []string{s.P1, s.P4, canonical(host.Selected(defaults()[s.Name]))} {
			if err := s.values.check(value); value != "" && err != nil {
				t.Errorf("%s: %v", s.Name, err)
			}
		}
	}
	for name := range defaults() {
		if !names[name] {
			t.Errorf("%s is not in the table", name)
		}
	}
}

// TestPlan: what decides whether a setting matters, and what is advised.
func TestPlan(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files   map[string]string
		change  func(*Machine)
		effect  Effect
		because string
		value   string // that is advised; "" to leave it
	}{
		"vm.swappiness":                     {effect: Some, value: "10"},
		"vm.swappiness no swap":             {change: func(m *Machine) { m.Swap = 0 }, effect: None, because: "no swap"},
		"vm.swappiness cgroup v1":           {files: map[string]string{"sys/fs/cgroup/memory/memory.swappiness": "60"}, effect: Little, because: "of its own", value: "10"},
		"vm.swappiness low":                 {files: map[string]string{"proc/sys/vm/swappiness": "1"}, effect: Some},
		"vm.dirty_ratio":                    {effect: Little, because: "MySQL 8.0 and 5.7 default to fsync, which goes through the page cache: set innodb_flush_method=O_DIRECT first"},
		"disk.read_ahead_kb":                {effect: Little, because: "set innodb_flush_method=O_DIRECT first"},
		"vm.dirty_ratio bytes":              {files: map[string]string{"proc/sys/vm/dirty_bytes": "1000000"}, effect: None, because: "vm.dirty_bytes is set"},
		"transparent_hugepage":              {effect: Some},
		"transparent_hugepage always":       {files: map[string]string{"sys/kernel/mm/transparent_hugepage/enabled": "[always] madvise never"}, effect: Some, value: "madvise"},
		"kernel.numa_balancing":             {files: map[string]string{"sys/devices/system/node/node0/x": ""}, effect: None, because: "one NUMA node"},
		"kernel.numa_balancing two":         {files: map[string]string{"sys/devices/system/node/node0/x": "", "sys/devices/system/node/node1/x": ""}, effect: Some, because: "2 NUMA", value: "0"},
		"fs.file-max":                       {effect: Little},
		"fs.file-max small":                 {files: map[string]string{"proc/sys/fs/file-max": "9000", "proc/sys/fs/file-nr": "8000\t0\t9000"}, effect: Some, because: "8000 of 9000", value: "65536"},
		"fs.aio-max-nr":                     {files: map[string]string{"proc/sys/fs/aio-nr": "2305"}, effect: Little, because: "2305 of 65536"},
		"fs.aio-max-nr scarce":              {files: map[string]string{"proc/sys/fs/aio-nr": "60000"}, effect: Some, value: "1048576"},
		"fs.aio-max-nr more than that":      {files: map[string]string{"proc/sys/fs/aio-nr": "600000"}, effect: Some, value: "2097152"},
		"fs.aio-max-nr as advised before":   {files: map[string]string{"proc/sys/fs/aio-nr": "530000", "proc/sys/fs/aio-max-nr": "1048576"}, effect: Some, value: "2097152"},
		"fs.aio-max-nr higher":              {files: map[string]string{"proc/sys/fs/aio-nr": "1600000", "proc/sys/fs/aio-max-nr": "3000000"}, effect: Some, value: "4194304"},
		"fs.aio-max-nr beyond":              {files: map[string]string{"proc/sys/fs/aio-nr": "9000000", "proc/sys/fs/aio-max-nr": "16777216"}, effect: Some, because: "9000000 of 16777216"},
		"fs.file-max taken":                 {files: map[string]string{"proc/sys/fs/file-max": "61000", "proc/sys/fs/file-nr": "60000\t0\t61000"}, effect: Some, value: "131072"},
		"net.core.somaxconn":                {effect: Some, because: "unix sockets too"},
		"net.core.somaxconn old":            {files: map[string]string{"proc/sys/net/core/somaxconn": "128"}, effect: Some, value: "4096"},
		"net.core.netdev_max_backlog":       {files: map[string]string{"proc/net/softnet_stat": "0000ffff 00000000 0\n"}, effect: Little, because: "no packet"},
		"net.core.netdev_max_backlog drops": {files: map[string]string{"proc/net/softnet_stat": "0000ffff 00000010 0\n0000ffff 00000001 0\n"}, effect: Some, because: "17 packets", value: "4000"},
		"net.ipv4.tcp_max_syn_backlog":      {files: map[string]string{"proc/sys/net/ipv4/tcp_syncookies": "1"}, effect: None, because: "SYN cookies"},
		"net.ipv4.tcp_max_syn_backlog off":  {files: map[string]string{"proc/sys/net/ipv4/tcp_syncookies": "0"}, effect: Little},
		"disk.scheduler":                    {effect: Some},
		"disk.scheduler virtual":            {change: func(m *Machine) { m.Virt = "docker in virtual machine" }, effect: Little, because: "virtual disk"},
		"disk.scheduler bfq":                {files: map[string]string{"sys/block/sda/queue/scheduler": "none mq-deadline [bfq]"}, effect: Some, value: "none"},
		"disk.scheduler rotating":           {files: map[string]string{"sys/block/sda/queue/scheduler": "none mq-deadline [bfq]", "sys/block/sda/queue/rotational": "1"}, effect: Some, value: "mq-deadline"},
		"disk.scheduler none but":           {files: map[string]string{"sys/block/sda/queue/scheduler": "[none]"}, effect: None, because: "nothing else"},
		"disk.scheduler stacked":            {files: map[string]string{"sys/block/dm-0/queue/scheduler": "[none] mq-deadline"}, change: func(m *Machine) { m.Disk = "dm-0" }, effect: None, because: "dm-0 lies on other devices, whose schedulers count; look at: lsblk -s /dev/dm-0"},
		"disk.scheduler stacked twice": {files: map[string]string{"sys/block/dm-0/queue/scheduler": "[none] mq-deadline", "sys/block/dm-0/slaves/md127/x": "", "sys/block/md127/slaves/sda1/x": "", "sys/block/md127/slaves/sdb1/x": ""},
			change: func(m *Machine) { m.Disk = "dm-0" }, effect: None, because: "dm-0 lies on sda1, sdb1, whose schedulers count"},
		"disk.read_ahead_kb unknown disk":          {change: func(m *Machine) { m.Disk = "" }, effect: Absent, because: "not known"},
		"net.ipv4.tcp_slow_start_after_idle":       {effect: Little},
		"kernel.numa_balancing without this":       {change: func(m *Machine) { remove(t, m, "kernel.numa_balancing") }, effect: Absent, because: "no such setting"},
		"net.core.netdev_max_backlog in container": {change: func(m *Machine) { remove(t, m, "net.core.netdev_max_backlog") }, effect: Absent, because: "this container"},
	} {
		t.Run(name, func(t *testing.T) {
			m := fake(t)
			for path, text := range c.files {
				put(t, filepath.Join(m.Root, path), text+"\n")
			}
			if c.change != nil {
				c.change(&m)
			}
			rows, err := m.Plan()
			if err != nil {
				t.Fatal(err)
			}
			setting, _, _ := strings.Cut(name, " ")
			r := rows[slices.IndexFunc(rows, func(r Row) bool { return r.Name == setting })]
			if r.Effect != c.effect || !strings.Contains(r.Because, c.because) || r.Value != c.value || (r.Advice == Set) != (c.value != "") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func remove(t *testing.T, m *Machine, name string) {
	t.Helper()
	s, err := find(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(m.Root, s.path)); err != nil {
		t.Fatal(err)
	}
}

// TestSteps: nothing but the table, within its bounds, that could be set back and that the machine can bear.
func TestSteps(t *testing.T) {
	t.Parallel()
	m := fake(t)
	for path, text := range map[string]string{"proc/sys/vm/dirty_bytes": "1000", "proc/sys/fs/aio-nr": "30000", "proc/sys/net/ipv4/tcp_fin_timeout": "1"} {
		put(t, filepath.Join(m.Root, path), text+"\n")
	}
	for asked, says := range map[string]string{
		"kernel.core_pattern=|/tmp/x": "no kernel setting that david knows", "../vm/swappiness=1": "no kernel setting", "vm/swappiness=1": "no kernel setting", "": "no kernel setting",
		"vm.swappiness=201": "0 to 200", "vm.swappiness=-1": "0 to 200", "vm.swappiness=": "0 to 200", "vm.swappiness=1\n2": "0 to 200", "vm.swappiness=010": "0 to 200",
		"vm.vfs_cache_pressure": "david's advice is to leave", "vm.vfs_cache_pressure=0": "1 to 1000", "vm.dirty_ratio=10": "would drop it",
		"net.ipv4.ip_local_port_range=10000": "two ports", "net.ipv4.ip_local_port_range=60000 10000": "two ports", "net.ipv4.ip_local_port_range=10000-10100": "1000 or more apart",
		"net.ipv4.ip_local_port_range=80 65000": "two ports", "transparent_hugepage=sometimes": "always, madvise, never", "disk.scheduler=kyber": "the kernel offers none, mq-deadline, bfq for sda",
		"fs.aio-max-nr=40000": "give 60000 or more", "net.ipv4.tcp_fin_timeout=30": "could not be set back",
	} {
		if steps, err := m.Steps([]string{asked}, false); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, %v; want %q", asked, steps, err, says)
		}
	}
	if _, err := m.Steps([]string{"vm.swappiness=1", "vm.swappiness=2"}, false); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Error(err)
	}
	steps, err := m.Steps([]string{"net.ipv4.ip_local_port_range=10000-65000", "net.core.somaxconn=4096", "disk.read_ahead_kb=64"}, false)
	want := []Change{{Name: "net.ipv4.ip_local_port_range", Before: "32768 60999", After: "10000 65000"}, {Name: "disk.read_ahead_kb", Disk: "sda", Before: "128", After: "64"}}
	if err != nil || !slices.Equal(steps, want) {
		t.Errorf("%+v, %v", steps, err)
	}
}

// TestAdvised: what cannot be done keeps nothing else from being done; a disk's settings want the disk named.
func TestAdvised(t *testing.T) {
	t.Parallel()
	m := fake(t)
	for path, text := range map[string]string{"proc/sys/net/core/somaxconn": "64", "proc/sys/fs/aio-nr": "60000", "sys/block/sda/queue/scheduler": "none mq-deadline [bfq]"} {
		put(t, filepath.Join(m.Root, path), text+"\n")
	}
	for disks, want := range map[bool][]string{
		false: {"vm.swappiness=10 fs.aio-max-nr=1048576", "net.core.somaxconn is left out: net.core.somaxconn could not be set back", "disk.scheduler of sda is left out: the database's data may lie on another disk; --dir"},
		true:  {"vm.swappiness=10 fs.aio-max-nr=1048576 disk.scheduler of sda=none", "net.core.somaxconn is left out: net.core.somaxconn could not be set back"},
	} {
		steps, left, err := m.Advised(disks)
		if err != nil || len(left) != len(want)-1 {
			t.Fatalf("%+v, %q, %v", steps, left, err)
		}
		var all []string
		for _, c := range steps {
			all = append(all, c.Title()+"="+c.After)
		}
		if got := strings.Join(all, " "); got != want[0] {
			t.Errorf("%s, want %s", got, want[0])
		}
		for i, text := range left {
			if !strings.HasPrefix(text, want[i+1]) {
				t.Errorf("%s, want %s", text, want[i+1])
			}
		}
		if _, err := m.Apply(context.Background(), t.TempDir(), steps, false); err != nil {
			t.Error(err)
		}
		put(t, filepath.Join(m.Root, "proc/sys/vm/swappiness"), "60\n")
		put(t, filepath.Join(m.Root, "proc/sys/fs/aio-max-nr"), "65536\n")
		put(t, filepath.Join(m.Root, "sys/block/sda/queue/scheduler"), "none mq-deadline [bfq]\n")
	}
}

// TestApply: changes are made, last, and are set back; a second rollback has nothing to do.
func TestApply(t *testing.T) {
	t.Parallel()
	m, home := fake(t), t.TempDir()
	before := values(t, m)
	r := apply(t, m, home, true, "vm.swappiness=1", "transparent_hugepage=never", "disk.scheduler=mq-deadline", "net.ipv4.ip_local_port_range=10000-65000")
	now := values(t, m)
	if now["vm.swappiness"] != "1" || now["transparent_hugepage"] != "never" || now["disk.scheduler"] != "mq-deadline" || now["net.ipv4.ip_local_port_range"] != "10000 65000" {
		t.Errorf("%v", now)
	}
	file := filepath.Join(m.Root, sysctlDir, "90-david-0001.conf")
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasSuffix(string(text), "rollback 1\nvm.swappiness = 1\nnet.ipv4.ip_local_port_range = 10000 65000\n") {
		t.Errorf("%s, %v", text, err)
	}
	if last := strings.Join(r.Lasting(), "\n"); !strings.Contains(last, "transparent_hugepage=never, or in /etc/tmpfiles.d") || !strings.Contains(last, `KERNEL=="sda", ATTR{queue/scheduler}="mq-deadline"`) {
		t.Error(last)
	}
	put(t, filepath.Join(m.Root, "etc/sysctl.d/10-early.conf"), "vm.swappiness=3\n")
	put(t, filepath.Join(m.Root, "usr/lib/sysctl.d/95-late.conf"), "# vm.swappiness = 9\n-vm/swappiness = 4\nnet.ipv4.ip_local_port_range = 10000\t65000\n")
	if over := m.Overridden(r); len(over) != 1 || !strings.HasSuffix(over[0], "95-late.conf sets vm.swappiness to 4") {
		t.Errorf("%q", over)
	}
	for _, want := range []int{4, 0} {
		again, err := Open(home, "latest")
		if err != nil {
			t.Fatal(err)
		}
		u, err := m.Rollback(again)
		if err != nil || len(u.Restored) != want || len(u.Already) != 0 || (u.Removed == file) != (want > 0) {
			t.Errorf("%+v, %v", u, err)
		}
	}
	if after := values(t, m); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("%v, before %v", after, before)
	}
	if second := apply(t, m, home, false, "vm.swappiness=5"); second.N != 2 || second.Dir() != filepath.Join(home, "kernel", "2") {
		t.Errorf("the next record is %s", second.Dir())
	}
}

// TestPersist: what has its value already can be made to last, what is no sysctl needs no file, and where
// none can be written nothing is changed.
func TestPersist(t *testing.T) {
	t.Parallel()
	m, home := fake(t), t.TempDir()
	apply(t, m, home, true, "transparent_hugepage=never")
	if left, err := filepath.Glob(filepath.Join(m.Root, sysctlDir, "*david*")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	r := apply(t, m, home, true, "vm.swappiness=60")
	text, err := os.ReadFile(filepath.Join(m.Root, sysctlDir, r.sysctlFile()))
	if err != nil || !strings.Contains(string(text), "vm.swappiness = 60\n") {
		t.Errorf("%s, %v", text, err)
	}
	if u, err := m.Rollback(r); err != nil || len(u.Already) != 1 || u.Removed == "" || values(t, m)["vm.swappiness"] != "60" {
		t.Errorf("%+v, %v", u, err)
	}
	refused := func(says string) {
		t.Helper()
		steps, err := m.Steps([]string{"vm.swappiness=1"}, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Apply(context.Background(), home, steps, true); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), says) || values(t, m)["vm.swappiness"] != "60" {
			t.Errorf("%v, want %q", err, says)
		}
	}
	put(t, filepath.Join(m.Root, sysctlDir, "90-david-0003.conf"), "")
	refused("is there already")
	if err := os.RemoveAll(filepath.Join(m.Root, sysctlDir)); err != nil {
		t.Fatal(err)
	}
	refused("this system has no ")
	if r, err := Open(home, "latest"); err != nil || r.N != 2 {
		t.Errorf("the latest record is one that changed nothing: %+v, %v", r, err)
	}
}

// TestRollbackChanged: what somebody else changed since is said, and nothing is set back.
func TestRollbackChanged(t *testing.T) {
	t.Parallel()
	m, home := fake(t), t.TempDir()
	r := apply(t, m, home, true, "vm.swappiness=1", "net.core.somaxconn=1024")
	file := filepath.Join(m.Root, sysctlDir, r.sysctlFile())
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	refused := func(says string) {
		t.Helper()
		u, err := m.Rollback(r)
		if !errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), says) || len(u.Restored) != 0 {
			t.Errorf("%+v, %v; want %q", u, err, says)
		}
		if now := values(t, m)["net.core.somaxconn"]; now != "1024" {
			t.Errorf("somaxconn is %s", now)
		}
	}
	put(t, filepath.Join(m.Root, "proc/sys/vm/swappiness"), "30\n")
	refused("vm.swappiness was 60, david set 1, it is 30 now")
	put(t, filepath.Join(m.Root, "proc/sys/vm/swappiness"), "60\n") // somebody set it back
	put(t, file, "vm.swappiness = 2\n")
	refused(file)
	put(t, file, string(kept[:len(kept)/2])) // as of a david that was killed
	if u, err := m.Rollback(r); err != nil || len(u.Restored) != 1 || len(u.Already) != 1 || u.Removed != file {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestRollbackLater: david's own later change is named, the later one is set back first, and what is left in force is known.
func TestRollbackLater(t *testing.T) {
	t.Parallel()
	m, home := fake(t), t.TempDir()
	first := apply(t, m, home, false, "vm.swappiness=10", "net.core.somaxconn=1024")
	later := apply(t, m, home, false, "vm.swappiness=1")
	inForce := func(want ...int) {
		t.Helper()
		list, err := m.InForce(home)
		got := []int{}
		for _, r := range list {
			got = append(got, r.N)
		}
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("in force: %v, %v; want %v", got, err, want)
		}
	}
	inForce(2, 1)
	next := func(want int) {
		t.Helper()
		if r, err := m.Newest(home); err != nil || r.N != want {
			t.Errorf("%+v, %v; want the record %d", r, err, want)
		}
	}
	next(2)
	u, err := m.Rollback(first)
	if !errors.Is(err, ErrLater) || !strings.Contains(err.Error(), "from 10 to 1: first david kernel rollback 2") || len(u.Restored) != 0 {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := m.Rollback(later); err != nil {
		t.Fatal(err)
	}
	inForce(1)
	next(1)
	if holds := m.Holds(first); holds != "net.core.somaxconn: 4096 -> 1024, vm.swappiness: 60 -> 10" {
		t.Error(holds)
	}
	if err := os.WriteFile(filepath.Join(later.Dir(), recordFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := m.InForce(home); err == nil || len(list) != 1 {
		t.Errorf("a record that cannot be read: %v, %v", list, err)
	}
	if _, err := m.Newest(home); err == nil {
		t.Error("a record that cannot be read, and may be the newest, is passed over")
	}
	if _, err := m.Rollback(first); err != nil || values(t, m)["vm.swappiness"] != "60" {
		t.Errorf("%v, vm.swappiness is %s", err, values(t, m)["vm.swappiness"])
	}
}

// TestTogether: a ratio that the kernel does not take as it stands is said.
func TestTogether(t *testing.T) {
	t.Parallel()
	m := fake(t)
	for _, c := range []struct {
		asked []string
		said  bool
	}{
		{[]string{"vm.dirty_background_ratio=50"}, true},
		{[]string{"vm.dirty_ratio=60", "vm.dirty_background_ratio=50"}, false},
		{[]string{"vm.dirty_ratio=1"}, true},
		{[]string{"vm.swappiness=1"}, false},
	} {
		steps, err := m.Steps(c.asked, false)
		if notes := m.Together(steps); err != nil || len(notes) > 0 != c.said {
			t.Errorf("%v: %v, %v", c.asked, notes, err)
		}
	}
}

// TestReboot: a restart of the machine undoes what does not last, and what is there then is nobody's fault.
func TestReboot(t *testing.T) {
	t.Parallel()
	for _, persist := range []bool{false, true} {
		m, home := fake(t), t.TempDir()
		r := apply(t, m, home, persist, "vm.swappiness=1", "disk.read_ahead_kb=64")
		put(t, filepath.Join(m.Root, "proc/sys/kernel/random/boot_id"), "two\n")
		put(t, filepath.Join(m.Root, "sys/block/sda/queue/read_ahead_kb"), "256\n")
		if !persist {
			put(t, filepath.Join(m.Root, "proc/sys/vm/swappiness"), "100\n")
		}
		want := map[bool]string{false: "100", true: "60"}[persist]
		u, err := m.Rollback(r)
		if now := values(t, m); err != nil || now["vm.swappiness"] != want || now["disk.read_ahead_kb"] != "256" || len(u.Restored) != map[bool]int{true: 1}[persist] {
			t.Errorf("persist %v: %+v, %v, %v", persist, u, err, now["vm.swappiness"])
		}
	}
}

// TestMachine changes this machine's own settings, and sets them back: the kernel takes what david writes.
func TestMachine(t *testing.T) {
	asRoot(t)
	m, home := Machine{Root: "/"}, t.TempDir()
	for _, name := range []string{"vm.swappiness", "net.ipv4.tcp_fin_timeout"} {
		restored(t, "/proc/sys/"+strings.ReplaceAll(name, ".", "/"))
	}
	before := values(t, m)
	r := apply(t, m, home, false, "vm.swappiness=37", "net.ipv4.tcp_fin_timeout=59")
	if now := values(t, m); now["vm.swappiness"] != "37" || now["net.ipv4.tcp_fin_timeout"] != "59" {
		t.Errorf("%v", now)
	}
	if u, err := m.Rollback(r); err != nil || len(u.Restored) != 2 {
		t.Errorf("%+v, %v", u, err)
	}
	if now := values(t, m); now["vm.swappiness"] != before["vm.swappiness"] || now["net.ipv4.tcp_fin_timeout"] != before["net.ipv4.tcp_fin_timeout"] {
		t.Errorf("%v, before %v", now, before)
	}
}

// TestNotTaken: the kernel rounds a read-ahead down to pages; the step is undone, the one before it stays.
func TestNotTaken(t *testing.T) {
	asRoot(t)
	file := filepath.Join(t.TempDir(), "disk")
	put(t, file, strings.Repeat("x", 1<<20))
	out, err := exec.Command("losetup", "-f", "--show", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	device := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if err := exec.Command("losetup", "-d", device).Run(); err != nil {
			t.Error(err)
		}
	})
	m := Machine{Root: "/", Disk: filepath.Base(device)}
	before := values(t, m)["disk.read_ahead_kb"]
	t.Cleanup(func() { put(t, "/sys/block/"+m.Disk+"/queue/read_ahead_kb", before) })
	steps, err := m.Steps([]string{"disk.read_ahead_kb=129"}, false)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Apply(context.Background(), t.TempDir(), steps, false)
	if !errors.Is(err, ErrNotTaken) || !strings.Contains(err.Error(), "disk.read_ahead_kb of "+m.Disk+" is "+before+" as before") || len(r.Pending()) != 0 {
		t.Errorf("%v", err)
	}
	if now := values(t, m)["disk.read_ahead_kb"]; now != before {
		t.Errorf("read-ahead is %s, was %s", now, before)
	}
}

func asRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change the kernel's settings")
	}
}
