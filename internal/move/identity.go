package move

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"david/internal/home"
	"david/internal/mysqld"
)

// Where MariaDB's data have a UUID of their own: Aria's control file begins with three bytes of magic, a version of one
// byte, and the UUID that it was made with (MariaDB, storage/maria/ma_control_file.c).
const (
	ariaControl = "aria_log_control"
	ariaMagic   = "\xfe\xfe\x0c"
	ariaUUIDAt  = len(ariaMagic) + 1
	ariaUUID    = 16
)

// autoUUID is the line of MySQL's auto.cnf.
var autoUUID = regexp.MustCompile(`(?m)^server[-_]uuid\s*=\s*([0-9a-fA-F-]{36})\s*$`)

// dataID is what tells the data of a server, and of every copy of them, from those of any other: MySQL's server_uuid,
// or the UUID of MariaDB's Aria log. "" where a folder has neither.
func dataID(folder string) (string, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return "", err
	}
	defer root.Close()
	auto, err := root.ReadFile("auto.cnf")
	if found := autoUUID.FindSubmatch(auto); found != nil {
		return string(found[1]), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	aria, err := root.ReadFile(ariaControl)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil || !bytes.HasPrefix(aria, []byte(ariaMagic)) || len(aria) < ariaUUIDAt+ariaUUID {
		return "", err
	}
	return fmt.Sprintf("%x", aria[ariaUUIDAt:ariaUUIDAt+ariaUUID]), nil
}

// copySuffix names the file beside a copy that no server has used yet: a copy of a copy, as a follower's or a backup's, has
// the same UUIDs, and may be the only place of what was written there.
const copySuffix = ".david-copy"

// markCopy says beside a copy whose it is to become, until unmarkCopy.
func markCopy(to, link, real string) error {
	id, err := dataID(real)
	if err != nil {
		return err
	}
	f, err := home.Create(to+copySuffix, 0o600)
	if err != nil {
		return fmt.Errorf("cannot mark the copy: %w", err)
	}
	_, err = f.WriteString(copyMark(link, id))
	return errors.Join(err, f.Sync(), f.Close())
}

func copyMark(link, id string) string {
	return fmt.Sprintf("half a copy of the data of %s (%s), made by david storage move; no server has used it\n", link, id)
}

func unmarkCopy(to string) error { return removed(to + copySuffix) }

// halfMade tells whether a folder is a copy of these data that a david began, and that no server has used.
func halfMade(to, link, real string) (bool, error) {
	id, err := dataID(real)
	if err != nil || id == "" {
		return false, err
	}
	info, err := os.Lstat(to + copySuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > mostMark {
		return false, err
	}
	text, err := os.ReadFile(to + copySuffix)
	return string(text) == copyMark(link, id), err
}

// mostMark bounds the mark of a copy, in bytes.
const mostMark = 1 << 13

// sameServer makes sure that the server that answers is the one that is moved: by the UUID that it had, or by the data
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
