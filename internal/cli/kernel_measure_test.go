package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"david/internal/lab"
	"david/internal/result"
)

// TestKernelMeasureKilled: a david that is killed while an arm has its kernel settings has the next david
// command set them back.
func TestKernelMeasureKilled(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the kernel's settings")
	}
	const path, value = "/proc/sys/net/ipv4/tcp_keepalive_time", "7199"
	read := func() string {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(b))
	}
	before := read()
	t.Cleanup(func() {
		if err := os.WriteFile(path, []byte(before), 0); err != nil {
			t.Error(err)
		}
	})
	here := at{home: sharedHome(t), dir: t.TempDir()}
	cmd, seen := here.spawn(t, append([]string{"kernel", "measure", "net.ipv4.tcp_keepalive_time=" + value, "--server", "mariadb", "--blocks", "3"}, small...)...)
	set := true
	for end := time.Now().Add(2 * time.Minute); set && read() != value; time.Sleep(5 * time.Millisecond) {
		set = time.Now().Before(end) && running(cmd.Process.Pid)
	}
	err := cmd.Process.Kill() // an error where it has been waited for
	cmd.Wait()                // it was killed
	if !set || err != nil {
		t.Fatalf("it was never set: %v\n%s", err, seen)
	}
	if now := read(); now != value {
		t.Errorf("it is %s although nobody could set it back", now)
	}
	if _, errOut, code := here.david(t, "list"); code != exitDone || !strings.Contains(errOut, "left behind when it was killed") {
		t.Errorf("exit code %d, %s", code, errOut)
	}
	if now := read(); now != before {
		t.Errorf("it is %s, was %s", now, before)
	}
}

// TestKernelArmNames: each arm's name can be a file's, however many settings it has, and arms with different
// settings have different names.
func TestKernelArmNames(t *testing.T) {
	var arms []lab.Arm
	for _, c := range []struct{ settings, name string }{
		{"vm.swappiness=1", "vm.swappiness-1"},
		{"vm.dirty_ratio=15 vm.dirty_background_ratio=5", "vm.dirty_ratio-15_vm.dirty_background_ratio-5"},
		{"vm.swappiness=10 vm.vfs_cache_pressure=50 vm.dirty_expire_centisecs=500", "vm.swappiness-10_and-2-more"},
		{"vm.swappiness=10 vm.vfs_cache_pressure=50 vm.dirty_expire_centisecs=600", "vm.swappiness-10_and-2-more-2"},
		{"vm.swappiness=10 vm.vfs_cache_pressure=50 vm.dirty_expire_centisecs=500", "vm.swappiness-10_and-2-more"}, // refused later
	} {
		arm := lab.Arm{Title: c.settings}
		for _, s := range strings.Fields(c.settings) {
			name, value, _ := strings.Cut(s, "=")
			arm.Kernel = append(arm.Kernel, result.KernelSetting{Name: name, Value: value})
		}
		if arm = nameKernelArm(arm, arms); arm.Name != c.name || !result.ValidName(arm.Name) {
			t.Errorf("%s: named %q, want %q", c.settings, arm.Name, c.name)
		}
		arms = append(arms, arm)
	}
}
