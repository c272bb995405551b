package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"david/internal/mysqld"
)

// mysqlFlags are those of MySQL's own clients that say where a server is. -h is the host there: the commands that have
// them take --help for help, and -h alone at the end of the line.
type mysqlFlags struct {
	host, user, socket, loginPath string
	port                          int
	password                      *prompt
}

// serverNames are the flags that name a server; --user and --password say who asks.
func serverNames() []string {
	return []string{"dsn", "defaults-file", "host", "port", "socket", "login-path"}
}

func (f *mysqlFlags) add(fs *pflag.FlagSet) {
	f.password = &prompt{}
	fs.Bool("help", false, "help for this command")
	fs.StringVarP(&f.host, "host", "h", "", "running server: its host; localhost is the socket, as with mysql")
	fs.IntVarP(&f.port, "port", "P", 0, "running server: its port (3306)")
	fs.StringVarP(&f.user, "user", "u", "", "running server: the user (root of a pod)")
	fs.StringVarP(&f.socket, "socket", "S", "", "running server: its socket")
	fs.VarPF(f.password, "password", "p", "running server: ask for the password; "+passwordElsewhere).NoOptDefVal = "true"
	fs.StringVar(&f.loginPath, "login-path", "", "running server: the options of this name in ~/.mylogin.cnf (mysql_config_editor)")
}

// named tells whether these flags name a server.
func (f mysqlFlags) named() bool {
	return f.host != "" || f.port != 0 || f.socket != "" || f.loginPath != ""
}

// prompt is a password that is asked for, and never taken from the command line.
type prompt struct {
	asked  bool
	secret string
}

// Set notes that the flag was there; a value was refused before (noArgvPassword).
func (p *prompt) Set(string) error {
	p.asked = true
	return nil
}

// String is empty: there is nothing to show.
func (p *prompt) String() string { return "" }

// Type is that of a flag without a value.
func (p *prompt) Type() string { return "bool" }

// noArgvPassword refuses a password on the command line. It is not repeated.
func noArgvPassword(argv []string) error {
	for _, arg := range argv {
		if arg == "--" {
			return nil
		}
		if strings.HasPrefix(arg, "--password=") || strings.HasPrefix(arg, "-p") && len(arg) > 2 {
			return usage("a password on the command line can be read by every user of this machine (ps): give -p alone, which asks for it, or %s", strings.TrimPrefix(passwordElsewhere, "give the password in "))
		}
	}
	return nil
}

// needsServer refuses --user or --password that no server goes with.
func needsServer(cmd *cobra.Command) error {
	fs := cmd.Flags()
	if f := fs.Lookup("host"); f != nil && strings.HasPrefix(f.Value.String(), "-") {
		return usage("-h %s: give the server's host, as with mysql; for help: %s --help", f.Value, cmd.CommandPath())
	}
	recorded := []string{"rollback", "move", "volume"} // which know a server by themselves
	if fs.Lookup("login-path") == nil || slices.Contains(recorded, cmd.Name()) || slices.ContainsFunc(append(serverNames(), "pod"), fs.Changed) {
		return nil
	}
	for _, name := range []string{"user", "password"} {
		if fs.Changed(name) {
			return usage("--%s goes with a running server: name it with -h, -S, --dsn, --login-path or --defaults-file", name)
		}
	}
	return nil
}

// askPassword asks for the password that a command wants.
func (a *app) askPassword(cmd *cobra.Command) (err error) {
	flag := cmd.Flags().Lookup("password")
	if flag == nil {
		return nil
	}
	p, ok := flag.Value.(*prompt)
	if !ok || !p.asked {
		return nil
	}
	p.secret, err = a.readPassword(cmd.Context())
	return err
}

// hush has a terminal show nothing of what is typed.
func hush(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == nil {
		t.Lflag &^= unix.ECHO
		err = unix.IoctlSetTermios(fd, unix.TCSETS, t)
	}
	if err != nil {
		return fmt.Errorf("cannot keep the terminal from showing the password: %w", err)
	}
	return nil
}

// readPassword reads a line from the terminal without showing it. An interrupt gives the terminal back.
func (a *app) readPassword(ctx context.Context) (string, error) {
	tty, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return "", usage("there is no terminal to ask for the password on: %s", passwordElsewhere)
	}
	defer tty.Close()
	fd := int(tty.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", usage("there is no terminal to ask for the password on: %s", passwordElsewhere)
	}
	if err := hush(fd); err != nil { // before it is asked for: whoever types at once is not shown either
		return "", err
	}
	fmt.Fprint(tty, "Enter password: ")
	type line struct {
		text []byte
		err  error
	}
	read := make(chan line, 1)
	go func() {
		text, err := term.ReadPassword(fd)
		read <- line{text, err}
	}()
	select {
	case <-ctx.Done():
		fmt.Fprintln(tty)
		return "", codedError{exitInterrupted, fmt.Errorf("no password was given: %w", restored(fd, before, ctx.Err()))}
	case l := <-read:
		fmt.Fprintln(tty)
		if err := restored(fd, before, l.err); err != nil {
			return "", fmt.Errorf("cannot read the password: %w", err)
		}
		a.hide(string(l.text))
		return string(l.text), nil
	}
}

func restored(fd int, state *term.State, err error) error {
	if failed := term.Restore(fd, state); failed != nil {
		return errors.Join(err, errors.New("the terminal does not echo: stty sane"))
	}
	return err
}

// over puts what the flags say in the place of an option file's.
func (f mysqlFlags) over(options map[string]string) map[string]string {
	all := map[string]string{}
	for name, value := range options {
		all[strings.ReplaceAll(strings.ToLower(name), "_", "-")] = value
	}
	set := func(name, value string) {
		if value != "" {
			all[name] = value
		}
	}
	set("host", f.host)
	set("user", f.user)
	set("socket", f.socket)
	if f.port != 0 {
		all["port"] = strconv.Itoa(f.port)
		if f.host == "" && f.socket == "" && all["host"] == "" {
			all["host"] = "127.0.0.1" // a port alone is meant
		}
	}
	if f.socket != "" && f.host == "" {
		delete(all, "host")
		delete(all, "protocol")
	}
	if f.password != nil && f.password.asked {
		all["password"] = f.password.secret
	}
	return all
}

// loginFile is where mysql_config_editor keeps what it was told.
func (a *app) loginFile() string {
	if path := a.env("MYSQL_TEST_LOGIN_FILE"); path != "" {
		return path
	}
	return filepath.Join(a.env("HOME"), ".mylogin.cnf")
}

// loginOptions adds those of a login path to an option file's; MySQL's clients read them last, too.
func (a *app) loginOptions(name string, options map[string]string) (map[string]string, error) {
	if name == "" {
		return options, nil
	}
	found, err := mysqld.ReadLoginPath(a.loginFile(), name)
	if err != nil {
		return nil, codedError{exitUsage, err}
	}
	all := map[string]string{}
	for _, m := range []map[string]string{options, found} {
		for key, value := range m {
			all[key] = value
		}
	}
	return all, nil
}
