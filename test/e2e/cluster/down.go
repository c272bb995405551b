package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"david/internal/process"
	"david/test/daemon"
)

// down ends a cluster and removes all of it, in whatever state it is; with none there, it does nothing.
func down(dir string, say func(string, ...any)) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) && (os.Geteuid() != 0 || !ownsNames(dir)) {
		return nil
	}
	release, err := lock(dir)
	if err != nil {
		return err
	}
	defer release()
	return takeDown(dir, say)
}

// takeDown needs the lock. Nothing is ended gently: what is in the cluster is thrown away. Each step is tried
// whatever became of the ones before; the folder, which knows what there was, is removed at last, and only if
// none failed.
func takeDown(dir string, say func(string, ...any)) error {
	began := time.Now()
	s, err := loadState(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if entries, _ := os.ReadDir(dir); len(entries) > 0 && dir != defaultDir && dir != envtestDir() {
			return usageError{fmt.Errorf("%s holds no cluster", dir)}
		}
		s = &state{Dir: dir}
	case err != nil:
		say("%v; cleaning up by names", err)
		s = &state{Dir: dir}
	}
	there := err == nil
	names := os.Geteuid() == 0 && ownsNames(dir)
	errs := []error{daemon.Kill(func() []process.ID { return ours(dir) }, 30*time.Second)}
	if names {
		// Namespaces' links and groups' last members go a moment after the processes.
		errs = append(errs, waitFor(context.Background(), "the cluster's control groups stay", 10*time.Second, removeGroups))
		errs = append(errs, unmountBelow(dir), restoreSysctls(s.Sysctls))
		errs = append(errs, removeNetwork(context.Background()), s.removeFolders())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("not all of the cluster in %s could be removed (try again with: cluster down --dir %s): %w", dir, dir, err)
	}
	var left []string
	if names { // else another cluster's things would be found
		if left, err = s.left(); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("cannot remove the cluster's folder: %w", err)
	}
	if len(left) > 0 {
		return fmt.Errorf("the cluster in %s is down, but there is on the machine what was not before: %s", dir, strings.Join(left, "; "))
	}
	if there {
		say("down in %s, nothing is left", time.Since(began).Round(100*time.Millisecond))
	}
	return nil
}

// removeFolders removes those this cluster made outside its own. One that somebody else uses by now is not
// empty, and stays.
func (s *state) removeFolders() error {
	if s.Before != nil && !slices.Contains(s.Before.Mounts, "/run/netns") && len(list("/run/netns")) == 0 {
		// `ip netns` mounts it on itself when it makes the first namespace.
		if err := unmount("/run/netns"); err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot unmount /run/netns: %w", err)
		}
	}
	for _, folder := range slices.Backward(s.Made) {
		_ = os.Remove(folder)
	}
	return nil
}

// left compares with what there was before, in a moment when the cluster's folder still exists.
func (s *state) left() ([]string, error) {
	if s.Before == nil {
		return nil, nil
	}
	after, err := snapshot(s.Dir)
	if err != nil {
		return nil, err
	}
	return after.since(*s.Before), nil
}

// unmountBelow removes mounts in a folder, the latest first. The node's own went with its namespace; this is
// for what was mounted by hand.
func unmountBelow(dir string) error {
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range slices.Backward(strings.Split(string(text), "\n")) {
		if f := strings.Fields(m); len(f) > 1 && strings.HasPrefix(f[1], dir+"/") {
			if err := unmount(f[1]); err != nil {
				errs = append(errs, fmt.Errorf("cannot unmount %s: %w", f[1], err))
			}
		}
	}
	return errors.Join(errs...)
}

func unmount(path string) error { return syscall.Unmount(path, syscall.MNT_DETACH) }
