package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"david/internal/account"
)

// PrivateFolder makes a runtime folder that nobody else may enter, but the user that load generators run as,
// and that the next david removes should this one be killed: for what must not be left behind, such as keys,
// where no workspace is open. remove must be called.
func PrivateFolder(home string) (dir string, remove func() error, err error) {
	w, err := openBare(home)
	if err != nil {
		return "", nil, err
	}
	return w.run, w.Close, nil
}

// openBare opens a workspace that has no data. On an error nothing is left.
func openBare(home string) (*Workspace, error) {
	if err := os.MkdirAll(home, 0o755); err != nil {
		return nil, err
	}
	w := &Workspace{home: home}
	var err error
	if w.owner, err = account.Find(); err != nil {
		return nil, err
	}
	if w.journal, err = newJournal(home); err != nil {
		return nil, err
	}
	if err := w.makeRun(); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// OpenIn opens a workspace for a probe, whose data lies in a new folder inside dir: removed by Close, or by
// the next david should this one be killed. With dir "" it has none, and only puts processes under caps.
func OpenIn(home, dir string) (*Workspace, error) {
	w, err := openBare(home)
	if err != nil || dir == "" {
		return w, err
	}
	w.data = filepath.Join(dir, ".david-"+filepath.Base(w.run))
	err = w.journal.folder(w.data)
	if err == nil {
		err = os.Mkdir(w.data, 0o700)
	}
	if err == nil {
		err = w.journal.mark(w.data)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cannot work in %s: %w", dir, err), w.Close())
	}
	return w, nil
}
