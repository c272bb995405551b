package testserver

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"david/internal/mycnf"
)

// TestCommands starts a server twice, as two administrators do: the second waits for the data of the first. Neither
// outlives the test, nor does the folder.
func TestCommands(t *testing.T) {
	t.Parallel()
	var s *Server
	t.Run("twice", func(t *testing.T) {
		s = Start(t, mycnf.MariaDB)
		_, start := s.Commands()
		if err := exec.Command(start).Run(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); len(s.Processes()) < 2; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("no second server")
			}
		}
	})
	if left := s.Processes(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	if _, err := os.Stat(s.dir); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
}
