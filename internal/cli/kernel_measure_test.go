package cli

import (
	"os"
	"strings"
	"testing"
	"time"
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
