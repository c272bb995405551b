package result

// Profile says where the time of the load's connections went in the measured run. Looks at all of them at
// once, several a second, tell what each was doing; the kernel's own counts, which are exact, tell how long
// they ran and waited for a CPU.
type Profile struct {
	Looks       int     `json:"looks"`       // how many times all connections were looked at
	Connections float64 `json:"connections"` // of the load, on average over the looks
	// States say what the connections were found doing, most often first.
	States []State `json:"states,omitempty"`
	// Threads are the server's threads by what they are for, those of connections first; from /proc, so none
	// for a server on another machine.
	Threads []Threads `json:"threads,omitempty"`
	// Client are the load generator's threads.
	Client Threads `json:"client,omitzero"`
	// Waits are performance_schema's summaries of waits (those instruments that are on), most seconds first;
	// none where it is off.
	Waits []Wait `json:"waits,omitempty"`
	// Statements are the statement digests that took most of the time, most seconds first, ten at most.
	Statements []Statement `json:"statements,omitempty"`
	// Missing says what could not be looked at, and why.
	Missing []string `json:"missing,omitempty"`
}

// State describes one thing that connections were found doing. An empty field was not known.
type State struct {
	Command   string `json:"command,omitempty"`   // of the process list: "Sleep", "Query", "Execute"
	Statement string `json:"statement,omitempty"` // the statement's first word, in capitals: "SELECT", "UPDATE", "COMMIT"
	Stage     string `json:"stage,omitempty"`     // the process list's state: "waiting for handler commit"
	// Kernel says what the connection's thread did: "running" (or waiting for a CPU), or the system call it
	// slept in: "futex", "fdatasync", "pread64", "recvfrom".
	Kernel string `json:"kernel,omitempty"`
	// File says what the call was made on: "redo", "binlog", "data", "doublewrite", "undo", "temporary",
	// "socket", "other".
	File  string `json:"file,omitempty"`
	Count int64  `json:"count"` // connections found so, over all looks
}

// Threads holds what a kind of threads used in the measured run.
type Threads struct {
	Name  string  `json:"name"`         // "connection", or the server's own name for them: "ib_pg_flush", "ib_log_writer"
	Count int     `json:"count"`        // threads
	CPU   float64 `json:"cpu_seconds"`  // they ran
	Wait  float64 `json:"wait_seconds"` // they could have run and waited for a CPU
}

// Wait describes one instrument of performance_schema's events_waits_summary_global_by_event_name.
type Wait struct {
	Name    string  `json:"name"` // "wait/io/file/innodb/innodb_log_file"
	Count   int64   `json:"count"`
	Seconds float64 `json:"seconds"`
}

// Statement describes one row of performance_schema's events_statements_summary_by_digest.
type Statement struct {
	Text     string  `json:"text"` // the digest's: without values
	Count    int64   `json:"count"`
	Seconds  float64 `json:"seconds"`
	Lock     float64 `json:"lock_seconds"`
	Examined int64   `json:"rows_examined"`
}
