package check

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// settings finds what a server would not start with: names that are mistyped, and values that are none of
// its.
func (c *checker) settings(s server) {
	for _, f := range s.cnfs {
		for _, one := range f.settings {
			name := mycnf.WithoutLoose(one.Name)
			if meant, ok := mycnf.Mistyped(one.Name); ok {
				c.reportSetting(SeverityError, "my-cnf", f, name, fmt.Sprintf("there is no variable %s: the server does not start with it", name), fmt.Sprintf("is %s meant?", meant))
			}
			if why := mycnf.Malformed(one.Name, one.Value); why != "" {
				c.reportSetting(SeverityError, "my-cnf", f, name, fmt.Sprintf("%s=%s: %s", name, one.Value, why), "write one that it takes")
			}
		}
	}
}

// misplaced finds a server's variable in a group of clients: the server does not read it there, and clients
// do not start with it.
func (c *checker) misplaced(f optionFile, item mycnf.Item, line int) {
	name, _ := mycnf.Canonical(item.Name, item.Value)
	if item.Group != "client" && item.Group != "mysql" || !mycnf.Known(name) || slices.Contains(clientOptions(), name) || strings.HasPrefix(mycnf.Normalise(item.Name), "loose_") {
		return
	}
	c.report(SeverityError, "my-cnf", f.doc, f.path, fmt.Sprintf("%s stands in [%s]: the server does not read it there, and clients that do refuse to start", name, item.Group), "move it to [mysqld]")
	if line > 0 {
		c.found[len(c.found)-1].Line = line
	}
}

// clientOptions lists options of clients (--help) that are called as variables of servers.
func clientOptions() []string {
	return []string{"bind_address", "local_infile", "log_error", "max_allowed_packet", "net_buffer_length", "port", "server_id", "socket", "ssl_ca", "ssl_cert", "ssl_key", "tls_version", "user"}
}

// includedFolders lists the folders that the option files of servers' images include.
func includedFolders() []string {
	return []string{"/etc/mysql/conf.d", "/etc/mysql/mysql.conf.d", "/etc/mysql/mariadb.conf.d", "/etc/my.cnf.d"}
}

// unread reports an option file that the server does not read: of a folder that is included it reads what
// ends in .cnf (MySQL manual, Using Option Files, !includedir). A file that the command line names is read
// whatever it is called.
func (c *checker) unread(p pod, e entry, shown string) {
	if !optionGroup.MatchString(e.text) || strings.Contains(commandLines(p.server()), "--defaults-") {
		return
	}
	c.report(SeverityWarning, "my-cnf", e.doc, e.path, fmt.Sprintf("it is mounted as %s, and the server reads files there that end in .cnf: nothing in it counts", shown), "call it "+strings.TrimSuffix(path.Base(shown), path.Ext(shown))+".cnf")
}
