package mycnf_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"david/internal/mycnf"
)

// writer makes an option file of what servers take, and of what somebody might hope that they take.
type writer struct {
	*rand.Rand
	d    *differential
	wild bool // lines that the server refuses may be in it
	text strings.Builder
	end  string // of a line
	deep int
}

// generate makes the file of a number: the same for the same seed.
func (d *differential) generate(number uint64) string {
	w := &writer{Rand: rand.New(rand.NewPCG(uint64(d.seed), number)), d: d, end: "\n"}
	w.wild = w.IntN(4) == 0
	if w.IntN(8) == 0 {
		w.end = "\r\n"
	}
	if w.wild && w.IntN(12) == 0 {
		w.text.WriteString("\ufeff")
	}
	return w.file()
}

func (w *writer) file() string {
	if w.IntN(20) > 0 {
		w.line("[mysqld]")
	}
	for range 4 + w.IntN(20) {
		w.something()
	}
	text := w.text.String()
	if w.IntN(10) == 0 {
		text = strings.TrimSuffix(text, w.end)
	}
	return text
}

func (w *writer) line(parts ...string) {
	w.text.WriteString(strings.Join(parts, ""))
	w.text.WriteString(w.end)
}

// pick is one of several texts.
func (w *writer) pick(texts ...string) string { return texts[w.IntN(len(texts))] }

// something writes a line, or several.
func (w *writer) something() {
	switch n := w.IntN(40); {
	case n < 2:
		w.line(w.pick("# sync_binlog=0", ";innodb_doublewrite=0", "", "   ", "\t# x", "#", " ; [client]"))
	case n < 5:
		w.line(w.blank(), "[", w.group(), "]", w.pick("", "", " ", " # x", "sync_binlog=0"))
	case n < 6 && w.deep < 3:
		w.include()
	default:
		w.option()
	}
}

// group names one that the server reads, or one that it does not.
func (w *writer) group() string {
	groups := mycnf.ServerGroups(w.d.flavour, w.d.version)
	if w.IntN(3) == 0 {
		return w.pick("client", "mysql", " mysqld", "mysqld_safe", "mysqld-5.7", "mysqld-99.9", "galera", "client-server", "mariadb", "mysql_cluster", "mariadb-10.11", "mysqld-9.7", "mysqldx", "embedded", "mysqld;", "")
	}
	name := w.pick(groups...)
	switch w.IntN(5) {
	case 0:
		name = strings.ToUpper(name)
	case 1:
		name = strings.ToUpper(name[:1]) + name[1:]
	case 2:
		name += w.pick(" ", "\t", "  ")
	}
	return name
}

func (w *writer) blank() string { return w.pick("", "", "", "", " ", "\t", "  ", "\v", "\xa0") }

// include writes further files, and the line that names them.
func (w *writer) include() {
	w.deep++
	dir, err := os.MkdirTemp(w.d.dir, "inc")
	if err != nil {
		w.d.t.Fatal(err)
	}
	inner := func(name string) string {
		one := &writer{Rand: w.Rand, d: w.d, wild: w.wild, end: w.end, deep: w.deep}
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(one.file()), 0o600); err != nil {
			w.d.t.Fatal(err)
		}
		return path
	}
	if w.IntN(2) == 0 {
		w.line(w.blank(), w.pick("!include ", "!include\t", "! include  "), inner(w.pick("x.cnf", "x.txt")), w.blank())
		return
	}
	for _, name := range []string{"b.cnf", "a.cnf", "10.z.cnf", "B.cnf", ".cnf", ".x.cnf", "c.cnf.bak", "d.CNF", "e.cnf~", "cnf"} {
		if w.IntN(3) == 0 {
			inner(name)
		}
	}
	w.line(w.pick("!includedir ", "!includedir\t"), dir, w.pick("", "/"), w.blank())
}

// option writes a line that sets something, unless it would spoil a file that is to be taken.
func (w *writer) option() {
	name := w.pick(lock(w.d.flavour)...)
	if w.IntN(5) == 0 {
		name = w.pick(w.d.names...)
	}
	text := w.dressed(name)
	if w.IntN(10) > 0 {
		text += w.equals() + w.value(name)
	}
	file, err := mycnf.Parse(strings.NewReader("[mysqld]\n"+text), "one")
	if err == nil && len(file.Items) == 1 {
		item := file.Items[0]
		o := mycnf.Resolve(w.d.flavour, w.d.version, item.Name, item.Value, item.Bare)
		if _, refused := o.Refused(); refused && (!w.wild || w.IntN(3) > 0) {
			return
		}
		if prefixed := strings.ToLower(item.Name); (strings.Contains(prefixed, "maximum") || strings.Contains(prefixed, "autoset")) && !slices.Contains(lock(w.d.flavour), strings.TrimPrefix(o.Name, "maximum_")) {
			return // whether there is one for sessions, or an automatic value, only the server knows
		}
	} else if !w.wild {
		return
	}
	w.line(w.blank(), text)
}

