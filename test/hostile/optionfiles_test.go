package hostile

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"david/internal/mycnf"
	"david/internal/plain"
)

// optionFile is a my.cnf with what it includes.
type optionFile struct {
	name, text string
	includes   map[string]string // by path in the case's folder
}

// generatedFiles is how many option files are made; each is tried in one way of many, on both flavours.
const generatedFiles = 560

// optionFiles are the option files by hand, each in several ways, and the generated ones, each in one.
func optionFiles(number uint64) (list []hostile) {
	for i, f := range filesByHand() {
		for _, way := range append(fastWays(), slowWays()[i%len(slowWays())]) {
			list = append(list, way(f)...)
		}
	}
	for i := range generatedFiles {
		ways := fastWays()
		if i%6 == 0 { // a server is asked in these, which takes longer
			ways = slowWays()
		}
		list = append(list, ways[i/6%len(ways)](generateFile(number, i))...)
	}
	return list
}

// way makes the cases of an option file, one for each flavour.
type way func(optionFile) []hostile

// fastWays are those in which david asks no server.
func fastWays() []way { return []way{viaManifest, viaCheck, viaArguments} }

// slowWays are those in which it asks one.
func slowWays() []way {
	return []way{viaAudit, viaCommand("crash-test", "--cnf", "{dir}/my.cnf"), viaCommand("race", "--against", "{dir}/my.cnf"), viaCommand("tune", "--base", "{dir}/my.cnf")}
}

func release(f mycnf.Flavour) string {
	if f == mycnf.MariaDB {
		return "10.11"
	}
	return "9.7"
}

func (f optionFile) all() map[string]string {
	all := map[string]string{"my.cnf": f.text}
	for name, text := range f.includes {
		all[name] = text
	}
	return all
}

// viaManifest has david render the file for a pod: what comes out is read by a real server, which has to start with it
// and to keep the lock.
func viaManifest(f optionFile) (list []hostile) {
	for _, flavour := range flavours() {
		list = append(list, hostile{class: "option file, manifest", name: f.name + "/" + string(flavour), files: f.all(),
			args: []string{"manifest", "--cnf", "{dir}/my.cnf", "--server", string(flavour) + ":" + release(flavour), "--cpus", "1", "--memory", "1Gi", "--size", "10Gi", "--storage", "zfs", "--name", "db", "--stdout"},
			lock: func(d *david, s seen) string {
				if !s.taken() {
					return ""
				}
				text, err := rendered(s.out)
				path := filepath.Join(s.dir, "rendered.cnf")
				if err == nil {
					err = os.WriteFile(path, []byte(text), 0o600)
				}
				if err != nil {
					return err.Error()
				}
				h := d.asksFile(flavour, "", path)
				if why := d.validates(flavour, path); why != "" {
					return fmt.Sprintf("the server does not start with what was rendered: %s\n%s", why, text)
				}
				if !h.Taken {
					return fmt.Sprintf("the server does not start with what was rendered: %.500s\n%s", h.Complaints, text)
				}
				if names := d.unsafe(flavour, h); len(names) > 0 {
					return fmt.Sprintf("rendered, and the lock does not hold: %s\n%s", names, text)
				}
				return ""
			}})
	}
	return list
}

// rendered finds the my.cnf in a stream of objects.
func rendered(stream string) (string, error) {
	dec := yaml.NewDecoder(strings.NewReader(stream))
	for {
		var o struct {
			Kind string
			Data map[string]string
		}
		if err := dec.Decode(&o); err != nil {
			return "", fmt.Errorf("there is no my.cnf in what was rendered: %w", err)
		}
		for name, text := range o.Data {
			if o.Kind == "ConfigMap" && strings.HasSuffix(name, ".cnf") {
				return text, nil
			}
		}
	}
}

