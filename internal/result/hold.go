package result

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrInUse says that a david writes into an experiment, or removes it.
var ErrInUse = errors.New("a david is at work on it")

// Hold has this process hold the experiment's folder as long as the store is in use, so that no other david
// removes it meanwhile.
func (s *Store) Hold() error {
	if s.held != nil {
		return nil
	}
	d, err := lockFolder(s.dir, unix.LOCK_SH)
	if err != nil {
		return fmt.Errorf("cannot write into %s: %w", s.dir, err)
	}
	s.held = d // the kernel gives it back with the process
	return nil
}

// Claim holds an experiment's folder to remove it, until release is called; ErrInUse where a david is at work on
// it.
func Claim(dir string) (release func() error, err error) {
	d, err := lockFolder(dir, unix.LOCK_EX)
	if err != nil {
		return nil, fmt.Errorf("cannot take %s: %w", dir, err)
	}
	return d.Close, nil
}

func lockFolder(dir string, how int) (*os.File, error) {
	d, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(d.Fd()), how|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}
