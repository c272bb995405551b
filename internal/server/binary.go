// Package server knows the server binaries of this machine: it finds them, says what they are, and installs
// an Oracle MySQL, and MySQLTuner, into david's own folder where the distribution has none. It never starts a
// server with data.
package server

import (
	"david/internal/mycnf"
	"david/internal/result"
)

// Binary is one mysqld or mariadbd, or a MySQLTuner, which has no flavour, and what it takes to run it.
type Binary struct {
	Path    string        `json:"path"` // of mysqld or mariadbd itself
	Flavour mycnf.Flavour `json:"flavour"`
	Version string        `json:"version"` // as --version prints it: "9.7.4-2", "10.11.19-MariaDB-0+deb12u1"
	SHA256  string        `json:"sha256"`
	// Root is the folder that holds all a server needs where it was unpacked by david ("" for one of the
	// system's). Inside it, the server runs with its own loader and libraries.
	Root string `json:"root,omitempty"`
	// Launch is the command before the server's own arguments: the path alone, or the loader, its library
	// path and the path. It contains no option of the server.
	Launch []string `json:"launch"`
	// Basedir is the value of --basedir, "" where the built-in one is right.
	Basedir string `json:"basedir,omitempty"`
}

// Record returns what the store keeps of a binary.
func (b Binary) Record() result.Server {
	return result.Server{Path: b.Path, SHA256: b.SHA256, Flavour: b.Flavour, Version: b.Version}
}

// Checksum is the SHA-256 of a binary's file, as Binary has it.
func Checksum(path string) (string, error) { return hashFile(path) }
