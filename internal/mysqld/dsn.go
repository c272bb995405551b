package mysqld

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"os/user"
	"slices"
	"strings"
)

const dsnForms = "write it as user:password@tcp(host:3306)/database or mysql://user:password@host:3306/database"

// DefaultSocket of Debian's and Ubuntu's servers, MySQL and MariaDB alike.
const DefaultSocket = "/var/run/mysqld/mysqld.sock"

// ParseDSN reads where a server is in the form of Go's MySQL driver,
// user:password@tcp(host:3306)/db?tls=true, or as a URL,
// mysql://user:password@host:3306/db?ssl-mode=REQUIRED. Parameters are tls (true, false, skip-verify,
// preferred), ssl-mode, ssl-ca, ssl-cert, ssl-key, and socket in a URL. What is absent comes from where
// MySQL's clients take it: the user from options, which are those of an option file's [client] section or
// nil, else from the login; the password from MYSQL_PWD, else from options; each of the four of TLS from
// options, for a password must not go a less protected way than its file asks for; 127.0.0.1 and port 3306.
// No error text holds any part before the last "@".
func ParseDSN(dsn string, options map[string]string) (Addr, string, error) {
	var a Addr
	var db string
	var err error
	if rest, ok := strings.CutPrefix(dsn, "mysql://"); ok {
		a, db, err = parseURL(rest)
	} else {
		a, db, err = parseDriverDSN(dsn)
	}
	if err != nil {
		return Addr{}, "", fmt.Errorf("cannot read the DSN: %w; %s", err, dsnForms)
	}
	o := named(options)
	a.User, a.TLS = cmp.Or(a.User, o["user"]), a.TLS.before(o)
	if err := complete(&a); err != nil {
		return Addr{}, "", fmt.Errorf("cannot read the DSN: %w", err)
	}
	a.Password = cmp.Or(a.Password, Secret(o["password"]))
	return a, db, nil
}

// before gives what t says, and of the options the rest.
func (t TLS) before(options map[string]string) TLS {
	o := maps.Clone(options)
	for name, value := range map[string]string{"ssl-mode": t.Mode, "ssl-ca": t.CA, "ssl-cert": t.Cert, "ssl-key": t.Key} {
		if value != "" {
			o[name] = value
		}
	}
	return tlsFromOptions(o)
}

// parseDriverDSN reads [user[:password]@][net[(addr)]]/db[?params]. As in the driver the last "@" ends the
// password, so it may hold any character.
func parseDriverDSN(dsn string) (Addr, string, error) {
	credentials, rest := cutCredentials(dsn)
	at, tail, ok := cutAddress(rest)
	if !ok {
		return Addr{}, "", errors.New("it has no / before the database")
	}
	var a Addr
	var password string
	a.User, password, _ = strings.Cut(credentials, ":")
	a.Password = Secret(password)
	var err error
	if a.Network, a.Address, err = parseNetwork(at); err != nil {
		return Addr{}, "", err
	}
	db, query, _ := strings.Cut(tail, "?")
	return a, db, applyQuery(&a, query)
}

// cutCredentials splits at the last "@" before the parameters; a "?" inside the password does not end it.
func cutCredentials(dsn string) (credentials, rest string) {
	at := strings.LastIndex(dsn, "@")
	if at < 0 {
		return "", dsn
	}
	return dsn[:at], dsn[at+1:]
}

// cutAddress splits net(addr)/db?params at the slash that ends the address: a socket's path has slashes of
// its own.
func cutAddress(s string) (before, after string, found bool) {
	before, after, found = strings.Cut(s, "/")
	if !strings.Contains(before, "(") || strings.HasSuffix(before, ")") {
		return before, after, found
	}
	before, after, found = strings.Cut(s, ")/")
	return before + ")", after, found
}

func parseNetwork(s string) (network, address string, err error) {
	network, address, found := strings.Cut(s, "(")
	if found && !strings.HasSuffix(address, ")") {
		return "", "", errors.New("the address is not closed by )")
	}
	switch network {
	case "", "tcp":
		return "tcp", strings.TrimSuffix(address, ")"), nil
	case "unix":
		return "unix", strings.TrimSuffix(address, ")"), nil
	}
	return "", "", errors.New("the network is neither tcp nor unix")
}

// parseURL reads what follows mysql://. The user information is cut off before net/url sees the text, since
// its errors quote it.
func parseURL(rest string) (Addr, string, error) {
	credentials, rest := cutCredentials(rest)
	user, password, _ := strings.Cut(credentials, ":")
	user, errUser := url.PathUnescape(user)
	password, errPassword := url.PathUnescape(password)
	if errUser != nil || errPassword != nil {
		return Addr{}, "", errors.New("user or password is not percent-encoded (a % is written %25)")
	}
	if strings.ContainsAny(credentials, "/?") {
		return Addr{}, "", errors.New("user or password holds a / or ? that is not percent-encoded (%2F, %3F)")
	}
	u, err := url.Parse("mysql://" + rest)
	if err != nil {
		return Addr{}, "", errors.New("host, port or database is malformed")
	}
	a := Addr{Network: "tcp", Address: u.Host, User: user, Password: Secret(password)}
	return a, strings.TrimPrefix(u.Path, "/"), applyQuery(&a, u.RawQuery)
}

