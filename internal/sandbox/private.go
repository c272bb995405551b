package sandbox

import (
	"errors"
	"os"
)

// PrivateFolder makes a runtime folder of mode 0700 that the next david removes should this one be killed: for what must
// not be left behind, such as keys, where no workspace is open. remove must be called.
func PrivateFolder(home string) (dir string, remove func() error, err error) {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", nil, err
	}
	w := &Workspace{home: home}
	if w.journal, err = newJournal(home); err != nil {
		return "", nil, err
	}
	if err := w.makeRun(); err != nil {
		return "", nil, errors.Join(err, w.Close())
	}
	return w.run, w.Close, nil
}
