package sampler

import (
	"fmt"
	"strconv"
	"strings"

	"david/internal/mycnf"
)

// loadSession describes one of the load's connections in the server's process list.
type loadSession struct {
	tid                       int // the thread that serves it, 0 where the server does not tell
	command, stage, statement string
}

// listing describes a way to ask for the process list.
type listing struct {
	query   string
	columns int  // that an answer has at least
	joined  bool // whether it tells the threads
	schema  string
}

// listings returns the ways to ask for the connections that use a schema, the best first. david's own
// connections use none.
func listings(flavour mycnf.Flavour, schema string) []listing {
	best := listing{joined: true, columns: 4, query: "SELECT THREAD_OS_ID, PROCESSLIST_COMMAND, PROCESSLIST_STATE, LEFT(PROCESSLIST_INFO, 32)" +
		" FROM performance_schema.threads WHERE PROCESSLIST_DB = " + literal(schema) + " AND PROCESSLIST_COMMAND <> 'Daemon'"}
	if flavour == mycnf.MariaDB {
		best.query = "SELECT TID, COMMAND, STATE, LEFT(INFO, 32)" +
			" FROM information_schema.PROCESSLIST WHERE DB = " + literal(schema) + " AND COMMAND <> 'Daemon'"
	}
	return []listing{best, {query: "SHOW PROCESSLIST", columns: 8, schema: schema}}
}

// literal quotes a name whatever the server's sql_mode makes of quotes and backslashes.
func literal(name string) string { return fmt.Sprintf("_utf8mb4 0x%x", name) }

// sessions reads an answer.
func (l listing) sessions(rows [][]string) (all []loadSession) {
	for _, r := range rows {
		if s, ok := l.session(r); ok {
			all = append(all, s)
		}
	}
	return all
}

func (l listing) session(row []string) (loadSession, bool) {
	if !l.joined { // Id, User, Host, db, Command, Time, State, Info
		if len(row) < 8 || row[3] != l.schema || row[4] == "Daemon" {
			return loadSession{}, false
		}
		return loadSession{command: row[4], stage: row[6], statement: firstWord(row[7])}, true
	}
	if len(row) < 4 {
		return loadSession{}, false
	}
	tid, err := strconv.Atoi(row[0])
	return loadSession{tid, row[1], row[2], firstWord(row[3])}, err == nil || row[0] == ""
}

// firstWord returns a statement's first word in capitals, 16 letters at most.
func firstWord(statement string) string {
	statement = strings.TrimLeft(statement, "( \t\r\n")
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }
	end := strings.IndexFunc(statement, func(r rune) bool { return !letter(r) })
	if end < 0 {
		end = len(statement)
	}
	return strings.ToUpper(statement[:min(end, 16)])
}
