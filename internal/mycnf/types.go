// Package mycnf holds what david knows of a server's configuration: versions, the catalogue of system
// variables, and the my.cnf file. It holds values and pure functions only; nothing here talks to a server.
//
// A configuration is a list of settings. The catalogue says for which flavours and versions a variable
// exists, how it is applied and which values it takes; Parse and Render turn configurations into my.cnf files
// and back.
package mycnf

// Flavour is the family a server belongs to. Percona Server takes Oracle's variables and adds its own.
type Flavour string

// The flavours david knows.
const (
	MySQL   Flavour = "mysql"
	Percona Flavour = "percona"
	MariaDB Flavour = "mariadb"
)

// Product is the flavour as its makers write it.
func (f Flavour) Product() string {
	switch f {
	case MariaDB:
		return "MariaDB"
	case Percona:
		return "Percona Server"
	}
	return "MySQL"
}

// Setting is one system variable with the value wanted for it, and why.
type Setting struct {
	Name   string `json:"name"`             // with underscores, lower case
	Value  string `json:"value"`            // as written in my.cnf: "4G", "ON", "O_DIRECT"
	Group  string `json:"group,omitempty"`  // memory, redo, flush, concurrency, logging, ... : the section of the file
	Reason string `json:"reason,omitempty"` // why this value, in one sentence
	Source string `json:"source,omitempty"` // manual section, paper or study the rule comes from
	Effect string `json:"effect,omitempty"` // what was measured: "1.42x of the step before (1 run)"
	// OfDisk marks a value that a rule derived from what the disk under the server was measured to do: on
	// another disk its reason does not hold.
	OfDisk bool `json:"of_disk,omitempty"`
}
