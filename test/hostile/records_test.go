package hostile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// generatedRecords is how many mutations of sound records there are.
const generatedRecords = 150

const (
	recordHead   = `{"schema":2,"server":{"uuid":"u","hostname":"h","port":"3306","datadir":"/d/","flavour":"mysql","version":"9.7.4","network":"unix","address":"{dir}/trap"}}`
	recordChange = `{"schema":2,"n":1,"event":"intended","step":"s","name":"innodb_spin_wait_delay","before":"6","after":"2"}`
	recordPool   = `{"schema":2,"n":1,"event":"intended","step":"s","name":"innodb_buffer_pool_size","before":"134217728","after":"1G"}`
	experiment   = `{"schema":1,"id":"x","kind":"live","target":"remote","created":"2026-01-01T00:00:00Z"}`
)

// records are records of changes to a running server as somebody else may have made them: david refuses them
// (2), or asks the server that it was told of, which is not there (4), and no other.
func records(number uint64) (list []hostile) {
	add := func(name, text, experiment string, codes ...int) {
		list = append(list, hostile{class: "record for rollback", name: name, secret: "hunter2", args: []string{"rollback", "{dir}/x", "--dsn", "u:hunter2@unix({dir}/none)/"},
			files: map[string]string{"x/experiment.json": experiment, "x/changes.jsonl": text}, codes: codes})
	}
	sound := recordHead + "\n" + recordChange + "\n"
	add("sound", sound, experiment, 4)
	add("sound, to the address on record", sound, experiment, 2)
	list[1].args = []string{"rollback", "{dir}/x"}
	for i, name := range append(hostileNames(), variables()...) {
		add(fmt.Sprintf("name %03d", i), strings.Replace(sound, `"innodb_spin_wait_delay"`, quoted(name), 1), experiment, 2)
	}
	for i, value := range hostileValues() {
		field, code := []string{`"before":"6"`, `"after":"2"`}[i%2], 2
		if slices.Contains(delays(), value) {
			code = 4
		}
		key, _, _ := strings.Cut(field, ":")
		add(fmt.Sprintf("value %03d", i), strings.Replace(sound, field, key+":"+quoted(value), 1), experiment, code)
	}
	for i := range generatedRecords {
		w := writer{rand.New(rand.NewPCG(number, 1<<41+uint64(i)))}
		text := recordHead + "\n" + w.pick(recordChange, recordPool) + "\n" + w.pick(recordChange, `{"schema":2,"n":1,"event":"set","after":"2"}`, `{"schema":2,"n":1,"event":"kept"}`, `{"schema":2,"event":"watchdog","pid":1}`, `{"schema":2,"n":1,"event":"persisting","persisted":"6"}`) + "\n"
		e := experiment
		if w.one(3) {
			e = w.mutated(e)
		} else {
			text = w.mutated(text)
		}
		add(fmt.Sprintf("mutation %03d", i), text, e, 0, 2, 4)
		list[len(list)-1].lock = nothingDone
	}
	return list
}

// delays are those of the hostile values that are one of innodb_spin_wait_delay, however they look.
func delays() []string { return []string{"0", "00"} }

// variables are those that no record may touch.
func variables() []string {
	return []string{"sync_binlog", "innodb_flush_log_at_trx_commit", "innodb_doublewrite", "innodb_flush_method", "read_only", "super_read_only", "init_connect", "init_file", "general_log_file", "secure_file_priv", "datadir", "sql_log_bin",
		"@@global.sync_binlog", "global.sync_binlog", "GLOBAL sync_binlog", "PERSIST sync_binlog", "innodb_spin_wait_delay, GLOBAL sync_binlog", "innodb_spin_wait_delay/**/", "INNODB_SPIN_WAIT_DELAY", "innodb-spin-wait-delay", "loose_innodb_spin_wait_delay", "max_connections", "password"}
}

// mutated changes a text in a few places.
func (w writer) mutated(text string) string {
	for range 1 + w.IntN(3) {
		at := w.IntN(len(text) + 1)
		switch w.IntN(8) {
		case 0:
			text = text[:at]
		case 1:
			text = text[:at] + w.pick("\x00", "\xff", "\\", "\"", "{", "}", "[", ",", "\n", "null", "-1", "1e999", "\\u0000", "\\u001b[2J") + text[at:]
		case 2:
			text = text[:at] + text[min(len(text), at+1+w.IntN(20)):]
		case 3:
			text += text[at:]
		case 4:
			text = strings.Replace(text, w.pick(`"schema":2`, `"schema":1`), w.pick(`"schema":99`, `"schema":-1`, `"schema":"2"`, `"schema":2e0`), 1)
		case 5:
			text = strings.Replace(text, w.pick(`"n":1`, `"6"`, `"2"`), w.pick(`"n":0`, `"n":2147483648`, `6`, `[6]`, `{"a":6}`, `null`), 1)
		case 6:
			text = text[:at] + strings.Repeat(w.pick("[", "{\"a\":", " ", "9"), 20000) + text[at:]
		default:
			text = strings.ReplaceAll(text, w.pick("innodb_spin_wait_delay", "intended", "server", "event"), w.pick("sync_binlog", "Event", "", "server"))
		}
		if text == "" {
			text = "\n"
		}
	}
	return text
}

// nothingDone says so where david ended well with a record that has something to set back: no server is there
// to do so.
func nothingDone(_ *david, s seen) string {
	if s.code == 0 && !strings.Contains(s.out, "nothing is left to do") {
		return "it was carried out"
	}
	return ""
}

// quoted is a text in JSON, which YAML reads as well.
func quoted(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(b)
}
