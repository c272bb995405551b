package testserver

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
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
	s.tb.Cleanup(func() { s.endOf(pid) })
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

// endOf kills the server that a pid file names, and waits for its end.
func (s *Server) endOf(file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		return // it stopped
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || !s.is(pid) {
		return
	}
	syscall.Kill(pid, syscall.SIGKILL)
	for end := time.Now().Add(time.Minute); s.is(pid); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.tb.Errorf("process %d does not end", pid)
			return
		}
	}
}

// is tells whether a process is this server: its options name the server's folder.
func (s *Server) is(pid int) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return err == nil && strings.Contains(string(line), s.dir)
}