// viaAudit has david judge the file: what a real server reads of it against the lock has to be among the dangers.
func viaAudit(f optionFile) (list []hostile) {
	for _, flavour := range flavours() {
		list = append(list, hostile{class: "option file, audit", name: f.name + "/" + string(flavour), files: f.all(),
			args: []string{"audit", "--cnf", "{dir}/my.cnf", "--flavour", string(flavour), "--server-version", release(flavour), "--memory", "4G", "--cpus", "2", "--json"},
			lock: func(d *david, s seen) string {
				h := d.asksFile(flavour, s.key(), filepath.Join(s.dir, "my.cnf"))
				if !s.taken() || !h.Taken {
					return ""
				}
				var doc struct {
					Findings []struct{ Severity, Variable string }
				}
				if err := json.Unmarshal([]byte(s.out), &doc); err != nil {
					return err.Error()
				}
				for _, name := range d.unsafe(flavour, h) {
					if !slices.ContainsFunc(doc.Findings, func(f struct{ Severity, Variable string }) bool { return f.Severity == "danger" && f.Variable == name }) {
						return "the server has " + name + "=" + h.Values[name] + ", of which the audit says nothing"
					}
				}
				return ""
			}})
	}
	return list
}

// key names what a server is asked of, so that it is asked once.
func (s seen) key() string { return s.files["my.cnf"] + "\x00" + fmt.Sprint(s.files) }

// viaCheck puts the file into a ConfigMap that a server mounts: manifest check has to end with errors where a real server
// reads anything against the lock.
func viaCheck(f optionFile) (list []hostile) {
	if len(f.includes) > 0 || strings.Contains(f.text, "{dir}") { // of another machine's folders nobody knows
		return nil
	}
	for _, flavour := range flavours() {
		data, text := "data", f.text
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			data, text = "binaryData", base64.StdEncoding.EncodeToString([]byte(text))
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			panic(err)
		}
		stack := fmt.Sprintf("%s---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cnf, namespace: db}\n%s: {my.cnf: %s}\n", serverPod(flavour, ""), data, quoted)
		list = append(list, checked("option file, check", f, flavour, stack, nil))
	}
	return list
}

// checked is a case of manifest check, held against what the server says of the file, or of options.
func checked(class string, f optionFile, flavour mycnf.Flavour, stack string, options []string) hostile {
	files := f.all()
	files["stack.yaml"] = stack
	return hostile{class: class, name: f.name + "/" + string(flavour), files: files, args: []string{"manifest", "check", "{dir}/stack.yaml", "--json"},
		lock: func(d *david, s seen) string {
			key, asked := fmt.Sprintf("%q", options), options
			if options == nil {
				key, asked = s.key(), []string{"--defaults-file=" + filepath.Join(s.dir, "my.cnf")}
			}
			h := d.asks(flavour, key, asked...)
			names := d.unsafe(flavour, h)
			if !h.Taken || len(names) == 0 || s.code == 2 {
				return ""
			}
			return fmt.Sprintf("the server has %s, of which the check says nothing", names)
		}}
}

// serverPod is a StatefulSet of a server that mounts the ConfigMap cnf, with arguments.
func serverPod(f mycnf.Flavour, args string) string {
	return fmt.Sprintf(`apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: db}
spec:
  serviceName: db
  selector: {matchLabels: {app: db}}
  template:
    metadata: {labels: {app: db}}
    spec:
      terminationGracePeriodSeconds: 600
      containers:
        - name: server
          image: %s:%s
          args: [%s]
          env: [{name: MYSQL_ROOT_PASSWORD, valueFrom: {secretKeyRef: {name: s, key: p}}}]
          resources: {limits: {cpu: 2, memory: 2Gi}, requests: {cpu: 2, memory: 2Gi}}
          startupProbe: {tcpSocket: {port: 3306}, failureThreshold: 360, periodSeconds: 10}
          volumeMounts: [{name: data, mountPath: /var/lib/mysql}, {name: cnf, mountPath: /etc/mysql/conf.d}]
      volumes: [{name: cnf, configMap: {name: cnf}}]
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}
`, f, release(f), args)
}

// viaArguments gives the lines of the file to the server as arguments of its container.
func viaArguments(f optionFile) (list []hostile) {
	var args []string
	for line := range strings.Lines(f.text) {
		line = strings.TrimSpace(strings.ReplaceAll(line, "\ufeff", ""))
		name, _, _ := strings.Cut(line, "=")
		if line != "" && !strings.ContainsAny(line[:1], "[#;!-") && !strings.ContainsAny(name, " \"'#\x00") && plain.Text(line) == line {
			args = append(args, "--"+line)
		}
	}
	if len(args) == 0 {
		return nil
	}
	quoted, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	for _, flavour := range flavours() {
		stack := serverPod(flavour, strings.Trim(string(quoted), "[]")) + "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: cnf, namespace: db}\ndata: {}\n"
		list = append(list, checked("option file, arguments", optionFile{name: f.name, text: f.text}, flavour, stack, append([]string{"--no-defaults"}, args...)))
	}
	return list
}

