package render_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"david/internal/manifest/render"
)

func script(t *testing.T, p render.NodePrep) string {
	t.Helper()
	text, err := p.Script()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "node-prep.sh")
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNodePrepIsSh(t *testing.T) {
	path := script(t, render.NodePrep{Storage: "zfs", Disks: []string{"/dev/sdb", "/dev/disk/by-id/nvme-x.1", "/dev/sdd"}, Layout: "raidz", Node: "node-1"})
	if out, err := exec.Command("sh", "-n", path).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Log("no shellcheck here: not checked with it")
		return
	}
	if out, err := exec.Command("shellcheck", "--shell=sh", path).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestNodePrepRefuses runs the script on disks that hold something: loop devices, which it takes for disks.
// Whether ZFS is there or not, it names what is wrong with each, and changes nothing.
func TestNodePrepRefuses(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loop devices take root")
	}
	for what, c := range map[string]struct {
		prepare, want string
	}{
		"empty":           {"true", ""},
		"filesystem":      {"mkfs.ext4 -q $DEV", "has a partition table or a filesystem"},
		"partitions":      {`printf '\0\0\0\0\203\0\0\0\0\010\0\0\0\020\0\0' | dd of=$DEV bs=1 seek=446 conv=notrunc status=none; printf '\125\252' | dd of=$DEV bs=1 seek=510 conv=notrunc status=none`, "has a partition table or a filesystem"},
		"swap":            {"mkswap -q $DEV", "has a partition table or a filesystem"},
		"bare data":       {"printf data | dd of=$DEV bs=1 seek=123456 conv=notrunc status=none", "is not empty"},
		"data at the end": {"printf data | dd of=$DEV bs=1M seek=63 conv=notrunc status=none", "is not empty"},
	} {
		t.Run(what, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "disk")
			dev := loop(t, file, 64<<20)
			if out, err := exec.Command("sh", "-ec", strings.ReplaceAll(c.prepare, "$DEV", dev)).CombinedOutput(); err != nil {
				t.Skipf("cannot prepare the disk here: %v: %s", err, out)
			}
			before := digest(t, file)
			out, err := exec.Command("sh", script(t, render.NodePrep{Storage: "zfs", Disks: []string{dev}, Layout: "stripe", Pool: "davidtest"})).CombinedOutput()
			if complained := strings.Contains(string(out), dev+" "); complained != (c.want != "") && !strings.Contains(string(out), "would make the pool") {
				t.Errorf("%v\n%s", err, out)
			}
			if !strings.Contains(string(out), c.want) || c.want != "" && (err == nil || !strings.Contains(string(out), "nothing was changed")) {
				t.Errorf("want %q, got %v\n%s", c.want, err, out)
			}
			if after := digest(t, file); after != before {
				t.Error("the disk was written to")
			}
		})
	}
	t.Run("smaller than a pool", func(t *testing.T) {
		dev := loop(t, filepath.Join(t.TempDir(), "disk"), 63<<20)
		out, err := exec.Command("sh", script(t, render.NodePrep{Storage: "zfs", Disks: []string{dev}, Layout: "stripe"})).CombinedOutput()
		if err == nil || !strings.Contains(string(out), dev+" is smaller than 64 MiB") {
			t.Errorf("%v\n%s", err, out)
		}
	})
	t.Run("mounted", func(t *testing.T) {
		dev := loop(t, filepath.Join(t.TempDir(), "disk"), 64<<20)
		at := t.TempDir()
		for _, args := range [][]string{{"mkfs.ext4", "-q", dev}, {"mount", dev, at}} {
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Skipf("cannot prepare the disk here: %v: %s", err, out)
			}
		}
		t.Cleanup(func() {
			if out, err := exec.Command("umount", at).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
		out, err := exec.Command("sh", script(t, render.NodePrep{Storage: "zfs", Disks: []string{dev}, Layout: "stripe"}), "--apply").CombinedOutput()
		if err == nil || !strings.Contains(string(out), dev+" is mounted") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// TestNodePrepReadsTheWholeDisk: data are found wherever they are, on disks whose sizes are no multiple of
// anything. zpool and zfs are stand-ins that write down what they are asked for, as a machine that tests need
// not have ZFS; the disks are loop devices.
func TestNodePrepReadsTheWholeDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loop devices take root")
	}
	const whole = 65<<20 + 12<<10 // bytes: four times 16 MiB, 1 MiB and 12 KiB
	tools := t.TempDir()
	for _, name := range []string{"zpool", "zfs"} {
		text := "#!/bin/sh\n[ \"$1\" != list ] || exit 1\necho \"" + name + " $*\" >>\"$CALLS\"\n"
		if err := os.WriteFile(filepath.Join(tools, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// The kernel's module is stood in for in a mount namespace of the script's own.
	const inside = "mount -t tmpfs none /sys/module && mkdir /sys/module/zfs && exec sh "
	if out, err := exec.Command("unshare", "-m", "sh", "-c", inside+"-c true").CombinedOutput(); err != nil {
		t.Skipf("no mount namespaces here: %v: %s", err, out)
	}
	for what, at := range map[string]int64{"nothing": -1, "the first byte": 0, "the middle": whole / 2, "after the last 16 MiB block": 64<<20 + 4096, "the last 4 KiB": whole - 4096,
		"the last byte": whole - 1} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			file, calls := filepath.Join(dir, "disk"), filepath.Join(dir, "calls")
			empty, dev := loop(t, filepath.Join(dir, "empty"), whole), loop(t, file, whole)
			if at >= 0 {
				put := exec.Command("dd", "of="+dev, "bs=1", fmt.Sprintf("seek=%d", at), "conv=notrunc,fsync", "status=none")
				put.Stdin = strings.NewReader("x")
				if out, err := put.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			before := digest(t, file)
			path := script(t, render.NodePrep{Storage: "zfs", Disks: []string{empty, dev}, Layout: "stripe"})
			cmd := exec.Command("unshare", "-m", "sh", "-c", inside+path+" --apply")
			cmd.Env = append(os.Environ(), "CALLS="+calls, "PATH="+tools+":"+os.Getenv("PATH"))
			out, err := cmd.CombinedOutput()
			called, _ := os.ReadFile(calls) // there where anything was called
			if at < 0 {
				if err != nil || !strings.Contains(string(called), "zpool create -o ashift=12") || !strings.Contains(string(called), " david "+empty+" "+dev+"\n") {
					t.Errorf("empty disks: %v\n%s\ncalled: %s", err, out, called)
				}
				if !strings.Contains(string(out), "reading all 65 MiB of "+dev) {
					t.Errorf("it does not say that it reads for long:\n%s", out)
				}
				return
			}
			if err == nil || len(called) > 0 || !strings.Contains(string(out), dev+" is not empty") || strings.Contains(string(out), empty+" is not empty") {
				t.Errorf("data in %s: %v\n%s\ncalled: %s", what, err, out, called)
			}
			if after := digest(t, file); after != before {
				t.Error("the disk was written to")
			}
		})
	}
}

// loop makes a loop device of a size in bytes upon a file.
func loop(t *testing.T, file string, bytes int64) string {
	t.Helper()
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, bytes); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("losetup", "-f", "--show", file).Output()
	if err != nil {
		t.Skip("no loop devices here")
	}
	dev := strings.TrimSpace(string(out))
	t.Cleanup(func() {
		if out, err := exec.Command("losetup", "-d", dev).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	return dev
}

func digest(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.Command("sha256sum", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestNodePrepBad(t *testing.T) {
	good := render.NodePrep{Storage: "zfs", Disks: []string{"/dev/sdb"}, Layout: "stripe"}
	for want, change := range map[string]func(*render.NodePrep){
		"node-prep is for zfs":    func(p *render.NodePrep) { p.Storage = "ceph-rbd" },
		"--disks is missing":      func(p *render.NodePrep) { p.Disks = nil },
		"is no device":            func(p *render.NodePrep) { p.Disks = []string{"sdb"} },
		"'; rm\" is no device":    func(p *render.NodePrep) { p.Disks = []string{"/dev/sdb'; rm"} },
		"/dev/../etc\" is no dev": func(p *render.NodePrep) { p.Disks = []string{"/dev/../etc"} },
		"named twice":             func(p *render.NodePrep) { p.Disks = []string{"/dev/sdb", "/dev/sdb"} },
		"choose stripe or raidz":  func(p *render.NodePrep) { p.Layout = "mirror" },
		"it takes 3 or more":      func(p *render.NodePrep) { p.Layout = "raidz" },
		"no name of a ZFS pool":   func(p *render.NodePrep) { p.Pool = "mirror1" },
		"$(x)\" is no name":       func(p *render.NodePrep) { p.Pool = "a$(x)" },
		"no name of a node":       func(p *render.NodePrep) { p.Node = "a'b" },
	} {
		p := good
		change(&p)
		if _, err := p.Script(); !errors.Is(err, render.ErrBad) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}