func (w *writer) equals() string { return w.blank() + "=" + w.blank() }

// dressed gives a name one of the many forms in which servers, or people, write it.
func (w *writer) dressed(name string) string {
	if w.IntN(3) == 0 {
		name = name[:len(name)-w.IntN(1+len(name)/2)]
	}
	if w.IntN(6) == 0 {
		name = "plugin_" + name
	}
	for w.IntN(3) == 0 {
		name = w.pick("skip_", "disable_", "enable_", "maximum_", "loose_", "loose_", "loose-", "autoset_", "skip-") + name
	}
	switch w.IntN(30) {
	case 0:
		name = strings.ToUpper(name)
	case 1:
		name = strings.ToUpper(name[:1]) + name[1:]
	case 2:
		name = w.pick("x.", "a.b.", ".", "hot.", "--", "-") + name
	case 3:
		name += w.pick("x", ".", "_", "\xa0", "$")
	}
	if w.IntN(2) == 0 {
		name = strings.ReplaceAll(name, "_", "-")
	} else if w.IntN(3) == 0 {
		name = strings.Replace(name, "_", "-", 1+w.IntN(2))
	}
	return name
}

// value writes one that fits the variable, or not quite, in one of the forms that files take.
func (w *writer) value(name string) string {
	text := w.worth(name)
	switch w.IntN(14) {
	case 0:
		return `"` + text + `"`
	case 1:
		return "'" + text + "'"
	case 2:
		return text + w.pick(" # x", "#x", "\t", "  ", "\xa0")
	case 3:
		return w.pick(`"`+text, text+"'", `\s`+text, text+`\`, `"`+text+`\t"`, `"`+text+`\"`, "'"+text+"' # '", `"`+text+"#\"")
	}
	return text
}

// worth is a value without quotes.
func (w *writer) worth(name string) string {
	words := w.d.words(name)
	switch n := w.IntN(12); {
	case n == 0:
		return ""
	case n < 7 && len(words) > 0:
		word := w.pick(words...)
		switch w.IntN(5) {
		case 0:
			word = strings.ToLower(word)
		case 1:
			word = word[:1+w.IntN(len(word))]
		case 2:
			word += "," + w.pick(words...)
		}
		return word
	case n < 10:
		return w.pick("0", "1", "0", "1", "ON", "OFF", "on", "off", "TRUE", "false", "2", "3")
	}
	return w.pick("yes", "no", "+1", "-1", "00", "01", "1k", "1K", "0k", "K", "4G", "1kfoo", "18014398509481984K", "99999999999999999999", "1e3", "1.0", "0x1", "4294967295", "4294967296",
		"1 ", " 1", "o", "t", "f", "7", "100", "1,", ",1", "auto", fmt.Sprint(w.IntN(40)))
}

// words are values that a member of the lock has somewhere.
func (d *differential) words(name string) []string {
	return map[string][]string{
		"innodb_flush_method":       {"fsync", "O_DSYNC", "littlesync", "nosync", "O_DIRECT", "O_DIRECT_NO_FSYNC"},
		"innodb_doublewrite":        {"ON", "OFF", "DETECT_ONLY", "DETECT_AND_RECOVER", "TRUE", "FALSE"},
		"innodb_checksum_algorithm": {"crc32", "full_crc32", "strict_crc32", "strict_full_crc32", "innodb", "strict_innodb", "none", "strict_none"},
		"binlog_checksum":           {"NONE", "CRC32"},
		"binlog_format":             {"MIXED", "STATEMENT", "ROW"},
		"binlog_row_image":          {"MINIMAL", "NOBLOB", "FULL"},
		"binlog_error_action":       {"IGNORE_ERROR", "ABORT_SERVER"},
		"completion_type":           {"NO_CHAIN", "CHAIN", "RELEASE"},
		"gtid_mode":                 {"OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON"},
		"enforce_gtid_consistency":  {"OFF", "ON", "WARN"},
		"transaction_isolation":     {"READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"},
		"sql_mode":                  {"ANSI_QUOTES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES", "ANSI", "TRADITIONAL", "NO_ENGINE_SUBSTITUTION", "PIPES_AS_CONCAT"},
		"log_bin":                   {"binlog", "mysql-bin"},
	}[name]
}
