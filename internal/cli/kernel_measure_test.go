package cli

import (
	"os"
	"slices"
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

// TestKernelArmNames: names fit into a file's, whatever many settings an arm has, and differ where the arms do.
func TestKernelArmNames(t *testing.T) {
	arm := func(settings ...string) lab.Arm {
		a := lab.Arm{Title: strings.Join(settings, ", ")}
		for _, s := range settings {
			name, value, _ := strings.Cut(s, "=")
			a.Kernel = append(a.Kernel, result.KernelSetting{Name: name, Value: value})
		}
		return a
	}
	of1 := []string{"vm.swappiness=10", "vm.vfs_cache_pressure=50", "vm.dirty_ratio=15", "vm.dirty_background_ratio=5", "vm.dirty_expire_centisecs=500"}
	other := append(slices.Clone(of1[:4]), "vm.dirty_expire_centisecs=600")
	var arms []lab.Arm
	for _, a := range []lab.Arm{arm("vm.swappiness=1"), arm("vm.dirty_ratio=15", "vm.dirty_background_ratio=5"), arm(of1...), arm(other...), arm(of1...)} {
		arms = append(arms, nameKernelArm(a, arms))
	}
	var got []string
	for _, a := range arms {
		if got = append(got, a.Name); !result.ValidName(a.Name) {
			t.Errorf("%q cannot be stored", a.Name)
		}
	}
	want := []string{"vm.swappiness-1", "vm.dirty_ratio-15_vm.dirty_background_ratio-5", "vm.swappiness-10_and-4-more", "vm.swappiness-10_and-4-more-2", "vm.swappiness-10_and-4-more"}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
