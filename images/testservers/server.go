package main

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"david/images/internal/root"
)

// user runs the server, as in the official images.
const user = 999

// myCnf says what the official images' own option file comes to: the server's folders, and the user's files
// after them. Names are not looked up: in a cluster they are not those of clients.
const myCnf = `[mysqld]
datadir=/var/lib/mysql
socket=/run/mysqld/mysqld.sock
pid-file=/run/mysqld/mysqld.pid
secure-file-priv=/var/lib/mysql-files
skip-name-resolve

[client]
socket=/run/mysqld/mysqld.sock

!includedir /etc/mysql/conf.d/
`

// serve makes the users, folders and settings of a server's image, and a shell for probes.
func serve(r *root.Root, server string) error {
	r.File("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0:root:/root:/bin/sh\nmysql:x:%[1]d:%[1]d:mysql:/var/lib/mysql:/bin/sh\n", user))
	r.File("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nmysql:x:%d:\n", user))
	r.File("etc/nsswitch.conf", 0o644, []byte("passwd: files\ngroup: files\nhosts: files dns\n"))
	r.File("etc/mysql/my.cnf", 0o644, []byte(myCnf))
	r.Dir("etc/mysql/conf.d", 0o755, 0)
	r.Dir("var/lib/mysql", 0o750, user)
	r.Dir("var/lib/mysql-files", 0o750, user)
	r.Dir("run/mysqld", 0o777|fs.ModeSticky, user) // a pod may say another user
	for _, applet := range applets() {
		r.Link("usr/bin/"+applet, "busybox")
	}
	return r.CheckPrograms("usr/sbin/"+server, "usr/bin/mysql", "usr/bin/mysqladmin", "usr/bin/busybox")
}

func applets() []string {
	return strings.Fields("awk cat chmod chown cp cut date dd df du echo env expr false find free grep head hostname id kill ln ls mkdir mktemp mv nc nslookup ps pwd readlink rm sed seq sh " +
		"sleep sort stat sync tail tar test touch tr true uname uniq wc which")
}

// unneeded tells of packages for scripts that the image does not run; the build fails where the server comes
// to need one.
func unneeded(name string) bool {
	for _, prefix := range []string{"debconf", "libc-gconv", "libconfig-", "libdb5.3", "libdbd-", "libdbi-", "libgdbm", "libperl", "libreadline", "libsasl2-modules-db", "mawk", "perl", "readline-common"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// pruned tells of files of the packages that the image does without: their settings, and most of the clients'
// many programs.
func pruned(name string) bool {
	if strings.HasPrefix(name, "etc/mysql/") {
		return true
	}
	dir, file := path.Split(name)
	return dir == "usr/bin/" && !slices.Contains([]string{"busybox", "mariadb", "mariadb-admin", "mariadb-dump", "mysql", "mysqladmin", "mysqldump"}, file)
}

// searched is where the images' programs are.
const searched = "PATH=/usr/local/bin:/usr/sbin:/usr/bin"

func serverConfig(r recipe) v1.Config {
	return v1.Config{
		User:         fmt.Sprintf("%d:%d", user, user),
		Entrypoint:   []string{"/" + r.path},
		Cmd:          []string{r.server},
		Env:          []string{searched, "HOME=/var/lib/mysql"},
		ExposedPorts: map[string]struct{}{"3306/tcp": {}},
		Volumes:      map[string]struct{}{"/var/lib/mysql": {}},
	}
}
