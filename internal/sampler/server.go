package sampler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"david/internal/mycnf"
	"david/internal/mysqld"
	"david/internal/result"
)

// status describes one status variable and the sample's value made of it.
type status struct {
	variable string // lower case
	name     string // of the sample's value
	gauge    bool   // taken as it is; a counter becomes its growth a second
	scale    float64
}

// statuses returns the status variables sampled each second.
func statuses() []status {
	const kib = 1.0 / 1024
	return []status{
		{"questions", "server.questions_per_s", false, 1},
		{"com_commit", "server.commits_per_s", false, 1},
		{"com_rollback", "server.rollbacks_per_s", false, 1},
		{"threads_running", "server.threads_running", true, 1},
		{"threads_connected", "server.threads_connected", true, 1},
		{"binlog_cache_disk_use", "server.binlog_cache_spills_per_s", false, 1},
		{"created_tmp_disk_tables", "server.tmp_disk_tables_per_s", false, 1},
		{"innodb_data_reads", "innodb.reads_per_s", false, 1},
		{"innodb_data_writes", "innodb.writes_per_s", false, 1},
		{"innodb_data_fsyncs", "innodb.fsyncs_per_s", false, 1},
		{"innodb_os_log_fsyncs", "innodb.log_fsyncs_per_s", false, 1},
		{"innodb_os_log_written", "innodb.log_written_kb_per_s", false, kib},
		{"innodb_log_waits", "innodb.log_waits_per_s", false, 1},
		{"innodb_buffer_pool_read_requests", "innodb.page_requests_per_s", false, 1},
		{"innodb_buffer_pool_reads", "innodb.page_misses_per_s", false, 1},
		{"innodb_buffer_pool_wait_free", "innodb.free_page_waits_per_s", false, 1},
		{"innodb_pages_written", "innodb.pages_written_per_s", false, 1},
		{"innodb_row_lock_waits", "innodb.row_lock_waits_per_s", false, 1},
		{"innodb_row_lock_time", "innodb.row_lock_wait_ms_per_s", false, 1},
		{"innodb_row_lock_current_waits", "innodb.row_lock_waiters", true, 1},
		{"innodb_buffer_pool_pages_free", "innodb.free_pages", true, 1},
	}
}

// debts returns the variables that debt and redo are worked out from; which of them there are depends on
// flavour and version.
func debts() []string {
	return []string{
		"innodb_buffer_pool_pages_dirty", "innodb_checkpoint_age", "innodb_history_list_length", // MariaDB has all three
		"innodb_redo_log_current_lsn", "innodb_redo_log_checkpoint_lsn", // MySQL 8.0.30 and later
		"innodb_lsn_current", "innodb_lsn_last_checkpoint", // Percona 5.7 and 8.0, MariaDB
	}
}

// serverReader asks the server, over one connection of its own.
type serverReader struct {
	conn   *mysqld.Single
	ticks  string   // the query of every second
	metric bool     // whether the history list is asked for apart
	asked  asked    // since the sampler's start
	notes  []string // what the server refused
	thread threadOfConnection
}

// asked sums up what asking has cost since the sampler's start.
type asked struct {
	statements int64         // counted by the server's Questions
	wall       time.Duration // until the answers were there
	cpu        float64       // seconds the connection's thread ran; 0 where that cannot be told
}

// seconds bounds what asking took of the server.
func (a asked) seconds() float64 {
	if a.cpu > 0 {
		return a.cpu
	}
	return a.wall.Seconds()
}

func newServer(ctx context.Context, o Options) (*serverReader, error) {
	conn, err := o.Conn.Single(ctx)
	if err != nil {
		return nil, err
	}
	s := &serverReader{conn: conn, ticks: ticks(), metric: true}
	if o.ServerPID > 0 {
		s.thread = s.findThread(ctx, o)
	}
	return s, nil
}

// ticks returns the query of every second. On an idle server of 2 CPUs it takes 0.32 ms on MySQL 9.7 and 0.36
// ms on MariaDB 10.11, where all of SHOW GLOBAL STATUS takes 0.52 and 0.87. MySQL's
// performance_schema.global_status takes 0.28, but has no Com_commit, and MariaDB's is empty.
func ticks() string {
	var names []string
	for _, s := range statuses() {
		names = append(names, s.variable)
	}
	return "SHOW GLOBAL STATUS WHERE Variable_name IN ('" + strings.Join(append(names, debts()...), "','") + "')"
}

