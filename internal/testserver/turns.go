package testserver

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// Claim takes the first folder below root that nobody has, or else makes one more: there will be as many as
// there are tests at a time. What a test leaves in it, such as data templates, the next one finds, once free
// was called.
func Claim(root string) (dir string, free func(), err error) {
	for n := 1; ; n++ {
		dir := filepath.Join(root, fmt.Sprintf("%03d", n))
		f, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return "", nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		if err == nil {
			return dir, func() { f.Close() }, nil
		}
		f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return "", nil, err
		}
	}
}
