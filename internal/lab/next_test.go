package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"david/internal/sandbox"
	"david/internal/testmount"
)

// TestNext: an error that does not say what to do says so at its end: after a full disk, one that cannot be written to,
// a program that somebody killed. Others stay as they are.
func TestNext(t *testing.T) {
	home := t.TempDir()
	w, err := sandbox.Open(context.Background(), home, sandbox.Options{NoVolume: true, Log: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	o := opened{Lab: Lab{Home: home}, workspace: w}
	for _, c := range []struct {
		err  error
		says string // after the error; "" for nothing
	}{
		{&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, "make room there"},
		{errors.New("sysbench gave up: mysql_drv_query() returned error 1114 (The table 'sbtest2' is full) for query 'INSERT"), "was full: make room there"},
		{errors.New("mariadbd did not start or ended (signal: aborted); it says: InnoDB: preallocating 311296 bytes for file ./sbtest/sbtest1.ibd failed with error 28"), "was full: make room there"},
		{errors.New("mysqld did not start or ended (exit status 1); it says: Could not set the file size of './ibtmp1'. Probably out of disk space"), "was full: make room there"},
		{errors.New("mysqld did not start or ended (exit status 1); it says: Cannot open 'ib_buffer_pool.incomplete' for writing: No space left on device"), "was full: make room there"},
		{&os.PathError{Op: "write", Path: "x", Err: syscall.EROFS}, "cannot be written to any more"},
		{errors.New("the server ended during the trial: mysqld did not start or ended (signal: killed)"), "it was not david that killed it"},
		{fmt.Errorf("%w (signal: killed)", sandbox.ErrMemory), ""},
		{fmt.Errorf("%w: signal: killed", context.Canceled), ""},
		{sandbox.ErrDiskFull, ""},
		{errors.New("the server does not start"), ""},
		{nil, ""},
	} {
		got := o.next(c.err)
		if c.says == "" && got != c.err || c.says != "" && (!errors.Is(got, c.err) || !strings.Contains(got.Error(), "; ") || !strings.Contains(got.Error(), c.says)) {
			t.Errorf("%v became %v, want %q", c.err, got, c.says)
		}
	}
	told := o.mishap(errors.New("mysqld did not start or ended (signal: killed)"))
	if told == nil || o.next(told) != told {
		t.Errorf("%v is none, or told twice", told)
	}
	ended := fmt.Errorf("kill 1: %w", o.next(&sandbox.StartError{Cause: errors.New("signal: killed")}))
	if fault := FaultOf(blame(ended, true)); fault != Target {
		t.Errorf("%v is of kind %d", ended, fault)
	}
	if got := o.mishap(errors.New("the server does not start")); got != nil {
		t.Errorf("%v is a mishap", got)
	}
	store := filepath.Join(home, "experiments")
	if err := os.Mkdir(store, 0o700); err != nil {
		t.Fatal(err)
	}
	testmount.Tmpfs(t, store, "size=1m")
	if got := o.next(errors.New("the server gave up")); !strings.Contains(got.Error(), "the disk of "+store+" is full (1 MiB are left)") {
		t.Error(got)
	}
}
