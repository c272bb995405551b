package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"david/internal/input"
	"david/internal/server"
)

// mariadbSystem returns the SQL that makes a MariaDB's system tables, for mariadbd --bootstrap. It is what
// mariadb-install-db feeds it, without that script's need of client programs which a package with the server
// alone does not bring: no user but root@localhost without a password, no lines for the host's name, no test
// database.
func mariadbSystem(b server.Binary) ([]byte, error) {
	sql := []byte("CREATE DATABASE mysql;\nUSE mysql;\nSET @auth_root_socket=NULL;\n")
	for _, name := range []string{"system_tables", "performance_tables", "system_tables_data"} {
		text, err := mariadbScript(b, name)
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(text) {
			if !bytes.Contains(line, []byte("@current_hostname")) {
				sql = append(sql, line...)
			}
		}
	}
	return sql, nil
}

// mostScript bounds one of the server's own scripts, in bytes.
const mostScript = 16 << 20

// mariadbScript reads one of the server's own scripts, from where distributions and MariaDB's own packages
// put them; their prefix became mariadb_ in 11.0.
func mariadbScript(b server.Binary, name string) ([]byte, error) {
	prefix := b.Basedir
	if prefix == "" {
		prefix = filepath.Dir(filepath.Dir(b.Path))
	}
	for _, dir := range []string{"share/mysql", "share/mariadb", "share"} {
		for _, maker := range []string{"mariadb_", "mysql_"} {
			text, err := input.Read(filepath.Join(prefix, dir, maker+name+".sql"), mostScript)
			if err == nil || !errors.Is(err, fs.ErrNotExist) {
				return text, err
			}
		}
	}
	return nil, fmt.Errorf("cannot find mariadb_%s.sql or mysql_%s.sql under %s/share: is this MariaDB installed completely?", name, name, prefix)
}
