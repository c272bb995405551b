package workload

import "david/internal/result"

// Counts returns what the server should have counted while the trial was measured, going by sysbench's
// summary: its Com_commit and its Questions. ok is false where commits do not apply, as the workload's
// statements commit by themselves.
//
// Each transaction of the summary ended with a COMMIT. Its queries are those that succeeded; one that failed
// with a deadlock or a lock timeout is counted by the server and only among sysbench's errors. Neither counts
// what the server does not (preparing and closing statements, in MySQL 9.7 as in MariaDB 10.11); setting up a
// connection adds one question a thread, and whoever else asks the server meanwhile adds theirs, as david
// does when it samples.
func Counts(w result.Workload, t result.Trial) (commits, questions int64, ok bool) {
	questions = t.Queries + t.Errors
	switch find(w.Name).script {
	case "oltp_point_select", "oltp_update_index":
		return 0, questions, false
	}
	return t.Transactions, questions, true
}
