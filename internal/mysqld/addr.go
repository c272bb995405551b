// Package mysqld talks to a running server: where it is, who it is, its variables and its status counters. It reads;
// nothing but Exec changes anything.
package mysqld

import (
	"fmt"
	"net"
	"time"
)

// Addr says how to reach a server. The password is kept out of String, %v and JSON.
type Addr struct {
	Network  string // "unix" or "tcp"
	Address  string // socket path, or host:port
	User     string
	Password Secret
	TLS      TLS
	Deadline time.Duration // longest that a statement may take; 0 for an hour
	Longer   string        // how its user allows more than Deadline, for errors; "" where nobody can
	Answer   int64         // most bytes of memory that an answer may take; 0 for 64 MiB
}

// TLS says how a TCP connection is protected, in the words of MySQL's clients.
type TLS struct {
	Mode string // "" or PREFERRED, DISABLED, REQUIRED, VERIFY_CA, VERIFY_IDENTITY
	CA   string // file names
	Cert string
	Key  string
	Name string `json:",omitempty"` // that the server's certificate is of; "" for the host of Addr.Address
	Seen bool   `json:",omitempty"` // the server has offered it: it is not believed later that it has none
}

// Asked tells whether somebody insists on TLS, which PREFERRED does not, whatever the server has.
func (t TLS) Asked() bool {
	return t.Mode == "REQUIRED" || t.Mode == "VERIFY_CA" || t.Mode == "VERIFY_IDENTITY"
}

// Secret is a password. It prints as "***" wherever fmt or encoding/json meet it.
type Secret string

// String hides the secret.
func (Secret) String() string { return "***" }

// GoString hides the secret from %#v.
func (Secret) GoString() string { return "***" }

// MarshalJSON hides the secret.
func (Secret) MarshalJSON() ([]byte, error) { return []byte(`"***"`), nil }

// String names the server without user and password: what logs, the store and error texts may hold.
func (a Addr) String() string {
	if a.Network == "unix" {
		return "socket " + a.Address
	}
	return fmt.Sprintf("%s (tcp)", a.Address)
}

// Local tells whether the server is on this machine: it is reached by a unix socket or by a loopback address. A tunnel's end
// looks the same.
func (a Addr) Local() bool {
	if a.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil {
		host = a.Address
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
