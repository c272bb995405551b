package hostile

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// generatedSpecs is how many mutations of a sound spec there are.
const generatedSpecs = 150

const soundSpec = `version: 1
title: two arms
server: mysql
arms:
  - name: control
  - name: tuned
    set: {innodb_io_capacity: 2000}
    cnf: my.cnf
workloads:
  - name: oltp_read_write
    tables: 2
    table_size: 1000
    threads: [1, 4]
time: 2s
warmup: 1s
blocks: 3
seed: 1
`

// specs are files of experiments: those by hand (testdata), values of keys, and mutations of a sound one. A dry run says
// what it would measure.
func specs(number uint64) (list []hostile) {
	add := func(name, text string) {
		list = append(list, hostile{class: "spec", name: name, secret: "hunter2", files: map[string]string{"x.yaml": text, "my.cnf": "[mysqld]\ninnodb_io_capacity=1000\n", "secret.txt": "hunter2\n"},
			args: []string{"experiment", "run", "{dir}/x.yaml", "--dry-run"}, lock: nothingElsewhere})
	}
	for name, text := range byHand("specs.txt") {
		add("by hand, "+name, text)
	}
	for i, value := range hostileValues() {
		old := []string{"innodb_io_capacity: 2000", "time: 2s", "seed: 1", "table_size: 1000", "blocks: 3", "title: two arms", "cnf: my.cnf", "threads: [1, 4]"}[i%8]
		key, _, _ := strings.Cut(old, ":")
		add(fmt.Sprintf("value %03d", i), strings.Replace(soundSpec, old, key+": "+quoted(value), 1))
	}
	for i, name := range hostileNames() {
		add(fmt.Sprintf("name %03d", i), strings.Replace(soundSpec, []string{"name: tuned", "name: oltp_read_write", "server: mysql", "cnf: my.cnf"}[i%4], []string{"name: ", "name: ", "server: ", "cnf: "}[i%4]+quoted(name), 1))
	}
	for i := range generatedSpecs {
		w := writer{rand.New(rand.NewPCG(number, 1<<42+uint64(i)))}
		add(fmt.Sprintf("mutation %03d", i), w.mutatedYAML(soundSpec))
	}
	return list
}

// mutatedYAML changes a document in a few places.
func (w writer) mutatedYAML(text string) string {
	for range 1 + w.IntN(4) {
		lines := strings.SplitAfter(text, "\n")
		at := w.IntN(len(lines))
		key, _, _ := strings.Cut(lines[at], ":")
		switch w.IntN(9) {
		case 0:
			lines[at] = ""
		case 1:
			lines[at] += lines[at]
		case 2:
			lines[at] = key + ": " + w.pick("[]", "{}", "null", "~", "-1", "1e999", ".nan", ".inf", "!!binary aGk=", "!!timestamp 2026-01-01", "&a [*a]", "*a", "0x10", "1_000", "yes", "!!python/object:os.system x", "|\n  x", "'\x00'", "\"\\e[2J\"", "{? [a] : b}", "9223372036854775808") + "\n"
		case 3:
			lines[at] = w.pick(" ", "  ", "\t", "- ") + lines[at]
		case 4:
			lines[at] = strings.TrimLeft(lines[at], " ")
		case 5:
			lines[at] = w.pick("---\n", "...\n", "%YAML 9.9\n", "<<: *a\n", "# hunter2\n", "\ufeff", "\x00\n", "x: &x {y: *x}\n", "? \n", "unknown: 1\n") + lines[at]
		case 6:
			lines[at] = strings.TrimRight(lines[at], "\n") + strings.Repeat(w.pick("[", "{a: ", "- ", "x"), 3000) + "\n"
		case 7:
			other := w.IntN(len(lines))
			lines[at], lines[other] = lines[other], lines[at]
		default:
			lines[at] = strings.ToUpper(lines[at])
		}
		text = strings.Join(lines, "")
	}
	return text
}
