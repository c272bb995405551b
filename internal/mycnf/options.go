package mycnf

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// optionsText is the data: one option a line, explained at its top. It is checked by tests.
//
//go:embed options.txt
var optionsText string

// form tells how a server takes an option: a letter of options.txt.
type form byte

// The forms.
const (
	formNone        form = 0
	formElsewhere   form = '-'
	formSwitch      form = 'b'
	formMaybeSwitch form = 'o'
	formNeedSwitch  form = 'q'
	formFlag        form = 'f'
	formNumber      form = 'n'
	formMaybeNumber form = 'N'
	formText        form = 's'
	formMaybeText   form = 'S'
	formPlugin      form = 'p'
	formRemoved     form = 'r'
)

func (f form) isSwitch() bool { return f == formSwitch || f == formMaybeSwitch || f == formNeedSwitch }

func (f form) isNumber() bool { return f == formNumber || f == formMaybeNumber }

// needsValue tells whether a name alone is refused.
func (f form) needsValue() bool { return f == formNumber || f == formText || f == formNeedSwitch }

// forms holds an option's form in MySQL and in MariaDB.
type forms [2]form

// of is the form in a flavour; that of the server that has it where the flavour is not said.
func (f forms) of(flavour Flavour) form {
	switch {
	case flavour == MariaDB:
		return f[1]
	case flavour != "" || f[0] != formElsewhere:
		return f[0]
	}
	return f[1]
}

// options reads the embedded text once, with the catalogue's names. It cannot fail in a binary whose tests
// have passed.
var options = sync.OnceValue(func() map[string]forms {
	list, err := parseOptions(optionsText)
	if err != nil {
		panic(err)
	}
	for name, x := range catalogue() {
		if _, there := list[name]; !there && x.Kind != KindFlag { // flags are names with a prefix
			list[name] = forms{formElsewhere, formElsewhere}
		}
	}
	return list
})

// parseOptions reads the text, strictly.
func parseOptions(text string) (map[string]forms, error) {
	list := map[string]forms{}
	for i, row := range strings.Split(text, "\n") {
		if row == "" || row[0] == '#' {
			continue
		}
		cols := strings.Fields(row)
		if len(cols) != 3 || len(cols[1]) != 1 || len(cols[2]) != 1 {
			return nil, fmt.Errorf("cannot read options line %d: want a name and two letters", i+1)
		}
		if _, twice := list[cols[0]]; twice || cols[0] != Normalise(cols[0]) {
			return nil, fmt.Errorf("cannot read options line %d: %q is there twice, or is no name", i+1, cols[0])
		}
		for _, letter := range cols[1] + cols[2] {
			if !strings.ContainsRune("-boqfnNsSpr", letter) {
				return nil, fmt.Errorf("cannot read options line %d: %q is no form", i+1, letter)
			}
		}
		list[cols[0]] = forms{form(cols[1][0]), form(cols[2][0])}
	}
	return list, nil
}

// AnyServers tells whether any server that david knows of has an option or a variable of this name, or a
// plugin may have it.
func AnyServers(name string) bool {
	_, there := options()[name]
	return there || strings.Contains(name, ".") || slices.ContainsFunc(pluginPrefixes(), func(p string) bool { return strings.HasPrefix(name, p) })
}

// ofPlugin tells whether a plugin may have the variable.
func ofPlugin(name string) bool {
	f := options()[name]
	return ofInnoDB(name, formNone) || f[0] == formPlugin || f[1] == formPlugin ||
		slices.ContainsFunc(pluginPrefixes(), func(p string) bool { return strings.HasPrefix(name, p) })
}

// pluginPrefixes begin the variables of plugins, most of which are no part of the server's package.
func pluginPrefixes() []string {
	return []string{"aria_", "audit_log_", "authentication_", "auth_", "aws_key_management_", "caching_sha2_password_", "clone_", "columnstore_", "connect_",
		"connection_control_", "cracklib_", "ddl_rewriter_", "disks_", "feedback_", "federated_", "file_key_management_", "gssapi_", "group_replication_",
		"handlersocket_", "hashicorp_", "keyring_", "lock_order_", "mecab_", "mroonga_", "myisam_", "mysql_firewall_", "mysqlx_", "ndb_",
		"oqgraph_", "pam_", "password_reuse_", "provider_", "query_response_time", "rocksdb_", "rpl_semi_sync_", "s3_", "server_audit_",
		"sha256_password_", "simple_password_check_", "spider_", "sql_errlog_", "sql_error_log_", "telemetry", "thread_pool_", "tokudb_", "validate_password", "version_tokens_"}
}

// passes gives MariaDB's options as it goes through them: its own first, then InnoDB's, then the plugins that
// have but a switch, then the removed ones. Within a pass an abbreviation has to fit one name only.
var passes = sync.OnceValue(func() [][]string {
	all := make([][]string, 4)
	for name, f := range options() {
		switch at := f[1]; {
		case at == formElsewhere:
		case at == formRemoved:
			all[3] = append(all[3], name)
		case ofInnoDB(name, at):
			all[1] = append(all[1], name, hiddenPrefix+name)
		case hides(MariaDB, name):
			all[2] = append(all[2], name, hiddenPrefix+name)
		default:
			all[0] = append(all[0], name)
		}
	}
	for _, pass := range all {
		slices.Sort(pass)
	}
	return all
})

// hiddenPrefix begins a second name, which no list shows, of each variable of a plugin (sql_plugin.cc,
// construct_options).
const hiddenPrefix = "plugin_"

// hides tells whether an option is a plugin's in a flavour, so that plugin_ may stand before it and its
// maximum is its value. The plugins are those of the two servers whose options are listed.
func hides(f Flavour, name string) bool {
	at := options()[name].of(f)
	begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case at == formRemoved, f != MariaDB && name == "innodb_native_foreign_keys": // the server's own (sql/sys_vars.cc)
		return false
	case ofInnoDB(name, at) || at == formPlugin || begins("myisam_"):
		return true
	case at == formElsewhere:
		return ofPlugin(name)
	case f == MariaDB:
		return name == "binlog_checksum" || name == "binlog_optimize_thread_scheduling" || begins("aria_") || begins("feedback_")
	}
	return slices.ContainsFunc([]string{"mysqlx_", "ndb_", "ndbinfo_", "ngram_", "caching_sha2_password_"}, begins)
}

// ofInnoDB tells whether an option is one of InnoDB's own, which is a plugin of the server.
func ofInnoDB(name string, f form) bool {
	return name == "innodb" || strings.HasPrefix(name, "innodb_") && f != formRemoved && f != formPlugin
}