// viaCommand has david measure with the file: it must refuse what a real server would have against the lock.
func viaCommand(args ...string) way {
	return func(f optionFile) (list []hostile) {
		for _, flavour := range flavours() {
			list = append(list, hostile{class: "option file, " + args[0], name: f.name + "/" + string(flavour), files: f.all(),
				args: append(slices.Clone(args), "--server", string(flavour)),
				lock: func(d *david, s seen) string {
					h := d.asksFile(flavour, s.key(), filepath.Join(s.dir, "my.cnf"))
					if names := d.unsafe(flavour, h); s.taken() && h.Taken && len(names) > 0 {
						return fmt.Sprintf("taken, and the server has %s", names)
					}
					return ""
				}})
		}
		return list
	}
}

// filesByHand reads testdata/optionfiles.txt: a file begins at a line of equals signs with its name, and backslashes mean
// what they do in Go.
func filesByHand() (list []optionFile) {
	for name, text := range byHand("optionfiles.txt") {
		f := optionFile{name: name, includes: map[string]string{}}
		for i, part := range strings.Split(text, "-- ") {
			if i == 0 {
				f.text = part
				continue
			}
			inner, body, _ := strings.Cut(part, " --\n")
			f.includes[inner] = body
		}
		list = append(list, f)
	}
	slices.SortFunc(list, func(a, b optionFile) int { return strings.Compare(a.name, b.name) })
	return list
}

// byHand reads a table of testdata.
func byHand(file string) map[string]string {
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		panic(err)
	}
	list := map[string]string{}
	for _, part := range strings.Split("\n"+string(text), "\n== ")[1:] {
		name, body, _ := strings.Cut(part, "\n")
		if _, twice := list[name]; twice {
			panic(file + ": two cases are called " + name)
		}
		body = strings.TrimSuffix(body, "\n") + "\n"
		list[name] = strings.NewReplacer(`\x00`, "\x00", `\xa0`, "\xa0", `\xef\xbb\xbf`, "\ufeff", `\r`, "\r", `\e`, "\x1b", `\v`, "\v", "\\end\n", "", `\long`, strings.Repeat("x", 4090)).Replace(body)
	}
	return list
}

// TestByHand: the tables are read, and generated files are the same each time.
func TestByHand(t *testing.T) {
	if n := len(filesByHand()); n < 40 {
		t.Errorf("%d option files by hand", n)
	}
	for i := range 20 {
		if a, b := generateFile(1, i), generateFile(1, i); a.text != b.text {
			t.Errorf("%q, then %q", a.text, b.text)
		}
	}
}

// writer makes hostile option files: one line at least that goes for the lock.
type writer struct{ *rand.Rand }

func (w writer) pick(texts ...string) string { return texts[w.IntN(len(texts))] }

// one tells true once in n times.
func (w writer) one(n int) bool { return w.IntN(n) == 0 }

func generateFile(number uint64, i int) optionFile {
	w := writer{rand.New(rand.NewPCG(number, uint64(i)))}
	f := optionFile{name: fmt.Sprintf("%04d", i), includes: map[string]string{}}
	end := "\n"
	if w.one(8) {
		end = w.pick("\r\n", "\r\n", " \n", "\t\n")
	}
	var lines []string
	if w.one(15) {
		lines = append(lines, w.pick("\ufeff", "# [client]", ";", ""))
	}
	lines = append(lines, "["+w.group()+"]")
	for range 1 + w.IntN(5) {
		switch {
		case w.one(5):
			lines = append(lines, w.pick("innodb_flush_log_at_trx_commit=1", "sync_binlog=1", "max_connections=100", "# sync_binlog=0", "innodb_buffer_pool_size=128M", "[client]", "["+w.group()+"]", "innodb_doublewrite=ON"))
		case w.one(8):
			lines = append(lines, w.include(&f, end))
		default:
			lines = append(lines, w.attack())
		}
	}
	f.text = strings.Join(lines, end)
	if !w.one(6) {
		f.text += end
	}
	return f
}