// history asks for what MySQL has no status variable for: 0.31 ms. The metric is counted unless it was
// switched off. log_lsn_checkpoint_age beside it is off by default, and then 0, which is why it is not used.
const history = "SELECT NAME, COUNT FROM information_schema.INNODB_METRICS WHERE NAME = 'trx_rseg_history_len'"

// read gives the status variables that are numbers, by lower-case name: the sampled ones, or all.
func (s *serverReader) read(ctx context.Context, full bool) (map[string]float64, error) {
	query := s.ticks
	if full {
		query = "SHOW GLOBAL STATUS"
	}
	text, err := s.ask(ctx, query)
	if err != nil {
		return nil, err
	}
	if _, ok := text["innodb_history_list_length"]; !ok && s.metric {
		if err := s.readHistory(ctx, text); err != nil {
			return nil, err
		}
	}
	s.asked.cpu = s.thread.cpu()
	return mysqld.Counters(text), nil
}

// readHistory adds the history list's length. A server that refuses, for want of the PROCESS privilege or of
// the table, is not asked again.
func (s *serverReader) readHistory(ctx context.Context, text map[string]string) error {
	more, err := s.ask(ctx, history)
	switch {
	case mysqld.Number(err) != 0:
		s.metric = false
		s.notes = append(s.notes, err.Error())
		return nil
	case err != nil:
		return err
	}
	if length, ok := more["trx_rseg_history_len"]; ok {
		text["innodb_history_list_length"] = length
	}
	return nil
}

func (s *serverReader) ask(ctx context.Context, query string) (map[string]string, error) {
	began := time.Now()
	pairs, err := s.conn.Pairs(ctx, query)
	s.asked.wall += time.Since(began)
	s.asked.statements++
	return pairs, err
}

func (s *serverReader) close() error { return s.conn.Close() }

// findThread finds the thread that serves the connection, so that its CPU time can be read instead of being
// guessed from the time its answers take. Where the server does not tell, or shares threads between
// connections, there is none.
func (s *serverReader) findThread(ctx context.Context, o Options) threadOfConnection {
	pairs, err := s.ask(ctx, ownThread(o.Flavour))
	if err != nil {
		s.notes = append(s.notes, fmt.Sprintf("CPU time of the sampler's own queries: %v", err))
		return threadOfConnection{}
	}
	return newThread(o.ServerPID, pairs["tid"])
}

// ownThread asks which thread serves the connection that asks.
func ownThread(f mycnf.Flavour) string {
	query := "SELECT 'tid', THREAD_OS_ID FROM performance_schema.threads WHERE PROCESSLIST_ID = CONNECTION_ID()"
	if f == mycnf.MariaDB {
		query = "SELECT 'tid', TID FROM information_schema.PROCESSLIST WHERE ID = CONNECTION_ID()"
	}
	return query + " AND @@thread_handling = 'one-thread-per-connection'"
}

// debt tells what the server has put off, as far as it tells.
func debt(status map[string]float64) result.Debt {
	return result.Debt{
		CheckpointAge: checkpointAge(status),
		DirtyPages:    known(status, "innodb_buffer_pool_pages_dirty"),
		History:       known(status, "innodb_history_list_length"),
	}
}

// checkpointAge is in bytes of redo: MariaDB's own figure, or the distance of MySQL's two positions.
func checkpointAge(status map[string]float64) *float64 {
	if age := known(status, "innodb_checkpoint_age"); age != nil {
		return age
	}
	for _, pair := range [][2]string{
		{"innodb_redo_log_current_lsn", "innodb_redo_log_checkpoint_lsn"}, {"innodb_lsn_current", "innodb_lsn_last_checkpoint"},
	} {
		now, then := known(status, pair[0]), known(status, pair[1])
		if now != nil && then != nil {
			age := max(0, *now-*then)
			return &age
		}
	}
	return nil
}

// known points to a value, nil where there is none.
func known(values map[string]float64, name string) *float64 {
	if v, ok := values[name]; ok {
		return &v
	}
	return nil
}
