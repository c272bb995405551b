package mycnf

import (
	"slices"
	"strconv"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Mistyped finds the variable that an unknown name is meant to be: one that differs from it in one letter, or
// in two where the name is long. It is sure where Nearest only proposes: the catalogue does not have all
// variables, and what servers have besides differs from it in more. A beginning of a known name is none:
// MariaDB takes those that fit one variable only. Names of plugins have dots, and those with loose_ do no
// harm.
func Mistyped(name string) (meant string, ok bool) {
	n := Normalise(name)
	most := 1
	if len(n) >= 16 {
		most = 2
	}
	if len(n) < 12 || known(n) || strings.HasPrefix(n, loosePrefix) || strings.Contains(n, ".") || slices.Contains(likeOthers(), n) {
		return "", false
	}
	for k := range catalogue() {
		switch d := levenshtein.ComputeDistance(n, k); {
		case strings.HasPrefix(k, n):
			return "", false
		case d < most || d == most && (meant == "" || k < meant):
			meant, most = k, d
		}
	}
	return meant, meant != ""
}

// likeOthers lists variables that the catalogue does not have and that are nearly called as one that it has.
func likeOthers() []string { return []string{"innodb_undo_log_encrypt", "log_slow_query_file"} }

// Malformed says what is wrong with a value: a server does not start with it, or reads another one; "" where
// it is sound, or is filled in by somebody first, as ${ID}, <ID> and SERVER_ID are. Of numbers servers read
// digits, then one of the letters k, m, g, t, p, e, and do not look at what follows that: 4GB is 4G
// (mysys/my_getopt.cc, eval_num_suffix and getopt_double; tried with MySQL 9.7.4 --validate-config and
// MariaDB 10.11.19 --help).
func Malformed(name, value string) string {
	x, text := catalogue()[WithoutLoose(name)], strings.TrimSpace(value)
	if text == "" || strings.ContainsAny(text, "$`{<@%") || slices.Contains(x.Auto, text) {
		return ""
	}
	if x.Kind == KindEnum {
		return x.unlisted(text)
	}
	if strings.Contains(text, "_") || text == strings.ToUpper(text) && !strings.ContainsAny(text, "0123456789") {
		return ""
	}
	switch x.Kind {
	case KindReal:
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return "it is no number: the server does not start with it"
		}
	case KindSize, KindInteger:
		digits := strings.TrimLeft(text, "+-")
		rest := strings.TrimLeft(digits, "0123456789")
		switch suffix := rest != "" && strings.ContainsAny(rest[:1], "kKmMgGtTpPeE"); {
		case rest != "" && !suffix:
			return "a number has digits, and at most a suffix such as K, M or G: the server does not start with it"
		case rest == digits:
			return "it has no digits: the server reads 0"
		}
	}
	return ""
}

// unlisted says that a word is none of an enumeration's. Servers take them in any case and shortened (mysys/typelib.cc, find_type), and numbers.
func (x Variable) unlisted(text string) string {
	if _, err := strconv.Atoi(text); err == nil || len(x.Values) == 0 {
		return ""
	}
	words := slices.Concat(x.Values, x.InMariaDB, elsewhere()[x.Name])
	if slices.Contains(words, "ON") {
		words = append(words, "TRUE", "FALSE", "YES", "NO")
	}
	if slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(strings.ToLower(word), strings.ToLower(text)) }) {
		return ""
	}
	return "it is none of " + strings.Join(x.Values, ", ") + ": the server does not start with it"
}

// elsewhere lists values that only some releases, builds or systems know.
func elsewhere() map[string][]string {
	return map[string][]string{
		"binlog_row_image":    {"FULL_NODUP"},
		"event_scheduler":     {"ORIGINAL"},
		"innodb_doublewrite":  {"fast"},
		"innodb_flush_method": {"fdatasync", "ALL_O_DIRECT", "normal", "unbuffered", "async_unbuffered"},
		"thread_handling":     {"loaded-dynamically", "pools-of-threads"},
	}
}
