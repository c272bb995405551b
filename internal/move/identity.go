package move

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"david/internal/mysqld"
)

// copyMark is a file in a copy that no server has used yet, which is no part of the data: a copy that one has used, as a
// follower or a backup, may be the only place of what was written there.
const copyMark = ".david-copy"

// mostMark bounds the mark of a copy, in bytes: it holds a path.
const mostMark = 1 << 13

// mark says in a copy whose it is to become, until unmark.
func (c *copier) mark(link string) error {
	text, err := markOf(link, c.from.Name())
	if err != nil {
		return err
	}
	if err := c.unmark(); err != nil {
		return err
	}
	f, err := c.to.OpenFile(copyMark, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cannot mark the copy: %w", err)
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// unmark removes the mark, where there is one: a server is about to use the copy.
func (c *copier) unmark() error {
	if err := c.to.Remove(copyMark); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// markOf is what the mark of a copy says: the path that the server knows, and which folder that is.
func markOf(link, data string) (string, error) {
	var s unix.Stat_t
	if err := unix.Stat(data, &s); err != nil {
		return "", fmt.Errorf("cannot look at %s: %w", data, err)
	}
	return fmt.Sprintf("half a copy of %s (inode %d), made by david storage move; no server has used it\n", link, s.Ino), nil
}

// halfMade tells whether a folder is a copy of these data that a david began, and that no server has used.
func halfMade(to, link, data string) (bool, error) {
	want, err := markOf(link, data)
	if err != nil {
		return false, err
	}
	path := filepath.Join(to, copyMark)
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostMark {
		return false, err
	}
	text, err := os.ReadFile(path)
	return string(text) == want, err
}

// sameServer tells whether the server that answers is the one that is moved: by the UUID that it had, or by the data
// folder that it says it has. MariaDB's server_uid alone does not tell: it is made of the port and a network card's address.
func sameServer(ctx context.Context, conn *mysqld.Conn, uuid, folder string) (bool, error) {
	who, err := conn.Identity(ctx)
	if err != nil || uuid == "" || who.UUID == uuid {
		return err == nil, err
	}
	v, err := conn.Variables(ctx)
	if err != nil {
		return false, err
	}
	its, err := os.Stat(filepath.Clean(v["datadir"]))
	if err != nil { // of another machine, or another's view of this one
		return false, nil
	}
	ours, err := os.Stat(folder)
	return err == nil && os.SameFile(its, ours), err
}