func applyQuery(a *Addr, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the parameters after ? are malformed")
	}
	for key := range values {
		if err := applyParameter(a, key, values.Get(key)); err != nil {
			return err
		}
	}
	return nil
}

func applyParameter(a *Addr, key, value string) error {
	switch strings.ReplaceAll(strings.ToLower(key), "_", "-") {
	case "tls":
		mode, ok := driverMode(value)
		if !ok {
			return fmt.Errorf("tls=%s is none of true, false, skip-verify, preferred", value)
		}
		a.TLS.Mode = mode
	case "ssl-mode", "sslmode":
		a.TLS.Mode = strings.ToUpper(value)
	case "ssl-ca":
		a.TLS.CA = value
	case "ssl-cert":
		a.TLS.Cert = value
	case "ssl-key":
		a.TLS.Key = value
	case "socket":
		a.Network, a.Address = "unix", value
	default:
		return fmt.Errorf("parameter %q is unknown (known: tls, ssl-mode, ssl-ca, ssl-cert, ssl-key, socket)", key)
	}
	return nil
}

// driverMode translates the driver's words for TLS into those of MySQL's clients.
func driverMode(word string) (mode string, ok bool) {
	switch word {
	case "true":
		return "VERIFY_IDENTITY", true
	case "false":
		return "DISABLED", true
	case "skip-verify":
		return "REQUIRED", true
	case "preferred":
		return "PREFERRED", true
	}
	return "", false
}

// AddrFromOptions reads where a server is from the options of an option file's [client] section, as MySQL's
// clients do: localhost means the socket unless protocol=tcp. Options that do not concern the connection are
// left alone, as the file holds other programs' too; MariaDB's ssl and ssl-verify-server-cert are understood.
func AddrFromOptions(options map[string]string) (Addr, error) {
	o := named(options)
	a := Addr{User: o["user"], Password: Secret(o["password"]), TLS: tlsFromOptions(o)}
	switch protocol := strings.ToLower(o["protocol"]); {
	case protocol == "socket", protocol == "" && (o["host"] == "" || o["host"] == "localhost"):
		a.Network, a.Address = "unix", o["socket"]
	case protocol == "", protocol == "tcp":
		a.Network, a.Address = "tcp", joinPort(o["host"], o["port"])
	default:
		return Addr{}, fmt.Errorf("protocol=%s is neither tcp nor socket", o["protocol"])
	}
	if err := complete(&a); err != nil {
		return Addr{}, err
	}
	return a, nil
}

// named gives options the names that the manuals have, with dashes.
func named(options map[string]string) map[string]string {
	o := make(map[string]string, len(options))
	for key, value := range options {
		o[strings.ReplaceAll(strings.ToLower(key), "_", "-")] = value
	}
	return o
}

func tlsFromOptions(o map[string]string) TLS {
	t := TLS{Mode: strings.ToUpper(o["ssl-mode"]), CA: o["ssl-ca"], Cert: o["ssl-cert"], Key: o["ssl-key"]}
	_, ssl := o["ssl"]
	_, verify := o["ssl-verify-server-cert"]
	switch {
	case t.Mode != "":
	case verify && !off(o["ssl-verify-server-cert"]):
		t.Mode = "VERIFY_IDENTITY"
	case ssl && off(o["ssl"]):
		t.Mode = "DISABLED"
	case t.CA != "":
		t.Mode = "VERIFY_CA" // as MySQL's clients: a CA is there to be checked
	case ssl:
		t.Mode = "REQUIRED"
	}
	return t
}

func off(value string) bool {
	return slices.Contains([]string{"0", "off", "false", "no"}, strings.ToLower(value))
}

func joinPort(host, port string) string {
	if port == "" {
		return host
	}
	return net.JoinHostPort(host, port)
}

// complete fills in what MySQL's clients assume and refuses what cannot work.
func complete(a *Addr) error {
	if a.Password == "" {
		a.Password = Secret(os.Getenv("MYSQL_PWD"))
	}
	if a.User == "" {
		login, err := user.Current()
		if err != nil {
			return fmt.Errorf("no user is given and the login is unknown: %w", err)
		}
		a.User = login.Username
	}
	modes := []string{"", "PREFERRED", "DISABLED", "REQUIRED", "VERIFY_CA", "VERIFY_IDENTITY"}
	if !slices.Contains(modes, a.TLS.Mode) {
		return fmt.Errorf("ssl-mode %q is none of DISABLED, PREFERRED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY", a.TLS.Mode)
	}
	if (a.TLS.Cert == "") != (a.TLS.Key == "") {
		return errors.New("ssl-cert and ssl-key go together: give both or none")
	}
	if a.Network == "unix" {
		if a.Address == "" {
			a.Address = DefaultSocket
		}
		return nil
	}
	return completePort(a)
}

func completePort(a *Addr) error {
	host, port, err := net.SplitHostPort(a.Address)
	if err != nil { // no port: a bare host, name or IPv6 in brackets or not
		host, port = strings.TrimSuffix(strings.TrimPrefix(a.Address, "["), "]"), ""
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return errors.New("the address is not host:port (an IPv6 address goes in brackets)")
		}
	}
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "3306"
	}
	n, err := net.LookupPort("tcp", port)
	if err != nil || n == 0 {
		return errors.New("the port is not a number from 1 to 65535")
	}
	a.Address = net.JoinHostPort(host, fmt.Sprint(n))
	return nil
}