func (w writer) group() string {
	name := w.pick("mysqld", "mysqld", "mysqld", "server", "mariadb", "mariadbd", "mysqld-9.7", "mariadb-10.11", "mysqld-10.11", "mariadbd-10.11", "client-server", "galera")
	if w.one(4) {
		name = w.pick(strings.ToUpper(name), strings.ToUpper(name[:1])+name[1:], name+" ", name+"\t")
	}
	return name
}

func (w writer) include(f *optionFile, end string) string {
	inner := "[" + w.group() + "]" + end + w.attack() + end
	name := fmt.Sprintf("inc%d/%s", len(f.includes), w.pick("x.cnf", "x.cnf", ".x.cnf", "z z.cnf"))
	f.includes[name] = inner
	if w.one(2) {
		return w.pick("!includedir ", "!includedir\t", " !includedir ", "! includedir ") + "{dir}/" + filepath.Dir(name) + w.pick("", "/", " ")
	}
	return w.pick("!include ", "!include\t", " ! include ") + "{dir}/" + name + w.pick("", " ", "\t")
}

// attack is a line that would take a member off the lock, if a server read it so.
func (w writer) attack() string {
	targets := [][]string{
		{"innodb_flush_log_at_trx_commit", "0", "2", "3", "0k", "00", "+0", "2K"}, {"sync_binlog", "0", "1000", "0M", "00"},
		{"innodb_doublewrite", "OFF", "0", "FALSE", "off", "DETECT_ONLY", "fast"}, {"innodb_flush_method", "nosync", "O_DIRECT_NO_FSYNC", "littlesync", "2", "5"},
		{"innodb_checksum_algorithm", "none", "strict_none", "NONE", "4"}, {"binlog_checksum", "NONE", "none", "0"},
		{"innodb_force_recovery", "1", "6", "3"}, {"debug_no_sync", "ON", "1", "TRUE", "on"}, {"innodb_log_checksums", "OFF", "0"},
	}
	target := targets[w.IntN(len(targets))]
	name, value := target[0], w.pick(target[1:]...)
	negative := w.one(5)
	name = w.spelt(name)
	switch {
	case negative:
		name = w.pick("skip", "disable", "skip_loose", "loose_skip", "disable_plugin") + "_" + name
		value = w.pick("1", "", "yes", "ON")
		if value == "" {
			return w.dashed(name)
		}
	case w.one(5):
		name = w.pick("loose_", "maximum_", "enable_", "loose_maximum_", "plugin_", "loose_plugin_", "autoset_") + name
	case w.one(6):
		value = w.pick("0x0", "-1", "-0", "18446744073709551616", "4294967296", "1e-9", "0.4", "", "1 0", "NULL", "0b0", "٠", "0e0", "99999999999999999999999999")
	}
	return w.pick("", "", "", " ", "\t", "\v") + w.dashed(name) + w.pick("=", "=", " = ", "\t=\t", "= ", "=\v") + w.quoted(value)
}

// spelt writes a name as somebody might hope that only the server knows it.
func (w writer) spelt(name string) string {
	switch w.IntN(12) {
	case 0, 1:
		return name[:len(name)-1-w.IntN(len(name)/2)]
	case 2:
		return strings.ToUpper(name)
	case 3:
		return strings.ToUpper(name[:1]) + name[1:]
	case 4:
		return w.pick("x.", "hot.", "a.b.", "mysqld.", "--", "-") + name
	case 5:
		return name + w.pick("_", "x", ".x", "\xa0", "$", "\u200b")
	}
	return name
}

func (w writer) dashed(name string) string {
	switch w.IntN(3) {
	case 0:
		return strings.ReplaceAll(name, "_", "-")
	case 1:
		return strings.Replace(name, "_", "-", 1+w.IntN(3))
	}
	return name
}

func (w writer) quoted(value string) string {
	switch w.IntN(10) {
	case 0:
		return `"` + value + `"`
	case 1:
		return "'" + value + "'"
	case 2:
		return value + w.pick(" # =1", "#1", "\t", "  ", " ;1")
	case 3:
		return w.pick(`\s`+value, `"`+value, value+`"`, `"`+value+` "`, `'`+value+`' #'`, `"\`+value+`"`, value+`\`)
	}
	return value
}
