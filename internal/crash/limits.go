package crash

import (
	"fmt"
	"strings"

	"david/internal/mycnf"
)

// Limits returns what every reader of a crash test must know of it: what a kill cannot show, and which
// settings of this very server are of that kind.
func Limits(vars map[string]string) []string {
	list := []string{"a kill ends the process and loses its memory; what it had written to the kernel survives, and reaches the disk later. So a kill shows " +
		"what innodb_flush_log_at_trx_commit=0 loses; what only a power failure or a crash of the kernel loses (docs/crash.md), it cannot show"}
	for _, name := range []string{"innodb_flush_log_at_trx_commit", "sync_binlog", "innodb_doublewrite", "innodb_flush_method"} {
		if value, ok := vars[name]; ok && hidden(name, value) {
			list = append(list, fmt.Sprintf("%s=%s is of that kind: that nothing was lost says nothing of a power failure", name, value))
		}
	}
	if vars["innodb_flush_log_at_trx_commit"] == "0" && strings.EqualFold(vars["innodb_log_writer_threads"], "ON") {
		list = append(list, "with innodb_log_writer_threads=ON the log is handed to the kernel within moments of a commit, so a kill hardly shows what "+
			"innodb_flush_log_at_trx_commit=0 loses; set it OFF to see that")
	}
	return list
}

// PowerLimits returns what every reader of a test that cuts the power must know of it, and of this very
// server.
func PowerLimits(vars map[string]string) []string {
	list := []string{"the disk keeps, loses or tears (512 B, 4 KiB) each write at risk, whatever their order; one that damages what it had made durable, or other blocks than " +
		"those being written, no cut shows (docs/crash.md)"}
	if mycnf.DoublewriteUnflushed(vars) {
		list = append(list, fmt.Sprintf("innodb_flush_method=%s: %s: %s", vars["innodb_flush_method"], mycnf.UnflushedDoublewrite, mycnf.UnflushedLoses))
	}
	if mycnf.ReadsBeforeCopy(vars) {
		list = append(list, mycnf.FirstPageLoses)
	}
	return list
}

// hidden tells whether a value is unsafe in a way that only a power failure shows.
func hidden(name, value string) bool {
	switch name {
	case "innodb_flush_log_at_trx_commit":
		return value == "2"
	case "sync_binlog":
		return value != "1"
	case "innodb_doublewrite":
		return !strings.EqualFold(value, "ON") && !strings.EqualFold(value, "DETECT_AND_RECOVER")
	}
	value = strings.ToLower(value)
	return value == "o_direct_no_fsync" || value == "nosync" || value == "littlesync"
}
