package testserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// longestLife ends a server that was started by a command and whose test was killed, in seconds.
const longestLife = 900

// Data is the server's data folder.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Commands returns commands that stop and start the server, as an administrator has them: they return while it
// still stops, or starts. What they started is gone with the test.
func (s *Server) Commands() (stop, start string) {
	s.tb.Helper()
	pid := filepath.Join(s.dir, "pid")
	words := s.command(s.serving()...).Args
	for i, w := range words {
		words[i] = "'" + w + "'"
	}
	stop = s.script("stop", "kill -TERM $(cat "+pid+")")
	start = s.script("start", fmt.Sprintf("setsid timeout -s KILL %d %s </dev/null >/dev/null 2>&1 &", longestLife, strings.Join(words, " ")))
	s.tb.Cleanup(s.end)
	return stop, start
}

func (s *Server) script(name, text string) string {
	s.tb.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		s.tb.Fatal(err)
	}
	return path
}

// Processes lists the server and whatever starts it: all have its folder among their arguments. It may be more than
// one server, as one that finds the data in use waits for them.
func (s *Server) Processes() (pids []int) {
	s.tb.Helper()
	all, err := os.ReadDir("/proc")
	if err != nil {
		s.tb.Fatal(err)
	}
	for _, entry := range all {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err == nil && strings.Contains(string(line), s.dir+"/") {
			pids = append(pids, pid)
		}
	}
	return pids
}

// end kills all that commands have started, until there is nothing left. It looks twice: a process in the midst of
// its exec has no arguments, and is not seen.
func (s *Server) end() {
	for unseen := 0; unseen < 2; unseen++ {
		for _, pid := range s.Processes() {
			unseen = -1
			if err := kill(pid); err != nil {
				s.tb.Errorf("process %d does not end: %v", pid, err)
				return
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// kill waits until the last thread of a process has ended: its first one may be gone while others still write.
func kill(pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 1000)
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	return errors.New("it was killed a minute ago")
}
