// Package move takes the data of a running server to another folder: copied while it serves, in passes that
// copy only what differs, then one stop for the last pass, the comparison of every byte, the switch, the start.
//
//	look       what is to be moved, where to, and all that speaks against it; changes nothing
//	place      paths: the folder that the server knows, the old and the new one, the switch between them
//	locations  what of the server's data lies elsewhere, by its variables
//	options    the option files that the server reads when it is started again, with what they include
//	process    who has a folder's files open; the unit, the user, what the server may see
//	tree       what a folder holds
//	pass       one pass of the copy; the comparison of both sides
//	attributes SELinux's labels, access lists
//	sums       SHA-256 of every file, of the place that the server has left
//	daemon     the server is stopped, kept from starting, started
//	calm       the server writes its dirty pages before its stop
//	run        the steps: passes, stop, last pass, check, switch, start, proof
//	back       the way back, with what was written since; forgetting the place that is not in use
//	guard      a process that starts the server where david dies while it is away
//	proof      CHECKSUM TABLE before and after
//	record     what was done so far, on disk before it is done
//
// The server knows its folder by one path, before and after: the switch puts a symbolic link to the new folder
// in the place of the old one, in one step of the filesystem's. So nothing that names that path has to change.
package move

import (
	"errors"
	"time"

	"david/internal/mysqld"
)

// ErrInput marks what was asked for as what cannot be done.
var ErrInput = errors.New("nothing was changed")

// ErrNeeds marks what david lacks for the rest: all that could be done was done.
var ErrNeeds = errors.New("the server was not stopped")

// ErrLate marks what failed once the data are where they were to be.
var ErrLate = errors.New("the server runs where it was to run")

// ErrMismatch marks a copy that is not what was copied.
var ErrMismatch = errors.New("the copy differs")

// ErrTables marks a move after which the server says something else of its tables than before.
var ErrTables = errors.New("the tables are not as before")

// Request says what is to be moved where.
type Request struct {
	Home    string      // david's folder
	Datadir string      // the folder that the server knows; "": as the server says
	To      string      // the new folder
	Reuse   bool        // it may hold an earlier copy
	AsItWas bool        // a way back leaves what was written since
	Anyway  bool        // a way back overwrites the old place also with tables that cannot be read
	Rate    int64       // most bytes per second that are read while the server runs; 0 for no limit
	Addr    mysqld.Addr // of the server
	// Stop and Start are commands with their arguments; empty for those of the server's systemd unit.
	Stop, Start []string
	// MostStop is how long the server may be away: where the last pass while it serves takes longer, it is not
	// stopped.
	MostStop time.Duration
	// StopWithin and StartWithin bound the wait for the server's end and for its answer.
	StopWithin, StartWithin time.Duration
	// ProofWithin bounds the time for CHECKSUM TABLE, before the stop and after it each; 0 for none.
	ProofWithin time.Duration
	// Guard are the arguments that have this very program call StandGuard; none for no guard.
	Guard []string
	Say   func(string) `json:"-"`
}
